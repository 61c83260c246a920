"""Batches of encoded pairs: alike in length, so that little is spent on padding, and bounded in tokens."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["batches_by_length"]


def batches_by_length(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Positions grouped into batches, shortest first; at equal length in the order given.

    A batch costs its longest length times its size, padding included; that is at most ``token_budget``, except for a
    single item that is longer alone. Every position occurs once; no items, no batches.
    """
    batches: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not batches or lengths[position] * (len(batches[-1]) + 1) > token_budget:
            batches.append([])
        batches[-1].append(position)
    return batches
