"""Scores of different scales made comparable. Pure."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["min_max_norm"]


def min_max_norm(scores: Sequence[float]) -> list[float]:
    """The scores mapped linearly so that the lowest is 0 and the highest 1 (RIRAG eq. 5).

    Equal scores, a single one included, are all 1: each is the best there is. An empty list stays empty.
    """
    if not scores:
        return []
    low, high = min(scores), max(scores)
    if high == low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]
