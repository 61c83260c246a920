"""Numbers with their units, and dates: what is found, what is equal, what is no quantity at all."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.english.quantities import Quantity, is_stricter, stands_in, unmatched
from ragqa.english.reading import Date, read
from ragqa.types import Span

YEAR = 365.25


def found(text: str) -> list[tuple[float, str]]:
    return [(quantity.size, quantity.dimension) for quantity in read(text).quantities]


def dates(text: str) -> list[tuple[int | None, int | None, int | None]]:
    return [(date.year, date.month, date.day) for date in read(text).dates]


def equal(one: str, other: str) -> bool:
    (mine,), (its,) = read(one).quantities, read(other).quantities
    return mine.equals(its) and its.equals(mine)


# Quantities


@pytest.mark.parametrize(
    ("text", "size", "dimension"),
    [
        ("within 72 hours", 3, "time"),
        ("a 24-hour period", 1, "time"),
        ("six months", YEAR / 2, "time"),
        ("half a year", 0.5 * YEAR, "time"),
        ("each month", YEAR / 12, "interval"),
        ("twice a year", YEAR / 2, "interval"),
        ("once every three years", 3 * YEAR, "interval"),
        ("the seventh day", 7, "time"),
        ("the last day", -1, "time"),
        ("10 Business Days", 10, "business time"),
        ("twenty-one days", 21, "time"),
        ("within 30 calendar days", 30, "time"),
        ("the period in Rule 4.2 or 30 days", 30, "time"),
        ("under Articles 5 and 6 and 10 Business Days", 10, "business time"),
        ("two Calendar Months", YEAR / 6, "time"),
        ("one and a half years", 1.5 * YEAR, "time"),
        ("two and a half per cent", 2.5, "share"),
        ("thirty (30) days", 30, "time"),
        ("5 (five) days", 5, "time"),
        ("72 (seventy-two) hours", 3, "time"),
        ("ten thousand (10,000) dollars", 10_000, "money"),
        ("one million (1,000,000) euros", 1e6, "money"),
        ("20 %", 20, "share"),
        ("20 per cent", 20, "share"),
        ("2,5 %", 2.5, "share"),
        ("EUR 1,234,567 was paid", 1_234_567, "money"),
        ("EUR 12,50 was paid", 12.5, "money"),
        ("50 basis points", 0.5, "share"),
        ("two-thirds of the members", 100 * 2 / 3, "share"),
        ("a third of the members", 100 / 3, "share"),
        ("one fifth of it", 20, "share"),
        ("half of its members", 50, "share"),
        ("a quarter of the board", 25, "share"),
        ("within a quarter", YEAR / 4, "time"),
        ("HMD 250,000", 250_000, "money"),
        ("EUR 20 000 000", 20e6, "money"),
        ("up to 20\u00a0000\u00a0000 EUR", 20e6, "money"),
        ("5 000 euros", 5_000, "money"),
        ("$ 1 500.", 1_500, "money"),
        ("$1500 was paid", 1500, "money"),
        ("USD 2000", 2000, "money"),
        ("USD 5m", 5e6, "money"),
        ("4.5 billion dollars", 4.5e9, "money"),
        ("5 kilometres", 5000, "length"),
        ("3 square kilometres", 3e6, "area"),
        ("two feet", 2 * 0.3048, "length"),
        ("one hundred and fifty thousand people", 150_000, "count"),
        ("three hundred and one firms", 301, "count"),
        ("a million people", 1e6, "count"),
        ("one million people", 1e6, "count"),
        ("a dozen clients", 12, "count"),
        ("22,500 clients", 22_500, "count"),
    ],
)
def test_a_number_is_read_with_its_unit(text, size, dimension):
    ((its_size, its_dimension),) = found(text)
    assert (its_size, its_dimension) == (pytest.approx(size), dimension)


@pytest.mark.parametrize(
    "text",
    [
        "A third party must consent.",  # no share
        "the one that counts",
        "one must keep records",
        "Rule 4 applies",
        "Rules 4.1, 4.2 and 4.3 apply",
        "see Section 12",
        "in Category 3A",
        "(1) firms must (2) keep records",
        "4.2.1 Firms keep records",
        "no numbers at all",
        "",
        "²",
    ],
)
def test_what_is_no_quantity(text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("six months", "half a year"),
        ("12 months", "one year"),
        ("72 hours", "three days"),
        ("two weeks", "a fortnight"),
        ("20 %", "one fifth of it"),
        ("half of them", "50 per cent"),
        ("1,000 metres", "a distance of 1 km"),
        ("HMD 2 million", "HMD 2,000,000"),
        ("twenty firms", "20 firms"),
    ],
)
def test_the_same_in_other_words_is_equal(one, other):
    assert equal(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("30 days", "one month"),
        ("10 days", "10 Business Days"),
        ("10 days", "10 weeks"),
        ("5 metres", "5 feet"),
        ("20 degrees Celsius", "20 degrees Fahrenheit"),
        ("20 %", "20 firms"),
        ("three firms", "four firms"),
    ],
)
def test_other_numbers_and_units_are_not_equal(one, other):
    assert not equal(one, other)


def test_the_first_number_of_a_range_has_the_unit_of_the_last():
    assert found("between 5 and 10 days") == [(5, "time"), (10, "time")]
    assert found("5 to 10 weeks") == [(35, "time"), (70, "time")]
    assert found("5-10 %") == [(5, "share"), (10, "share")]
    assert found("between one hundred and two hundred firms") == [(100, "count"), (200, "count")]
    assert found("two directors and 3 months") == [(2, "count"), (pytest.approx(YEAR / 4), "time")]


def test_how_often_is_no_amount_and_no_business_day_is_a_day():
    assert found("three times a year") == [(pytest.approx(YEAR / 3), "interval")]
    assert found("HMD 500 a year") == [(500, "money"), (YEAR, "time")]
    assert found("2 firms a year") == [(2, "count"), (YEAR, "time")]
    assert found("every 10 Business Days") == [(10, "business time")]
    assert found("once in 5 years") == [(5 * YEAR, "interval")]


def test_what_is_counted_stands_after_the_number():
    (quantity,) = read("at least 12 independent directors of the firm").quantities
    assert quantity.nouns == {"independent", "director"}
    assert quantity.span.text == "12 independent"


# Dates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 14 January 1897", (1897, 1, 14)),
        ("on 14th January 1897", (1897, 1, 14)),
        ("on the 14th of January", (None, 1, 14)),
        ("on January 14, 1897", (1897, 1, 14)),
        ("on January 14th, 1897", (1897, 1, 14)),
        ("in July 1944", (1944, 7, None)),
        ("each January", (None, 1, None)),
        ("in 1789", (1789, None, None)),
        ("in May 2020", (2020, 5, None)),
        ("on 3 May", (None, 5, 3)),
    ],
)
def test_a_date_is_read_as_far_as_it_is_given(text, expected):
    assert dates(text) == [expected]
    assert found(text) == []  # and none of its numbers is a quantity


@pytest.mark.parametrize(
    "text",
    ["Firms may act.", "May the firm act?", "1500 metres", "USD 1500", "$ 1999", "Rule 1999", "march on", "2500"],
)
def test_what_is_no_date(text):
    assert dates(text) == []


def fits(one: str, other: str) -> bool:
    (mine,), (its,) = read(one).dates, read(other).dates
    return mine.fits(its)


def test_a_date_fits_a_coarser_one_and_no_other():
    assert fits("14 January 1897", "1897")
    assert fits("14 January 1897", "January 1897")
    assert fits("14 January", "14 January 1897")
    assert not fits("14 January 1897", "15 January 1897")
    assert not fits("14 January 1897", "14 March 1897")
    assert not fits("January", "1897")  # nothing in common


# Properties

WORDS = st.sampled_from(
    "5 10 3.5 1,000 1897 (2) 4.2.1 % $ one two hundred thousand million half a third quarter of the and to days months "
    "years Business USD EUR 000 m metres firms January May 14th first last Rule per cent , . - –".split()
)
TEXTS = st.lists(WORDS, max_size=14).map(" ".join)


@settings(deadline=None)
@given(TEXTS)
def test_every_quantity_and_date_is_a_slice_in_order_and_equal_to_itself(text):
    reading = read(text)
    for one in (*reading.quantities, *reading.dates):
        assert text[one.span.start : one.span.end] == one.span.text != ""
    for spans in ([one.span for one in reading.quantities], [one.span for one in reading.dates]):
        assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(one.equals(one) for one in reading.quantities)
    assert all(one.fits(one) for one in reading.dates)
    assert unmatched(reading.quantities, reading.quantities, Quantity.equals) == []
    assert unmatched(reading.dates, reading.dates, Date.fits) == []


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_being_equal_has_no_order(one, other):
    mine, its = read(one), read(other)
    assert all(a.equals(b) == b.equals(a) for a in mine.quantities for b in its.quantities)
    assert all(a.fits(b) == b.fits(a) for a in mine.dates for b in its.dates)


@given(st.lists(st.integers(0, 30), unique=True, max_size=10).map(sorted), st.integers(-1, 40))
def test_a_place_is_in_a_span_where_a_slow_search_finds_it(edges, place):
    spans = [Span("", start, end) for start, end in zip(edges[::2], edges[1::2], strict=False)]
    assert stands_in(place, spans) == any(span.start <= place < span.end for span in spans)


@pytest.mark.parametrize(
    ("rule", "policy", "stricter"),
    [
        ("within 5 days", "2 days", True),
        ("within 5 days", "30 days", False),
        ("no later than 20 Business Days", "10 Business Days", True),
        ("within 5 Business Days", "three days", True),  # calendar days pass sooner
        ("within 5 days", "two Business Days", False),  # not known
        ("at least six years", "ten years", True),
        ("at least six years", "five years", False),
        ("every 12 months", "every six months", True),
        ("gifts of more than USD 500", "USD 300", True),
        ("not exceed 25 per cent", "30 per cent", False),
        ("the sixth of 8 reports", "2 reports", False),  # no limit
    ],
)
def test_a_smaller_or_larger_number_is_stricter_by_what_stands_before(rule, policy, stricter):
    (required, *_), (other, *_) = read(rule).quantities[-1:], read(policy).quantities
    assert is_stricter(rule, required, other) is stricter


def test_the_amounts_of_a_list_keep_their_own_currencies():
    spans = [one.span.text for one in read("It pays EUR 500, USD 600 and 7 000 GBP in 2 100 cases.").quantities]
    assert spans[:3] == ["EUR 500", "USD 600", "7 000 GBP"]
    assert found("It pays EUR 500, USD 600 and 7 000 GBP in 2 100 cases.")[3:] == [(2, "count"), (100, "count")]
