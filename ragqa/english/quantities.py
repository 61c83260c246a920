"""Finds quantities, which are numbers with their units, in the words of a text, and compares them.

English only. A known unit has a dimension and a size, so six months equal half a year, and 72 hours are not 72 days.
Rule numbers, list marks and numbers such as "4.2.1" are not quantities.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ragqa.english.words import Word
from ragqa.types import Span

T = TypeVar("T")

_NUMBER_WORDS: dict[str, float] = {
    **{
        word: float(n)
        for n, word in enumerate(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen".split()
        )
    },
    **{word: 10.0 * n for n, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)},
}
_SINGLE_WORDS = {"single": 1.0, "dozen": 12.0, "twice": 2.0, "double": 2.0, "half": 0.5}
_ORDINALS = {
    word: float(n)
    for n, word in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split(), 1)
} | {"last": -1.0}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "bn": 1e9}
_SHARES = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_SHARES |= {f"{name}s": part for name, part in _SHARES.items()}
_WHOLE = frozenset(
    {"of", "the", "its", "their", "all"}
)  # words after "half" and "a quarter" that make it a share, not a period or number
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
    **dict.fromkeys("pound dollar euro yen franc eur usd gbp chf".split(), ("money", 1.0)),
}
_UNITS |= {f"calendar {_name}": _UNITS[_name] for _name in ("day", "week", "month", "quarter", "year")}
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
    _UNITS |= {_name: ("length", _size), f"square {_name}": ("area", _size**2), f"cubic {_name}": ("volume", _size**3)}
# Words before a number that is a name and not a size: Rule 4, Category 2, item 3.
_NUMBERED = frozenset(
    "rule rules chapter chapters section sections article articles part parts category categories schedule appendix "
    "table paragraph paragraphs subsection clause item class tier basel form principle annex uranium no".split()
)
_NO_NOUN = frozenset("of to in at on for from and or the a an its their per more than less by with as is are".split())
_SHORT_SCALES = {"k": 1e3, "m": 1e6, "mn": 1e6}  # after a currency: "USD 5m"
_SIGNS = frozenset("$€£¥")
_EACH = frozenset({"a", "an", "each", "every", "per"})
_PERIODS = frozenset({"day", "week", "fortnight", "month", "quarter", "year"})
_RANGES = frozenset({"to", "and", "or", "-", "–", "—"})
MOST_COMPARED = 100  # quantities or dates of one sentence: a text with more is a table
LISTED = 8  # words to look back for the beginning of a list of rule numbers: "Rules 4.1, 4.2 and 4.3"
BUSINESS = "business time"
RECURRENCE = "interval"  # "every six months", "twice a year": how often, not how long
_EVERY = frozenset({"every", "each", "per"})
EQUAL = 0.006  # relative tolerance: 12 months equal a year, 30 days do not equal a month


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of something. ``size`` is in the base unit of its ``dimension``; counted things have the dimension
    "count".
    """

    size: float
    dimension: str
    nouns: frozenset[str]  # the counted things: up to three words after the number, in lower case
    span: Span
    number: float  # as written, without its unit

    def equals(self, other: Quantity) -> bool:
        """Whether both are equal. Business days never equal days; an interval may equal a period of the same size."""
        alike = self.dimension == other.dimension or {self.dimension, other.dimension} == {"time", RECURRENCE}
        return alike and math.isclose(self.size, other.size, rel_tol=EQUAL)


def unmatched(mine: Sequence[T], others: Sequence[T], same: Callable[[T, T], bool]) -> list[T]:
    """Those of the first hundred of ``mine`` that match none of ``others``."""
    return [one for one in mine[:MOST_COMPARED] if not any(same(one, other) for other in others)]


def stands_in(place: int, spans: Sequence[Span]) -> bool:
    """Whether this offset in a text is inside one of these spans, which are in order and do not overlap."""
    n = bisect_right(spans, place, key=lambda span: span.start) - 1
    return n >= 0 and place < spans[n].end


def quantities_of(text: str, words: Sequence[Word], dates: Sequence[Span] = ()) -> tuple[Quantity, ...]:
    """The quantities in a text, except numbers inside ``dates``."""
    found: list[Quantity] = []
    n = 0
    while n < len(words):
        word = words[n]
        number = None
        if not (stands_in(word.start, dates) or is_name(words, n) or _is_mark(text, word)):
            number = _grouped(text, words, n) or _number(words, n)
        if number is None:
            n += 1
            continue
        quantity, after = _with_unit(text, words, n, *number)
        quantity, n = _as_interval(text, words, n, quantity, found), after
        if found and text[found[-1].span.end : quantity.span.start].strip().casefold() in _RANGES:
            found[-1] = _of_same_unit(found[-1], quantity)
        found.append(quantity)
    return tuple(found)


def _as_interval(text: str, words: Sequence[Word], n: int, quantity: Quantity, before: list[Quantity]) -> Quantity:
    """The quantity; a period after "every" or "twice", beginning at word ``n``, becomes an interval.

    A preceding "twice" is removed from ``before``.
    """
    if quantity.dimension != "time":
        return quantity
    leading = [word.lower for word in words[max(0, n - 2) : n + 1]]
    if (
        _EVERY & set(leading[-2:])
        or "once" in leading[-2:-1]
        or (leading[0] == "once" and leading[-2] in {"in", "per"})
    ):
        return replace(quantity, dimension=RECURRENCE)
    often = before[-1] if before else None
    if (
        often
        and (often.dimension == "count" and often.nouns <= {"time"})
        and not text[often.span.end : quantity.span.start].strip()
    ):
        before.pop()
        span = Span(text[often.span.start : quantity.span.end], often.span.start, quantity.span.end)
        return replace(quantity, dimension=RECURRENCE, size=quantity.size / max(often.number, 1.0), span=span)
    return quantity


def _of_same_unit(first: Quantity, last: Quantity) -> Quantity:
    """The first number of a range with the unit of the last: "between 5 and 10 days"."""
    if first.dimension != "count" or first.nouns or not last.number:
        return first
    return replace(first, size=first.number * last.size / last.number, dimension=last.dimension, nouns=last.nouns)


def _number(words: Sequence[Word], n: int) -> tuple[float, int, bool] | None:
    """(value, position after it, whether it is a share in per cent) of the number that begins here, None if none does.

    "22,500", "4.5 billion", "three hundred and fifty", "two thirds", "seventh day", "each month".
    """
    lower, following = words[n].lower, words[n + 1].lower if n + 1 < len(words) else ""
    if lower[0].isdigit():
        plain = re.sub(r",(?=\d{3})", "", lower).replace(",", ".")  # "22,500" but "2,5", as most of Europe writes it
        if plain.count(".") > 1 or not plain.replace(".", "").isdecimal():
            return None
        value, after = float(plain), n + 1
        while after < len(words) and words[after].lower in _SCALES:
            value, after = value * _SCALES[words[after].lower], after + 1
    elif lower in _NUMBER_WORDS or lower in _SCALES or lower in {"a", "an"}:
        if not _counts(words, n):
            return None
        value, after = (1.0, n + 1) if lower in {"a", "an"} else _spelt(words, n)
    elif lower in _SINGLE_WORDS:
        if lower == "half" and following in _WHOLE:
            return 50.0, n + 1, True
        return _SINGLE_WORDS[lower], n + 1 + (lower == "half" and following in {"a", "an"}), False
    elif (lower in _ORDINALS and unit_at(words, n + 1)) or (lower in _EACH and following in _PERIODS):
        return _ORDINALS.get(lower, 1.0), n + 1, False
    else:
        return None
    if _is_half_more(words, after):
        value, after = value + 0.5, after + 3
    if value < max(_SHARES.values()) and _is_share(words, after):
        return 100.0 * value / _SHARES[words[after].lower], after + 1, True
    return value, after, False


def _grouped(text: str, words: Sequence[Word], n: int) -> tuple[float, int, bool] | None:
    """As `_number`, for an amount of money whose thousands spaces separate: "EUR 20 000 000", "5 000 euros"."""
    after = n + 1
    while after < len(words) and re.fullmatch(r"[ \u00a0\u202f]\d{3}", text[words[after - 1].end : words[after].end]):
        after += 1
    if after == n + 1 or not re.fullmatch(r"\d{1,3}", words[n].lower):
        return None
    unit = unit_at(words, after)
    if currency_at(text, words, n) is None and (unit is None or unit[0] != "money"):
        return None
    return float("".join(word.lower for word in words[n:after])), after, False


def _counts(words: Sequence[Word], n: int) -> bool:
    """Whether the word is a number here: "one year", "a third of", "a million"; not "the one", "one must", "a firm"."""
    lower = words[n].lower
    following = words[n + 1].lower if n + 1 < len(words) else ""
    if lower in {"a", "an"}:
        return _is_share(words, n + 1) or following in _PERIODS
    before = words[n - 1].lower if n else ""
    if lower in _SCALES:
        return lower == "hundred" or before == "a"
    if lower != "one" or following in _SCALES or _is_share(words, n + 1) or _is_half_more(words, n + 1):
        return True
    return before not in {"the", "this", "that", "no", "every", "any", "another"} and bool(unit_at(words, n + 1))


def _is_half_more(words: Sequence[Word], n: int) -> bool:
    """Whether the words here add a half to the number before them: "one and a half years"."""
    return [word.lower for word in words[n : n + 3]] == ["and", "a", "half"]


def _is_share(words: Sequence[Word], n: int) -> bool:
    """Whether the word here is a part of a whole: "thirds", "third of"; not "third" in "a third party"."""
    part = words[n].lower if n < len(words) else ""
    following = words[n + 1].lower if n + 1 < len(words) else ""
    if part == "quarter":
        return following in _WHOLE
    return part in _SHARES and (part.endswith("s") or not following or following in _NO_NOUN)


def _spelt(words: Sequence[Word], n: int) -> tuple[float, int]:
    """(value, position after it) of a number in words: "twenty-one", "one hundred and fifty thousand"."""
    total = group = 0.0
    at = n
    while at < len(words):
        lower = words[at].lower
        following = [word.lower for word in words[at + 1 : at + 3]]
        if lower in _NUMBER_WORDS:
            if group % 100 and not (group % 10 == 0 and group % 100 >= 20 and _NUMBER_WORDS[lower] < 10):
                break
            group += _NUMBER_WORDS[lower]
        elif lower == "hundred":
            group = max(group, 1.0) * 100.0
        elif lower in _SCALES:
            total, group = total + max(group, 1.0) * _SCALES[lower], 0.0
        elif not (lower == "and" and at > n and group % 100 == 0 and _goes_on(following, group)):
            break
        at += 1
    return total + group, at


def _goes_on(following: Sequence[str], group: float) -> bool:
    """Whether the words after "and" continue the number before: not in "one hundred and two hundred"."""
    scale = following[1] if len(following) > 1 else ""
    return bool(following) and following[0] in _NUMBER_WORDS and scale not in (_SCALES if not group else {"hundred"})


def _with_unit(
    text: str, words: Sequence[Word], n: int, number: float, after: int, is_share: bool
) -> tuple[Quantity, int]:
    """(quantity, position after it) of the number in the words from ``n`` to ``after - 1``."""
    again = _number(words, after) if after < len(words) and text[words[after].start - 1] == "(" else None
    if again and again[0] == number and text.startswith(")", words[again[1] - 1].end):
        after = again[1]  # "thirty (30) days", "5 (five) days"
    unit = ("share", 1.0, after) if is_share or _percent(text, words[after - 1].end) else unit_at(words, after)
    currency = currency_at(text, words, n)
    if currency is not None and after < len(words) and words[after].lower in _SHORT_SCALES:
        number, after, unit = number * _SHORT_SCALES[words[after].lower], after + 1, None
    is_next = after + 1 < len(words) and currency_at(text, words, after + 1) == after  # "EUR 500, USD 600"
    if unit and unit[0] == "money" and (is_next or (currency is not None and words[after].is_capital)):
        unit = None
    if unit:
        dimension, size, last = unit
        return Quantity(number * size, dimension, frozenset(), span_of(text, words[n], words[last - 1]), number), last
    if currency is not None:
        return Quantity(number, "money", frozenset(), span_of(text, words[currency], words[after - 1]), number), after
    nouns = []
    for at, word in enumerate(words[after : after + 3], after):
        is_currency = at + 1 < len(words) and bool(_number(words, at + 1)) and currency_at(text, words, at + 1) == at
        if word.lower in _NO_NOUN or not word.lower[0].isalpha() or is_currency:
            break
        nouns.append(word.lower.rstrip("s"))
    span = span_of(text, words[n], words[after if nouns else after - 1])
    return Quantity(number, "count", frozenset(nouns), span, number), after + bool(nouns)


def unit_at(words: Sequence[Word], n: int) -> tuple[str, float, int] | None:
    """(dimension, size, position after it) of the unit that begins here, of one or two words; None if there is none."""
    for length in (2, 1):
        if n + length <= len(words):
            lower = " ".join(word.lower for word in words[n : n + length])
            for known in (lower, lower.removesuffix("s"), lower.removesuffix("es"), _inner_singular(lower)):
                if known in _UNITS:
                    return (*_UNITS[known], n + length)
    return None


def _inner_singular(unit: str) -> str:
    """The unit with each word in the singular: "degree celsius" for "degrees celsius"."""
    return " ".join(word.removesuffix("s") if word != "celsius" else word for word in unit.split())


def currency_at(text: str, words: Sequence[Word], n: int) -> int | None:
    """The position where an amount of money begins, at its "HMD" or at the number after "$"; None if it is no money."""
    place = words[n].start
    if text[max(0, place - 2) : place].rstrip()[-1:] in _SIGNS:
        return n
    if n and words[n - 1].end + 1 >= place:
        written = text[words[n - 1].start : words[n - 1].end]
        if len(written) == 3 and written.isupper():
            return n - 1
    return None


def is_name(words: Sequence[Word], n: int) -> bool:
    """Whether a number is a name: "Rule 4", "Rules 4.1, 4.2 and 4.3"."""
    if not n or not words[n].lower[0].isdigit():
        return n > 0 and words[n - 1].lower in _NUMBERED
    is_measured = n + 1 < len(words) and words[n + 1].lower.endswith("s") and unit_at(words, n + 1) is not None
    listed = words[n - 1 : n] if is_measured else words[max(0, n - LISTED) : n]  # not in "Rule 4.2 or 30 days"
    before = (word.lower for word in reversed(listed))
    return next((one for one in before if not (one[0].isdigit() or one in {"and", "or", "to"})), "") in _NUMBERED


def _is_mark(text: str, word: Word) -> bool:
    """Whether this is a list mark, "(1)", or part of a longer number such as "4.2.1"."""
    before, after = text[max(0, word.start - 1) : word.start], text[word.end : word.end + 1]
    return (before == "(" and after == ")") or before in {".", "/"} or after == "("


def _percent(text: str, end: int) -> int:
    """The number of characters up to and including a per cent sign at ``end``: 0 if there is none."""
    return text[end : end + 2].find("%") + 1 if text[end : end + 2].lstrip()[:1] == "%" else 0


def span_of(text: str, first: Word, last: Word) -> Span:
    """The span from the first to the last word, with a currency sign before or a per cent sign after them."""
    start = first.start - (text[max(0, first.start - 1) : first.start] in _SIGNS)
    end = last.end + _percent(text, last.end)
    return Span(text[start:end], start, end)


# What stands before a limit: after the first a smaller number is stricter, after the second a larger one.
_SMALLER: Final = re.compile(
    r"\b(?:within|at most|(?:no|not) (?:more|later|longer) than|up to|exceed(?:s|ing)?|more than|over|above)"
    r"\s+(?:\w+ )?$",
    re.I,
)
_LARGER: Final = re.compile(r"\b(?:at least|(?:no|not) (?:less|fewer) than|a minimum of|for)\s+(?:\w+ )?$", re.I)
_BEFORE: Final = 40  # characters in which that stands


def is_stricter(text: str, required: Quantity, other: Quantity) -> bool:
    """Whether a policy with the quantity ``other`` is stricter than the rule ``text``, which has ``required``.

    False where the text does not say which way it limits. A period is at most as long as one of as many business days.
    """
    before = text[max(0, required.span.start - _BEFORE) : required.span.start]
    smaller = required.dimension == RECURRENCE or _SMALLER.search(before) is not None
    in_days = smaller and required.dimension == BUSINESS and other.dimension == "time"
    if required.equals(other) or (required.dimension != other.dimension and not in_days):
        return False
    if smaller:
        return other.size < required.size
    return other.size > required.size and _LARGER.search(before) is not None
