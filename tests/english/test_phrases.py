"""Forms of verbs."""

import pytest

from ragqa.english.phrases import ParsedSentence, gerund
from tests.support.effort import grows_no_faster


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


def test_a_chain_of_prepositions_takes_little_longer_than_its_length():
    assert grows_no_faster(lambda n: ParsedSentence("Must " + "fund in " * n).phrases, 60)
