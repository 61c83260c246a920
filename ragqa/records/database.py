"""The database of records and cases: its schema, transactions that wait for a server, and the reader's view."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, TypeVar

from ragqa.errors import RecordError
from ragqa.records.engines import PATIENCE_SECONDS, AwayError, Execute, Place, engine_of
from ragqa.records.reader import RecordReader

PAUSE_SECONDS: Final = 0.25  # between attempts at a server that is away

# Schema migrations: a store of version n has run the first n of these. They are only appended to, never changed. The
# first two use IF NOT EXISTS because stores from before version numbers have their tables.
MIGRATIONS: Final = (
    """
CREATE TABLE IF NOT EXISTS records (
    record_id TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    question TEXT NOT NULL,
    index_name TEXT NOT NULL,
    generator TEXT NOT NULL,
    status TEXT NOT NULL,
    composite REAL,
    sha256 TEXT NOT NULL,
    body TEXT NOT NULL
)""",
    """
CREATE TABLE IF NOT EXISTS readers (
    record_id TEXT NOT NULL,
    who TEXT NOT NULL,
    is_author INTEGER NOT NULL,
    PRIMARY KEY (record_id, who)
)""",
    """
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    who TEXT NOT NULL,
    began_at TEXT NOT NULL,
    record_id TEXT NOT NULL
)""",
    """
CREATE TABLE remarks (
    record_id TEXT PRIMARY KEY,
    note TEXT NOT NULL,
    gone_at TEXT NOT NULL
)""",
    """
CREATE TABLE case_events (
    case_id TEXT NOT NULL,
    n INTEGER NOT NULL,
    stamp TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (case_id, n)
)""",
)
_VERSION: Final = "CREATE TABLE IF NOT EXISTS store_version (version INTEGER NOT NULL)"

_T = TypeVar("_T")


class Database:
    """The base of the stores of one place; safe between threads, processes and, with a server, machines.

    Every method raises RecordError where the place cannot be used. While a server is away, writes are tried again for
    ``patience`` seconds; reads fail at once.
    """

    def __init__(self, place: Place, reader: RecordReader | None = None, patience: float = PATIENCE_SECONDS) -> None:
        self.place = place
        self._engine = engine_of(place)
        self._ready = False
        self._reader = reader
        self._patience = patience

    def seen_by(self, reader: RecordReader) -> Self:
        """The same place, restricted to what this reader may see."""
        store = type(self)(self.place, reader, self._patience)
        store._ready = self._ready
        return store

    def _rows(self, statement: str, values: Sequence[Any]) -> Sequence[Any]:
        rows: Sequence[Any] = self._once(lambda execute: execute(statement, values).fetchall())
        return rows

    def _patiently(self, work: Callable[[Execute], _T]) -> _T:
        """Runs `_once`, and again while the server is away; ``work`` must be idempotent."""
        until = time.monotonic() + self._patience
        while True:
            try:
                return self._once(work)
            except AwayError:
                if time.monotonic() > until:
                    raise
            time.sleep(PAUSE_SECONDS)

    def _once(self, work: Callable[[Execute], _T]) -> _T:
        """Runs ``work`` in one transaction, after migrating the schema if necessary."""
        if not self._ready:
            self._migrate()
            self._ready = True
        try:
            with self._engine.transaction() as execute:
                return work(execute)
        except RecordError:
            self._ready = False  # it may have been moved away
            raise

    def _migrate(self) -> None:
        """Migrates the schema. Raises RecordError where a later ragqa has migrated it further."""
        with self._engine.transaction(alone=True) as execute:
            execute(self._engine.own(_VERSION))
            version = execute("SELECT max(version) FROM store_version").fetchone()[0] or 0
            if version > len(MIGRATIONS):
                raise RecordError(
                    f"the records in {self._engine.name} have schema {version}, this ragqa knows {len(MIGRATIONS)}; "
                    "a later ragqa has used them: upgrade this one"
                )
            for number in range(version, len(MIGRATIONS)):
                execute(self._engine.own(MIGRATIONS[number]))
                execute("INSERT INTO store_version VALUES (?)", (number + 1,))
