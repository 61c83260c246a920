"""What an answer says otherwise than its source, by kind; each with a case that is no clash."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.english.reading import read
from ragqa.scoring.verdicts.copies import clash_of, date_clash, edited, quantity_clash


def clash(said: str, found: str) -> tuple[str, str, str] | None:
    """(kind, the answer's words, the source's words) of the first clash."""
    first = clash_of(read(said), read(found))
    return first and (first.kind, first.said.text, first.found.text)


@pytest.mark.parametrize(
    ("said", "found", "expected"),
    [
        (
            "A Firm keeps records for two years.",
            "A Firm keeps records for six years.",
            ("number", "two years", "six years"),
        ),
        ("It has seven members.", "It has nine members.", ("number", "seven members", "nine members")),
        ("Notify within 72 days.", "Notify within 72 hours.", ("unit", "72 days", "72 hours")),
        ("Notify within 10 days.", "Notify within 10 Business Days.", ("unit", "10 days", "10 Business Days")),
        (
            "Notify within 10 calendar days.",
            "Notify within 10 Business Days.",
            ("unit", "10 calendar days", "10 Business Days"),
        ),
        ("Notify within 20 days.", "Notify within 10 calendar days.", ("number", "20 days", "10 calendar days")),
        (
            "Keep it for half a year.",
            "Keep it for one and a half years.",
            ("number", "half a year", "one and a half years"),
        ),
        ("It pays HMD 5,000.", "It pays HMD 50,000.", ("amount", "HMD 5,000", "HMD 50,000")),
        ("It holds 30 % of it.", "It holds 20 % of it.", ("amount", "30 %", "20 %")),
        ("It costs $7.", "It costs $9.", ("amount", "$7", "$9")),
        ("The lake is 60 metres deep.", "The lake is 30 metres deep.", ("amount", "60 metres", "30 metres")),
        ("It opened in 1897.", "It opened in July 1879.", ("date", "1897", "July 1879")),
        ("Reports are due on 31 March.", "Reports are due on 31 January.", ("date", "31 March", "31 January")),
    ],
)
def test_a_clash_of_each_kind(said, found, expected):
    assert clash(said, found) == expected
    assert clash(found, found) is None
    assert clash(said, said) is None


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Keep them half a year.", "Keep them six months."),
        ("The fine is EUR 20 million.", "The fine is EUR 20 000 000."),
        ("The fine is EUR 20,000,000.", "The fine is 20 000 000 EUR."),
        ("Keep them for 10 days.", "Keep 5 records for 10 days and 3 years."),  # the source's other numbers
        ("It opened in 1897.", "It opened on 14 January 1897."),
        ("It opened in January.", "It opened in 1897."),  # nothing in common to differ in
        ("A fifth is left.", "80 % is lost."),  # the same said the other way round
        ("It is half as long.", "The other is twice as long."),
        ("It has seven members.", "It has nine offices."),  # other things are counted
        ("Rule 4.2 applies.", "Rule 4.3 applies."),
        ("Keep (1) records.", "Keep (2) records."),
        ("A third party consents.", "20 % of them consent."),
        ("It may be kept.", "It is kept until 5 May."),
        ("", "It has nine members."),
        ("It has nine members.", ""),
    ],
)
def test_no_clash(said, found):
    assert clash(said, found) is None


def test_only_an_edited_copy_clashes_for_certain():
    keep = read("A Firm must keep its records for six years.")
    assert (
        edited(read("A Firm must keep its records for two years."), keep).words
        == "says six years, this sentence two years"
    )
    assert edited(read("After two years a Firm may not yet destroy what it has written down."), keep) is None
    assert edited(keep, keep) is None
    assert edited(read("two years"), keep) is None


WORDS = st.sampled_from(
    "The Firm Bank Controller Commission Kranj must not sue sued was by and the 5 six days years USD % in 1897 January "
    "third party rather than of Rule , .".split()
)
TEXTS = st.lists(WORDS, max_size=16).map(" ".join)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_clashing_words_are_slices_of_both_and_nothing_clashes_with_itself(said, found):
    mine, its = read(said), read(found)
    for one in filter(None, (quantity_clash(mine, its), date_clash(mine, its), edited(mine, its, 0.1))):
        assert said[one.said.start : one.said.end] == one.said.text != ""
        assert found[one.found.start : one.found.end] == one.found.text != ""
        assert one.words
    assert quantity_clash(mine, mine) is None
    assert date_clash(mine, mine) is None
