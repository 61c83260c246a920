"""A cache in a SQLite file, which may lose values at any time and never raises an error to its user.

A failure is logged once and means "not found" or "not added". Safe between threads and processes. The module also has
two classes by which several sessions share one model: a fair lock, and a bounded memory of results.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Lock
from types import TracebackType
from typing import Any, Generic, TypeVar

REMEMBERED_QUERIES = 256  # vectors of questions that an encoder keeps in memory: 0.4 MB at 384 float32 each

Key = TypeVar("Key")
Remembered = TypeVar("Remembered")


class FairLock:
    """A lock whose waiters are served in the order they came; a context manager.

    `threading.Lock` lets the thread that just released it take it again at once, so a session that scores batch after
    batch would keep another one waiting until it is done.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._next_ticket = 0
        self._serving = 0
        self._left: set[int] = set()  # tickets whose thread was interrupted while it waited

    def __enter__(self) -> None:
        with self._changed:
            ticket = self._next_ticket
            self._next_ticket += 1
            try:
                while self._serving != ticket:
                    self._changed.wait()
            except BaseException:
                self._left.add(ticket)
                self._skip_left()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._serving += 1
            self._skip_left()

    def _skip_left(self) -> None:
        while self._serving in self._left:
            self._left.remove(self._serving)
            self._serving += 1
        self._changed.notify_all()


class RecentResults(Generic[Key, Remembered]):
    """The most recently used results, at most ``capacity``; safe to use from several threads."""

    def __init__(self, capacity: int = REMEMBERED_QUERIES) -> None:
        self.capacity = capacity
        self._results: OrderedDict[Key, Remembered] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._results)

    def get(self, key: Key, compute: Callable[[], Remembered]) -> Remembered:
        """The remembered result of this key, else the computed one, remembered from now on."""
        known = self.known([key])
        if key not in known:
            known = {key: compute()}
            self.remember(known)
        return known[key]

    def known(self, keys: Iterable[Key]) -> dict[Key, Remembered]:
        """The remembered results of these keys, by key; they become the most recent."""
        found: dict[Key, Remembered] = {}
        with self._lock:
            for key in keys:
                if key in self._results:
                    self._results.move_to_end(key)
                    found[key] = self._results[key]
        return found

    def remember(self, results: Mapping[Key, Remembered]) -> None:
        """Adds these results and forgets the least recently used ones beyond the capacity."""
        with self._lock:
            for key, value in results.items():
                self._results[key] = value
                self._results.move_to_end(key)
            while len(self._results) > self.capacity:
                self._results.popitem(last=False)


REST_SECONDS = 30.0  # pause after a failure, in which the disk is not used
KEYS_PER_QUERY = 500  # SQLite takes 999 at least
RETRY_SECONDS = 0.01

Result = TypeVar("Result")
Value = TypeVar("Value")
Row = tuple[object, ...]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CacheFormat(Generic[Value]):
    """The format of a cache file: one table of values by key, its version, and words for the log."""

    table: str
    columns: tuple[str, ...]  # of a value
    column_type: str  # "REAL"
    version: int
    patience_seconds: float  # longest wait for another process's transaction; ours take milliseconds
    holds: str  # "NLI results"
    user: str  # the work that continues without it: "scoring"
    to_row: Callable[[Value], Row | None]  # None: do not add
    from_row: Callable[[Row], Value | None]  # None: not a valid value, as after a write by another program
    renews: bool  # whether reading a value in the older half makes it the newest

    @property
    def schema(self) -> str:
        """A row's id is its age: `INSERT OR REPLACE` gives it the next one.

        So the oldest values are those with the lowest ids, and the span of the ids bounds the number of rows without
        counting them.
        """
        columns = ", ".join(f"{column} {self.column_type} NOT NULL" for column in self.columns)
        return f"CREATE TABLE {self.table} (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, {columns})"


class DiskCache(Generic[Value]):
    """At most ``most`` values in one file; the oldest are removed first. Locks itself, so it may be shared.

    The file is opened when first needed, and created with its folder if missing. Values are returned bit for bit as
    they were added.
    """

    def __init__(self, file: Path, format: CacheFormat[Value], most: int) -> None:
        self.file = file
        self.format = format
        self.most = most
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None  # device and inode of the file that was opened last
        self._rests_until = 0.0
        self._warned = False

    def known(self, keys: Sequence[bytes]) -> dict[bytes, Value]:
        """The cached values of these keys, by key."""
        distinct = list(dict.fromkeys(keys))
        return self._attempt(lambda connection: self._read(connection, distinct), {}) if distinct else {}

    def add(self, values: Mapping[bytes, Value]) -> None:
        """Adds these values in one transaction, and removes the oldest beyond ``most``."""
        rows = [(key, *row) for key, value in values.items() if (row := self.format.to_row(value)) is not None]
        if rows:
            self._attempt(lambda connection: self._write(connection, rows), None)

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        with self._lock:
            self._disconnect()

    def _read(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, Value]:
        columns = ", ".join(self.format.columns)
        rows: list[tuple[int, bytes, *Row]] = []
        for start in range(0, len(keys), KEYS_PER_QUERY):
            some = keys[start : start + KEYS_PER_QUERY]
            marks = ",".join("?" * len(some))
            query = f"SELECT id, key, {columns} FROM {self.format.table} WHERE key IN ({marks})"  # noqa: S608 - own names
            rows += connection.execute(query, some).fetchall()
        (newest,) = connection.execute(f"SELECT max(id) FROM {self.format.table}").fetchone()  # noqa: S608
        found, ageing = {}, []
        for row_id, key, *stored in rows:
            value = self.format.from_row(tuple(stored))
            if value is None:
                continue
            found[key] = value
            if self.format.renews and row_id <= newest - self.most // 2:
                ageing.append((key, *stored))
        if ageing:
            self._write(connection, ageing)
        return found

    def _write(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        table, names = self.format.table, ("key", *self.format.columns)
        marks = ", ".join("?" * len(names))
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)  # noqa: S608
            connection.execute(f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - ?", (self.most,))  # noqa: S608
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _attempt(self, work: Callable[[sqlite3.Connection], Result], otherwise: Result) -> Result:
        """The result of ``work``; ``otherwise`` if it fails, or within `REST_SECONDS` of a failure."""
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
                self._warn(
                    f"cannot be used ({type(error).__name__}: {error}); {self.format.user} continues without it."
                )
                return otherwise

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._opened = _identity(self.file)
            self._connection = opened(self.file, self.format)
            self._opened = _identity(self.file)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with closing(self._connection):
                self._connection = None

    def _set_aside(self, error: Exception) -> None:
        """Renames a broken file, unless another process has done so and started a new one."""
        self._disconnect()
        if self._opened is None or _identity(self.file) != self._opened:
            return
        broken = self.file.with_name(self.file.name + ".broken")
        for ending in ("-wal", "-shm"):
            self.file.with_name(self.file.name + ending).unlink(missing_ok=True)
        self.file.replace(broken)
        self._warn(f"is broken ({error}); it is now {broken.name} and a new one is started.")

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("the file of %s %s %s", self.format.holds, self.file, what)


def use_wal(connection: sqlite3.Connection, patience_seconds: float) -> None:
    """Switches to the write-ahead log; waits, as SQLite does not, while another process is switching."""
    until = time.monotonic() + patience_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return


def opened(file: Path, format: CacheFormat[Any]) -> sqlite3.Connection:
    """A connection to this file, made ready for use. Raises sqlite3.Error."""
    connection = sqlite3.connect(file, timeout=format.patience_seconds, isolation_level=None, check_same_thread=False)
    try:
        use_wal(connection, format.patience_seconds)
        connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may lose the last transactions, kill -9 none
        if _version(connection) == 0:
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) == 0:  # another process may have been first
                connection.execute(format.schema)
                connection.execute(f"PRAGMA user_version = {format.version}")
            connection.execute("COMMIT")
        if _version(connection) != format.version:
            msg = f"it has version {_version(connection)}, this ragqa reads {format.version}; delete it to start again"
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


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
