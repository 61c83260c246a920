"""Batches of encoded pairs: equal in padded length, bounded in tokens.

The padded length of a pair follows from the pair alone, and a batch holds one length only. So what the processor
computes for a pair does not depend on the pairs beside it, and an equal pair has equal bits in every session.
"""

from __future__ import annotations

from collections.abc import Sequence

LENGTH_STEP = 8  # tokens; a coarser step pads more, a finer one makes more batches


def padded_length(length: int) -> int:
    """The next multiple of 8 tokens."""
    return -(-length // LENGTH_STEP) * LENGTH_STEP


def batches_by_length(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Positions grouped into batches of one padded length each, shortest first; at equal length in the order given.

    A batch costs its padded length times its size; that is at most ``token_budget``, except for a single item that is
    longer alone. Every position occurs once; no items, no batches.
    """
    batches: list[list[int]] = []
    last = -1
    for position in sorted(range(len(lengths)), key=lambda position: padded_length(lengths[position])):
        length = padded_length(lengths[position])
        if length != last or length * (len(batches[-1]) + 1) > token_budget:
            batches.append([])
            last = length
        batches[-1].append(position)
    return batches
