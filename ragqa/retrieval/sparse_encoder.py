"""Texts to sparse vectors over a vocabulary (SPLADE) with sentence-transformers' SparseEncoder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ragqa.errors import ModelError
from ragqa.inference.pair_encoding import encodable
from ragqa.inference.sharing import RecentResults
from ragqa.retrieval.local_models import batches_by_length, load_local, token_lengths
from ragqa.retrieval.weights import weights_of
from ragqa.types import ModelInfo

if TYPE_CHECKING:
    from sentence_transformers import SparseEncoder
    from torch import Tensor

TOKENS_PER_BATCH: Final = 1024  # each token has a number for each word piece there is: 125 MB of them for BERT's 30,522
MAX_QUERIES: Final = 256  # remembered
_INSTEAD: Final = "name a folder or a downloaded model of that kind, for example naver/splade-v3"


class SpladeEncoder:
    """A learned sparse encoder, loaded once and shared by every session: one batch at a time, in fp32."""

    def __init__(self, name: str) -> None:
        """Loads the model called ``name``, as `ragqa.retrieval.weights.weights_of` finds it. Raises ModelError."""
        from sentence_transformers import SparseEncoder

        weights = weights_of(name)
        if weights.adapters:
            msg = (
                f"expected a SPLADE model without an adapter, found {name!r}; merge the adapter into the model's folder"
            )
            raise ModelError(msg)
        self._info = ModelInfo(name, weights.sha256, "fp32")
        self._model: SparseEncoder = load_local(SparseEncoder, weights, f"a SPLADE model for {name!r}", _INSTEAD)
        self._lock = threading.Lock()
        self._queries: RecentResults[str, Any] = RecentResults(MAX_QUERIES)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - scipy has no types
        """For passages: a scipy CSR array of shape (n_texts, vocabulary), float32, above 0 where it has a number.

        Text beyond the model's window is not read. Raises ModelError where a number is not finite.
        """
        from scipy import sparse

        clean = [encodable(text) for text in texts]
        with self._lock:
            lengths = token_lengths(self._model.tokenizer, clean, self._model.max_seq_length)
        batches = list(batches_by_length(lengths, TOKENS_PER_BATCH))
        if not batches:
            return sparse.csr_array((0, self._model.get_embedding_dimension() or 0), dtype=np.float32)
        rows = sparse.vstack([self._encode_batch([clean[n] for n in batch], query=False) for batch in batches])
        return rows.tocsr()[np.argsort(np.concatenate(batches), kind="stable")]

    def encode_query(self, text: str) -> Any:  # noqa: ANN401 - scipy has no types
        """For a question: likewise, of shape (1, vocabulary); the latest questions are remembered, do not change it."""
        known = self._queries.known([text])
        if text not in known:
            known = {text: self._encode_batch([encodable(text)], query=True)}
            self._queries.remember(known)
        return known[text]

    def _encode_batch(self, texts: list[str], *, query: bool) -> Any:  # noqa: ANN401 - scipy has no types
        from scipy import sparse

        encode = self._model.encode_query if query else self._model.encode_document
        with self._lock:
            found: Tensor = encode(
                texts, batch_size=len(texts), show_progress_bar=False, convert_to_sparse_tensor=False, save_to_cpu=True
            )
        numbers = np.asarray(found, dtype=np.float32).reshape(len(texts), -1)
        if not np.isfinite(numbers).all():
            msg = f"expected finite weights from the SPLADE model {self._info.name}, found others; {_INSTEAD}"
            raise ModelError(msg)
        return sparse.csr_array(np.maximum(numbers, 0))
