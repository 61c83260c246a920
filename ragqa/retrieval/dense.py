"""Dense retrieval: inner product over unit vectors (= cosine) with FAISS; its kinds: `ragqa.retrieval.vectors`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragqa.errors import IndexMismatchError, ModelError
from ragqa.plugins.protocols import Encoder, FloatMatrix
from ragqa.retrieval.ranking import CorpusRanker, Mask, Positions
from ragqa.retrieval.vectors import search_parameters
from ragqa.types import Passage, Ranking


class DenseRetriever(CorpusRanker):
    """Ranks by cosine. Searching a FAISS index changes nothing in it.

    One question is one thread's work in FAISS, so its OpenMP settings do not matter here and are left alone.
    """

    def __init__(
        self,
        vectors: Any,  # noqa: ANN401 - a faiss.Index
        passages: Sequence[Passage],
        order: Positions,
        hidden: Mask,
        encoder: Encoder,
        name: str = "dense",
    ) -> None:
        super().__init__(name, passages, order, hidden)
        self._n_shown = len(hidden) - int(np.count_nonzero(hidden))
        some_hidden = self._n_shown < len(hidden)
        self._bitmap = np.packbits(~hidden, bitorder="little") if some_hidden else None  # FAISS reads it where it lies
        self._parameters = search_parameters(vectors, self._bitmap)
        self._vectors = vectors
        self._encoder = encoder

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """The ``top_k`` passages of highest cosine in [-1, 1], whatever it is; none for a blank question.

        An approximate index rounds cosines and may miss a passage.
        """
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
        return self._best(*self._nearest(query, top_k), top_k)

    def _nearest(self, query: FloatMatrix, top_k: int) -> tuple[Positions, FloatMatrix]:
        """At least the ``top_k`` nearest and all that tie with the last of them (FAISS cuts ties as it likes).

        An approximate index may find fewer, and of ties only those where it looks.
        """
        total = self._n_shown
        wanted = min(top_k + 1, total)
        while True:
            scores, positions = self._vectors.search(query, wanted, params=self._parameters)
            found = int(np.count_nonzero(positions[0] >= 0))  # FAISS fills up with -1 at the end
            if found < wanted or wanted == total or scores[0, -1] < scores[0, top_k - 1]:
                return positions[0, :found], scores[0, :found]
            wanted = min(2 * wanted, total)


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
