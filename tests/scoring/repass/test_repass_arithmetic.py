"""Golden numbers of the RePASs formulas, written out, in both modes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.scoring.repass.arithmetic import (
    ObligationMatch,
    best_cover,
    covers,
    first_maximum,
    mean_of_maxima,
    obligation_coverage,
    repass,
    verdict,
)
from ragqa.types.scores import NliProbabilities, RePASs, ScoringMode, Verdict

PAPER, SCRIPT = ScoringMode.PAPER, ScoringMode.SCRIPT
both_modes = pytest.mark.parametrize("mode", [PAPER, SCRIPT])


def matrix(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=float)


def pair(entailment: float, contradiction: float | None = None) -> NliProbabilities:
    """A pair with this P(entailment); what is left is neutral unless given to contradiction."""
    rest = 1 - entailment
    contradiction = 0.0 if contradiction is None else contradiction
    return NliProbabilities(contradiction, entailment, rest - contradiction)


# E and C


def test_mean_of_maxima_takes_the_best_source_sentence_for_each_answer_sentence():
    rows_are_sources = matrix([0.1, 0.6], [0.9, 0.2], [0.3, 0.3])
    assert mean_of_maxima(rows_are_sources) == (0.9 + 0.6) / 2


def test_mean_of_maxima_is_not_the_mean_over_sources():
    assert mean_of_maxima(matrix([1.0, 0.0], [0.0, 0.0])) == (1.0 + 0.0) / 2


@pytest.mark.parametrize(
    ("given_matrix", "expected"),
    [
        (np.zeros((0, 0)), 0.0),
        (np.zeros((0, 3)), 0.0),  # no source sentence
        (np.zeros((3, 0)), 0.0),  # no answer sentence
        (matrix([0.25]), 0.25),  # one of each
        (matrix([0.5, 0.5], [0.5, 0.5]), 0.5),  # all tied
    ],
)
def test_mean_of_maxima_at_the_edges(given_matrix, expected):
    assert mean_of_maxima(given_matrix) == expected


def test_mean_of_maxima_leaves_its_input_alone():
    before = matrix([0.1, 0.6], [0.9, 0.2])
    mean_of_maxima(before)
    assert before.tolist() == [[0.1, 0.6], [0.9, 0.2]]


@pytest.mark.parametrize(
    ("values", "position"), [([], None), ([0.0], 0), ([0.2, 0.9, 0.9], 1), ([0.4, 0.4], 0), ([0.1, 0.2, 0.3], 2)]
)
def test_first_maximum_takes_the_first_at_a_tie(values, position):
    assert first_maximum(values) == position


# Verdicts


@pytest.mark.parametrize(
    ("entailment", "contradiction", "expected"),
    [
        (0.5, 0.49, Verdict.SUPPORTED),  # equal to the threshold counts
        (0.49, 0.5, Verdict.CONTRADICTED),
        (0.5, 0.5, Verdict.DISPUTED),
        (0.49, 0.49, Verdict.UNSUPPORTED),
        (1.0, 1.0, Verdict.DISPUTED),
        (0.0, 0.0, Verdict.UNSUPPORTED),
    ],
)
def test_verdict_at_threshold_one_half(entailment, contradiction, expected):
    assert verdict(entailment, contradiction, 0.5) is expected


# Covering an obligation


@both_modes
def test_the_threshold_itself_does_not_cover(mode):
    assert not covers(pair(0.7), 0.7, mode)
    assert covers(pair(np.nextafter(0.7, 1)), 0.7, mode)


@both_modes
def test_threshold_one_covers_nothing_and_threshold_zero_needs_more_than_nothing(mode):
    assert not covers(pair(1.0), 1.0, mode)
    assert not covers(pair(0.0), 0.0, mode)


def test_only_the_script_wants_entailment_to_be_the_arg_max():
    more_contradiction = NliProbabilities(0.5, 0.4, 0.1)
    assert covers(more_contradiction, 0.3, PAPER)
    assert not covers(more_contradiction, 0.3, SCRIPT)


def test_entailment_loses_a_tie_in_the_script():
    assert not covers(NliProbabilities(0.5, 0.5, 0.0), 0.3, SCRIPT)
    assert not covers(NliProbabilities(0.0, 0.5, 0.5), 0.3, SCRIPT)
    assert covers(NliProbabilities(0.0, 0.5, 0.5), 0.3, PAPER)


@given(st.floats(0, 1), st.floats(0, 1))
def test_above_one_half_the_arg_max_changes_nothing(entailment, share):
    probabilities = pair(entailment, (1 - entailment) * share)
    assert covers(probabilities, 0.7, PAPER) == covers(probabilities, 0.7, SCRIPT)


@both_modes
def test_best_cover_names_the_best_sentence_whether_it_covers_or_not(mode):
    assert best_cover([pair(0.2), pair(0.8), pair(0.9)], 0.7, mode) == ObligationMatch(True, 0.9, 2)
    assert best_cover([pair(0.2), pair(0.7), pair(0.7)], 0.7, mode) == ObligationMatch(False, 0.7, 1)


@both_modes
def test_best_cover_without_a_sentence(mode):
    assert best_cover([], 0.7, mode) == ObligationMatch(False, 0.0, None)


def test_best_cover_prefers_a_sentence_that_covers_over_a_higher_one_that_does_not():
    pairs = [NliProbabilities(0.5, 0.45, 0.05), NliProbabilities(0.3, 0.4, 0.3)]
    assert best_cover(pairs, 0.35, SCRIPT) == ObligationMatch(True, 0.4, 1)
    assert best_cover(pairs, 0.35, PAPER) == ObligationMatch(True, 0.45, 0)


@pytest.mark.parametrize(
    ("covered", "expected"),
    [([], 0.0), ([True], 1.0), ([False], 0.0), ([True, False, False], 1 / 3), ([True] * 7, 1.0)],
)
def test_obligation_coverage_is_a_share(covered, expected):
    assert obligation_coverage(covered) == expected


# The three parts together


def test_golden_paper():
    e = mean_of_maxima(matrix([0.9, 0.2], [0.4, 0.6]))  # (0.9 + 0.6) / 2
    c = mean_of_maxima(matrix([0.1, 0.3], [0.2, 0.1]))  # (0.2 + 0.3) / 2
    parts = repass(e, c, obligation_coverage([True, True, False]), PAPER)
    assert parts == RePASs(0.75, 0.25, 2 / 3)
    assert parts.composite == (0.75 - 0.25 + 2 / 3 + 1) / 3


def test_golden_script_rounds_each_part_to_5_decimals_before_the_composite():
    parts = repass((0.9 + 0.6 + 0.5) / 3, (0.1 + 0.1 + 0.2) / 3, 1 / 3, SCRIPT)
    assert parts == RePASs(0.66667, 0.13333, 0.33333)
    assert parts.composite == (0.66667 - 0.13333 + 0.33333 + 1) / 3
    assert parts.composite != (2 / 3 - 0.4 / 3 + 1 / 3 + 1) / 3


def test_script_rounds_halves_as_numpy_does():
    # 0.123455 is stored a little below the half: Python rounds the stored number, numpy 12345.5 to the even 12346.
    assert round(0.123455, 5) == 0.12345
    assert repass(0.123455, 0.123455, 0.5, SCRIPT) == RePASs(0.12346, 0.12346, 0.5)
    assert repass(0.123455, 0.123455, 0.5, PAPER) == RePASs(0.123455, 0.123455, 0.5)


@both_modes
def test_golden_no_obligations(mode):
    """A perfect answer to passages that oblige nobody: (1 - 0 + 0 + 1) / 3."""
    parts = repass(mean_of_maxima(matrix([1.0])), mean_of_maxima(matrix([0.0])), obligation_coverage([]), mode)
    assert parts.composite == 2 / 3


@both_modes
def test_golden_empty_answer(mode):
    """Nothing said: E = C = 0, no obligation covered, (0 - 0 + 0 + 1) / 3."""
    parts = repass(mean_of_maxima(np.zeros((4, 0))), mean_of_maxima(np.zeros((4, 0))), 0.0, mode)
    assert parts == RePASs(0.0, 0.0, 0.0)
    assert parts.composite == 1 / 3


@both_modes
def test_golden_one_sentence(mode):
    parts = repass(mean_of_maxima(matrix([0.875])), mean_of_maxima(matrix([0.125])), obligation_coverage([True]), mode)
    assert parts == RePASs(0.875, 0.125, 1.0)
    assert parts.composite == (0.875 - 0.125 + 1 + 1) / 3


@both_modes
def test_golden_identical_sentences_weigh_each_time(mode):
    """The same answer sentence twice counts twice: (0.5 + 0.5 + 1) / 3, not (0.5 + 1) / 2."""
    assert repass(mean_of_maxima(matrix([0.5, 0.5, 1.0])), 0.0, 0.0, mode).entailment == pytest.approx(2 / 3, abs=5e-6)


@both_modes
def test_the_best_and_the_worst_composite(mode):
    assert repass(1.0, 0.0, 1.0, mode).composite == 1.0
    assert repass(0.0, 1.0, 0.0, mode).composite == 0.0


unit = st.floats(0, 1)


@given(unit, unit, unit, st.sampled_from(ScoringMode))
def test_all_stays_between_0_and_1(entailment, contradiction, coverage, mode):
    parts = repass(entailment, contradiction, coverage, mode)
    assert all(0 <= part <= 1 for part in (parts.entailment, parts.contradiction, parts.obligation_coverage))
    assert 0 <= parts.composite <= 1


@given(st.lists(st.lists(unit, min_size=3, max_size=3), min_size=1, max_size=6), st.randoms())
@pytest.mark.long
def test_the_order_of_the_source_sentences_changes_nothing(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert mean_of_maxima(matrix(*rows)) == mean_of_maxima(matrix(*shuffled))


@given(st.lists(st.floats(0, 1), max_size=6), unit, unit)
def test_a_higher_threshold_never_covers_more(entailments, one, other):
    low, high = sorted((one, other))
    pairs = [pair(value) for value in entailments]
    assert best_cover(pairs, high, PAPER).covered <= best_cover(pairs, low, PAPER).covered
