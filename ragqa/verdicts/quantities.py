"""Numbers with their units, and dates: found in the words of a text, and compared.

A unit that is known has a dimension and a size, so that six months equal half a year and 72 hours are not 72 days.
Numbers of rules, marks of lists and what is written like "4.2.1" are no quantities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragqa.types import Span

NUMBER_WORDS: dict[str, float] = {
    **{
        word: float(n)
        for n, word in enumerate(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen".split()
        )
    },
    **{word: 10.0 * n for n, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)},
    "single": 1.0,
    "dozen": 12.0,
    "hundred": 100.0,
    "twice": 2.0,
    "double": 2.0,
    "half": 0.5,
}
_ORDINALS = {
    word: float(n)
    for n, word in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split(), 1)
} | {"last": -1.0}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "bn": 1e9}
_SHARES = {"third": 3, "thirds": 3, "quarters": 4, "fifth": 5, "fifths": 5, "tenth": 10, "tenths": 10, "eighth": 8}
_YEAR = 365.25
_UNITS: dict[str, tuple[str, float]] = {  # (dimension, size in the dimension's own unit)
    "second": ("time", 1 / 86400),
    "minute": ("time", 1 / 1440),
    "hour": ("time", 1 / 24),
    "day": ("time", 1.0),
    "business day": ("business time", 1.0),
    "working day": ("business time", 1.0),
    "week": ("time", 7.0),
    "fortnight": ("time", 14.0),
    "month": ("time", _YEAR / 12),
    "quarter": ("time", _YEAR / 4),
    "year": ("time", _YEAR),
    "decade": ("time", 10 * _YEAR),
    "century": ("time", 100 * _YEAR),
    "percent": ("share", 1.0),
    "per cent": ("share", 1.0),
    "%": ("share", 1.0),
    "percentage point": ("share", 1.0),
    "basis point": ("share", 0.01),
    "degree celsius": ("temperature", 1.0),
    "degree fahrenheit": ("temperature", math.pi),  # never equal to the same number of degrees Celsius
    "kelvin": ("temperature", math.e),
    "degree": ("angle", 1.0),
    "hectare": ("area", 1e4),
    "acre": ("area", 4046.86),
    "litre": ("volume", 1e-3),
    "gram": ("mass", 1e-3),
    "kilogram": ("mass", 1.0),
    "tonne": ("mass", 1e3),
    "ton": ("mass", 1e3),
    "watt": ("power", 1.0),
    "kilowatt": ("power", 1e3),
    "megawatt": ("power", 1e6),
    "gigawatt": ("power", 1e9),
    **dict.fromkeys(("pound", "dollar", "euro", "yen", "franc"), ("money", 1.0)),
}
_LENGTHS = {
    **dict.fromkeys(("metre", "meter", "m"), 1.0),
    **dict.fromkeys(("kilometre", "kilometer", "km"), 1e3),
    **dict.fromkeys(("centimetre", "centimeter", "cm"), 1e-2),
    **dict.fromkeys(("millimetre", "millimeter", "mm"), 1e-3),
    **dict.fromkeys(("foot", "feet"), 0.3048),
    "mile": 1609.344,
    "inch": 0.0254,
}
for _name, _size in _LENGTHS.items():
    _UNITS |= {
        _name: ("length", _size),
        f"square {_name}": ("area", _size**2),
        f"cubic {_name}": ("volume", _size**3),
    }
_MONTHS = {
    name: n
    for n, name in enumerate(
        "january february march april may june july august september october november december".split(), 1
    )
}
# What a number is the name of, not the size of: Rule 4, Category 2, item 3.
_NUMBERED = frozenset(
    "rule rules chapter chapters section sections article articles part parts category categories schedule appendix "
    "table paragraph paragraphs subsection clause item class tier basel form principle annex uranium no".split()
)
_NO_NOUN = frozenset("of to in at on for from and or the a an its their per more than less by with as is are".split())
_EACH = frozenset({"a", "an", "each", "every", "per"})
_PERIODS = frozenset({"day", "week", "month", "quarter", "year"})
EQUAL = 0.006  # relative: 12 months are a year, 30 days are not a month


@dataclass(frozen=True, slots=True)
class Token:
    """A word or number as `ragqa.verdicts.reading` finds it."""

    lower: str
    start: int
    end: int
    is_capital: bool = False


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of something. ``size`` is in the unit of its ``dimension``; "count" is that of things."""

    size: float
    dimension: str
    nouns: frozenset[str]  # what is counted: up to three words after the number, in lower case
    span: Span
    number: float  # as written, without its unit

    def equals(self, other: Quantity) -> bool:
        """Whether both say the same; business days never equal days."""
        return self.dimension == other.dimension and math.isclose(self.size, other.size, rel_tol=EQUAL)


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


def dates_of(text: str, words: Sequence[Token]) -> tuple[Date, ...]:
    """The dates of a text: "14 January 1897", "July 1944", "1789", "31 January", "each January"; not "may" the verb."""
    found: list[Date] = []
    taken = 0
    for n, word in enumerate(words):
        if n < taken:
            continue
        month = _MONTHS.get(word.lower) if word.is_capital else None
        if month and (word.lower != "may" or _has_number(words, n)):
            first, last, day, year = n, n, None, None
            if n > taken and _is_day(words[n - 1].lower):
                first, day = n - 1, int(words[n - 1].lower)
            elif n + 1 < len(words) and _is_day(words[n + 1].lower):
                last, day = n + 1, int(words[n + 1].lower)
            if last + 1 < len(words) and _is_year(words[last + 1].lower):
                last += 1
                year = int(words[last].lower)
            found.append(Date(year, month, day, _span(text, words[first], words[last])))
            taken = last + 1
        elif _is_year(word.lower) and not _measured(words, n) and not _is_name(words, n):
            found.append(Date(int(word.lower), None, None, _span(text, word, word)))
            taken = n + 1
    return tuple(found)


def quantities_of(text: str, words: Sequence[Token], dates: Sequence[Date] = ()) -> tuple[Quantity, ...]:
    """The numbers of a text with what they count or measure; none of what stands in ``dates``."""
    found, n = [], 0
    while n < len(words):
        word = words[n]
        in_date = any(date.span.start <= word.start < date.span.end for date in dates)
        read = None if in_date or _is_name(words, n) or _is_mark(text, word) else _number(words, n)
        if read is None:
            n += 1
            continue
        number, after = read
        quantity, n = _with_unit(text, words, n, number, after)
        found.append(quantity)
    return tuple(found)


def _number(words: Sequence[Token], n: int) -> tuple[float, int] | None:
    """(value, position after it) of the number that begins here: "22,500", "4.5 billion", "two thirds", "seventh"."""
    lower = words[n].lower
    if lower[0].isdigit():
        plain = lower.replace(",", "")
        if plain.count(".") > 1 or not plain.replace(".", "").isdigit():
            return None
        value = float(plain)
    elif lower in NUMBER_WORDS:
        value = NUMBER_WORDS[lower]
        if lower == "one" and not _one_counts(words, n):
            return None
    elif lower in _ORDINALS and _unit(words, n + 1):
        return _ORDINALS[lower], n + 1
    elif lower in {"a", "an"} and n + 1 < len(words) and words[n + 1].lower in {"third", "fifth", "tenth", "quarter"}:
        value, n = 1.0, n
    elif lower in _EACH and n + 1 < len(words) and words[n + 1].lower in _PERIODS:
        return 1.0, n + 1
    else:
        return None
    after = n + 1
    following = words[after].lower if after < len(words) else ""
    if value % 10 == 0 and 20 <= value <= 90 and 1 <= NUMBER_WORDS.get(following, 0) <= 9 and not lower[0].isdigit():
        value, after = value + NUMBER_WORDS[following], after + 1
    while after < len(words) and words[after].lower in _SCALES:
        value, after = value * _SCALES[words[after].lower], after + 1
    if after < len(words) and words[after].lower in _SHARES and value < 10:
        return 100.0 * value / _SHARES[words[after].lower], after + 1
    if lower == "half" and after < len(words) and words[after].lower in {"a", "an"}:
        after += 1
    return value, after


def _one_counts(words: Sequence[Token], n: int) -> bool:
    """Whether "one" is a number here: "one year", "one of", not "the one" or "one must"."""
    before = words[n - 1].lower if n else ""
    return before not in {"the", "this", "that", "no", "every", "any", "another"} and bool(_unit(words, n + 1))


def _with_unit(text: str, words: Sequence[Token], n: int, number: float, after: int) -> tuple[Quantity, int]:
    before = words[n - 1] if n else None
    is_share = after > n + 1 and words[after - 1].lower in _SHARES
    unit = ("share", 1.0, after) if is_share else _unit(words, after)
    if text[words[after - 1].end :].lstrip()[:1] == "%":
        unit = ("share", 1.0, after)
    first = words[n]
    if unit:
        dimension, size, last = unit
        return Quantity(number * size, dimension, frozenset(), _span(text, first, words[last - 1]), number), last
    if (before and before.end + 1 >= first.start and _is_currency(text, before)) or text[: first.start].rstrip()[
        -1:
    ] in tuple("$€£¥"):
        start = before if before and _is_currency(text, before) else first
        return Quantity(number, "money", frozenset(), _span(text, start, words[after - 1]), number), after
    nouns = []
    for word in words[after : after + 3]:
        if word.lower in _NO_NOUN or not word.lower[0].isalpha():
            break
        nouns.append(word.lower.rstrip("s"))
    last = max(after, min(after + 1, len(words))) if nouns else after
    return Quantity(number, "count", frozenset(nouns), _span(text, first, words[last - 1]), number), after


def _unit(words: Sequence[Token], n: int) -> tuple[str, float, int] | None:
    """(dimension, size, position after it) of the unit that stands here, in up to two words."""
    for length in (2, 1):
        if n + length <= len(words):
            lower = " ".join(word.lower for word in words[n : n + length])
            for known in (lower, lower.removesuffix("s"), lower.removesuffix("es"), _inner_singular(lower)):
                if known in _UNITS:
                    return (*_UNITS[known], n + length)
    return None


def _inner_singular(unit: str) -> str:
    """As "degree celsius" for "degrees celsius"."""
    return " ".join(word.removesuffix("s") if word != "celsius" else word for word in unit.split())


def _is_currency(text: str, word: Token) -> bool:
    written = text[word.start : word.end]
    return len(written) == 3 and written.isupper() and written.isalpha()


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdigit() and 1000 <= int(word) <= 2100


def _is_day(word: str) -> bool:
    return word.isdigit() and 1 <= int(word) <= 31


def _has_number(words: Sequence[Token], n: int) -> bool:
    beside = [words[m].lower for m in (n - 1, n + 1) if 0 <= m < len(words)]
    return any(word.isdigit() for word in beside)


def _measured(words: Sequence[Token], n: int) -> bool:
    """Whether a number like 1500 has a unit, or a currency before it, and so is no year."""
    before = words[n - 1] if n else None
    return _unit(words, n + 1) is not None or bool(before and len(before.lower) == 3 and before.lower in {"hmd", "usd"})


def _is_name(words: Sequence[Token], n: int) -> bool:
    return n > 0 and words[n - 1].lower in _NUMBERED


def _is_mark(text: str, word: Token) -> bool:
    """Whether this is a list's mark, "(1)", or part of a longer number such as "4.2.1"."""
    before, after = text[: word.start][-1:], text[word.end :][:1]
    return (before == "(" and after == ")") or before in tuple("./") or after == "("


def _span(text: str, first: Token, last: Token) -> Span:
    return Span(text[first.start : last.end], first.start, last.end)
