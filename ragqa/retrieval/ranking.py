"""Scores to a Ranking with one stated order: best first, equal scores by passage id, also where top-k cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ragqa.types import Passage, Ranking, ScoredPassage

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.floating[Any]]


def tie_order(passages: Sequence[Passage]) -> Positions:
    """For each passage the place of its id among all ids sorted; shape (n_passages,)."""
    by_id = sorted(range(len(passages)), key=lambda position: passages[position].passage_id)
    order = np.empty(len(passages), dtype=np.int64)
    order[by_id] = np.arange(len(passages))
    return order


def best_positions(positions: Positions, scores: Scores, order: Positions, top_k: int) -> Positions:
    """The ``top_k`` best of ``positions`` by (-score, order); ``scores[i]`` belongs to ``positions[i]``.

    ``order`` is `tie_order` of all passages. Fewer positions than ``top_k`` come back all, none come back as none.
    """
    if 0 < top_k < len(positions):
        cut = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
        positions, scores = positions[scores >= cut], scores[scores >= cut]
    return positions[np.lexsort((order[positions], -scores))][: max(top_k, 0)]


def ranking_of(retriever: str, passages: Sequence[Passage], scores: Scores, order: Positions, top_k: int) -> Ranking:
    """The ranking of the passages that score above 0; ``scores`` has shape (n_passages,)."""
    positive = np.flatnonzero(scores > 0)
    best = best_positions(positive, scores[positive], order, top_k)
    return Ranking.of(retriever, [ScoredPassage(passages[i], float(scores[i])) for i in best.tolist()])
