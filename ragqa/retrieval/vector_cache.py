"""Vectors of an embedding API kept on disk, in SQLite, for every process that encodes: hashes and numbers, no text.

A cache may lose anything at any time and must never fail an encoding: whatever goes wrong here is logged once and means
"not found" or "not kept". The house pattern of `ragqa.repass.pair_cache`, for vectors.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import numpy as np

from ragqa.protocols import FloatMatrix

__all__ = ["MAX_VECTORS", "VectorCache"]

SCHEMA_VERSION: Final = 1
MAX_VECTORS: Final = 200_000  # 1.2 GB of 1,536 numbers each
PATIENCE_SECONDS: Final = 5.0  # how long another process's transaction is waited for; ours take milliseconds
REST_SECONDS: Final = 30.0  # after a failure the disk is left alone for so long
KEYS_PER_QUERY: Final = 500  # SQLite takes 999 at least
LENGTH_TOLERANCE: Final = 1e-3  # of a stored vector; bits that rotted show here

# A row's id is its age: `INSERT OR REPLACE` gives it the next one. So the oldest vectors are those with the lowest
# ids, and the span of the ids bounds the number of rows without counting them.
_SCHEMA: Final = "CREATE TABLE vectors (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, vector BLOB NOT NULL)"
_KEEP: Final = "INSERT OR REPLACE INTO vectors (key, vector) VALUES (?, ?)"
_FORGET: Final = "DELETE FROM vectors WHERE id <= (SELECT max(id) FROM vectors) - ?"
_NUMBER: Final = np.dtype("<f4")  # little-endian on every machine

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class VectorCache:
    """At most ``max_vectors`` unit vectors in one file, the oldest leave first. Locks itself: share it.

    Vectors come back bit for bit as they were given.
    """

    def __init__(self, file: Path, max_vectors: int = MAX_VECTORS) -> None:
        """Nothing is opened before it is needed; the file and its folder are made where they are missing."""
        self.file = file
        self.max_vectors = max_vectors
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None  # device and inode of the file that was opened last
        self._rests_until = 0.0
        self._warned = False

    def known(self, keys: Sequence[bytes]) -> dict[bytes, FloatMatrix]:
        """Those of these keys that are kept, with float32 arrays of shape (dimension,), read-only.

        A row that holds no finite vector of length 1 is not found.
        """
        return self._attempt(lambda connection: _read(connection, keys), {}) if keys else {}

    def keep(self, vectors: Mapping[bytes, FloatMatrix]) -> None:
        """Adds these vectors of shape (dimension,) in one transaction, and drops the oldest beyond ``max_vectors``."""
        rows = [(key, np.asarray(vector, _NUMBER).tobytes()) for key, vector in vectors.items()]
        if rows:
            self._attempt(lambda connection: self._write(connection, rows), None)

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        with self._lock:
            self._disconnect()

    def _write(self, connection: sqlite3.Connection, rows: Sequence[tuple[bytes, bytes]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(_KEEP, rows)
            connection.execute(_FORGET, (self.max_vectors,))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _attempt(self, work: Callable[[sqlite3.Connection], Result], otherwise: Result) -> Result:
        """What ``work`` gives, or ``otherwise``: while the disk rests, or where it fails."""
        with self._lock:
            if time.monotonic() < self._rests_until:
                return otherwise
            try:
                try:
                    return work(self._connected())
                except sqlite3.DatabaseError as error:
                    if not _is_corrupt(error):
                        raise
                    self._set_aside(error)
                    return work(self._connected())
            except (sqlite3.Error, OSError) as error:
                self._disconnect()
                self._rests_until = time.monotonic() + REST_SECONDS
                self._warn(f"cannot be used ({type(error).__name__}: {error}); encoding goes on without it.")
                return otherwise

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._opened = _identity(self.file)
            self._connection = _opened(self.file)
            self._opened = _identity(self.file)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with closing(self._connection):
                self._connection = None

    def _set_aside(self, error: Exception) -> None:
        """Renames a broken file, unless another process has done so and begun a new one."""
        self._disconnect()
        if self._opened is None or _identity(self.file) != self._opened:
            return
        broken = self.file.with_name(self.file.name + ".broken")
        for ending in ("-wal", "-shm"):
            self.file.with_name(self.file.name + ending).unlink(missing_ok=True)
        self.file.replace(broken)
        self._warn(f"is broken ({error}); it is now {broken.name} and a new one is begun.")

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("the file of vectors %s %s", self.file, what)


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


def _opened(file: Path) -> sqlite3.Connection:
    """A connection to this file, made ready for use. Raises sqlite3.Error."""
    connection = sqlite3.connect(file, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may lose the last transactions, kill -9 none
        if _version(connection) == 0:
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) == 0:  # another process may have been first
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        if _version(connection) != SCHEMA_VERSION:
            msg = f"it has version {_version(connection)}, this ragqa reads {SCHEMA_VERSION}; delete it to begin anew"
            raise sqlite3.NotSupportedError(msg)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
