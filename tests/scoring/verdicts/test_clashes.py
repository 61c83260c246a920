"""What an answer says otherwise than its source, by kind; each with a case that is no clash."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.english.reading import read
from ragqa.scoring.verdicts.clashes import clashes, foreign_name, strength


def clash(said: str, found: str) -> tuple[str, str, str] | None:
    """(kind, the answer's words, the source's words) of the first clash."""
    first = next(clashes(read(said), read(found)), None)
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
        ("It pays HMD 5,000.", "It pays HMD 50,000.", ("amount", "HMD 5,000", "HMD 50,000")),
        ("It holds 30 % of it.", "It holds 20 % of it.", ("amount", "30 %", "20 %")),
        ("It costs $7.", "It costs $9.", ("amount", "$7", "$9")),
        ("The lake is 60 metres deep.", "The lake is 30 metres deep.", ("amount", "60 metres", "30 metres")),
        ("It opened in 1897.", "It opened in July 1879.", ("date", "1897", "July 1879")),
        ("Reports are due on 31 March.", "Reports are due on 31 January.", ("date", "31 March", "31 January")),
        (
            "In Ljubljana the river meets the sea of the north.",
            "In Maribor the river meets the sea of the north.",
            ("entity", "Ljubljana", "Maribor"),
        ),
        (
            "The Controller must tell the Commission of a breach.",
            "The Processor must tell the Commission of a breach.",
            ("party", "Controller", "Processor"),
        ),
        (
            "Notices go to the Commission and not the Controller of the data.",
            "The Controller of the data gets all notices, and so does the Commission.",
            ("party", "Controller", "Controller"),
        ),
        ("The Bank sued the Firm in court.", "The Firm sued the Bank in court.", ("party", "Bank", "Firm")),
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
        ("The Firm was sued by the Bank in court.", "The Bank sued the Firm in court."),  # the passive voice
        ("Ana lives here.", "Something quite different happened to Berta in the city of Kranj yesterday."),
        ("Notices go to the Commission and not the Controller.", "Notices do not go to the Controller."),
        ("", "It has nine members."),
        ("It has nine members.", ""),
    ],
)
def test_no_clash(said, found):
    assert clash(said, found) is None


def test_a_foreign_name_is_none_that_the_headings_have():
    said, found = read("The river in Kranj is deep."), read("The river in Celje is deep.")
    one = foreign_name(said, found, frozenset())
    assert (one.kind, one.said.text, one.found.text, one.is_certain) == ("entity", "Kranj", "Celje", False)
    assert one.words == "says Celje, the answer Kranj"
    assert foreign_name(said, found, read("Kranj").stems) is None
    assert foreign_name(said, read("The river is deep."), frozenset()) is None  # no name in its place
    assert foreign_name(read("The river is deep."), found, frozenset()) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A Firm must keep records.", {"duty"}),
        ("A Firm must not keep records.", {"ban"}),
        ("No person may lend.", {"ban"}),
        ("Lending is prohibited.", {"ban"}),
        ("A Firm may lend.", {"permission"}),
        ("It is usually cold and seldom dry.", {"often", "seldom"}),
        ("It is not cold.", {"negation"}),
        ("It is cold.", set()),
    ],
)
def test_strength(text, expected):
    assert strength(read(text)) == expected


WORDS = st.sampled_from(
    "The Firm Bank Controller Commission Kranj must not sue sued was by and the 5 six days years USD % in 1897 January "
    "third party rather than of Rule , .".split()
)
TEXTS = st.lists(WORDS, max_size=16).map(" ".join)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_clashing_words_are_slices_of_both_and_nothing_clashes_with_itself(said, found):
    mine, its = read(said), read(found)
    named = foreign_name(mine, its, frozenset())
    for one in (*clashes(mine, its), *([named] if named else [])):
        assert said[one.said.start : one.said.end] == one.said.text != ""
        assert found[one.found.start : one.found.end] == one.found.text != ""
        assert one.words
    assert [one for one in clashes(mine, mine) if one.kind not in {"party"}] == []
    assert foreign_name(mine, mine, frozenset()) is None
