"""Lucene's BM25 as the matrix that bm25s reads, counted in blocks so that memory does not grow with its pairs' number.

bm25s's own builder takes a Python list of every token of every text, 40 bytes each: tens of GB for a million passages
read with their neighbours. The formula and the layout are bm25s's; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ragqa.retrieval.token_table import TokenTable

__all__ = ["ScoreMatrix", "Windows", "score_matrix"]

BLOCK_TOKENS: Final = 4_000_000  # counted at once: some 200 MB of temporary arrays

Longs = npt.NDArray[np.int64]
Windows = Longs  # (n_texts, 2): text i is read as texts first to last - 1 of the table


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMatrix:
    """Scores by token: ``data[indptr[t]:indptr[t + 1]]`` are token t's, ``indices`` the texts they are of, rising."""

    data: npt.NDArray[np.float32]  # (n_pairs,)
    indices: npt.NDArray[np.int32]  # (n_pairs,)
    indptr: Longs  # (n_distinct_tokens + 1,)
    n_texts: int


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """How often tokens occur in texts, each array of shape (n_pairs,), sorted by token, then text."""

    tokens: Longs
    texts: Longs
    times: Longs


def score_matrix(table: TokenTable, k1: float, b: float, windows: Windows | None = None) -> ScoreMatrix:
    """The scores of every (token, text) pair; with ``windows`` each text is a run of the table's. Needs a text."""
    first, last = (np.arange(len(table)), np.arange(1, len(table) + 1)) if windows is None else windows.T
    begins, ends = table.starts[first], table.starts[last]
    lengths = ends - begins
    n_texts, average = len(lengths), lengths.mean()
    frequency = np.zeros(len(table.vocabulary), dtype=np.int64)
    for counts in _counted(table, begins, ends):
        np.add.at(frequency, counts.tokens, 1)
    idf = np.log(1 + (n_texts - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(frequency)]).astype(np.int64)
    data, indices = np.empty(indptr[-1], dtype=np.float32), np.empty(indptr[-1], dtype=np.int32)
    heads = indptr[:-1].copy()  # where the next text of each token goes
    for counts in _counted(table, begins, ends):
        distinct, run_starts, run_lengths = np.unique(counts.tokens, return_index=True, return_counts=True)
        within_run = np.arange(len(counts.tokens)) - np.repeat(run_starts, run_lengths)
        places = heads[counts.tokens] + within_run
        norm = k1 * ((1 - b) + b * lengths[counts.texts] / average)
        data[places] = idf[counts.tokens] * (counts.times / (norm + counts.times))
        indices[places] = counts.texts
        heads[distinct] += run_lengths
    return ScoreMatrix(data, indices, indptr, n_texts)


def _counted(table: TokenTable, begins: Longs, ends: Longs) -> Iterator[_Counts]:
    """The counts of text ``i``'s tokens ``begins[i]`` to ``ends[i]``, in blocks of about `BLOCK_TOKENS` tokens."""
    lengths = ends - begins
    totals = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = totals[start] - lengths[start]
        stop = max(start + 1, int(np.searchsorted(totals, before + BLOCK_TOKENS, side="right")))
        yield _counts(table, begins[start:stop], lengths[start:stop], start)
        start = stop


def _counts(table: TokenTable, begins: Longs, lengths: Longs, offset: int) -> _Counts:
    n_texts = len(lengths)
    skipped = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
    tokens = table.numbers[np.arange(lengths.sum()) + skipped].astype(np.int64)
    pairs, times = np.unique(tokens * n_texts + np.repeat(np.arange(n_texts), lengths), return_counts=True)
    return _Counts(pairs // n_texts, pairs % n_texts + offset, times)
