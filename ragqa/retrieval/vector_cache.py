"""Vectors of an embedding API kept on disk, in SQLite, for every process that encodes: hashes and numbers, no text."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ragqa.disk_cache import KEYS_PER_QUERY, CacheFormat, DiskCache, write_rows
from ragqa.protocols import FloatMatrix

SCHEMA_VERSION: Final = 1
MAX_VECTORS: Final = 200_000  # 1.2 GB of 1,536 numbers each
PATIENCE_SECONDS: Final = 5.0  # how long another process's transaction is waited for; ours take milliseconds
LENGTH_TOLERANCE: Final = 1e-3  # of a stored vector; bits that rotted show here

# A row's id is its age: `INSERT OR REPLACE` gives it the next one. So the oldest vectors are those with the lowest
# ids, and the span of the ids bounds the number of rows without counting them.
_SCHEMA: Final = "CREATE TABLE vectors (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, vector BLOB NOT NULL)"
_KEEP: Final = "INSERT OR REPLACE INTO vectors (key, vector) VALUES (?, ?)"
_FORGET: Final = "DELETE FROM vectors WHERE id <= (SELECT max(id) FROM vectors) - ?"
_NUMBER: Final = np.dtype("<f4")  # little-endian on every machine

_FORMAT: Final = CacheFormat(_SCHEMA, SCHEMA_VERSION, PATIENCE_SECONDS, "vectors", "encoding")


class VectorCache:
    """At most ``max_vectors`` unit vectors in one file, the oldest leave first. Locks itself: share it.

    Vectors come back bit for bit as they were given.
    """

    def __init__(self, file: Path, max_vectors: int = MAX_VECTORS) -> None:
        """Nothing is opened before it is needed; the file and its folder are made where they are missing."""
        self.file = file
        self.max_vectors = max_vectors
        self._disk = DiskCache(file, _FORMAT)

    def known(self, keys: Sequence[bytes]) -> dict[bytes, FloatMatrix]:
        """Those of these keys that are kept, with float32 arrays of shape (dimension,), read-only.

        A row that holds no finite vector of length 1 is not found.
        """
        return self._disk.attempt(lambda connection: _read(connection, keys), {}) if keys else {}

    def keep(self, vectors: Mapping[bytes, FloatMatrix]) -> None:
        """Adds these vectors of shape (dimension,) in one transaction, and drops the oldest beyond ``max_vectors``."""
        rows = [(key, np.asarray(vector, _NUMBER).tobytes()) for key, vector in vectors.items()]
        if rows:
            self._disk.attempt(lambda found: write_rows(found, _KEEP, rows, _FORGET, self.max_vectors), None)

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        self._disk.close()


def _read(connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, FloatMatrix]:
    found: dict[bytes, FloatMatrix] = {}
    distinct = list(dict.fromkeys(keys))
    for start in range(0, len(distinct), KEYS_PER_QUERY):
        some = distinct[start : start + KEYS_PER_QUERY]
        query = f"SELECT key, vector FROM vectors WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608 - only marks
        for key, stored in connection.execute(query, some):
            vector = _unit_vector(stored)
            if vector is not None:
                found[key] = vector
    return found


def _unit_vector(stored: object) -> FloatMatrix | None:
    """The vector of these bytes; None where they hold none, as after a write that nobody of us made."""
    if not isinstance(stored, bytes) or not stored or len(stored) % _NUMBER.itemsize:
        return None
    vector = np.frombuffer(stored, _NUMBER).astype(np.float32, copy=False)
    vector.setflags(write=False)
    with np.errstate(all="ignore"):  # rotten bits may square to infinity
        length = float(np.linalg.norm(vector))
    return vector if abs(length - 1.0) <= LENGTH_TOLERANCE else None  # False for NaN, too
