"""NLI results kept on disk, in SQLite, for every process that scores: numbers under hashes, no text.

A cache may lose anything at any time and must never fail a scoring: whatever goes wrong here is logged once and means
"not found" or "not kept". `ragqa.repass.remembering` says what a key is made of.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import TypeVar

from ragqa.repass.arithmetic import is_distribution
from ragqa.types import NliProbabilities

__all__ = ["PairCache"]

SCHEMA_VERSION = 1
MAX_PAIRS = 1_000_000  # some 80 MB; at 360 pairs an answer, the last 2,800 different answers or more
PATIENCE_SECONDS = 0.5  # how long another process's transaction is waited for; ours take milliseconds
REST_SECONDS = 30.0  # after a failure the disk is left alone for so long
KEYS_PER_QUERY = 500  # SQLite takes 999 at least

# A row's id is its age: `INSERT OR REPLACE` gives it the next one. So the oldest pairs are those with the lowest ids,
# and the span of the ids bounds the number of rows without counting them.
_SCHEMA = """
CREATE TABLE pairs (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    contradiction REAL NOT NULL,
    entailment REAL NOT NULL,
    neutral REAL NOT NULL
)
"""
_KEEP = "INSERT OR REPLACE INTO pairs (key, contradiction, entailment, neutral) VALUES (?, ?, ?, ?)"
_FORGET = "DELETE FROM pairs WHERE id <= (SELECT max(id) FROM pairs) - ?"

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class PairCache:
    """At most ``max_pairs`` results in one file, the least recently used ones leave first. Locks itself: share it.

    Use counts for a pair in the older half only, so that reading writes next to nothing; at least half of
    ``max_pairs`` are the most recently used ones. Numbers come back bit for bit as they were given.
    """

    def __init__(self, file: Path, max_pairs: int = MAX_PAIRS) -> None:
        """Nothing is opened before it is needed; the file and its folder are made where they are missing."""
        self.file = file
        self.max_pairs = max_pairs
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None  # device and inode of the file behind the connection
        self._rests_until = 0.0
        self._warned = False

    def known(self, keys: Sequence[bytes]) -> dict[bytes, NliProbabilities]:
        """Those of these keys that are kept, with their results; a row that holds no probabilities is not found."""
        return self._attempt(lambda connection: self._read(connection, keys), {}) if keys else {}

    def keep(self, results: Mapping[bytes, NliProbabilities]) -> None:
        """Adds these results in one transaction, and drops the oldest beyond ``max_pairs``."""
        rows = [(key, r.contradiction, r.entailment, r.neutral) for key, r in results.items() if is_distribution(r)]
        if rows:
            self._attempt(lambda connection: self._write(connection, rows), None)

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        with self._lock:
            self._disconnect()

    def _read(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, NliProbabilities]:
        rows: list[tuple[int, bytes, object, object, object]] = []
        distinct = list(dict.fromkeys(keys))
        for start in range(0, len(distinct), KEYS_PER_QUERY):
            some = distinct[start : start + KEYS_PER_QUERY]
            marks = ",".join("?" * len(some))
            query = f"SELECT id, key, contradiction, entailment, neutral FROM pairs WHERE key IN ({marks})"  # noqa: S608
            rows += connection.execute(query, some).fetchall()
        found, ageing = {}, []
        (newest,) = connection.execute("SELECT max(id) FROM pairs").fetchone()
        for row_id, key, *numbers in rows:
            result = _probabilities(numbers)
            if result is None:
                continue
            found[key] = result
            if row_id <= newest - self.max_pairs // 2:
                ageing.append((key, *numbers))
        if ageing:
            self._write(connection, ageing)
        return found

    def _write(self, connection: sqlite3.Connection, rows: Sequence[tuple[object, ...]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(_KEEP, rows)
            connection.execute(_FORGET, (self.max_pairs,))
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
                self._warn(f"cannot be used ({type(error).__name__}: {error}); scoring goes on without it.")
                return otherwise

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _opened(self.file)
            self._opened = _identity(self.file)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with closing(self._connection):
                self._connection = None

    def _set_aside(self, error: Exception) -> None:
        """Renames a broken file, unless another process has done so and begun a new one."""
        was_open = self._connection is not None
        self._disconnect()
        if was_open and _identity(self.file) != self._opened:
            return
        broken = self.file.with_name(self.file.name + ".broken")
        self.file.replace(broken)
        for ending in ("-wal", "-shm"):
            self.file.with_name(self.file.name + ending).unlink(missing_ok=True)
        self._warn(f"is broken ({error}); it is now {broken.name} and a new one is begun.")

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("the file of NLI results %s %s", self.file, what)


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


def _probabilities(numbers: Sequence[object]) -> NliProbabilities | None:
    """These three numbers as probabilities; None where they are none, as after a write that nobody of us made."""
    floats = [number for number in numbers if isinstance(number, float)]
    result = NliProbabilities(*floats) if len(floats) == 3 else None
    return result if result is not None and is_distribution(result) else None
