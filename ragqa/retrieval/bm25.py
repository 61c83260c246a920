"""BM25 with bm25s: the score of every (token, passage) pair is computed once, memory-mapped and summed per question.

Lucene's formula, as in https://arxiv.org/abs/2407.03618 table 1 (bm25s's method "lucene")::

    score(q, p) = sum over t in q of  ln(1 + (N - df_t + 0.5) / (df_t + 0.5)) * tf / (tf + k1 * (1 - b + b * |p| / avg))

`RankBm25Retriever` is a second implementation with the same tokens and formula, hundreds of times slower; a contract
test compares the two.

The matrix that bm25s reads is built from counts on disk, so that memory does not grow with the corpus. bm25s's own
builder takes a Python list of every token of every text, 40 bytes each: tens of GB for a million passages indexed with
their neighbours. Here texts are counted a block at a time (`counted`). Each block is sorted by token, so the matrix is
a merge of all blocks, a range of tokens at a time (`TokenScores.blocks`). Formula and layout are those of bm25s; tests
compare the two.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
from rank_bm25 import BM25Okapi

from ragqa.english.words import Analyser
from ragqa.retrieval.analysis import Keys, TokenTable, analysed_text, distinct, keys_of, places_of, tokenise
from ragqa.retrieval.ranking import CorpusRanker, Rankable, index_files
from ragqa.types import Ranking

BLOCK_TOKENS: Final = 4_000_000  # counted at once: some 150 MB of temporary arrays
BLOCK_SCORES: Final = 8_000_000  # scored at once: some 300 MB of temporary arrays
VOCABULARY_AT_ONCE: Final = 4_000_000  # keys, before duplicates are removed

Longs = npt.NDArray[np.int64]
Windows = Longs  # (n_texts, 2): text i is counted as texts first to last - 1 of the table


@dataclass(frozen=True, slots=True, eq=False)
class TokenCounts:
    """The number of occurrences of each token in each text of a block, by token, then text.

    Token t, with key ``keys[t]``, occurs ``times[n]`` times in the block's text ``texts[n]``, for n from ``starts[t]``
    to ``starts[t + 1] - 1``. The arrays may be memory-mapped.
    """

    keys: Keys  # (n_distinct_tokens,), ascending
    starts: Longs  # (n_distinct_tokens + 1,)
    texts: npt.NDArray[np.unsignedinteger[Any]]  # (n_pairs,), ascending for each token
    times: npt.NDArray[np.unsignedinteger[Any]]  # (n_pairs,)
    lengths: Longs  # (n_texts,), in tokens


_FIELDS: Final = tuple(field.name for field in fields(TokenCounts))


class _Mapped:
    """A block of counts on disk with the attributes of `TokenCounts`: each array is mapped at its first use."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._path_of = dict(zip(_FIELDS, paths, strict=True))

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name not in _FIELDS:
            raise AttributeError(name)
        array: npt.NDArray[Any] = np.load(self._path_of[name], mmap_mode="r", allow_pickle=False)
        setattr(self, name, array)
        return array


class CountsFolder(Sequence[TokenCounts]):
    """Blocks of counts on disk, each mapped at access. A block that is no longer referenced takes no memory."""

    def __init__(self, folder: Path, n_blocks: int) -> None:
        self.folder = folder
        self._n_blocks = n_blocks

    def __len__(self) -> int:
        return self._n_blocks

    def __getitem__(self, number: Any) -> Any:  # noqa: ANN401 - slices are never asked for
        if not 0 <= number < self._n_blocks:
            raise IndexError(number)
        return _Mapped(self._paths(number))

    def write(self, number: int, counts: TokenCounts) -> tuple[Path, ...]:
        """Writes a block, over an earlier one if there is one, and returns its files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = self._paths(number)
        for path, name in zip(paths, _FIELDS, strict=True):
            np.save(path, getattr(counts, name), allow_pickle=False)
        return paths

    def _paths(self, number: int) -> tuple[Path, ...]:
        return tuple(self.folder / f"{number:06}.{name}.npy" for name in _FIELDS)


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """The scores by token. Those of token t are at ``indptr[t]`` to ``indptr[t + 1] - 1`` of the joined blocks."""

    vocabulary: Keys  # (n_distinct_tokens,), ascending
    indptr: Longs  # (n_distinct_tokens + 1,)
    n_texts: int
    k1: float
    b: float
    _counts: Sequence[TokenCounts]

    def blocks(self) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]]:
        """Yields scores and their texts (ascending for each token): whole tokens, about `BLOCK_SCORES` at a time."""
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
                block = slice(at[number], at[number + 1] if number + 1 < len(at) else len(counts.keys))
                starts = counts.starts[block.start : block.stop + 1]
                pairs = slice(int(starts[0]), int(starts[-1]))
                runs = np.diff(starts)
                tokens = np.searchsorted(self.vocabulary[first:last], counts.keys[block])
                texts = counts.texts[pairs].astype(np.int64) + n_before
                times = counts.times[pairs]
                where = np.arange(len(texts)) + np.repeat(heads[tokens] - (starts[:-1] - starts[0]), runs)
                data[where] = np.repeat(idf[first + tokens], runs) * (times / (norms[texts] + times))
                indices[where] = texts
                heads[tokens] += runs
                n_before += len(counts.lengths)
            yield data, indices

    def _cuts(self) -> list[int]:
        """The first token of each block, and last the number of tokens."""
        cuts, n_tokens = [0], len(self.vocabulary)
        while cuts[-1] < n_tokens:
            most = int(np.searchsorted(self.indptr, self.indptr[cuts[-1]] + BLOCK_SCORES, side="right")) - 1
            cuts.append(max(cuts[-1] + 1, most))
        return cuts


def scores_of(blocks: Sequence[TokenCounts], k1: float, b: float) -> TokenScores:
    """The scores of every (token, text) pair; texts are numbered across all blocks. There must be at least one text."""
    vocabulary = _vocabulary(blocks)
    frequency = np.zeros(len(vocabulary), dtype=np.int64)
    n_texts = 0
    for counts in blocks:
        frequency[np.searchsorted(vocabulary, counts.keys)] += np.diff(counts.starts)
        n_texts += len(counts.lengths)
    indptr = np.concatenate([[0], np.cumsum(frequency)]).astype(np.int64)
    return TokenScores(vocabulary, indptr, n_texts, k1, b, blocks)


def counted(table: TokenTable, windows: Windows | None = None) -> Iterator[TokenCounts]:
    """The counts of these texts in blocks; with ``windows``, each text is a run of texts of the table."""
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
    """The same non-negative integers in the smallest type that holds the largest."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _vocabulary(blocks: Sequence[TokenCounts]) -> Keys:
    """The distinct keys of all blocks, ascending."""
    vocabulary, waiting, n_waiting = np.empty(0, dtype=np.uint64), [], 0
    for number, counts in enumerate(blocks, start=1):
        waiting.append(np.asarray(counts.keys))
        n_waiting += len(counts.keys)
        if n_waiting >= VOCABULARY_AT_ONCE or number == len(blocks):
            vocabulary = distinct(np.concatenate([vocabulary, *waiting]))
            waiting, n_waiting = [], 0
    return vocabulary


_ARRAYS: Final = {"data": np.float32, "indices": np.int32, "indptr": np.int64}
_VOCABULARY: Final = "vocabulary.npy"
_PARAMS: Final = "params.index.json"
_METHOD: Final = "lucene"
BM25_FILES: Final = (*(f"{name}.csc.index.npy" for name in _ARRAYS), _PARAMS, _VOCABULARY)


class Bm25Model:
    """A bm25s model with a vocabulary of sorted keys in place of a dict, so that opening it reads nothing.

    ``scores`` is bm25s's matrix by token: the scores ``data`` of the passages ``indices``, from ``indptr[t]`` to
    ``indptr[t + 1] - 1`` for token t, and ``num_docs``.
    """

    def __init__(self, vocabulary: Keys, scores: dict[str, Any], k1: float, b: float) -> None:
        import bm25s

        self.vocabulary, self.scores, self.k1, self.b = vocabulary, scores, k1, b
        self._library: Any = bm25s.BM25(k1=k1, b=b, method=_METHOD, backend="numpy")
        self._library.scores = scores
        self._library.nonoccurrence_array = None  # only methods other than Lucene's need it

    def scores_of(self, tokens: Sequence[str]) -> npt.NDArray[np.float32] | None:
        """Shape (n_passages,); a repeated token counts as often as it occurs. None if no passage has any token."""
        places = places_of(keys_of(tokens), self.vocabulary).tolist()
        return self._library.get_scores_from_ids(places) if places else None


class Bm25sRetriever(CorpusRanker):
    """Ranks by BM25 with bm25s."""

    def __init__(self, model: Bm25Model, analyser: Analyser, corpus: Rankable, name: str = "bm25") -> None:
        super().__init__(name, corpus)
        self.analyser = analyser
        self.model = self._model = model

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a token with the question; repeated words count repeatedly."""
        scores = self._model.scores_of(tokenise(question, self.analyser))
        return Ranking(self.name, ()) if scores is None else self._above_zero(scores, top_k)

    def rarities(self, tokens: Sequence[str]) -> dict[str, float]:
        """``ln((N + 1) / (df + 0.5))`` of each of these distinct tokens in this corpus of N passages, above 0."""
        known, indptr = self._model.vocabulary, self._model.scores["indptr"]
        wanted = keys_of(tokens)
        places = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
        df = np.where(known[places] == wanted, indptr[places + 1] - indptr[places], 0) if len(known) else 0 * wanted
        rarity = np.log((self._model.scores["num_docs"] + 1) / (df + 0.5))
        return dict(zip(tokens, rarity.tolist(), strict=True))


def write_bm25(blocks: Sequence[TokenCounts], k1: float, b: float, folder: Path) -> Iterator[tuple[int, int]]:
    """Writes `BM25_FILES`, without pickle, in bounded memory; yields (done, total) scores as they are written.

    Passages are numbered across all blocks (see `counted`); there must be at least one passage.
    """
    scores = scores_of(blocks, k1, b)
    folder.mkdir(parents=True, exist_ok=True)
    total, done = int(scores.indptr[-1]), 0
    yield done, total
    with (
        _array_file(folder / "data.csc.index.npy", total, np.float32) as data_file,
        _array_file(folder / "indices.csc.index.npy", total, np.int32) as indices_file,
    ):
        for data, indices in scores.blocks():
            data.tofile(data_file)
            indices.tofile(indices_file)
            done += len(data)
            yield done, total
    _save_rest(folder, scores.vocabulary, scores.indptr, k1, b, scores.n_texts)


@contextmanager
def _array_file(path: Path, length: int, dtype: npt.DTypeLike) -> Iterator[BinaryIO]:
    """A file in the format of `np.save`, open after its header, for pieces with ``length`` numbers in total."""
    described: dict[str, Any] = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (length,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, described)
        yield file


def _save_rest(
    folder: Path, vocabulary: Keys, indptr: npt.NDArray[np.int64], k1: float, b: float, n_texts: int
) -> None:
    np.save(folder / "indptr.csc.index.npy", indptr, allow_pickle=False)
    np.save(folder / _VOCABULARY, vocabulary, allow_pickle=False)
    parameters = {"k1": k1, "b": b, "method": _METHOD, "num_docs": n_texts}
    (folder / _PARAMS).write_text(json.dumps({**parameters, "version": version("bm25s")}, indent=4), encoding="utf-8")


def load_bm25(folder: Path) -> Bm25Model:
    """The model of this folder, its arrays memory-mapped read-only. Raises IndexMismatchError."""
    with index_files("the files of a BM25 index", folder):
        parameters = json.loads((folder / _PARAMS).read_text(encoding="utf-8"))
        arrays = {name: _mapped(folder / f"{name}.csc.index.npy", dtype) for name, dtype in _ARRAYS.items()}
        scores = arrays | {"num_docs": parameters["num_docs"]}
        model = Bm25Model(_mapped(folder / _VOCABULARY, np.uint64), scores, parameters["k1"], parameters["b"])
        _check(model)
    return model


def _mapped(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The memory-mapped array of this file. Raises OSError and ValueError."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 1 or array.dtype != dtype:
        raise ValueError(f"{path.name} holds {array.dtype} of shape {array.shape}")
    return np.asarray(array)  # still mapped; np.memmap's own indexing is several us slower


def _check(model: Bm25Model) -> None:
    """Raises ValueError unless the arrays fit each other."""
    scores, n_tokens = model.scores, len(model.vocabulary)
    n_scores = {len(scores["data"]), len(scores["indices"]), int(scores["indptr"][-1])}
    if len(scores["indptr"]) != n_tokens + 1 or len(n_scores) > 1 or not isinstance(scores["num_docs"], int):
        msg = f"{n_tokens} tokens, {len(scores['indptr'])} columns, {n_scores} scores, {scores['num_docs']} passages"
        raise ValueError(msg)


class _LuceneBM25(BM25Okapi):  # type: ignore[misc] # rank_bm25 has no types
    """BM25Okapi with Lucene's idf, which is never negative and so needs no floor."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {token: math.log(1 + (self.corpus_size - df + 0.5) / (df + 0.5)) for token, df in nd.items()}


class RankBm25Retriever(CorpusRanker):
    """Ranks by BM25 with rank_bm25. Built in memory at the first question, then shared between threads."""

    def __init__(self, analyser: Analyser, corpus: Rankable, k1: float, b: float) -> None:
        super().__init__("bm25", corpus)
        self._analyser = analyser
        self._k1, self._b = k1, b
        self._model: _LuceneBM25 | None = None
        self._lock = threading.Lock()

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a token with the question; repeated words count repeatedly."""
        model = self._loaded()
        tokens = [token for token in tokenise(question, self._analyser) if token in model.idf]
        if not tokens:
            return Ranking(self.name, ())
        # rank_bm25 multiplies by the constant k1 + 1, which Lucene leaves out.
        return self._above_zero(model.get_scores(tokens) / (self._k1 + 1), top_k)

    def _loaded(self) -> _LuceneBM25:
        with self._lock:
            if self._model is None:
                tokens = [tokenise(analysed_text(p, self._analyser), self._analyser) for p in self._passages]
                self._model = _LuceneBM25(tokens, k1=self._k1, b=self._b)
            return self._model


def nearest_texts(texts: Sequence[Sequence[str]], n: int) -> list[list[int]]:
    """For each text, given as words, the positions of the ``n`` nearest ones by BM25, itself among them."""
    import bm25s

    model = bm25s.BM25()
    model.index(texts, show_progress=False)
    found: list[list[int]] = model.retrieve(texts, k=n, show_progress=False).documents.tolist()
    return found
