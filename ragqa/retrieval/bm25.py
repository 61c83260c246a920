"""BM25 by bm25s: scores of every (token, passage) pair computed once, kept on disk, memory-mapped, summed per question.

Lucene's formula, as in https://arxiv.org/abs/2407.03618 table 1 (bm25s's method "lucene")::

    score(q, p) = sum over t in q of  ln(1 + (N - df_t + 0.5) / (df_t + 0.5)) * tf / (tf + k1 * (1 - b + b * |p| / avg))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import bm25s
import numpy as np

from ragqa.analysers import Analyser
from ragqa.errors import IndexMismatchError
from ragqa.retrieval.analysis import tokenise
from ragqa.retrieval.ranking import Mask, Positions, ranking_of
from ragqa.types import Passage, Ranking

__all__ = ["BM25_FILES", "Bm25sRetriever", "build_bm25", "load_bm25", "save_bm25"]

BM25_FILES: Final = (
    "data.csc.index.npy",
    "indices.csc.index.npy",
    "indptr.csc.index.npy",
    "params.index.json",
    "vocab.index.json",
)


class Bm25sRetriever:
    """Ranks by BM25 through bm25s. Nothing changes after construction: share it between threads."""

    def __init__(
        self,
        model: bm25s.BM25,
        analyser: Analyser,
        passages: Sequence[Passage],
        order: Positions,
        hidden: Mask,
        name: str = "bm25",
    ) -> None:
        """``hidden``, shape (n_passages,), is True for passages that are never returned."""
        self.name = name
        self._model = model
        self._analyser = analyser
        self._hidden = hidden
        self._passages = passages
        self._order = order

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a token with the question; a word said twice counts twice."""
        token_ids = self._model.get_tokens_ids(tokenise(question, self._analyser))
        if not token_ids:
            return Ranking(self.name, ())
        scores = self._model.get_scores_from_ids(token_ids)
        scores[self._hidden] = 0.0
        return ranking_of(self.name, self._passages, scores, self._order, top_k)


def build_bm25(token_lists: Sequence[Sequence[str]], k1: float, b: float) -> bm25s.BM25:
    """The scored matrix of passages given as tokens; passage i is column position i. Needs at least one passage.

    The vocabulary is numbered in order of first occurrence, so that equal input gives equal files.
    """
    vocabulary: dict[str, int] = {}
    token_ids = [[vocabulary.setdefault(token, len(vocabulary)) for token in tokens] for tokens in token_lists]
    model = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
    with np.errstate(invalid="ignore"):  # no token in any passage: average length 0, and nothing to score
        model.index((token_ids, vocabulary), create_empty_token=False, show_progress=False)
    return model


def save_bm25(model: bm25s.BM25, folder: Path) -> None:
    """Writes the five files of `BM25_FILES`: arrays without pickle, and JSON."""
    model.save(folder, allow_pickle=False, show_progress=False)


def load_bm25(folder: Path) -> bm25s.BM25:
    """The model of this folder, its arrays memory-mapped read-only. Raises IndexMismatchError."""
    try:
        model = bm25s.BM25.load(folder, mmap=True, allow_pickle=False, show_progress=False)
        _check(model)
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"expected the files of a BM25 index in {folder.name}/, found something else: {error}"
        raise IndexMismatchError(msg) from error
    for key in ("data", "indices", "indptr"):
        model.scores[key] = np.asarray(model.scores[key])  # still mapped; np.memmap's own indexing is several us slower
    return model


def _check(model: Any) -> None:  # noqa: ANN401 - bm25s has no types
    """Raises ValueError unless the arrays fit each other."""
    scores, n_tokens = model.scores, len(model.vocab_dict)
    n_scores = {len(scores["data"]), len(scores["indices"]), int(scores["indptr"][-1])}
    if len(scores["indptr"]) != n_tokens + 1 or len(n_scores) > 1 or not isinstance(scores["num_docs"], int):
        msg = f"{n_tokens} tokens, {len(scores['indptr'])} columns, {n_scores} scores, {scores['num_docs']} passages"
        raise ValueError(msg)
