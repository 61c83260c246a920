"""Conditions, exceptions and restrictions that an answer leaves out, and "some" made "all"."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.english.reading import read
from ragqa.scoring.verdicts.scope import dropped_scope, missing_deadline, widened

OUTSOURCE = "A Firm may outsource its functions"


def dropped(said: str, found: str) -> str | None:
    span = dropped_scope(read(said), read(found))
    return span and span.text


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (f"{OUTSOURCE} only if the contract permits it.", "only if the contract permits it"),
        (f"{OUTSOURCE} if the contract permits it, and pay.", "if the contract permits it, and pay"),
        (f"{OUTSOURCE}; unless the Commission objects.", "unless the Commission objects"),
        (f"{OUTSOURCE} except for custody of gold.", "except for custody of gold"),
        (f"{OUTSOURCE} provided that clients agree; it pays.", "provided that clients agree"),
        (f"{OUTSOURCE} subject to the approval by members.", "subject to the approval by members"),
        (f"{OUTSOURCE} to banks only.", "only"),
        ("A Firm that holds client money may outsource its functions.", "that holds client money "),
        ("Below a threshold of assets, a Firm may outsource its functions.", "Below a threshold of assets"),
    ],
)
def test_what_limits_is_missed(found, expected):
    assert dropped(f"{OUTSOURCE}.", found) == expected
    assert dropped(found, found) is None


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            "Under a contract permitting it, a Firm may outsource its functions.",
            f"{OUTSOURCE} if a contract permits it.",
        ),
        ("Functions may be outsourced by a Firm alone to banks.", f"{OUTSOURCE} only to banks."),
        ("A Firm keeps its records.", f"{OUTSOURCE} only if the contract permits it."),  # of something else
        (f"{OUTSOURCE}.", f"{OUTSOURCE} without undue delay."),
        (f"{OUTSOURCE}.", f"{OUTSOURCE} once a year."),
        (f"{OUTSOURCE}.", f"{OUTSOURCE}."),
        ("", f"{OUTSOURCE} if the contract permits it."),
        (f"{OUTSOURCE}.", ""),
    ],
)
def test_nothing_is_missed(said, found):
    assert dropped(said, found) is None


def test_a_condition_without_a_comma_ends_all_the_same():
    found = f"{OUTSOURCE} if {'large ' * 1_000}good."
    assert len(dropped(f"{OUTSOURCE}.", found)) < 700


@pytest.mark.parametrize(
    ("said", "found", "expected"),
    [
        ("All firms lend.", "Some firms lend.", "Some"),
        ("Every firm lends.", "Most firms lend.", "Most"),
        ("They always lend.", "They usually lend.", "usually"),
        ("Some firms lend.", "Some firms lend.", None),
        ("All firms lend.", "All firms lend to some banks.", None),
        ("Firms lend.", "Some firms lend.", None),
    ],
)
def test_some_is_not_all(said, found, expected):
    span = widened(read(said), read(found))
    assert (span and span.text) == expected


def test_a_deadline_without_a_number_is_missed():
    found = read("A Firm must notify the Commission immediately of a breach.")
    assert missing_deadline(read("A Firm must notify the Commission of a breach."), found).text == "immediately"
    assert missing_deadline(read("A Firm must notify it promptly."), found) is None
    assert missing_deadline(found, read("A Firm must notify it.")) is None


WORDS = st.sampled_from(
    "A Firm that may must if only unless , ; . where except outsource records all some not no".split()
)
TEXTS = st.lists(WORDS, max_size=16).map(" ".join)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_what_is_missed_is_a_slice_of_the_source(said, found):
    for find in (dropped_scope, widened, missing_deadline):
        span = find(read(said), read(found))
        assert span is None or (found[span.start : span.end] == span.text != "")
    assert dropped_scope(read(found), read(found)) is None
