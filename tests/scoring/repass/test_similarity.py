"""Which premises are compared first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.scoring.repass.similarity import by_similarity
from tests.support.effort import grows_no_faster


def test_the_premise_that_repeats_most_of_the_hypothesis_comes_first():
    premises = ["The sky is blue.", "A firm must keep records of clients.", "Records are kept."]
    assert by_similarity(premises, ["A firm must keep records."]) == [[1, 2, 0]]


def test_rare_words_count_more_than_common_ones():
    premises = ["the firm and the bank and the fund", "the levy", "the firm", "the fund"]
    # "levy" stands in 2 of 5 sentences (1 + ln 5/2 = 1.92), "the" in all 5 (1 + ln 1 = 1), "firm" in 3 (1.51)
    assert by_similarity(premises, ["the levy firm"]) == [[1, 0, 2, 3]]


def test_what_else_a_premise_says_does_not_matter():
    premises = ["Records must.", "Records must be kept for six years, says rule 4, unless rule 5 applies."]
    assert by_similarity(premises, ["Records must be kept."]) == [[1, 0]]


def test_case_punctuation_order_and_repetition_of_words_do_not_matter():
    premises = ["sky", "KEEP, records!", "records keep", "keep keep records keep"]
    assert by_similarity(premises, ["Keep records."]) == [[1, 2, 3, 0]]


@pytest.mark.parametrize("hypothesis", ["", " ... ", "unheard of"])
def test_a_tie_goes_to_the_earlier_premise(hypothesis):
    assert by_similarity(["b", "a", ""], [hypothesis]) == [[0, 1, 2]]


def test_one_order_per_hypothesis_and_none_without():
    assert by_similarity(["a", "b"], ["b", "a"]) == [[1, 0], [0, 1]]
    assert by_similarity(["a"], []) == []
    assert by_similarity([], ["a", "a"]) == [[], []]


sentences = st.lists(st.text("ab cd.", max_size=8), max_size=6)


@given(sentences, sentences)
def test_every_premise_comes_once(premises, hypotheses):
    orders = by_similarity(premises, hypotheses)
    assert [sorted(order) for order in orders] == [list(range(len(premises)))] * len(hypotheses)


def test_twice_the_premises_are_twice_the_work():
    premises = [f"Firm {n} of kind {n % 7} must keep records of client {n % 5} for {n} years. " * 3 for n in range(480)]
    hypotheses = [f"Firm {n} must keep records for {n} years and tell client {n % 4}." for n in range(12)]
    assert grows_no_faster(lambda n: by_similarity(premises[:n], hypotheses), 60)


def test_a_passage_of_100_000_words_is_no_trouble():
    endless = " ".join(f"word{n}" for n in range(100_000))
    assert by_similarity([endless, "word1 word2"], ["word1 nothing word2"])[0] == [0, 1]
    words = [" ".join(f"word{n}" for n in range(count)) for count in (5_000, 40_000)]
    assert grows_no_faster(lambda n: by_similarity([words[n > 5_000], "word1 word2"], ["word1 nothing word2"]), 5_000)
