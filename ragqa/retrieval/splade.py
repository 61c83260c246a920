"""Learned sparse retrieval (SPLADE, Formal et al. 2021): weights of word pieces, as inverted lists on disk.

::

    score(q, p) = sum over word pieces t of  weight of t in q * weight of t in p
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.errors import IndexMismatchError, ModelError
from ragqa.models.inference.pair_encoding import encodable
from ragqa.retrieval.local_models import SharedModel, distinct, refuse_adapters
from ragqa.retrieval.ranking import CorpusRanker, Rankable, index_files
from ragqa.types import Ranking

SPLADE_FILES: Final = ("data.npy", "indices.npy", "indptr.npy", "shape.npy")
ENCODED_AT_ONCE: Final = 64  # texts between two reports of progress
TOKENS_PER_BATCH: Final = 1024  # each token has a number for each word piece: 125 MB for the 30,522 of BERT
_INSTEAD: Final = "name a folder or a downloaded model of that kind, for example naver/splade-v3"


@dataclass(frozen=True, slots=True, eq=False)
class SparseVectors:
    """The vectors of the passages by column: the CSC parts of a matrix of shape (n_passages, vocabulary).

    Word piece t has the weights ``data[indptr[t]:indptr[t + 1]]`` (float32) in the passages ``indices`` of that range.
    """

    data: npt.NDArray[np.float32]
    indices: npt.NDArray[np.int32]
    indptr: npt.NDArray[np.int64]
    shape: tuple[int, int]


class SpladeRetriever(CorpusRanker):
    """Ranks by the inner product of sparse vectors."""

    def __init__(self, vectors: SparseVectors, corpus: Rankable, encoder: SpladeEncoder) -> None:
        super().__init__("splade", corpus)
        self._vectors = vectors
        self._encoder = encoder

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a word piece with the question; none for a blank question."""
        if not question.strip() or top_k < 1:
            return Ranking(self.name, ())
        query, vectors = self._encoder.encode_query(question), self._vectors
        if query.shape[1] != vectors.shape[1]:
            raise IndexMismatchError(
                f"the index holds weights of {vectors.shape[1]:,} word pieces, the model {self._encoder.info.name} "
                f"gives {query.shape[1]:,}; rebuild the index with this model (`ragqa index build --also splade:NAME`)"
            )
        scores = np.zeros(vectors.shape[0], dtype=np.float32)
        for piece, weight in zip(query.indices.tolist(), query.data, strict=True):
            places = slice(int(vectors.indptr[piece]), int(vectors.indptr[piece + 1]))
            scores[vectors.indices[places]] += weight * vectors.data[places]  # a passage occurs once in a list
        return self._above_zero(scores, top_k)


def save_sparse(texts: Sequence[str], encoder: SpladeEncoder, folder: Path) -> Iterator[tuple[int, int]]:
    """Writes `SPLADE_FILES`: the vectors of these texts in order; yields (done, total) distinct texts.

    Equal texts are encoded once, so that they tie exactly. Raises ModelError.
    """
    from scipy import sparse

    rows, row_of_text = distinct(texts)
    parts = []
    yield 0, len(rows)
    for start in range(0, len(rows), ENCODED_AT_ONCE):
        parts.append(encoder.encode(rows[start : start + ENCODED_AT_ONCE]))
        yield min(start + ENCODED_AT_ONCE, len(rows)), len(rows)
    columns = sparse.vstack(parts).tocsr()[row_of_text].tocsc()
    columns.sort_indices()
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "data.npy", columns.data.astype(np.float32), allow_pickle=False)
    np.save(folder / "indices.npy", columns.indices.astype(np.int32), allow_pickle=False)
    np.save(folder / "indptr.npy", columns.indptr.astype(np.int64), allow_pickle=False)
    np.save(folder / "shape.npy", np.array(columns.shape, dtype=np.int64), allow_pickle=False)


def load_sparse(folder: Path) -> SparseVectors:
    """The output of `save_sparse`, with arrays memory-mapped read-only. Raises IndexMismatchError."""
    with index_files("the files of sparse vectors", folder):
        data, indices, indptr, shape = (
            np.asarray(np.load(folder / name, mmap_mode="r", allow_pickle=False)) for name in SPLADE_FILES
        )
        types = [str(array.dtype) for array in (data, indices, indptr, shape)]
        fits = types == ["float32", "int32", "int64", "int64"] and shape.shape == (2,)
        if not fits or indptr.shape != (shape[1] + 1,) or not data.shape == indices.shape == (indptr[-1],):
            msg = f"{len(data)} weights at {len(indices)} places in {len(indptr)} lists do not fit each other"
            raise ValueError(msg)
    return SparseVectors(data, indices, indptr, (int(shape[0]), int(shape[1])))


class SpladeEncoder(SharedModel[Any]):
    """A sparse encoder: one number per word piece of its vocabulary."""

    def __init__(self, name: str) -> None:
        """Loads the model called ``name``, as `ragqa.retrieval.local_models.weights_of` finds it. Raises ModelError."""
        refuse_adapters(name, "a SPLADE model")
        super().__init__(name, "SparseEncoder", "a SPLADE model", _INSTEAD)

    def encode(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - scipy has no types
        """The vectors of passages: a scipy CSR array of shape (n_texts, vocabulary), float32, with entries above 0.

        Text beyond the model's window is not read. Raises ModelError if a number is not finite.
        """
        from scipy import sparse

        clean = [encodable(text) for text in texts]
        batches = self._batches(clean, TOKENS_PER_BATCH, self._model.max_seq_length)
        if not batches:
            return sparse.csr_array((0, self._model.get_embedding_dimension() or 0), dtype=np.float32)
        rows = sparse.vstack([self._encode_batch([clean[n] for n in batch], query=False) for batch in batches])
        return rows.tocsr()[np.argsort(np.concatenate(batches), kind="stable")]

    def encode_query(self, text: str) -> Any:  # noqa: ANN401 - scipy has no types
        """The vector of a question, of shape (1, vocabulary). Recent questions are cached, so do not modify it."""
        return self._queries.get(text, lambda: self._encode_batch([encodable(text)], query=True))

    def _encode_batch(self, texts: list[str], *, query: bool) -> Any:  # noqa: ANN401 - scipy has no types
        from scipy import sparse

        vectors = self._computed(texts, query=query, convert_to_sparse_tensor=False, save_to_cpu=True)
        numbers = np.asarray(vectors, dtype=np.float32).reshape(len(texts), -1)
        if not np.isfinite(numbers).all():
            msg = f"expected finite weights from the SPLADE model {self.info.name}, found others; {_INSTEAD}"
            raise ModelError(msg)
        return sparse.csr_array(np.maximum(numbers, 0))
