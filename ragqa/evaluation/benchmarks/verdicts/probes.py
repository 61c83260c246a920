"""Probes: sentences whose right verdict is known from how they were made. Drawn by seed, nothing retrieved yet."""

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

MIN_WORDS: Final = 5  # of a sentence; fewer are headings and remnants
MOST_READ: Final = 3_000  # passages that a sample is drawn from, or as many as probes are wanted of a kind
NEARLY: Final = 0.8  # share of a sentence's words that a passage has which all but contains it
CLASSIFIED_AT_ONCE: Final = 64
VERBATIM, REMOVED, OTHER, REWORDED, OBLIGATION = "verbatim", "removed", "other document", "re-worded", "obligation"
KINDS: Final = (VERBATIM, REMOVED, *MAKERS, OTHER, OBLIGATION)
_WORD = re.compile(r"\w+")


class Expected(StrEnum):
    """The right verdict. An obligation is judged on how it is covered, everything else as an answer's sentence."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"
    NOT_SUPPORTED = "not supported"  # whether it is contradicted is open
    COVERED = "covered"
    IN_PART = "covered in part"


@dataclass(frozen=True, slots=True)
class Probe:
    """A sentence to be judged against the ten passages that are retrieved for ``asked``, or against ``given`` ones.

    ``own`` are the passages it is made of: among the ten, or, where ``withheld``, kept away from them with every other
    that has nearly all its words; ``document_id`` is then withheld as a whole where it is given. ``obligation`` is the
    one that the text is to cover, where it is not a sentence's verdict that is wanted. ``change`` is what clashes, or
    what is missing. ``by_hand``: of the labelled files.
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
    given: tuple[str, ...] = ()  # ids of the passages that it was written from, where it is judged against these alone

    @property
    def name(self) -> str:
        """The kind as the tables have it."""
        return f"{self.kind}, by hand" if self.by_hand else self.kind

    def to_json(self) -> dict[str, object]:
        found = asdict(self)
        if not self.given:
            del found["given"]  # unknown to runs before there were such probes
        return found


@dataclass(frozen=True, slots=True)
class CorpusSentence:
    """A sentence of the corpus and the passage that it is first found in."""

    text: str
    passage: Passage


def words_of(text: str) -> frozenset[str]:
    """Its distinct words, case ignored."""
    return frozenset(_WORD.findall(text.lower()))


def has_nearly(passage: str, sentence: str) -> bool:
    """Whether the passage has at least four fifths of the distinct words of this sentence, wherever they stand."""
    wanted = words_of(sentence)
    return len(wanted & words_of(passage)) >= NEARLY * len(wanted)


def sentences_of(index: Index, seed: int, n: int) -> list[CorpusSentence]:
    """Distinct sentences of at least five words, in an order drawn by ``seed``; of all passages for an ``n`` of 0.

    Passages that no retriever returns, such as headings, have none.
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
    """``n`` probes of each of these kinds, or as many as the sentences give; all of them for an ``n`` of 0."""
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
    """Each sentence, with what is retrieved for the next one of another document; none where there is one document."""
    for place, one in enumerate(sentences):
        others = (sentences[(place + step) % len(sentences)] for step in range(1, len(sentences)))
        other = next((each for each in others if each.passage.document_id != one.passage.document_id), None)
        if other is None:
            return
        document = one.passage.document_id
        yield Probe(OTHER, one.text, Expected.UNSUPPORTED, other.text, withheld=True, document_id=document)
