"""Texts to unit vectors by an embedding API: OpenAI's, any server that speaks as it does, or Voyage's.

`ragqa.retrieval.embedding_api` asks the server; what was once paid for is kept on disk by
`ragqa.retrieval.vector_cache`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ragqa.errors import ModelError
from ragqa.inference.sharing import RecentResults
from ragqa.protocols import FloatMatrix
from ragqa.retrieval.embedding_api import INSTEAD, EmbeddingApi, Role
from ragqa.retrieval.model_api import PROVIDERS
from ragqa.retrieval.vector_cache import VectorCache
from ragqa.types import ModelInfo

TEXTS_PER_REQUEST: Final = 128  # Voyage takes no more, OpenAI 2,048
CHARS_PER_REQUEST: Final = 120_000  # Voyage takes 120,000 tokens, OpenAI 300,000, and a token is a character at least
MAX_QUERIES: Final = 256  # remembered


class ApiEncoder:
    """An encoder shared by every session and thread: it holds connections, a key and a cache, no weights.

    ``info.fingerprint`` is the sha256 of provider, base URL and model name: the weights behind an API cannot be hashed,
    so a provider that changes them under the same name goes unseen unless the dimension changes.
    """

    def __init__(self, name: str, *, cache: Path | None = None, environ: Mapping[str, str] | None = None) -> None:
        """An encoder called ``openai:MODEL`` or ``voyage:MODEL``; asks no server yet.

        ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` (or ``VOYAGE_…``) are read from ``environ``, the process's own where
        None. ``cache`` is the file for vectors, None keeps none. Raises ModelError for a name that means no API,
        ConfigError for a base URL or key that cannot work.
        """
        provider, _, model = name.partition(":")
        if provider not in PROVIDERS or not model.strip() or not model.isprintable():
            msg = f"expected an encoder called openai:MODEL or voyage:MODEL, found {name!r}; name one, {INSTEAD}"
            raise ModelError(msg)
        self._api = EmbeddingApi(PROVIDERS[provider], model, os.environ if environ is None else environ)
        self._identity = (provider, self._api.base_url, model)
        self._info = ModelInfo(name, _sha256(*self._identity).hex(), "api")
        self._cache = None if cache is None else VectorCache(cache)
        self._queries: RecentResults[str, FloatMatrix] = RecentResults(MAX_QUERIES)
        self._dimension = 0  # not known before the first vector

    @property
    def info(self) -> ModelInfo:
        return self._info

    def close(self) -> None:
        """Closes connections and cache; the encoder is of no use afterwards."""
        self._api.close()
        if self._cache is not None:
            self._cache.close()

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """float32 array of shape (n_texts, dimension), rows of length 1; read-only. For passages.

        No text gives shape (0, dimension), (0, 0) before the first vector. Equal texts are sent once, kept ones not at
        all, and each batch is kept before the next is sent. Raises ModelError where the server gives no good answer,
        ConfigError where it wants a key and there is none.
        """
        return self._vectors(texts, "document")

    def encode_query(self, text: str) -> FloatMatrix:
        """float32 array of shape (1, dimension) of length 1, read-only; the latest questions are remembered."""
        known = self._queries.known([text])
        if text not in known:
            known = {text: self._vectors([text], "query")}
            self._queries.remember(known)
        return known[text]

    def _vectors(self, texts: Sequence[str], role: Role) -> FloatMatrix:
        wanted = [text.encode("utf-8", "replace").decode() or " " for text in texts]  # no API takes an empty text
        keys = {text: _sha256(*self._identity, role, text) for text in wanted}
        kept = {} if self._cache is None else self._cache.known(list(keys.values()))
        vectors = {text: kept[key] for text, key in keys.items() if key in kept}
        self._check_dimension(vectors.values())
        for batch in _batches([text for text in keys if text not in vectors]):
            new = dict(zip(batch, self._api.embed(batch, role), strict=True))
            self._check_dimension(new.values())
            if self._cache is not None:
                self._cache.keep({keys[text]: vector for text, vector in new.items()})
            vectors |= new
        empty = np.zeros((0, self._dimension), np.float32)
        matrix = np.stack([vectors[text] for text in wanted]) if wanted else empty
        matrix.setflags(write=False)
        return matrix

    def _check_dimension(self, vectors: Iterable[FloatMatrix]) -> None:
        """Raises ModelError unless all these have as many numbers as those before them."""
        for length in {len(vector) for vector in vectors}:
            self._dimension = self._dimension or length
            if length != self._dimension:
                kept = "" if self._cache is None else f", delete {self._cache.file}"
                msg = (
                    f"expected vectors of {self._dimension} numbers from {self._info.name} as before, found {length}: "
                    f"the model behind this name has changed; start again{kept} and rebuild the index, {INSTEAD}"
                )
                raise ModelError(msg)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in their order, within `TEXTS_PER_REQUEST` and `CHARS_PER_REQUEST`; a longer text goes alone."""
    batch: list[str] = []
    for text in texts:
        if batch and (len(batch) == TEXTS_PER_REQUEST or sum(map(len, [*batch, text])) > CHARS_PER_REQUEST):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _sha256(*parts: str) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()  # JSON: ("ab", "c") is not ("a", "bc")
