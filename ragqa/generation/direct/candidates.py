"""The sentences that may answer: those of the best passages, items with lead-in, table rows with heads. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ragqa.english.reading import Reading, read
from ragqa.english.sentences import reads_as_heading, split_sentences
from ragqa.fusion import NAMED
from ragqa.generation.direct.asking import Part
from ragqa.generation.direct.selector import above, points_back, shown
from ragqa.infra.cleaning import without_controls
from ragqa.types import Passage, Ranking, min_max_norm

PASSAGES: Final = 40  # best first, whose sentences may answer, kept or not
MOST_SENTENCES: Final = 800  # of them; a passage of thousands of words is read from its beginning
FEWEST_WORDS, MOST_WORDS = 3, 250  # of a sentence: "Gold melts at 1,064 degrees Celsius." has six; more is a table
BORROWED: Final = 0.35  # what a word of an earlier part of the question counts beside the part's own
_ITEM: Final = re.compile(r"(?:\A|\n\s*|(?<=[:;,.])\s+|(?<=\band)\s+|(?<=\bor)\s+)(?=(?:\(\w{1,4}\)|[-•–·▪])\s)")
_MARKED: Final = re.compile(r"\A(?:\(\w{1,4}\)|[-•–·▪])\s")
_CELLS: Final = " | "


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence of a passage, on one line; ``rank`` of the passage counts from 0, ``relevance`` is in [0, 1].

    Of a listing each item is one, ``lead`` what it completes; of a table each row, ``lead`` its heads. ``before`` is
    the sentence before one that points back.
    """

    text: str
    rank: int
    position: int  # in its passage, that of its listing
    relevance: float
    above: str
    lead: str = ""
    before: str = ""
    item: int = 0  # in its listing

    @property
    def reading(self) -> Reading:
        return read(self.text)

    @property
    def shown(self) -> str:
        """As the selector reads it."""
        return shown(self.text, self.above, self.lead or self.before)

    @property
    def stems(self) -> frozenset[str]:
        """Of its words and of those that it is read with."""
        return self.reading.stems | read(self.above).stems | read(self.lead or self.before).stems

    @property
    def is_readable(self) -> bool:
        """Whether it may be quoted as an answer: neither a heading nor of a few words nor a table."""
        n_words = len(self.lead.split()) + len(self.text.split())
        return FEWEST_WORDS <= n_words <= MOST_WORDS and (bool(self.lead) or not reads_as_heading(self.text))


class Evidence:
    """The best passages of a ranking, read: their sentences, and how rare a word is among all that was retrieved."""

    def __init__(self, ranking: Ranking) -> None:
        self.passages = [hit.passage for hit in ranking.hits[:PASSAGES]]
        self.n_named = sum(hit.note == NAMED for hit in ranking.hits[:PASSAGES])  # the first, asked for by number
        self._relevances = min_max_norm([hit.score for hit in ranking.hits])
        self._n = len(ranking.hits)
        self._holding = Counter(stem for hit in ranking.hits for stem in stems_of(hit.passage))

    def rarity(self, stem: str) -> float:
        """1 for a word that no passage has, towards 0 for one that all have."""
        return math.log((self._n + 1) / (self._holding[stem] + 0.5)) / math.log(2 * (self._n + 1))

    def absent(self, part: Part) -> frozenset[str]:
        """The part's stems that nothing that was retrieved has: as words are searched, the corpus has them not."""
        return frozenset(stem for stem in part.content if not self._holding[stem])

    def cover(self, part: Part, stems: frozenset[str]) -> float:
        """The share of the part's words among ``stems``, rare ones counting more."""
        weights = {one: self.rarity(one) for one in sorted(part.content)}
        weights |= {one: BORROWED * self.rarity(one) for one in sorted(part.borrowed)}
        total = math.fsum(weights.values())
        return math.fsum(weight for one, weight in weights.items() if one in stems) / total if total else 0.0

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """What may be quoted of the passages that were read; of rules asked for by number, of these alone."""
        found: list[Source] = []
        for rank, passage in enumerate(self.passages[: self.n_named or None]):
            found += _sources(passage, rank, self._relevances[rank])
        return tuple(filter(lambda one: one.is_readable, found[:MOST_SENTENCES])) or tuple(found[:MOST_SENTENCES])

    def nearest(self, part: Part, most: int) -> list[int]:
        """The places of the sources that share most with the part and are of the best passages, in their order."""
        worths = [
            self.cover(part, one.stems) + self.cover(part, one.reading.stems) / 2 + one.relevance
            for one in self.sources
        ]
        return sorted(sorted(range(len(worths)), key=lambda place: (-worths[place], place))[:most])


def stems_of(passage: Passage) -> frozenset[str]:
    """The stems of a passage's words, those of its title and headings included."""
    return read(f"{passage.title}\n{passage.section}\n{passage.text}").stems


def _sources(passage: Passage, rank: int, relevance: float) -> Iterator[Source]:
    heading, before = above(passage), ""
    for position, span in enumerate(split_sentences(without_controls(passage.text))):
        for item, (lead, text) in enumerate(_taken_apart(span.text)):
            pointed = before if not lead and points_back(text) else ""
            yield Source(text, rank, position, relevance, heading, lead, pointed, item)
        before = " ".join(span.text.split())


def _taken_apart(sentence: str) -> Iterator[tuple[str, str]]:
    """(lead-in, item) of a listing, (heads, row) of a table, and ("", sentence) of anything else; on one line each."""
    lines = sentence.split("\n")
    rows = [line for line in lines if _CELLS in line]
    if len(rows) > 1:
        text = "\n".join(line for line in lines if _CELLS not in line)
        yield from _taken_apart(text) if text.strip() else ()
        yield from ((" ".join(rows[0].split()), " ".join(row.split())) for row in rows[1:])
        return
    pieces = [" ".join(piece.split()) for piece in _ITEM.split(sentence)]
    pieces = [piece for piece in pieces if piece]
    if sum(bool(_MARKED.match(piece)) for piece in pieces) < 2:
        yield "", " ".join(sentence.split())
        return
    lead = "" if _MARKED.match(pieces[0]) else pieces.pop(0)
    yield from ((lead, piece) for piece in pieces)
