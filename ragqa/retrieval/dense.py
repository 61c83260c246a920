"""Dense retrieval: exact inner product over unit vectors (= cosine) with FAISS, memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import faiss
import numpy as np
import numpy.typing as npt

from ragqa.errors import IndexMismatchError, ModelError
from ragqa.protocols import Encoder, FloatMatrix
from ragqa.retrieval.ranking import Mask, Positions, best_positions
from ragqa.types import Passage, Ranking, ScoredPassage

__all__ = ["DenseRetriever", "check_unit_rows", "read_vectors", "write_vectors"]


class DenseRetriever:
    """Ranks by cosine. Searching a FAISS index changes nothing in it: share it between threads.

    One question is one thread's work in FAISS, so its OpenMP settings do not matter here and are left alone.
    """

    name: Final = "dense"

    def __init__(
        self,
        vectors: Any,  # noqa: ANN401 - a faiss.Index
        passages: Sequence[Passage],
        order: Positions,
        hidden: Mask,
        encoder: Encoder,
    ) -> None:
        """``hidden``, shape (n_passages,), is True for passages that are never returned."""
        self._bitmap = np.packbits(~hidden, bitorder="little")  # FAISS reads it where it lies
        self._shown = _only(self._bitmap) if hidden.any() else None
        self._n_shown = int((~hidden).sum())
        self._vectors = vectors
        self._passages = passages
        self._order = order
        self._encoder = encoder

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """The ``top_k`` passages of highest cosine in [-1, 1], whatever it is; none for a blank question."""
        if not question.strip() or top_k < 1:
            return Ranking(self.name, ())
        query = self._encoder.encode_query(question)
        check_unit_rows(query, 1, self._encoder.info.name)
        if query.shape[1] != self._vectors.d:
            msg = (
                f"the index holds vectors of {self._vectors.d} numbers, the encoder {self._encoder.info.name} makes "
                f"{query.shape[1]}; rebuild the index with this encoder (`ragqa index build`)"
            )
            raise IndexMismatchError(msg)
        positions, scores = self._nearest(query, top_k)
        score_of = dict(zip(positions.tolist(), scores.tolist(), strict=True))
        best = best_positions(positions, scores, self._order, top_k)
        return Ranking.of(self.name, [ScoredPassage(self._passages[i], score_of[i]) for i in best.tolist()])

    def _nearest(self, query: FloatMatrix, top_k: int) -> tuple[Positions, FloatMatrix]:
        """At least the ``top_k`` nearest and all that tie with the last of them (FAISS cuts ties as it likes)."""
        total = self._n_shown
        wanted = min(top_k + 1, total)
        while True:
            scores, positions = self._vectors.search(query, wanted, params=self._shown)
            if wanted == total or scores[0, -1] < scores[0, top_k - 1]:
                return positions[0], scores[0]
            wanted = min(2 * wanted, total)


def _only(bitmap: npt.NDArray[np.uint8]) -> Any:  # noqa: ANN401 - a faiss.SearchParameters
    library: Any = faiss  # its type stubs describe the C++ constructors
    return library.SearchParameters(sel=library.IDSelectorBitmap(bitmap))


def check_unit_rows(vectors: FloatMatrix, n_texts: int, encoder_name: str) -> None:
    """Raises ModelError unless ``vectors`` has one finite row of length 1 per text."""
    if vectors.ndim != 2 or len(vectors) != n_texts or vectors.shape[1] == 0:
        found = f"an array of shape {vectors.shape}"
    elif not np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3):  # False for NaN and infinity, too
        found = "rows that are not finite or not of length 1"
    else:
        return
    msg = (
        f"expected {n_texts} vectors of length 1 from the encoder {encoder_name}, found {found}; "
        "choose another encoder, for example all-MiniLM-L6-v2"
    )
    raise ModelError(msg)


def write_vectors(vectors: FloatMatrix, path: Path) -> None:
    """Writes a FAISS IndexFlatIP over rows of length 1, in their order; shape (n_passages, dimension)."""
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(np.ascontiguousarray(vectors, dtype=np.float32))
    faiss.write_index(index, str(path))


def read_vectors(path: Path) -> Any:  # noqa: ANN401 - a faiss.Index
    """The faiss.IndexFlatIP of this file, memory-mapped: milliseconds to open. Raises IndexMismatchError."""
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        reason = str(error).rpartition("Error: ")[2]
        msg = f"expected FAISS vectors in {path.name}, found something else ({reason})"
        raise IndexMismatchError(msg) from error
    if not isinstance(index, faiss.IndexFlat) or index.metric_type != faiss.METRIC_INNER_PRODUCT:
        msg = f"expected a FAISS IndexFlatIP in {path.name}, found {type(index).__name__}"
        raise IndexMismatchError(msg)
    return index
