"""Reuses the vectors of an earlier index, so that an unchanged text is not encoded again.

This works only with exact vectors (``Flat``), which are the encoder's own numbers. The bits of a vector do not depend
on the other texts (`ragqa.retrieval.encoder`), so an index built with reused vectors is the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ragqa.plugins.protocols import Encoder, FloatMatrix


class KnownVectors:
    """The vectors of an index, by the digest of the encoded text."""

    def __init__(self, digests: npt.NDArray[np.uint64], vectors: Any) -> None:  # noqa: ANN401
        """``vectors`` is an exact index of FAISS or an engine, whose row i belongs to text i.

        ``digests`` are those of the encoded texts (`ragqa.index.passage_arrays.digests_of`), shape (n_texts, 2).
        """
        self._vectors = vectors
        self._rows = {digest.tobytes(): row for row, digest in enumerate(digests)}

    def rows_of(self, digests: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The row of each text's vector, shape (n_texts,); -1 if it is not known."""
        return np.array([self._rows.get(digest.tobytes(), -1) for digest in digests], dtype=np.int64)

    def taken(self, rows: npt.NDArray[np.int64], unknown: Sequence[str], encoder: Encoder) -> FloatMatrix:
        """The vectors of these rows, shape (n_rows, dimension); the texts of rows that are -1 are ``unknown``."""
        found = np.empty((len(rows), self._vectors.d), dtype=np.float32)
        found[rows >= 0] = self._vectors.reconstruct_batch(rows[rows >= 0])
        if unknown:
            found[rows < 0] = encoder.encode(unknown)
        return found
