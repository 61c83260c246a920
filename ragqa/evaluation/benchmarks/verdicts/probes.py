"""Draws probes by seed: sentences whose right verdict is known from how they were made. Nothing is retrieved."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import islice
from typing import Final

from ragqa.english.sentences import split_sentences
from ragqa.evaluation.benchmarks.verdicts.edits import MAKERS, edited
from ragqa.index import Index
from ragqa.plugins.protocols import ObligationClassifier
from ragqa.types import Passage

MIN_WORDS: Final = 5  # of a sentence; shorter ones are headings and fragments
MOST_READ: Final = 3_000  # passages sampled, or the number of probes per kind if that is larger
NEARLY: Final = 0.8  # share of a sentence's words from which a passage nearly contains it
CLASSIFIED_AT_ONCE: Final = 64
VERBATIM, REMOVED, OTHER, REWORDED, OBLIGATION = "verbatim", "removed", "other document", "re-worded", "obligation"
KINDS: Final = (VERBATIM, REMOVED, *MAKERS, OTHER, OBLIGATION)
_WORD = re.compile(r"\w+")


class Expected(StrEnum):
    """The right verdict. An obligation is judged by its cover, everything else as a sentence of an answer."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"
    NOT_SUPPORTED = "not supported"  # contradicted or unsupported
    COVERED = "covered"
    IN_PART = "covered in part"


@dataclass(frozen=True, slots=True)
class Probe:
    """A sentence to be judged against the ten passages that are retrieved for ``asked``, or against ``given`` ones.

    ``own`` are the passages that it was made from. They are among the ten or, if ``withheld``, excluded from them,
    together with every passage that has nearly all its words and with the whole document ``document_id`` if that is
    given. ``obligation`` is the obligation that the text should cover, if its cover is judged instead of a sentence.
    ``change`` names what clashes or is missing. ``by_hand`` marks probes of the labelled files.
    """

    kind: str
    text: str
    expected: Expected
    asked: str
    own: tuple[str, ...] = ()
    withheld: bool = False
    document_id: str = ""
    obligation: str = ""
    change: str = ""
    by_hand: bool = False
    given: tuple[str, ...] = ()  # ids of the only passages that it is judged against, if set

    @property
    def name(self) -> str:
        """The kind as shown in tables."""
        return f"{self.kind}, by hand" if self.by_hand else self.kind

    def to_json(self) -> dict[str, object]:
        found = asdict(self)
        if not self.given:
            del found["given"]  # unknown to earlier runs
        return found


@dataclass(frozen=True, slots=True)
class CorpusSentence:
    """A sentence of the corpus and the first passage that contains it."""

    text: str
    passage: Passage


def words_of(text: str) -> frozenset[str]:
    """The distinct words of a text in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def has_nearly(passage: str, sentence: str) -> bool:
    """Whether the passage has at least four fifths of the distinct words of this sentence, in any order."""
    wanted = words_of(sentence)
    return len(wanted & words_of(passage)) >= NEARLY * len(wanted)


def sentences_of(index: Index, seed: int, n: int) -> list[CorpusSentence]:
    """Distinct sentences of at least five words, in an order drawn by ``seed``; ``n`` = 0 reads all passages.

    Passages that no retriever returns, such as headings, are left out.
    """
    chance = random.Random(seed)
    places = [place for place in range(len(index.passages)) if not index.hidden[place]]
    if n and len(places) > MOST_READ:
        places = chance.sample(places, min(len(places), max(MOST_READ, n)))
    found: dict[str, CorpusSentence] = {}
    for place in places:
        passage = index.passages[place]
        for span in split_sentences(passage.text):
            if len(_WORD.findall(span.text)) >= MIN_WORDS:
                found.setdefault(span.text, CorpusSentence(span.text, passage))
    ordered = list(found.values())
    chance.shuffle(ordered)
    return ordered


def drawn(
    sentences: Sequence[CorpusSentence], kinds: Iterable[str], n: int, seed: int, obligations: ObligationClassifier
) -> list[Probe]:
    """``n`` probes of each kind, or as many as the sentences give; ``n`` = 0 gives all."""
    return [probe for kind in kinds for probe in islice(_of_kind(sentences, kind, seed, obligations), n or None)]


def _of_kind(
    sentences: Sequence[CorpusSentence], kind: str, seed: int, obligations: ObligationClassifier
) -> Iterator[Probe]:
    if kind == OBLIGATION:
        yield from _obligations(sentences, obligations)
    elif kind == OTHER:
        yield from _of_other_documents(sentences)
    elif kind in MAKERS:
        chance = random.Random(f"{seed} {kind}")
        for one in sentences:
            edit = edited(one.text, kind, chance)
            if edit:
                own, change = (one.passage.passage_id,), f"{edit.was} → {edit.became}"
                yield Probe(kind, edit.text, Expected.CONTRADICTED, one.text, own, change=change)
    else:
        expected = Expected.UNSUPPORTED if kind == REMOVED else Expected.SUPPORTED
        for one in sentences:
            yield Probe(kind, one.text, expected, one.text, (one.passage.passage_id,), withheld=kind == REMOVED)


def _obligations(sentences: Sequence[CorpusSentence], classifier: ObligationClassifier) -> Iterator[Probe]:
    for start in range(0, len(sentences), CLASSIFIED_AT_ONCE):
        some = sentences[start : start + CLASSIFIED_AT_ONCE]
        for one, obliges in zip(some, classifier.classify([each.text for each in some]), strict=True):
            if obliges:
                own = (one.passage.passage_id,)
                yield Probe(OBLIGATION, one.text, Expected.COVERED, one.text, own, obligation=one.text)


def _of_other_documents(sentences: Sequence[CorpusSentence]) -> Iterator[Probe]:
    """Each sentence with the query of the next sentence from another document; none if there is only one document."""
    for place, one in enumerate(sentences):
        others = (sentences[(place + step) % len(sentences)] for step in range(1, len(sentences)))
        other = next((each for each in others if each.passage.document_id != one.passage.document_id), None)
        if other is None:
            return
        document = one.passage.document_id
        yield Probe(OTHER, one.text, Expected.UNSUPPORTED, other.text, withheld=True, document_id=document)
