"""Finds copies of source sentences in an answer: quoted word for word, or edited in a number, unit, amount or date.

A quotation is one source sentence, or several in a row; case, punctuation and white space are ignored. A part of a
source sentence is not a quotation, because the rest of the sentence may limit it; the verifier judges such sentences.
Only of a very long one an item with its lead-in, or a row, is a quotation.

NLI models are weak at numbers in near copies, so a rule decides there. In free wording a different number need not be a
clash, so elsewhere only the model decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from ragqa.english.quantities import EQUAL, RECURRENCE, Quantity, unmatched
from ragqa.english.reading import Date, Reading, read
from ragqa.english.sentences import parts_of_long
from ragqa.types import Span
from ragqa.types.scores import Premise

_TIMES = frozenset({"time", "business time"})
COPIED = 0.8  # share of the longer sentence's words in common, from which two sentences differ by an edit


class Part(StrEnum):
    """What was quoted, as the text of a reason; ``{}`` is the number of the passage."""

    WHOLE = "Quoted word for word from {}."
    SEVERAL = "Sentences of {}, word for word."
    ITEM = "A whole item or row of {}, word for word."


@dataclass(frozen=True, slots=True)
class Quotation:
    """Positions of the source sentences that state a text; of several in a row only the first."""

    positions: tuple[int, ...]
    part: Part


class Quotations:
    """Finds quotations of these source sentences; results are cached by text."""

    def __init__(self, premises: Sequence[Premise]) -> None:
        """``premises``: the sentences of a passage stand next to each other, in order."""
        self._readings = [read(premise.text) for premise in premises]
        self._places = [
            list(places) for _, places in groupby(range(len(premises)), key=lambda n: premises[n].passage_index)
        ]
        parts = ((n, parts_of_long(premise.text)) for n, premise in enumerate(premises))
        self._parts = {n: {read(part).plain for part in found} for n, found in parts if found}
        self._found: dict[str, Quotation | None] = {}

    def of(self, text: str) -> Quotation | None:
        """Where this text is quoted from; None where no source states it, and for a text without words."""
        if text not in self._found:
            said = read(text)
            self._found[text] = self._find(said) if said.words else None
        return self._found[text]

    def _find(self, said: Reading) -> Quotation | None:
        whole = tuple(n for n, found in enumerate(self._readings) if found.plain == said.plain)
        if whole:
            return Quotation(whole, Part.WHOLE)
        items = tuple(n for n, parts in self._parts.items() if said.plain in parts)
        if items:
            return Quotation(items, Part.ITEM)
        several = tuple(n for places in self._places for n in self._run(said, places))
        return Quotation(several, Part.SEVERAL) if several else None

    def _run(self, said: Reading, places: Sequence[int]) -> list[int]:
        """The first of the consecutive sentences at these places that together equal this text; empty if none do."""
        run = [word for n in places for word in self._readings[n].plain]
        start = position_in(tuple(run), said.plain)
        if start is None:
            return []
        ends, at = {0: places[0]}, 0
        for n, after in zip(places, [*places[1:], -1], strict=True):
            at += len(self._readings[n].plain)
            ends[at] = after
        return [ends[start]] if start in ends and start + len(said.plain) in ends else []


def position_in(words: tuple[str, ...], run: tuple[str, ...]) -> int | None:
    """The position at which ``run`` first occurs in ``words``; None where it does not occur or is empty."""
    if not run or len(run) > len(words):
        return None
    text = f" {' '.join(words)} "  # searching text takes linear time even with repeated words; no word has a space
    place = text.find(f" {' '.join(run)} ")
    return text.count(" ", 0, place) if place >= 0 else None


@dataclass(frozen=True, slots=True)
class Clash:
    """``said`` in the answer sentence against ``found`` in the source sentence."""

    kind: str  # number, unit, amount, date
    said: Span
    found: Span

    @property
    def words(self) -> str:
        return f"says {_plain(self.found.text)}, this sentence {_plain(self.said.text)}"


def _plain(text: str) -> str:
    return " ".join(text.split())


def edited(said: Reading, found: Reading, copied: float = COPIED) -> Clash | None:
    """The clash of two sentences that otherwise share nearly all their words; None where there is none."""
    clash = clash_of(said, found)
    if clash is None:
        return None
    mine, its = said.content - _stems(clash.said), found.content - _stems(clash.found)
    return clash if mine and len(mine & its) >= copied * max(len(mine), len(its)) else None


def _stems(span: Span) -> frozenset[str]:
    return read(span.text).stems


def clash_of(said: Reading, found: Reading) -> Clash | None:
    """The first number, unit, amount or date in which the two sentences differ; None where there is none."""
    return quantity_clash(said, found) or date_clash(said, found)


def quantity_clash(said: Reading, found: Reading) -> Clash | None:
    """A quantity of the answer that the source lacks, with a comparable one of the source that the answer lacks."""
    for mine in unmatched(said.quantities, found.quantities, Quantity.equals):
        for its in unmatched(found.quantities, said.quantities, Quantity.equals):
            if mine.number == its.number and {mine.dimension, its.dimension}.isdisjoint({"count", RECURRENCE}):
                return Clash("unit", mine.span, its.span)
            if _comparable(mine, its):
                kind = "number" if mine.dimension in {"count", RECURRENCE, *_TIMES} else "amount"
                return Clash(kind, mine.span, its.span)
    return None


def _comparable(mine: Quantity, its: Quantity) -> bool:
    """Whether both are of one kind and not one fact reversed: half and twice, a fifth left and four fifths lost."""
    if mine.dimension == its.dimension == "share" and abs(mine.size + its.size - 100.0) < EQUAL:
        return False
    if {mine.number, its.number} == {0.5, 2.0}:
        return False
    if mine.dimension == its.dimension == "count":
        return not mine.nouns or not its.nouns or bool(mine.nouns & its.nouns)
    return mine.dimension == its.dimension or {mine.dimension, its.dimension} <= _TIMES


def date_clash(said: Reading, found: Reading) -> Clash | None:
    """A date of the answer that fits no date of the source, with one of the source that fits none of the answer."""
    for mine in unmatched(said.dates, found.dates, Date.fits):
        for its in unmatched(found.dates, said.dates, Date.fits):
            if (mine.month is None) == (its.month is None) or (mine.year and its.year):
                return Clash("date", mine.span, its.span)
    return None
