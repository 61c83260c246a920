"""Dates, as far as they are given: found in the words of a text, and compared. English only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragqa.english.quantities import currency_at, is_name, span_of, unit_at
from ragqa.english.words import Word
from ragqa.types import Span

_MONTHS = {
    name: n
    for n, name in enumerate(
        "january february march april may june july august september october november december".split(), 1
    )
}
_OF_A_DAY = frozenset({"st", "nd", "rd", "th", "of"})  # between a day and its month


@dataclass(frozen=True, slots=True)
class Date:
    """A date as far as it is given: year, month (1 to 12) and day, each may be None, one at least is not."""

    year: int | None
    month: int | None
    day: int | None
    span: Span

    def fits(self, other: Date) -> bool:
        """Whether nothing that both give differs, and they give at least one thing in common."""
        pairs = [(self.year, other.year), (self.month, other.month), (self.day, other.day)]
        both = [(mine, its) for mine, its in pairs if mine is not None and its is not None]
        return bool(both) and all(mine == its for mine, its in both)


def dates_of(text: str, words: Sequence[Word]) -> tuple[Date, ...]:
    """The dates of a text: "14 January 1897", "July 1944", "1789", "January 31st"; not "may" the verb."""
    found: list[Date] = []
    taken = 0
    for n, word in enumerate(words):
        if n < taken:
            continue
        month = _MONTHS.get(word.lower) if word.is_capital else None
        if month and (word.lower != "may" or _has_number(words, n)):
            first, day = _day_before(words, n, taken)
            last, day = (n, day) if day else _day_after(words, n)
            year = None
            if last + 1 < len(words) and _is_year(words[last + 1].lower):
                last += 1
                year = int(words[last].lower)
            found.append(Date(year, month, day, span_of(text, words[first], words[last])))
            taken = last + 1
        elif _is_year(word.lower) and not _is_measured(text, words, n) and not is_name(words, n):
            found.append(Date(int(word.lower), None, None, span_of(text, word, word)))
            taken = n + 1
    return tuple(found)


def _day_before(words: Sequence[Word], n: int, taken: int) -> tuple[int, int | None]:
    """(position, day) of the day that stands before a month: "14 January", "14th of January"; (n, None): none."""
    first = n - 1
    while first > taken and n - first < 3 and words[first].lower in _OF_A_DAY:
        first -= 1
    return (first, int(words[first].lower)) if first >= taken and _is_day(words[first].lower) else (n, None)


def _day_after(words: Sequence[Word], n: int) -> tuple[int, int | None]:
    """(last position, day) of the day that stands after a month: "January 14", "January 14th"; (n, None): none."""
    if n + 1 == len(words) or not _is_day(words[n + 1].lower):
        return n, None
    has_ending = n + 2 < len(words) and words[n + 2].start == words[n + 1].end and words[n + 2].lower in _OF_A_DAY
    return n + 1 + has_ending, int(words[n + 1].lower)


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdecimal() and 1000 <= int(word) <= 2100


def _is_day(word: str) -> bool:
    return len(word) <= 2 and word.isdecimal() and 1 <= int(word) <= 31


def _has_number(words: Sequence[Word], n: int) -> bool:
    return any(words[m].lower.isdecimal() for m in range(max(0, n - 1), min(n + 2, len(words))))


def _is_measured(text: str, words: Sequence[Word], n: int) -> bool:
    """Whether a number like 1500 has a unit, or a currency before it, and so is no year."""
    return unit_at(words, n + 1) is not None or currency_at(text, words, n) is not None
