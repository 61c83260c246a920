import re

import pytest

from ragqa.evaluation.benchmarks.expected_facts.facts import FactOutcome, Facts, Judgement, judge, plain
from ragqa.types import Answer

ROW = {
    "facts": [
        {"part": "melts", "any_of": [r"\b1064\b", "one thousand and sixty-four"]},
        {"part": "symbol", "any_of": [r"\bau\b"]},
    ],
    "wrong": [r"melts at (?!1064)\d+"],
}
FACTS = Facts.of(ROW)


def _judge(text, **changes):
    return judge(Answer(text, (), "extractive", "", **changes), FACTS)


def test_every_part_is_full_some_are_part_and_no_part_is_none():
    assert _judge("Gold (AU) melts at 1064 degrees.") == Judgement(FactOutcome.FULL, found=("melts", "symbol"))
    assert _judge("Its symbol is Au.") == Judgement(FactOutcome.PART, found=("symbol",), missing=("melts",))
    assert _judge("Gold is yellow.") == Judgement(FactOutcome.NONE, missing=("melts", "symbol"))
    assert _judge("").outcome is FactOutcome.NONE


def test_any_of_the_ways_to_say_it_will_do():
    assert _judge("It melts at one thousand and sixty-four degrees.").found == ("melts",)


def test_a_wrong_statement_outweighs_the_right_ones_and_is_quoted():
    assert _judge("Au melts at 1538 degrees.") == Judgement(
        FactOutcome.WRONG, found=("symbol",), missing=("melts",), wrong=("melts at 1538",)
    )


def test_a_refusal_is_not_read():
    assert _judge("Au melts at 1538 degrees.", is_refusal=True) == Judgement(
        FactOutcome.REFUSED, missing=("melts", "symbol")
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("HMD 1,234,567", "HMD 1234567"),
        ("in 1,2,3 and 12,34", "in 1,2,3 and 12,34"),
        ("5 per cent, 5 percent, 5 %", "5%, 5%, 5%"),
        ("percentage points", "percentage points"),
        ("Süssmayr’s  “Requiem”\nends", 'Sussmayr\'s "Requiem" ends'),
        ("−269 °C", "-269 °C"),
        ("- **Yes**: it may.", "Yes: it may."),
        ("1,064\u00a0degrees", "1064 degrees"),
    ],
)
def test_spelling_that_means_the_same_reads_the_same(written, read):
    assert plain(written) == read


def test_a_pattern_that_does_not_compile_is_an_error():
    with pytest.raises(re.error):
        Facts.of({"facts": [], "wrong": ["("]})
