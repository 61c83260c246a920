"""How well a sentence answers a part of a question: what is measured of both, and the weights it is added up with.

Pure but for the encoder. The weights are fitted on the open half of `ragqa.evaluation.benchmarks.expected_facts`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from functools import cached_property
from typing import Final

from ragqa.english.reading import Reading, read
from ragqa.english.sentences import reads_as_heading, split_sentences
from ragqa.generation.direct.asking import Part
from ragqa.generation.direct.aspects import LONGEST, Unsaid, unsaid
from ragqa.infra.cleaning import without_controls
from ragqa.plugins.protocols import Encoder, FloatMatrix
from ragqa.types import BY_NUMBER, Passage, Ranking, min_max_norm

READ: Final = 12  # passages, best first, whose sentences may answer, kept or not
MOST_SENTENCES: Final = 200  # of them; a passage of thousands of words is read from its beginning
FEWEST_WORDS, MOST_WORDS = 3, 250  # of a sentence: "Gold melts at 1,064 degrees Celsius." has six; more is a table
BORROWED: Final = 0.35  # what a word of an earlier part of the question counts beside the part's own
_CONDITION: Final = re.compile(r"\A(?:if|unless|where|when|in case)\b", re.IGNORECASE)


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

    def subjects(self, part: Part) -> list[frozenset[str]]:
        """The titles, as stems without what stands in brackets, whose words are all in the part of the question."""
        return [title for title in self._titles if title <= part.content | part.borrowed]

    @cached_property
    def _titles(self) -> tuple[frozenset[str], ...]:
        texts = dict.fromkeys(re.sub(r"\(.*?\)", "", passage.title) for passage in self.passages)
        return tuple(filter(None, (read(text).content for text in texts)))

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
    """What a sentence has of a part of a question; all but ``cosine`` in [0, 1]."""

    cosine: float  # with the part, and of a further part with the whole question too
    relevance: float  # of its passage
    cover: float  # the share of the part's words that it has, rare ones counting more
    passage_cover: float  # the same of its passage with title and headings
    fit: float  # whether it has the kind of answer that is asked for
    names: float  # the share of the question's names that it or its title has; half where only its passage has one
    condition: float  # it begins with a condition
    length: float  # in words, over 60
    unsaid: float  # 1 where it does not speak of what is asked of the subject (`aspects`)
    elsewhere: float  # the question names the title of a passage found: 1 where this has another and does not name it


NAMES: Final = tuple(field.name for field in fields(Measured))


def measured(part: Part, source: Source, cosine: float, evidence: Evidence) -> Measured:
    """What the sentence has of this part of the question."""
    passage = evidence.passages[source.rank]
    own, around = source.reading.stems, stems_of(passage)
    titled = own | read(passage.title).stems
    return Measured(
        cosine,
        source.relevance,
        cover(part, own, evidence),
        cover(part, around, evidence),
        part.fit(source.reading),
        _share([1.0 if name <= titled else 0.5 if name <= around else 0.0 for name in part.names]),
        float(bool(_CONDITION.search(source.text))),
        min(1.0, len(source.text.split()) / 60),
        float(bool(not_said(part, source, passage))),
        _elsewhere(part, own, passage, evidence),
    )


def not_said(part: Part, source: Source, passage: Passage) -> Unsaid:
    """What the part asks of its subject and neither the sentence nor the title and headings above it say."""
    return unsaid(part.text, source.reading, above(passage))


def above(passage: Passage) -> str:
    """The title and headings."""
    return f"{passage.title} {passage.section}"


def _elsewhere(part: Part, own: frozenset[str], passage: Passage, evidence: Evidence) -> float:
    """Half where the sentence of another passage does name the subject."""
    subjects = evidence.subjects(part)
    if len(part.text.split()) > LONGEST or not subjects:
        return 0.0
    title = read(passage.title).stems
    return 0.0 if any(one <= title for one in subjects) else 0.5 if any(one <= own for one in subjects) else 1.0


def cover(part: Part, stems: frozenset[str], evidence: Evidence) -> float:
    """The share of the part's words among these stems, each counting as it is rare; borrowed ones less."""
    weights = {one: evidence.rarity(one) for one in part.content}
    weights |= {one: BORROWED * evidence.rarity(one) for one in part.borrowed}
    total = sum(weights.values())
    return sum(weight for one, weight in weights.items() if one in stems) / total if total else 0.0


def _share(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 1.0


def vectors_of(parts: Sequence[Part], question: str, encoder: Encoder) -> list[FloatMatrix]:
    """One vector per part, shape (1, dimension); of several parts each is half the whole question's."""
    whole = encoder.encode_query(question)
    if len(parts) == 1:
        return [whole]
    halves = [whole + encoder.encode_query(part.text) for part in parts]
    return [half / max(math.sqrt(float((half**2).sum())), 1e-9) for half in halves]


def is_readable(source: Source) -> bool:
    """Whether it says something by itself: no heading, no remains of a table."""
    text = source.text
    is_heading = reads_as_heading(text) or text.isupper() or text.endswith(":")
    return not is_heading and FEWEST_WORDS <= len(text.split()) <= MOST_WORDS


WEIGHTS: Final = (3.7, 2.4, 3.0, 2.4, 2.8, 0.6, -0.8, 0.9, -2.0, 0.0)  # in the order of `NAMES`


def score(found: Measured) -> float:
    """The weighted sum: the higher, the likelier the sentence answers the part."""
    values: tuple[float, ...] = astuple(found)
    return math.fsum(weight * value for weight, value in zip(WEIGHTS, values, strict=True))
