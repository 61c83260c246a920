"""Forms of verbs."""

import pytest

from ragqa.english.phrases import gerund


@pytest.mark.parametrize(
    ("verb", "form"),
    [
        ("leaves", "leaving"),
        ("cancel", "cancelling"),
        ("be", "being"),
        ("see", "seeing"),
        ("open", "opening"),
        ("submit", "submitting"),
        ("transfer", "transferring"),
        ("occur", "occurring"),
        ("visit", "visiting"),
        ("edit", "editing"),
        ("strip", "stripping"),
        ("read", "reading"),
        ("report", "reporting"),
        ("enter", "entering"),
    ],
)
def test_a_gerund_doubles_the_last_consonant_of_a_stressed_syllable(verb, form):
    assert gerund(verb) == form
