"""Scores how well a sentence answers a part of a question: a weighted sum of measured values.

A logistic function of the best sentence's values gives the answerability of the part.

The weights are chosen by the share of questions whose first sentence answers, on questions that the selector was not
trained on: the open ones of `ragqa.evaluation.benchmarks.expected_facts` and of `tests.benchmarks.law`, and fold 0 of
RAGQA_DATA/claims.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from ragqa.english.reading import Reading, read
from ragqa.english.sentences import GAP, LONG, parts_of_long, reads_as_heading, split_sentences
from ragqa.english.words import words_of
from ragqa.generation.direct.asking import Part, is_fragment
from ragqa.infra.cleaning import without_controls
from ragqa.plugins.protocols import Encoder, FloatMatrix, Selector
from ragqa.types import BY_NUMBER, Passage, Ranking, min_max_norm

READ: Final = 20  # best passages whose sentences are read, kept or not
MOST_SENTENCES: Final = 200  # of these passages; of a passage of thousands of words only the beginning is read
FEWEST_WORDS, MOST_WORDS = 3, LONG  # of a sentence: "Gold melts at 1,064 degrees Celsius." has six; more is a table
BORROWED: Final = 0.35  # weight of a word of an earlier part, where the part's own words have 1
SEPARATOR: Final = " › "  # between headings
SCALE: Final = 0.5  # factor from the selector's logit to the log odds that the sentence answers
AS_QUESTION: Final = "What does it say about {}?"  # the selector was trained on few fragments
HEADINGS: Final = 2  # innermost headings above a sentence that the selector reads


def heading_above(title: str, section: str) -> str:
    """The title and the innermost headings, which the selector reads before a sentence."""
    return SEPARATOR.join(filter(None, (title, *section.split(SEPARATOR)[-HEADINGS:])))


def in_context(sentence: str, heading: str) -> str:
    """The sentence as the selector reads it: after its heading."""
    return f"{heading}: {sentence}" if heading else sentence


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence of a passage; ``rank`` of the passage counts from 0, ``relevance`` is in [0, 1].

    Of a list of more than `MOST_WORDS` words it is an item after its lead-in.
    """

    text: str
    rank: int
    position: int  # in its passage
    relevance: float
    cosine: float = 0.0

    @property
    def reading(self) -> Reading:
        return read(self.text)

    def in_context(self, passage: Passage) -> str:
        """The sentence as the selector reads it, under the headings of this passage."""
        return in_context(self.text.replace(GAP, " "), heading_above(passage.title, passage.section))


class Evidence:
    """The sentences of the best passages of a ranking, and how rare a word is among all passages found."""

    def __init__(self, ranking: Ranking, names: Mapping[str, frozenset[str]]) -> None:
        """``names`` are those of documents in the question, such as "DORA", with the ids of the documents."""
        self.names = names
        self._found = [hit.passage for hit in ranking.hits]
        self.unread = unread_names(self.names, self._found)
        self.n_named = sum(hit.note == BY_NUMBER for hit in ranking.hits[:READ])  # at the top, asked for by number
        places = self._places_read()
        self.passages = [self._found[place] for place in places]
        self.is_reranked = any(ranking.hits[place].reranking for place in places)
        relevances = min_max_norm([hit.score for hit in ranking.hits])
        self._relevances = [relevances[place] for place in places]
        self._n = len(self._found)
        named = [stems_of(one) | read(one.document_id).stems for one in self._found]
        self._holding = Counter(stem for stems in named for stem in stems)

    def _places_read(self) -> list[int]:
        """The positions of the hits that are read: the best, and if several documents are named, the best of each."""
        if len(self.names) < 2:
            return [*range(min(READ, len(self._found)))]
        share = READ // len(self.names)
        of_each = [
            [n for n, one in enumerate(self._found) if one.document_id in documents][:share]
            for documents in self.names.values()
        ]
        return sorted({*range(self.n_named), *chain.from_iterable(of_each)})

    def named_by(self, text: str) -> frozenset[str]:
        """The documents, by id, of the names in this part of the question; those of all names if it has none."""
        named = [documents for name, documents in self.names.items() if name in text] or self.names.values()
        return frozenset().union(*named)

    def places_in(self, sources: Sequence[Source], documents: Collection[str]) -> list[int]:
        """The positions of the sources of these documents; of all sources without documents."""
        return [n for n, one in enumerate(sources) if not documents or self.passages[one.rank].document_id in documents]

    def rarity(self, stem: str) -> float:
        """The rarity of a word: 1 if no passage has it, near 0 if all have it."""
        return math.log((self._n + 1) / (self._holding[stem] + 0.5)) / math.log(2 * (self._n + 1))

    def is_absent(self, stem: str) -> bool:
        """Whether no passage found has the word; lexical retrieval then implies that the corpus lacks it."""
        return not self._holding[stem]

    @cached_property
    def sentences(self) -> tuple[Source, ...]:
        """Every sentence of the passages that are read, each on one line, or its parts if it is too long."""
        found = [
            Source(text, rank, position, self._relevances[rank])
            for rank, passage in enumerate(self.passages)
            for position, span in enumerate(split_sentences(without_controls(passage.text)))
            for text in parts_of_long(span.text) or (" ".join(span.text.split()),)
        ]
        return tuple(found[:MOST_SENTENCES])


def unread_names(names: Mapping[str, frozenset[str]], passages: Sequence[Passage]) -> list[str]:
    """The names that not all titles of their documents have, so that the selector cannot understand them."""
    titles = {one.document_id: read(one.title).stems for one in passages}
    return [
        name
        for name, documents in names.items()
        if not all(read(name).stems <= titles[one] for one in documents & titles.keys())
    ]


def stems_of(passage: Passage) -> frozenset[str]:
    """The stems of a passage's words, including its title and headings."""
    return read(f"{passage.title}\n{passage.section}\n{passage.text}").stems


@dataclass(frozen=True, slots=True)
class Measured:
    """The features of a sentence for a part of a question; ``relevance``, the covers and ``fit`` are in [0, 1]."""

    cosine: float  # with the part; for one of several parts, also with the whole question
    relevance: float  # of its passage
    cover: float  # the share of the part's words that it has; rare words count more
    passage_cover: float  # the same for its passage with title and headings
    fit: float  # whether it has the kind of answer that is asked for
    length: (
        float  # ln(1 + number of words): of two sentences that answer, the shorter one says it, the longer one lists
    )
    answers: float | None = None  # the selector's log odds that it answers; None if no selector has read it


def measured(part: Part, source: Source, cosine: float, evidence: Evidence) -> Measured:
    """The features of the sentence for this part of the question, before the selector has read it."""
    own, around = source.reading.stems, stems_of(evidence.passages[source.rank])
    covers = (cover(part, own, evidence), cover(part, around, evidence))
    length = math.log(1 + len(source.text.split()))
    return Measured(cosine, source.relevance, *covers, part.fit(source.reading), length)


def cover(part: Part, stems: frozenset[str], evidence: Evidence) -> float:
    """The share of the part's words among these stems; rare words count more, borrowed ones less."""
    weights = {one: evidence.rarity(one) for one in part.content}
    weights |= {one: BORROWED * evidence.rarity(one) for one in part.borrowed}
    total = sum(weights.values())
    return sum(weight for one, weight in weights.items() if one in stems) / total if total else 0.0


def vectors_of(parts: Sequence[Part], question: str, encoder: Encoder) -> list[FloatMatrix]:
    """One vector per part, shape (1, dimension); of several parts, each is averaged with the whole question's."""
    whole = encoder.encode_query(question)
    if len(parts) == 1:
        return [whole]
    halves = [whole + encoder.encode_query(part.text) for part in parts]
    return [half / max(math.sqrt(float((half**2).sum())), 1e-9) for half in halves]


def log_odds(selector: Selector, part: Part, question: str, texts: Sequence[str]) -> list[float]:
    """The selector's log odds that each text answers the part; for a further part, averaged with the question's.

    A fragment such as "shell bank criteria" is read as a question, too, and averaged.
    """
    asked = [part.text, question] if part.borrowed else [part.text]
    asked += [AS_QUESTION.format(text.rstrip(". ")) for text in asked if is_fragment(text)]
    told = [selector.score(text, texts) for text in asked]
    return [SCALE * sum(each) / len(asked) for each in zip(*told, strict=True)]


def logistic(odds: float) -> float:
    """The probability of these log odds."""
    return 1.0 / (1.0 + math.exp(-odds))


def is_readable(source: Source) -> bool:
    """Whether the sentence can stand alone: it is no heading, no editor's note in brackets, no fragment of a table."""
    text = source.text
    is_heading = (reads_as_heading(text) and GAP not in text) or text.isupper() or text.endswith(":")
    is_note = text.startswith("[") and text.endswith("]")
    return not is_heading and not is_note and FEWEST_WORDS <= len(text.split()) <= MOST_WORDS


# Weights in the order of `Measured`: before the selector has read a sentence, to choose which ones it reads, and after.
NEARNESS: Final = (3.7, 2.4, 3.0, 2.4, 2.8, 0.0)
WEIGHTS: Final = (0.0, 1.0, 0.5, 1.8, 0.0, -0.4, 0.74)


def score(found: Measured) -> float:
    """The weighted sum: the higher, the likelier the sentence answers the part."""
    weights = NEARNESS if found.answers is None else WEIGHTS
    values: tuple[float, ...] = astuple(found)
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=False))


# Whether the passages found answer a part of a question -------------------------------------------------------------

LINE: Final = 0.5  # below it a part counts as not answered
# Weights of the selector's log odds, the passage's cover and the fit of the kind, fitted like
# `WEIGHTS`; the constant, so that nearly four of five questions on the subject that nothing answers are refused.
ANSWERS, COVER, FIT, CONSTANT = 0.65, 1.2, 0.4, 0.3
TAUGHT: Final = 20  # words; one in a hundred of the selector's training questions is longer
# Weights without a selector (as in other languages), and for longer questions, where the higher result counts: fitted
# on the open half of the benchmark `expected_facts`.
COSINE, OWN_COVER, ABSENT, LACKS, OWN_CONSTANT = 4.6, 1.0, -0.5, -1.8, -1.2
_FAR: Final = 0.35  # a cosine below this is reported as far
_MANY: Final = 0.5  # a kind of answer that is missing by this much is reported as missing


@dataclass(frozen=True, slots=True)
class Answerability:
    """The probability that the sentence chosen for a part answers it, and the reasons against it in words.

    ``missing`` are words of the question, as written there, that no passage found has.
    """

    value: float
    reasons: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def is_enough(self) -> bool:
        return self.value >= LINE


def answerability(part: Part, best: Measured, evidence: Evidence, n_words: int) -> Answerability:
    """The answerability of a part whose best sentence has the values ``best``, in a question of ``n_words``.

    It is 1 if the question asks for a rule by its number.
    """
    weights = {one: evidence.rarity(one) for one in part.content}
    absent = {one for one in weights if evidence.is_absent(one)}
    share = sum(weights[one] for one in absent) / (sum(weights.values()) or 1.0)
    lacks = (1.0 - best.fit) if part.is_strict else 0.0
    total = COSINE * best.cosine + OWN_COVER * best.passage_cover + ABSENT * share + LACKS * lacks + OWN_CONSTANT
    if best.answers is not None:
        told = ANSWERS * best.answers + COVER * best.passage_cover + FIT * best.fit + CONSTANT
        total = told if n_words <= TAUGHT else max(told, total)
    lacking = (word for word in words_of(part.text) if word.stem in absent)
    missing = tuple(dict.fromkeys(part.text[word.start : word.end] for word in lacking))
    reasons = []
    if missing:
        reasons.append("no passage found has " + ", ".join(f'"{word}"' for word in missing))
    if best.answers is not None and best.answers < 0:
        reasons.append(f"the nearest sentence does not read as an answer (probability {logistic(best.answers):.2f})")
    if lacks >= _MANY:
        reasons.append(f"the nearest sentence does not have what is asked for ({part.kind})")
    if best.cosine < _FAR:
        reasons.append(f"the nearest sentence is far from the question (cosine {best.cosine:.2f})")
    return Answerability(1.0 if evidence.n_named else logistic(total), tuple(reasons), missing)
