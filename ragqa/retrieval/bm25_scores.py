"""Lucene's BM25 as the matrix that bm25s reads, made of counts that lie on disk: memory does not grow with the corpus.

bm25s's own builder takes a Python list of every token of every text, 40 bytes each: tens of GB for a million passages
read with their neighbours. Here texts are counted a block at a time (`counted`); each block is sorted by token, so the
matrix is a merge of all blocks, a range of tokens at a time (`TokenScores.blocks`). Formula and layout are bm25s's;
tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.retrieval.token_table import Keys, TokenTable, distinct

BLOCK_TOKENS: Final = 4_000_000  # counted at once: some 150 MB of temporary arrays
BLOCK_SCORES: Final = 8_000_000  # scored at once: some 300 MB of temporary arrays
VOCABULARY_AT_ONCE: Final = 4_000_000  # keys, before repeats are taken out

Longs = npt.NDArray[np.int64]
Windows = Longs  # (n_texts, 2): text i is read as texts first to last - 1 of the table


@dataclass(frozen=True, slots=True, eq=False)
class TokenCounts:
    """How often tokens occur in a block of texts, by token, then text; its arrays may be memory-mapped.

    Token t, of key ``keys[t]``, occurs ``times[n]`` times in the block's text ``texts[n]``, for n from ``starts[t]`` to
    ``starts[t + 1] - 1``.
    """

    keys: Keys  # (n_distinct_tokens,), rising
    starts: Longs  # (n_distinct_tokens + 1,)
    texts: npt.NDArray[np.unsignedinteger[Any]]  # (n_pairs,), rising for each token
    times: npt.NDArray[np.unsignedinteger[Any]]  # (n_pairs,)
    lengths: Longs  # (n_texts,), in tokens


_FIELDS: Final = tuple(field.name for field in fields(TokenCounts))


class CountsFolder(Sequence[TokenCounts]):
    """Blocks of counts on disk, each mapped when it is asked for: hold on to none, and no memory is held."""

    def __init__(self, folder: Path, n_blocks: int) -> None:
        self.folder = folder
        self._n_blocks = n_blocks

    def __len__(self) -> int:
        return self._n_blocks

    def __getitem__(self, number: Any) -> Any:  # noqa: ANN401 - slices are never asked for
        if not 0 <= number < self._n_blocks:
            raise IndexError(number)
        return TokenCounts(*(np.load(path, mmap_mode="r", allow_pickle=False) for path in self._paths(number)))

    def write(self, number: int, counts: TokenCounts) -> tuple[Path, ...]:
        """Writes a block, whatever was there; its files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = self._paths(number)
        for path, name in zip(paths, _FIELDS, strict=True):
            np.save(path, getattr(counts, name), allow_pickle=False)
        return paths

    def _paths(self, number: int) -> tuple[Path, ...]:
        return tuple(self.folder / f"{number:06}.{name}.npy" for name in _FIELDS)


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """The scores by token: those of token t are at ``indptr[t]`` to ``indptr[t + 1] - 1`` of all blocks in a row."""

    vocabulary: Keys  # (n_distinct_tokens,), rising
    indptr: Longs  # (n_distinct_tokens + 1,)
    n_texts: int
    k1: float
    b: float
    _counts: Sequence[TokenCounts]

    def blocks(self) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]]:
        """Scores and the texts they are of (rising for each token), whole tokens, some `BLOCK_SCORES` at a time."""
        lengths = np.concatenate([np.asarray(counts.lengths) for counts in self._counts])
        frequency = np.diff(self.indptr)
        idf = np.log(1 + (self.n_texts - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
        norms = self.k1 * ((1 - self.b) + self.b * lengths / lengths.mean()) if lengths.any() else lengths
        cuts = self._cuts()
        places = [np.searchsorted(counts.keys, self.vocabulary[cuts[:-1]]).tolist() for counts in self._counts]
        for number, (first, last) in enumerate(pairwise(cuts)):
            size = int(self.indptr[last] - self.indptr[first])
            data, indices = np.empty(size, dtype=np.float32), np.empty(size, dtype=np.int32)
            heads = self.indptr[first:last] - self.indptr[first]  # where the next text of each token goes
            n_before = 0
            for counts, at in zip(self._counts, places, strict=True):
                found = slice(at[number], at[number + 1] if number + 1 < len(at) else len(counts.keys))
                starts = counts.starts[found.start : found.stop + 1]
                pairs = slice(int(starts[0]), int(starts[-1]))
                runs = np.diff(starts)
                tokens = np.searchsorted(self.vocabulary[first:last], counts.keys[found])
                texts = counts.texts[pairs].astype(np.int64) + n_before
                times = counts.times[pairs]
                where = np.arange(len(texts)) + np.repeat(heads[tokens] - (starts[:-1] - starts[0]), runs)
                data[where] = np.repeat(idf[first + tokens], runs) * (times / (norms[texts] + times))
                indices[where] = texts
                heads[tokens] += runs
                n_before += len(counts.lengths)
            yield data, indices

    def _cuts(self) -> list[int]:
        """The first token of each block, and the number of all."""
        cuts, n_tokens = [0], len(self.vocabulary)
        while cuts[-1] < n_tokens:
            most = int(np.searchsorted(self.indptr, self.indptr[cuts[-1]] + BLOCK_SCORES, side="right")) - 1
            cuts.append(max(cuts[-1] + 1, most))
        return cuts


def scores_of(blocks: Sequence[TokenCounts], k1: float, b: float) -> TokenScores:
    """The scores of every (token, text) pair; texts are numbered through all blocks. Needs a text."""
    vocabulary = _vocabulary(blocks)
    frequency = np.zeros(len(vocabulary), dtype=np.int64)
    n_texts = 0
    for counts in blocks:
        frequency[np.searchsorted(vocabulary, counts.keys)] += np.diff(counts.starts)
        n_texts += len(counts.lengths)
    indptr = np.concatenate([[0], np.cumsum(frequency)]).astype(np.int64)
    return TokenScores(vocabulary, indptr, n_texts, k1, b, blocks)


def counted(table: TokenTable, windows: Windows | None = None) -> Iterator[TokenCounts]:
    """The counts of these texts in blocks; with ``windows`` each text is a run of the table's."""
    first, last = (np.arange(len(table)), np.arange(1, len(table) + 1)) if windows is None else windows.T
    lengths = table.starts[last] - table.starts[first]
    totals = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = totals[start] - lengths[start]
        stop = max(start + 1, int(np.searchsorted(totals, before + BLOCK_TOKENS, side="right")))
        yield _counts(table, first[start:stop], last[start:stop])
        start = stop


def _counts(table: TokenTable, first: Longs, last: Longs) -> TokenCounts:
    from scipy import sparse

    low, high = int(first.min()), int(last.max())
    tokens = table.numbers[table.starts[low] : table.starts[high]]
    shape = (high - low, len(table.vocabulary))
    ones = np.ones(len(tokens), dtype=np.int32)
    counts = sparse.csr_array((ones, tokens, table.starts[low : high + 1] - table.starts[low]), shape=shape)
    counts.sum_duplicates()
    spans = last - first
    ends = np.cumsum(spans)
    read = np.arange(ends[-1]) - np.repeat(ends - spans, spans) + np.repeat(first - low, spans)
    ones = np.ones(len(read), dtype=np.int32)
    window = sparse.csr_array((ones, read, np.concatenate([[0], ends])), shape=(len(spans), high - low))
    columns = (window @ counts).tocsc()
    columns.sort_indices()
    occurring = np.flatnonzero(np.diff(columns.indptr))
    return TokenCounts(
        keys=table.vocabulary[occurring],
        starts=np.concatenate([[0], columns.indptr[occurring + 1]]).astype(np.int64),
        texts=_small(columns.indices),
        times=_small(columns.data),
        lengths=table.starts[last] - table.starts[first],
    )


def _small(numbers: npt.NDArray[Any]) -> npt.NDArray[np.unsignedinteger[Any]]:
    """The same whole numbers, none below 0, in as few bytes as the largest allows."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _vocabulary(blocks: Sequence[TokenCounts]) -> Keys:
    """The distinct keys of all blocks, rising."""
    vocabulary, waiting, n_waiting = np.empty(0, dtype=np.uint64), [], 0
    for number, counts in enumerate(blocks, start=1):
        waiting.append(np.asarray(counts.keys))
        n_waiting += len(counts.keys)
        if n_waiting >= VOCABULARY_AT_ONCE or number == len(blocks):
            vocabulary = distinct(np.concatenate([vocabulary, *waiting]))
            waiting, n_waiting = [], 0
    return vocabulary
