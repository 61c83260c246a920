"""Scores to a Ranking with one stated order: best first, equal scores by passage id, also where top-k cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragqa.errors import IndexMismatchError
from ragqa.types import Passage, Ranking, ScoredPassage

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.floating[Any]]


def best_positions(positions: Positions, scores: Scores, order: Positions, top_k: int) -> Positions:
    """The ``top_k`` best of ``positions`` by (-score, order); ``scores[i]`` belongs to ``positions[i]``.

    ``order`` is the place of each passage's id among all ids sorted. Fewer positions than ``top_k`` come back all.
    """
    if 0 < top_k < len(positions):
        cut = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
        positions, scores = positions[scores >= cut], scores[scores >= cut]
    return positions[np.lexsort((order[positions], -scores))][: max(top_k, 0)]


@contextmanager
def index_files(what: str, folder: Path) -> Iterator[None]:
    """Reading files of an index that hold ``what``. Raises IndexMismatchError where they hold something else."""
    try:
        yield
    except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, ZeroDivisionError) as error:
        msg = f"expected {what} in {folder.name}/, found something else: {error}"
        raise IndexMismatchError(msg) from error


class CorpusRanker:
    """What the retrievers of one index share: its passages, their order at ties, and which of them stay hidden.

    Nothing changes after construction, here or in those below: share them between threads.
    """

    def __init__(self, name: str, passages: Sequence[Passage], order: Positions, hidden: Mask) -> None:
        """``order`` as in `best_positions`; ``hidden``, shape (n_passages,), is True for what is never returned."""
        self.name = name
        self._passages = passages
        self._order = order
        self._hidden = hidden

    def _above_zero(self, scores: Scores, top_k: int) -> Ranking:
        """The best of the passages that score above 0; ``scores``, shape (n_passages,), is changed."""
        scores[self._hidden] = 0.0
        positive = np.flatnonzero(scores > 0)
        best = best_positions(positive, scores[positive], self._order, top_k)
        return Ranking.of(self.name, [ScoredPassage(self._passages[i], float(scores[i])) for i in best.tolist()])

    def _best(self, positions: Positions, scores: Scores, top_k: int) -> Ranking:
        """The best of the passages at these positions, whatever they score; ``scores[i]`` belongs to position i."""
        score_of = dict(zip(positions.tolist(), scores.tolist(), strict=True))
        best = best_positions(positions, scores, self._order, top_k)
        return Ranking.of(self.name, [ScoredPassage(self._passages[i], score_of[i]) for i in best.tolist()])
