"""The parts of a sentence that can be compared (words, quantities, dates, names), and the day that a question names.

Pure, English, and shallow on purpose: it uses no parser, only word lists that a reader can check. Parts that are not
recognised are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Final

from ragqa.english.quantities import Quantity, currency_at, is_name, quantities_of, span_of, stands_in, unit_at
from ragqa.english.words import STOP_WORDS, Word, words_of
from ragqa.types import Span

MONTHS = {
    name: n
    for n, name in enumerate(
        "january february march april may june july august september october november december".split(), 1
    )
}
_WHOLE: Final = {name[:3]: name for name in MONTHS}
_MONTH: Final = rf"(?:{'|'.join((*MONTHS, 'sept', *_WHOLE))})\b\.?"
_DAY: Final = (
    r"(?:[12]\d{3}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-][12]\d{3}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH},? [12]\d{{3}}"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? [12]\d{{3}})(?!\d)"
)
_NAMED: Final = re.compile(
    rf"\bas (?:of|at|on) (?P<of>{_DAY})"
    rf"|(?:\A|(?<=\bin force ))(?:on (?P<on>{_DAY})|before (?P<before>{_DAY}|[12]\d{{3}}\b(?![./-]\d)))"
    rf"|\bon (?P<last>{_DAY})(?=\W*\Z)",
    re.IGNORECASE,
)
_FORMS: Final = ("%d/%m/%Y", "%Y-%m-%d", "%d.%m.%Y", "%d-%m-%Y", "%d %B %Y", "%B %d %Y")
_OF_A_DAY = frozenset({"st", "nd", "rd", "th", "of"})  # words between a day and its month


@dataclass(frozen=True, slots=True)
class Date:
    """A complete or partial date: year, month (1 to 12) and day, of which at least one is not None."""

    year: int | None
    month: int | None
    day: int | None
    span: Span

    def fits(self, other: Date) -> bool:
        """Whether the two dates share at least one given part and agree in all shared parts."""
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
        month = MONTHS.get(word.lower) if word.is_capital else None
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
    """(position, day) of the day before a month: "14 January", "14th of January"; (n, None) if there is none."""
    first = n - 1
    while first > taken and n - first < 3 and words[first].lower in _OF_A_DAY:
        first -= 1
    return (first, int(words[first].lower)) if first >= taken and _is_day(words[first].lower) else (n, None)


def _day_after(words: Sequence[Word], n: int) -> tuple[int, int | None]:
    """(last position, day) of the day after a month: "January 14", "January 14th"; (n, None) if there is none."""
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
    """Whether a number such as 1500 has a unit, or a currency before it, and so is not a year."""
    return unit_at(words, n + 1) is not None or currency_at(text, words, n) is not None


@dataclass(frozen=True, slots=True)
class Name:
    """A proper name or defined term, written with capitals: the stems of its words, and its span."""

    stems: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Reading:
    """The analysis of one sentence. Spans and offsets count characters of ``text``.

    For most source sentences only the words are used, so the other attributes are computed at first access.
    """

    text: str
    words: tuple[Word, ...]

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """The words in lower case, which a quotation must repeat."""
        return tuple(word.lower for word in self.words)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(word.stem for word in self.words)

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of words that are not stop words."""
        return frozenset(word.stem for word in self.words if word.lower not in STOP_WORDS)

    @cached_property
    def dates(self) -> tuple[Date, ...]:
        return dates_of(self.text, self.words)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return quantities_of(self.text, self.words, [date.span for date in self.dates])

    @cached_property
    def names(self) -> tuple[Name, ...]:
        dates = [date.span for date in self.dates]
        found = _names(self.text, self.words)
        return tuple(
            name for name in found if name.span.text not in _MEASURES and not stands_in(name.span.start, dates)
        )


@lru_cache(maxsize=20_000)
def read(text: str) -> Reading:
    """The reading of a sentence; cached, as each source sentence is compared with every answer sentence."""
    return Reading(text, words_of(text))


_MEASURES = frozenset({"Business Day", "Business Days", "Celsius", "Fahrenheit"})  # capitalised units, not names
_LINKS = frozenset({"of", "and", "de", "van", "von", "la"})  # ignored when names are compared
_NO_NAMES = frozenset("i a an the it he she they we in on at by for if when where no not this that".split())


def _names(text: str, words: tuple[Word, ...]) -> tuple[Name, ...]:
    """Runs of capitalised words, except a single word at the beginning of a sentence, which may be any word."""
    names, start = [], 0
    while start < len(words):
        if not words[start].is_capital or words[start].lower in STOP_WORDS or words[start].lower in _NO_NAMES:
            start += 1
            continue
        end = start + 1
        while length := _further(text, words, end):
            end += length
        run = words[start:end]
        if len(run) > 1 or not _begins(text, run[0]):
            stems = tuple(word.stem for word in run if word.lower not in _LINKS)
            names.append(Name(stems, Span(text[run[0].start : run[-1].end], run[0].start, run[-1].end)))
        start = end
    return tuple(names)


def _further(text: str, words: tuple[Word, ...], end: int) -> int:
    """The number of words here that continue the name before: 1 for a word, 2 for "of" and a word, 0 for none."""
    for length, links in ((1, ()), (2, ("of",))):
        more = words[end : end + length]
        if len(more) < length or not more[-1].is_capital or more[-1].lower in _NO_NAMES:
            continue
        if tuple(word.lower for word in more[:-1]) == links and not any(
            _is_apart(text, words[n - 1], words[n]) for n in range(end, end + length)
        ):
            return length
    return 0


def _is_apart(text: str, before: Word, after: Word) -> bool:
    return any(not character.isspace() and character not in "-'’" for character in text[before.end : after.start])


def _begins(text: str, word: Word) -> bool:
    """Whether a word opens the text, or a sentence or quotation in it."""
    place = word.start
    while place and (text[place - 1].isspace() or text[place - 1] in "\"'“‘("):
        place -= 1
    return not place or text[place - 1] in ".:;?!"


# Days ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskedDay:
    """The day that a question names, ``written`` as in the question; ``day`` is YYYY-MM-DD, empty if there is no such
    day. ``rest`` is the question without it.
    """

    written: str
    day: str
    rest: str


def as_iso(text: str) -> str:
    """A printed date in ISO format, read with the day first if ambiguous; empty if it is not a date."""
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form).date().isoformat()
    return ""


def asked_day(question: str) -> AskedDay | None:
    """The day as of which a question is asked; None if it names none, or several.

    It is named by "as of", "as at" or "as on" a day anywhere, by "on" a day at the beginning or end, and by "in force
    on" a day; "before" a day or year is the day before, at the beginning and after "in force" only. Elsewhere, as in
    "funds licensed before 2022", a day is a part of what is asked.
    """
    found = list(_NAMED.finditer(question))
    if len(found) != 1:
        return None
    (match,) = found
    written = next(filter(None, match.groups()))
    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b|\bof |,", "", written, flags=re.IGNORECASE)
    plain = re.sub(r"([a-z]{3})[a-z]*\.?", lambda month: _WHOLE[month[1].casefold()], plain, flags=re.IGNORECASE)
    day = as_iso(f"{plain}-01-01" if plain.isdecimal() else plain)
    if day and match["before"]:
        day = (date.fromisoformat(day) - timedelta(days=1)).isoformat()
    rest = re.sub(r"\(\s*\)", "", f"{question[: match.start()].rstrip(' ,')} {question[match.end() :]}")
    rest = re.sub(r"\s+(?=[?.!,])|(?<=\s)\s+", "", rest).strip(" ,:;")
    return AskedDay(written, day, rest[:1].upper() + rest[1:]) if re.search(r"\w", rest) else None
