"""Tests whether the difference between two configurations on the same questions could be chance. By scipy.

Which test and why: Smucker, Allan and Carterette 2007, A Comparison of Statistical Significance Tests for Information
Retrieval Evaluation, https://doi.org/10.1145/1321440.1321528 (they recommend the randomisation test on the mean).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
NUMBERS_AT_ONCE = 2_000_000  # in one batch of resamples: 16 MB per array, a few arrays at a time

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The mean of a - b over the questions, its 95 % interval [low, high], and the two-sided p value in (0, 1].

    Differences and interval are in the unit of the measure. The interval is the percentile bootstrap's, the p value a
    permutation test's: these are two methods, so near p = 0.05 the interval and the test may disagree.
    """

    mean_difference: float
    low: float
    high: float
    p_value: float

    @property
    def is_better(self) -> bool:
        """Whether a is significantly better than b: a positive mean difference with p below .05."""
        return self.p_value < SIGNIFICANT and self.mean_difference > 0


def paired_test(a: Sequence[float], b: Sequence[float], seed: int = 0) -> PairedTest:
    """Whether a measure's values under ``a`` and under ``b`` differ; ``a[i]`` and ``b[i]`` are of the same question.

    The permutation test on the mean difference exchanges a and b within each question: in all 2^n ways if n, the number
    of differing questions, is at most 13, else in 10,000 ways drawn with ``seed``, and then p is at least 2 / 10,001.
    The percentile bootstrap over the questions uses 10,000 resamples with the same seed. The same arguments give the
    same numbers. If a and b are equal throughout, p is 1 and the interval is [0, 0]; if all questions differ by the
    same amount, the interval is that point.

    Raises ValueError if the lengths differ, if there is no question, or if a value is not finite.
    """
    if len(a) != len(b) or not len(a):
        raise ValueError(f"expected the same number of values twice, at least one, found {len(a):,} and {len(b):,}")
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    differences = first - second
    if not np.isfinite(differences).all():
        raise ValueError("expected finite values, found a NaN or an infinity")
    low, high = _interval(differences, seed)
    return PairedTest(float(differences.mean()), low, high, _p_value(first, second, seed))


def paired_tests(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], seed: int = 0
) -> list[tuple[PairedTest, float]]:
    """The `paired_test` of each pair, and its p value adjusted for all of them (`holm`)."""
    tests = [paired_test(a, b, seed) for a, b in pairs]
    return list(zip(tests, holm([test.p_value for test in tests]), strict=True))


def _p_value(a: Floats, b: Floats, seed: int) -> float:
    """The p value; only differing questions are permuted, because exchanging equal values changes nothing."""
    from scipy.stats import permutation_test

    differing = a != b
    a, b = a[differing], b[differing]
    if len(a) < 2:  # exchanging one pair only changes the sign; scipy needs two
        return 1.0
    found = permutation_test(
        (a, b),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=_batch(2 * len(a)),
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _interval(differences: Floats, seed: int) -> tuple[float, float]:
    """The percentiles 2.5 and 97.5 of the mean over resampled questions (Efron and Tibshirani 1993, chapter 13)."""
    if np.all(differences == differences[0]):  # scipy would warn and return NaN, and needs two questions
        return float(differences[0]), float(differences[0])
    from scipy.stats import bootstrap

    found = bootstrap(
        (differences,),
        np.mean,
        method="percentile",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=_batch(len(differences)),
        confidence_level=CONFIDENCE,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


def _batch(numbers_per_resample: int) -> int:
    return max(1, NUMBERS_AT_ONCE // numbers_per_resample)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p values of m comparisons adjusted for their number, in the order given; compare each with 0.05 as usual.

    The i-th (from 1) of the sorted p values is multiplied by m - i + 1, but is at least the previous one and at most 1.
    This bounds the probability of one or more false findings, however the comparisons depend on each other. Holm 1979,
    A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6(2), 65-70; scipy has
    no Holm. Raises ValueError if a value is outside [0, 1].
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"expected p values in [0, 1], found {', '.join(str(p) for p in p_values if not 0 <= p <= 1)}")
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = highest
    return tuple(adjusted)
