"""Finds the number, unit, amount or date in which a sentence differs from another that it nearly repeats.

NLI models are weak at numbers in near copies, so this rule decides there. In free wording a different number need not
be a clash, so elsewhere only the model decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragqa.english.quantities import EQUAL, RECURRENCE, Quantity, unmatched
from ragqa.english.reading import Date, Reading, read
from ragqa.types import Span

_TIMES = frozenset({"time", "business time"})
COPIED = 0.8  # share of the longer sentence's words in common, from which two sentences differ by an edit


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
    clash = quantity_clash(said, found) or date_clash(said, found)
    if clash is None:
        return None
    mine, its = said.content - _stems(clash.said), found.content - _stems(clash.found)
    return clash if mine and len(mine & its) >= copied * max(len(mine), len(its)) else None


def _stems(span: Span) -> frozenset[str]:
    return read(span.text).stems


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
