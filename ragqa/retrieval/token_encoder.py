"""Texts to one vector per token (ColBERT) with sentence-transformers' MultiVectorEncoder, from version 6.

It reads checkpoints of PyLate and of Stanford's ColBERT as well as its own.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ragqa.errors import ModelError
from ragqa.inference.pair_encoding import encodable
from ragqa.inference.sharing import RecentResults
from ragqa.protocols import FloatMatrix
from ragqa.retrieval.local_models import batches_by_length, load_local, token_lengths
from ragqa.retrieval.weights import weights_of
from ragqa.types import ModelInfo

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

TOKENS_PER_BATCH: Final = 2048
MAX_QUERIES: Final = 256  # remembered
LENGTH_TOLERANCE: Final = 1e-2
_INSTEAD: Final = "name a folder or a downloaded model of that kind, for example lightonai/GTE-ModernColBERT-v1"


class LateEncoder:
    """A late-interaction encoder, loaded once and shared by every session: one batch at a time, in fp32."""

    def __init__(self, name: str) -> None:
        """Loads the model called ``name``, as `ragqa.retrieval.weights.weights_of` finds it. Raises ModelError."""
        try:
            from sentence_transformers import MultiVectorEncoder
        except ImportError as error:
            msg = (
                "expected a version of sentence-transformers with late interaction (6.2 or later), found an older "
                "one; install the extra: `pip install 'ragqa[late]'`"
            )
            raise ModelError(msg) from error
        weights = weights_of(name)
        if weights.adapters:
            msg = f"expected a ColBERT model without an adapter, found {name!r}; merge the adapter into its folder"
            raise ModelError(msg)
        self._info = ModelInfo(name, weights.sha256, "fp32")
        what = f"a late-interaction model (ColBERT) for {name!r}"
        self._model: MultiVectorEncoder = load_local(MultiVectorEncoder, weights, what, _INSTEAD)
        self._lock = threading.Lock()
        self._queries: RecentResults[str, FloatMatrix] = RecentResults(MAX_QUERIES)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, texts: Sequence[str]) -> list[FloatMatrix]:
        """For passages: for each text float32 of shape (n_tokens, dimension), rows of length 1; it may have no row.

        Text beyond the model's window is not read. Raises ModelError where rows are not finite or not of length 1.
        """
        clean = [encodable(text) for text in texts]
        with self._lock:
            lengths = token_lengths(self._model.tokenizer, clean, None)
        found: list[FloatMatrix] = [np.zeros((0, 0), np.float32)] * len(clean)
        for batch in batches_by_length(lengths, TOKENS_PER_BATCH):
            matrices = self._encode_batch([clean[position] for position in batch], query=False)
            for position, matrix in zip(batch, matrices, strict=True):
                found[position] = matrix
        return found

    def encode_query(self, text: str) -> FloatMatrix:
        """For a question: likewise, read-only; the latest questions are remembered."""
        known = self._queries.known([text])
        if text not in known:
            (matrix,) = self._encode_batch([encodable(text)], query=True)
            matrix.setflags(write=False)
            known = {text: matrix}
            self._queries.remember(known)
        return known[text]

    def _encode_batch(self, texts: list[str], *, query: bool) -> list[FloatMatrix]:
        encode: Any = self._model.encode_query if query else self._model.encode_document
        with self._lock:
            found = encode(
                texts,
                batch_size=len(texts),
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        matrices = [np.array(matrix, dtype=np.float32) for matrix in found]
        lengths = np.concatenate([np.linalg.norm(matrix, axis=1) for matrix in matrices])
        if not (np.abs(lengths - 1) <= LENGTH_TOLERANCE).all():  # False for NaN and infinity, too
            msg = f"expected vectors of length 1 from the model {self._info.name}, found others; {_INSTEAD}"
            raise ModelError(msg)
        return matrices
