"""Scores of different scales made comparable. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def min_max_norm(scores: Sequence[float], bounds: tuple[float, float] | None = None) -> list[float]:
    """The scores mapped linearly so that the lowest is 0 and the highest 1 (RIRAG eq. 5).

    ``bounds`` are the lowest and highest where these are not all the scores there are. Where both are equal, a single
    score included, all are 1: each is the best there is. An empty list stays empty.
    """
    if not scores:
        return []
    low, high = bounds or (min(scores), max(scores))
    if high == low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]
