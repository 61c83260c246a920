"""Encodes texts as unit vectors with an embedding API: OpenAI's, any compatible server, or Voyage's.

`ragqa.infra.http` sends the requests. Vectors are cached on disk for all processes, so none is paid for twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ragqa.errors import ModelError
from ragqa.infra.disk_cache import CacheFormat, DiskCache, RecentResults
from ragqa.infra.http import ModelApi, Service, batches, items_in_order, sendable
from ragqa.plugins.protocols import FloatMatrix
from ragqa.types import ModelInfo

Role = Literal["document", "query"]

TEXTS_PER_REQUEST: Final = 128  # Voyage takes no more, OpenAI 2,048
CHARS_PER_REQUEST: Final = 120_000  # Voyage takes 120,000 tokens, OpenAI 300,000, and a token is a character at least
MAX_VECTORS: Final = 200_000  # in the cache: 1.2 GB with 1,536 numbers each
SCHEMA_VERSION: Final = 1
LENGTH_TOLERANCE: Final = 1e-3  # of a stored vector: a greater deviation from 1 means damaged bits
INSTEAD: Final = "or use all-MiniLM-L6-v2, which is bundled"
SERVICE: Final = Service("an encoder", "/embeddings", "embedding server", "embeddings", INSTEAD)
_NUMBER: Final = np.dtype("<f4")  # little-endian on every machine


class ApiEncoder:
    """An encoder shared by every session and thread: it holds connections, a key and a cache, no weights.

    ``info.fingerprint`` is the sha256 of provider, base URL and model name, as the weights behind an API cannot be
    hashed. If a provider changes them under the same name, this is noticed only if the dimension changes.
    """

    def __init__(self, name: str, *, cache: Path | None = None, environ: Mapping[str, str] | None = None) -> None:
        """An encoder called ``openai:MODEL`` or ``voyage:MODEL``; makes no request yet.

        ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` (or ``VOYAGE_…``) are read from ``environ``, by default that of the
        process. ``cache`` is the file for vectors; None turns the cache off. Raises ModelError for a name that is not
        of an API, ConfigError for a base URL or key that cannot work.
        """
        self._api = ModelApi(name, SERVICE, environ)
        self.info = ModelInfo(name, _sha256(*self._api.identity).hex(), "api")
        self._cache = None if cache is None else VectorCache(cache)
        self._queries: RecentResults[str, FloatMatrix] = RecentResults()
        self._dimension = 0  # not known before the first vector

    def close(self) -> None:
        """Closes connections and cache; the encoder cannot be used afterwards."""
        self._api.close()
        if self._cache is not None:
            self._cache.close()

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """The vectors of passages: a read-only float32 array of shape (n_texts, dimension), rows of length 1.

        No text gives shape (0, dimension), or (0, 0) before the first vector. Equal texts are sent once, cached texts
        not at all, and each batch is cached before the next is sent. Raises ModelError if the server gives no valid
        reply, ConfigError if it requires a key and there is none.
        """
        return self._vectors(texts, "document")

    def encode_query(self, text: str) -> FloatMatrix:
        """The vector of a question: a read-only float32 array of shape (1, dimension). Recent questions are cached."""
        return self._queries.get(text, lambda: self._vectors([text], "query"))

    def _vectors(self, texts: Sequence[str], role: Role) -> FloatMatrix:
        wanted = list(map(sendable, texts))
        keys = {text: _sha256(*self._api.identity, role, text) for text in wanted}
        cached = {} if self._cache is None else self._cache.known(list(keys.values()))
        vectors = {text: cached[key] for text, key in keys.items() if key in cached}
        self._check_dimension(vectors.values())
        for batch in batches([text for text in keys if text not in vectors], TEXTS_PER_REQUEST, CHARS_PER_REQUEST):
            new = dict(zip(batch, self._embed(batch, role), strict=True))
            self._check_dimension(new.values())
            if self._cache is not None:
                self._cache.add({keys[text]: vector for text, vector in new.items()})
            vectors |= new
        empty = np.zeros((0, self._dimension), np.float32)
        matrix = np.stack([vectors[text] for text in wanted]) if wanted else empty
        matrix.setflags(write=False)
        return matrix

    def _check_dimension(self, vectors: Iterable[FloatMatrix]) -> None:
        """Raises ModelError unless all these vectors have the dimension of the earlier ones."""
        for length in {len(vector) for vector in vectors}:
            self._dimension = self._dimension or length
            if length != self._dimension:
                delete = "" if self._cache is None else f", delete {self._cache.file}"
                raise ModelError(
                    f"expected vectors of {self._dimension} numbers from {self.info.name} as before, found {length}: "
                    f"the model behind this name has changed; start again{delete} and rebuild the index, {INSTEAD}"
                )

    def _embed(self, texts: Sequence[str], role: Role) -> FloatMatrix:
        """float32 array of shape (n_texts, dimension), rows of length 1, from the server."""
        option = {"input_type": role} if self._api.provider.is_voyage else {"encoding_format": "float"}
        return self._api.post(
            {"input": list(texts), **option},
            f"{len(texts)} vectors",
            max(map(len, texts)),
            partial(_rows, n_texts=len(texts)),
        )


class VectorCache(DiskCache[FloatMatrix]):
    """Unit vectors, float32 of shape (dimension,), in one file that has hashes and numbers but no text."""

    def __init__(self, file: Path, max_vectors: int = MAX_VECTORS) -> None:
        super().__init__(file, _FORMAT, max_vectors)


def _rows(content: bytes, n_texts: int) -> FloatMatrix:
    """The vectors of a reply in the order of the texts, float32 (n_texts, dimension), scaled to length 1.

    Raises ValueError.
    """
    rows: list[Any] = [item.get("embedding") for item in items_in_order(content, n_texts)]
    if not all(isinstance(row, list) and {type(number) for number in row} <= {int, float} for row in rows):
        raise ValueError("an embedding that is not a list of numbers")
    dimensions = sorted({len(row) for row in rows})
    if len(dimensions) > 1 or dimensions == [0]:
        raise ValueError(f"embeddings of {' and '.join(map(str, dimensions))} numbers")
    try:
        matrix = np.array(rows, np.float64)
    except OverflowError:  # an integer of 400 digits
        matrix = np.full((n_texts, 1), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ValueError("an embedding that is zero or not finite")
    return np.asarray(matrix / lengths, np.float32)


def _unit_vector(row: tuple[object, ...]) -> FloatMatrix | None:
    """The stored vector, float32 of shape (dimension,), read-only; None unless it is finite and of length 1."""
    (stored,) = row
    if not isinstance(stored, bytes) or not stored or len(stored) % _NUMBER.itemsize:
        return None
    vector = np.frombuffer(stored, _NUMBER).astype(np.float32, copy=False)
    vector.setflags(write=False)
    with np.errstate(all="ignore"):  # damaged bits may square to infinity
        length = float(np.linalg.norm(vector))
    return vector if abs(length - 1.0) <= LENGTH_TOLERANCE else None  # False for NaN, too


_FORMAT: Final[CacheFormat[FloatMatrix]] = CacheFormat(
    table="vectors",
    columns=("vector",),
    column_type="BLOB",
    version=SCHEMA_VERSION,
    patience_seconds=5.0,
    holds="vectors",
    user="encoding",
    to_row=lambda vector: (np.asarray(vector, _NUMBER).tobytes(),),
    from_row=_unit_vector,
    renews=False,
)


def _sha256(*parts: str) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()  # JSON: ("ab", "c") is not ("a", "bc")
