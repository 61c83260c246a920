"""How well a sentence answers a part of a question: what is measured of both, and the weights it is added up with.

The weights are fitted on what the selector has not learnt: the open questions of
`ragqa.evaluation.benchmarks.expected_facts` and of `tests.benchmarks.law`, each set out of the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Final

from ragqa.english.reading import Reading, read
from ragqa.english.sentences import reads_as_heading, split_sentences
from ragqa.generation.direct.asking import Part
from ragqa.infra.cleaning import without_controls
from ragqa.plugins.protocols import Encoder, FloatMatrix, Selector
from ragqa.types import BY_NUMBER, Passage, Ranking, min_max_norm

READ: Final = 12  # passages, best first, whose sentences may answer, kept or not
MOST_SENTENCES: Final = 200  # of them; a passage of thousands of words is read from its beginning
FEWEST_WORDS, MOST_WORDS = 3, 250  # of a sentence: "Gold melts at 1,064 degrees Celsius." has six; more is a table
BORROWED: Final = 0.35  # what a word of an earlier part of the question counts beside the part's own
SEPARATOR: Final = " › "  # between headings
SCALE: Final = 0.5  # of the selector's logit: log odds that the sentence answers
HEADINGS: Final = 2  # of the innermost ones above a sentence, that the selector reads


def heading_above(title: str, section: str) -> str:
    """The title and the innermost headings, as the selector reads them before a sentence."""
    return SEPARATOR.join(filter(None, (title, *section.split(SEPARATOR)[-HEADINGS:])))


def in_context(sentence: str, heading: str) -> str:
    """What the selector reads of a sentence."""
    return f"{heading}: {sentence}" if heading else sentence


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence of a passage; ``rank`` of the passage counts from 0, ``relevance`` is in [0, 1]."""

    text: str
    rank: int
    position: int  # in its passage
    relevance: float
    cosine: float = 0.0

    @property
    def reading(self) -> Reading:
        return read(self.text)

    def in_context(self, passage: Passage) -> str:
        """What the selector reads of it, a sentence of this passage."""
        return in_context(self.text, heading_above(passage.title, passage.section))


class Evidence:
    """The best passages of a ranking, read: their sentences, and how rare a word is among all that was found."""

    def __init__(self, ranking: Ranking) -> None:
        self.passages = [hit.passage for hit in ranking.hits[:READ]]
        self.n_named = sum(hit.note == BY_NUMBER for hit in ranking.hits[:READ])  # the first, asked for by number
        self._relevances = min_max_norm([hit.score for hit in ranking.hits])
        self._n = len(ranking.hits)
        self._holding = Counter(stem for hit in ranking.hits for stem in stems_of(hit.passage))

    def rarity(self, stem: str) -> float:
        """1 for a word that no passage has, towards 0 for one that all have."""
        return math.log((self._n + 1) / (self._holding[stem] + 0.5)) / math.log(2 * (self._n + 1))

    def is_absent(self, stem: str) -> bool:
        """Whether nothing that was found has the word: as words are searched, the corpus has not."""
        return not self._holding[stem]

    @cached_property
    def sentences(self) -> tuple[Source, ...]:
        """Every sentence of the passages that were read, on one line each."""
        found = [
            Source(" ".join(span.text.split()), rank, position, self._relevances[rank])
            for rank, passage in enumerate(self.passages)
            for position, span in enumerate(split_sentences(without_controls(passage.text)))
        ]
        return tuple(found[:MOST_SENTENCES])


def stems_of(passage: Passage) -> frozenset[str]:
    """The stems of a passage's words, those of its title and headings included."""
    return read(f"{passage.title}\n{passage.section}\n{passage.text}").stems


@dataclass(frozen=True, slots=True)
class Measured:
    """What a sentence has of a part of a question; all but ``cosine`` and ``answers`` in [0, 1]."""

    cosine: float  # with the part, and of a further part with the whole question too
    relevance: float  # of its passage
    cover: float  # the share of the part's words that it has, rare ones counting more
    passage_cover: float  # the same of its passage with title and headings
    fit: float  # whether it has the kind of answer that is asked for
    answers: float | None = None  # by the selector: the log odds that it answers; None where none has read it


def measured(part: Part, source: Source, cosine: float, evidence: Evidence) -> Measured:
    """What the sentence has of this part of the question, before the selector has read it."""
    own, around = source.reading.stems, stems_of(evidence.passages[source.rank])
    covers = (cover(part, own, evidence), cover(part, around, evidence))
    return Measured(cosine, source.relevance, *covers, part.fit(source.reading))


def cover(part: Part, stems: frozenset[str], evidence: Evidence) -> float:
    """The share of the part's words among these stems, each counting as it is rare; borrowed ones less."""
    weights = {one: evidence.rarity(one) for one in part.content}
    weights |= {one: BORROWED * evidence.rarity(one) for one in part.borrowed}
    total = sum(weights.values())
    return sum(weight for one, weight in weights.items() if one in stems) / total if total else 0.0


def vectors_of(parts: Sequence[Part], question: str, encoder: Encoder) -> list[FloatMatrix]:
    """One vector per part, shape (1, dimension); of several parts each is half the whole question's."""
    whole = encoder.encode_query(question)
    if len(parts) == 1:
        return [whole]
    halves = [whole + encoder.encode_query(part.text) for part in parts]
    return [half / max(math.sqrt(float((half**2).sum())), 1e-9) for half in halves]


def log_odds(selector: Selector, part: Part, question: str, texts: Sequence[str]) -> list[float]:
    """The selector's log odds that each text answers the part; of a further part the mean with the whole question's."""
    asked = [part.text, question] if part.borrowed else [part.text]
    told = [selector.score(text, texts) for text in asked]
    return [SCALE * sum(each) / len(asked) for each in zip(*told, strict=True)]


def logistic(odds: float) -> float:
    """The probability of these log odds."""
    return 1.0 / (1.0 + math.exp(-odds))


def is_readable(source: Source) -> bool:
    """Whether it says something by itself: no heading, no remains of a table."""
    text = source.text
    is_heading = reads_as_heading(text) or text.isupper() or text.endswith(":")
    return not is_heading and FEWEST_WORDS <= len(text.split()) <= MOST_WORDS


# In the order of `Measured`: how near a sentence is, by which the selector is given the nearest to read; and once read.
NEARNESS: Final = (3.7, 2.4, 3.0, 2.4, 2.8)
WEIGHTS: Final = (0.0, 0.0, 0.9, 2.8, 0.0, 0.74)


def score(found: Measured) -> float:
    """The weighted sum: the higher, the likelier the sentence answers the part."""
    weights = NEARNESS if found.answers is None else WEIGHTS
    values: tuple[float, ...] = astuple(found)
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=False))
