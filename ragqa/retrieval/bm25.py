"""BM25 by bm25s: scores of every (token, passage) pair computed once, memory-mapped, summed per question.

Lucene's formula, as in https://arxiv.org/abs/2407.03618 table 1 (bm25s's method "lucene")::

    score(q, p) = sum over t in q of  ln(1 + (N - df_t + 0.5) / (df_t + 0.5)) * tf / (tf + k1 * (1 - b + b * |p| / avg))

`RankBm25Retriever` is a second implementation with the same tokens and formula, hundreds of times slower; the contract
test holds the two together.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
from rank_bm25 import BM25Okapi

from ragqa.english.analysers import Analyser
from ragqa.retrieval.analysis import analysed_text, tokenise
from ragqa.retrieval.bm25_scores import TokenCounts, scores_of
from ragqa.retrieval.ranking import CorpusRanker, Mask, Positions, index_files
from ragqa.retrieval.token_table import Keys, keys_of, places_of
from ragqa.types import Passage, Ranking

_ARRAYS: Final = {"data": np.float32, "indices": np.int32, "indptr": np.int64}
_VOCABULARY: Final = "vocabulary.npy"
_PARAMS: Final = "params.index.json"
_METHOD: Final = "lucene"
BM25_FILES: Final = (*(f"{name}.csc.index.npy" for name in _ARRAYS), _PARAMS, _VOCABULARY)


class Bm25Model:
    """What bm25s scores with, and a vocabulary of sorted keys in place of its dict, so that opening reads nothing.

    ``scores`` is bm25s's matrix by token: the scores ``data`` of the passages ``indices``, from ``indptr[t]`` to
    ``indptr[t + 1]`` for token t, and ``num_docs``.
    """

    def __init__(self, vocabulary: Keys, scores: dict[str, Any], k1: float, b: float) -> None:
        import bm25s

        self.vocabulary, self.scores, self.k1, self.b = vocabulary, scores, k1, b
        self._library: Any = bm25s.BM25(k1=k1, b=b, method=_METHOD, backend="numpy")
        self._library.scores = scores
        self._library.nonoccurrence_array = None  # which other methods than Lucene's need

    def scores_of(self, tokens: Sequence[str]) -> npt.NDArray[np.float32] | None:
        """Shape (n_passages,), a token said twice counted twice; None where no token occurs in a passage."""
        places = places_of(keys_of(tokens), self.vocabulary).tolist()
        return self._library.get_scores_from_ids(places) if places else None


class Bm25sRetriever(CorpusRanker):
    """Ranks by BM25 through bm25s."""

    def __init__(
        self,
        model: Bm25Model,
        analyser: Analyser,
        passages: Sequence[Passage],
        order: Positions,
        hidden: Mask,
        name: str = "bm25",
    ) -> None:
        super().__init__(name, passages, order, hidden)
        self.analyser = analyser
        self.model = self._model = model

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a token with the question; a word said twice counts twice."""
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

    Passages are numbered through all blocks (see `bm25_scores.counted`); there must be one.
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
    """A file as `np.save` writes it, open behind its header, for pieces that are ``length`` numbers together."""
    described: dict[str, Any] = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (length,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, described)
        yield file


def _save_rest(
    folder: Path, vocabulary: Keys, indptr: npt.NDArray[np.int64], k1: float, b: float, n_texts: int
) -> None:
    np.save(folder / "indptr.csc.index.npy", indptr, allow_pickle=False)
    np.save(folder / _VOCABULARY, vocabulary, allow_pickle=False)
    said = {"k1": k1, "b": b, "method": _METHOD, "num_docs": n_texts}
    (folder / _PARAMS).write_text(json.dumps({**said, "version": version("bm25s")}, indent=4), encoding="utf-8")


def load_bm25(folder: Path) -> Bm25Model:
    """The model of this folder, its arrays memory-mapped read-only. Raises IndexMismatchError."""
    with index_files("the files of a BM25 index", folder):
        said = json.loads((folder / _PARAMS).read_text(encoding="utf-8"))
        arrays = {name: _mapped(folder / f"{name}.csc.index.npy", dtype) for name, dtype in _ARRAYS.items()}
        scores = arrays | {"num_docs": said["num_docs"]}
        model = Bm25Model(_mapped(folder / _VOCABULARY, np.uint64), scores, said["k1"], said["b"])
        _check(model)
    return model


def _mapped(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The array of this file, read as it is used. Raises OSError and ValueError."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 1 or array.dtype != dtype:
        msg = f"{path.name} holds {array.dtype} of shape {array.shape}"
        raise ValueError(msg)
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
    """Ranks by BM25 through rank_bm25. Built in memory at the first question, then shared between threads."""

    def __init__(
        self, analyser: Analyser, passages: Sequence[Passage], order: Positions, hidden: Mask, k1: float, b: float
    ) -> None:
        super().__init__("bm25", passages, order, hidden)
        self._analyser = analyser
        self._k1, self._b = k1, b
        self._model: _LuceneBM25 | None = None
        self._lock = threading.Lock()

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a token with the question; a word said twice counts twice."""
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
