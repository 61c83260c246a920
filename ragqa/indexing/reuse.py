"""Vectors that an earlier index holds, by what the encoder read: a text that has not changed is not encoded again.

Only of exact vectors (``Flat``), which are the encoder's own numbers: a text has the same bits whatever is beside it
(`ragqa.retrieval.encoder`), so that an index built with them is byte for byte the one built without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ragqa.indexing.measured import digests_of
from ragqa.protocols import Encoder, FloatMatrix
from ragqa.retrieval.analysis import IndexedText, indexed_text
from ragqa.types import Passage


class KnownVectors:
    """The vectors of an index, by the digest of what was encoded."""

    def __init__(self, passages: Iterable[Passage], indexed: IndexedText, vectors: Any) -> None:  # noqa: ANN401
        """``vectors`` is the FAISS index whose row i belongs to passage i; it must be exact."""
        digests = digests_of(indexed_text(passage, indexed) for passage in passages)
        self._vectors = vectors
        self._rows = {digest.tobytes(): row for row, digest in enumerate(digests)}

    def encode(self, texts: Sequence[str], digests: npt.NDArray[np.uint64], encoder: Encoder) -> FloatMatrix:
        """The vectors of these texts, shape (n_texts, dimension); the encoder is asked for unknown ones alone."""
        rows = [self._rows.get(digest.tobytes(), -1) for digest in digests]
        unknown = [place for place, row in enumerate(rows) if row < 0]
        found = np.empty((len(texts), self._vectors.d), dtype=np.float32)
        for place, row in enumerate(rows):
            if row >= 0:
                found[place] = self._vectors.reconstruct(row)
        if unknown:
            found[unknown] = encoder.encode([texts[place] for place in unknown])
        return found
