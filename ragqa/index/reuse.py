"""Vectors that an earlier index holds, by what the encoder read: a text that has not changed is not encoded again.

Only of exact vectors (``Flat``), which are the encoder's own numbers: a text has the same bits whatever is beside it
(`ragqa.retrieval.encoder`), so that an index built with them is byte for byte the one built without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ragqa.plugins.protocols import Encoder, FloatMatrix


class KnownVectors:
    """The vectors of an index, by the digest of what was encoded."""

    def __init__(self, digests: npt.NDArray[np.uint64], vectors: Any) -> None:  # noqa: ANN401
        """``vectors`` is the index, FAISS's or an engine's, whose row i belongs to text i; it must be exact.

        ``digests`` are `ragqa.index.passage_arrays.digests_of` what was encoded, shape (n_texts, 2).
        """
        self._vectors = vectors
        self._rows = {digest.tobytes(): row for row, digest in enumerate(digests)}

    def rows_of(self, digests: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Where the vector of each text is, shape (n_texts,); -1 where it is not known."""
        return np.array([self._rows.get(digest.tobytes(), -1) for digest in digests], dtype=np.int64)

    def taken(self, rows: npt.NDArray[np.int64], unknown: Sequence[str], encoder: Encoder) -> FloatMatrix:
        """The vectors of these rows, shape (n_rows, dimension); ``unknown`` are the texts of those that are -1."""
        found = np.empty((len(rows), self._vectors.d), dtype=np.float32)
        found[rows >= 0] = self._vectors.reconstruct_batch(rows[rows >= 0])
        if unknown:
            found[rows < 0] = encoder.encode(unknown)
        return found
