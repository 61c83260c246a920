"""Measures per question and tests of their differences; expected numbers are worked out by hand."""

import itertools
import random
import subprocess
import sys
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.errors import CorpusError
from ragqa.evaluation.measures import MEASURES, display_name, means, measure_run
from ragqa.evaluation.significance import holm, paired_test


def measured(gold, found):
    """Each measure of one question."""
    return {name: value for name, [value] in measure_run([frozenset(gold)], [list(found)]).items()}


class TestMeasures:
    def test_three_gold_passages_at_ranks_1_3_and_6(self):
        assert measured("abc", "axbyzc") == pytest.approx(
            {
                "R@2": 1 / 3,
                "R@5": 2 / 3,
                "R@10": 3 / 3,
                "R@100": 3 / 3,
                "AP@10": (1 / 1 + 2 / 3 + 3 / 6) / 3,
                "nDCG@10": (1 / log2(2) + 1 / log2(4) + 1 / log2(7)) / (1 / log2(2) + 1 / log2(3) + 1 / log2(4)),
                "RR@10": 1 / 1,
                "Success@1": 1.0,
                "Success@2": 1.0,
                "Success@10": 1.0,
            }
        )

    def test_two_gold_passages_of_which_one_at_rank_4(self):
        found = measured(["a", "not in the index"], "wxya")
        assert found == pytest.approx(
            {
                "R@2": 0.0,
                "R@5": 1 / 2,
                "R@10": 1 / 2,
                "R@100": 1 / 2,
                "AP@10": (1 / 4) / 2,
                "nDCG@10": (1 / log2(5)) / (1 / log2(2) + 1 / log2(3)),
                "RR@10": 1 / 4,
                "Success@1": 0.0,
                "Success@2": 0.0,
                "Success@10": 1.0,
            }
        )

    def test_more_gold_than_ranks(self):
        """AP@10 divides by all twelve, as trec_eval does; nDCG@10 by what ten ranks can hold."""
        gold = [f"g{number}" for number in range(12)]
        found = measured(gold, gold[:10])
        assert found["R@10"] == pytest.approx(10 / 12)
        assert found["AP@10"] == pytest.approx(10 / 12)
        assert found["nDCG@10"] == pytest.approx(1.0)

    def test_the_cut_lies_behind_its_rank(self):
        at = {
            rank: measured("a", [f"x{number}" for number in range(rank - 1)] + ["a"]) for rank in (1, 2, 5, 10, 11, 101)
        }
        nonzero = {rank: {name for name, value in found.items() if value} for rank, found in at.items()}
        assert nonzero == {
            1: set(MEASURES),
            2: set(MEASURES) - {"Success@1"},
            5: set(MEASURES) - {"Success@1", "Success@2", "R@2"},
            10: set(MEASURES) - {"Success@1", "Success@2", "R@2", "R@5"},
            11: {"R@100"},
            101: set(),
        }
        assert at[10]["AP@10"] == pytest.approx(1 / 10)
        assert at[10]["RR@10"] == pytest.approx(1 / 10)
        assert at[10]["nDCG@10"] == pytest.approx(1 / log2(11))

    def test_questions_keep_their_order_past_ten(self):
        """Question ids are "0" to "11", which sort otherwise as texts."""
        gold = [frozenset({str(number)}) for number in range(12)]
        run = [[f"x{i}" for i in range(number)] + [str(number)] for number in range(12)]
        values = measure_run(gold, run)
        assert values["RR@10"] == pytest.approx([1 / (number + 1) for number in range(10)] + [0.0, 0.0])
        assert {len(of_questions) for of_questions in values.values()} == {12}

    def test_no_hits_count_zero_wherever_they_stand(self):
        gold = [frozenset("a")] * 3
        assert measure_run(gold, [[], ["a"], []]) == {name: [0.0, 1.0, 0.0] for name in MEASURES}
        assert measure_run(gold, [[], [], []]) == {name: [0.0] * 3 for name in MEASURES}
        assert means(measure_run(gold, [[], ["a"], []]))["AP@10"] == pytest.approx(1 / 3)

    def test_a_repeated_id_counts_once_where_it_stands_first(self):
        assert measured("ab", "axaab") == measured("ab", "axb")
        assert measured("a", "aaaa")["R@10"] == 1.0

    def test_many_hits_keep_their_order(self):
        """No tie is broken by the library: id order and rank order are opposite here."""
        ids = [f"{number:03}" for number in range(200)]
        assert measured([ids[99]], ids)["R@100"] == 1.0
        assert measured([ids[100]], ids)["R@100"] == 0.0
        assert measured([ids[99]], ids[::-1])["R@100"] == 0.0
        assert measured([ids[100]], ids[::-1])["R@100"] == 1.0

    def test_ids_with_spaces_are_ids(self):
        assert measured(["6:APP 3"], ["6:APP", "6:APP 3"])["RR@10"] == 1 / 2

    def test_a_question_without_gold_is_refused(self):
        with pytest.raises(CorpusError, match=r"none for 2 of 3, first for question 2; leave these questions out"):
            measure_run([frozenset("a"), frozenset(), frozenset()], [["a"], ["a"], []])

    def test_lengths_that_differ_are_refused(self):
        with pytest.raises(ValueError, match="found 1 for 2 questions"):
            measure_run([frozenset("a")] * 2, [["a"]])

    def test_no_questions(self):
        assert measure_run([], []) == {name: [] for name in MEASURES}
        assert means(measure_run([], [])) == dict.fromkeys(MEASURES, 0.0)

    def test_other_measures(self):
        assert measure_run([frozenset("ab")], [["a"]], ["R@1", "P@1"]) == {"R@1": [1 / 2], "P@1": [1.0]}
        assert measure_run([frozenset("ab")], [["a"]], []) == {}

    def test_means(self):
        assert means({"R@10": [0.5, 1.0, 0.0], "AP@10": []}) == {"R@10": (0.5 + 1.0 + 0.0) / 3, "AP@10": 0.0}

    def test_names_for_readers(self):
        assert [display_name(name) for name in MEASURES] == [
            "R@2",
            "R@5",
            "R@10",
            "R@100",
            "MAP@10",
            "nDCG@10",
            "MRR@10",
            "hit rate@1",
            "hit rate@2",
            "hit rate@10",
        ]
        assert display_name("AP") == "MAP"

    @given(st.sets(st.sampled_from("abcdefgh"), min_size=1), st.lists(st.sampled_from("abcdefghxyz"), max_size=15))
    @settings(deadline=None, max_examples=60)
    @pytest.mark.long
    def test_values_lie_in_0_to_1_and_order_among_gold_does_not_matter(self, gold, found):
        values = measured(gold, found)
        assert all(0 <= value <= 1 + 1e-9 for value in values.values())
        swapped = [min(gold) if name == max(gold) else max(gold) if name == min(gold) else name for name in found]
        assert measured(gold, swapped) == pytest.approx(values)


class TestPairedTest:
    def test_the_same_throughout(self):
        found = paired_test([0.1, 0.5, 0.9], [0.1, 0.5, 0.9])
        assert (found.mean_difference, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)

    def test_all_better_by_the_same(self):
        """Of the 2^10 exchanges only none and all reach a mean of 1 or -1: p = 2 / 1024."""
        found = paired_test([1.0] * 10, [0.0] * 10)
        assert (found.mean_difference, found.low, found.high) == (1.0, 1.0, 1.0)
        assert found.p_value == pytest.approx(2 / 2**10)

    def test_few_questions_are_counted_out(self):
        """Differences 3, 2, -1, sum 4: of the 8 sign patterns +-4 or more is reached by (+3+2-1), (+3+2+1) and their
        mirrors; scipy doubles the smaller tail, 2 of 8 each."""
        a, b = [3.0, 2.0, 0.0], [0.0, 0.0, 1.0]
        sums = [3 * x + 2 * y + z for x, y, z in itertools.product((1, -1), repeat=3)]
        assert sum(total >= 4 for total in sums) == 2
        found = paired_test(a, b)
        assert found.p_value == pytest.approx(2 * 2 / 8)
        assert found.mean_difference == pytest.approx(4 / 3)

    def test_questions_that_are_equal_change_the_mean_and_not_p(self):
        alone = paired_test([1.0] * 6 + [0.0] * 2, [0.0] * 6 + [1.0] * 2)
        among = paired_test([1.0] * 6 + [0.0] * 2 + [0.5] * 92, [0.0] * 6 + [1.0] * 2 + [0.5] * 92)
        assert alone.mean_difference == pytest.approx(4 / 8)
        assert among.mean_difference == pytest.approx(4 / 100)
        # 6 of 8 or more heads: 28 + 8 + 1 = 37 of 256 patterns
        assert alone.p_value == among.p_value == pytest.approx(2 * 37 / 256)

    def test_a_clear_difference(self):
        chance = random.Random(1)
        b = [chance.random() for _ in range(300)]
        a = [value + 0.2 + chance.gauss(0, 0.1) for value in b]
        found = paired_test(a, b)
        assert found.p_value == pytest.approx(2 / 10_001)
        assert 0.18 < found.low < found.mean_difference < found.high < 0.22
        # mean +- 1.96 * 0.1 / sqrt(300)
        assert found.high - found.low == pytest.approx(2 * 1.96 * 0.1 / 300**0.5, rel=0.15)

    @pytest.mark.long
    def test_no_difference_but_noise(self):
        """Under the null p is even over (0, 1]: of 40 seeds about 2 fall below 0.05."""
        below = outside = 0
        for seed in range(40):
            chance = random.Random(seed)
            a, b = ([chance.random() for _ in range(60)] for _ in range(2))
            found = paired_test(a, b)
            below += found.p_value < 0.05
            outside += not found.low <= 0 <= found.high
        assert below <= 6
        assert outside <= 6

    def test_exchanging_the_sides_turns_the_sign(self):
        chance = random.Random(3)
        a, b = ([chance.random() for _ in range(12)] for _ in range(2))
        forth, back = paired_test(a, b), paired_test(b, a)
        assert back.mean_difference == pytest.approx(-forth.mean_difference)
        assert back.p_value == pytest.approx(forth.p_value)
        assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))

    def test_the_seed_decides(self):
        chance = random.Random(4)
        a, b = ([chance.random() for _ in range(40)] for _ in range(2))
        assert paired_test(a, b) == paired_test(a, b, seed=0)
        assert paired_test(a, b) != paired_test(a, b, seed=1)

    def test_one_question(self):
        found = paired_test([0.75], [0.5])
        assert (found.mean_difference, found.low, found.high, found.p_value) == (0.25, 0.25, 0.25, 1.0)

    def test_one_question_that_differs(self):
        """The mean is 0.01 in size either way, so that p = 1; resamples hold that question 0 to about 6 times."""
        found = paired_test([1.0] + [0.5] * 49, [0.5] * 50)
        assert (found.mean_difference, found.p_value) == (pytest.approx(0.5 / 50), 1.0)
        assert found.low == 0.0
        assert 2 * 0.5 / 50 <= found.high <= 4 * 0.5 / 50

    @pytest.mark.parametrize(("n", "p"), [(13, 2 / 2**13), (14, 2 / 10_001)])
    def test_where_counting_out_ends(self, n, p):
        assert paired_test([1.0] * n, [0.0] * n).p_value == pytest.approx(p, abs=3 / 10_001 if n > 13 else 1e-12)

    def test_the_size_of_a_batch_changes_nothing(self, monkeypatch):
        chance = random.Random(5)
        a, b = ([chance.random() for _ in range(30)] for _ in range(2))
        at_once = paired_test(a, b)
        monkeypatch.setattr("ragqa.evaluation.significance.NUMBERS_AT_ONCE", 50_000)
        assert paired_test(a, b) == at_once

    @pytest.mark.parametrize(
        ("a", "b", "message"),
        [
            ([], [], "at least one, found 0 and 0"),
            ([1.0], [1.0, 2.0], "found 1 and 2"),
            ([float("nan")], [1.0], "finite"),
            ([float("inf")], [1.0], "finite"),
        ],
    )
    def test_refused(self, a, b, message):
        with pytest.raises(ValueError, match=message):
            paired_test(a, b)


class TestHolm:
    def test_by_hand(self):
        """Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1 is 0.04, 0.06, 0.06, 0.04; none below the one before."""
        assert holm([0.01, 0.04, 0.03, 0.02]) == pytest.approx((4 * 0.01, 3 * 0.02, 2 * 0.03, 3 * 0.02))

    def test_one_that_stays_and_one_over_1(self):
        assert holm([0.9, 0.6, 0.001]) == pytest.approx((1.0, 1.0, 3 * 0.001))

    def test_ties(self):
        assert holm([0.02, 0.02, 0.5]) == pytest.approx((3 * 0.02, 3 * 0.02, 0.5))

    def test_one_and_none(self):
        assert holm([0.03]) == (0.03,)
        assert holm([]) == ()

    @pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
    def test_refused(self, value):
        with pytest.raises(ValueError, match=r"in \[0, 1\], found"):
            holm([0.5, value])

    @given(st.lists(st.floats(0, 1), max_size=8))
    def test_never_below_p_and_never_over_bonferroni(self, p_values):
        adjusted = holm(p_values)
        assert all(
            p <= found <= min(1.0, p * len(p_values)) + 1e-12 for p, found in zip(p_values, adjusted, strict=True)
        )
        by_p = sorted(zip(p_values, adjusted, strict=True))
        assert [found for _, found in by_p] == sorted(adjusted)


@pytest.mark.long
def test_importing_loads_neither_library():
    code = (
        "import sys, ragqa.evaluation.measures, ragqa.evaluation.significance, ragqa.evaluation.run_files; "
        "assert not {'scipy', 'ir_measures'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
