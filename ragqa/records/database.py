"""The database of records and cases, a SQLite file or a PostgreSQL server: schema, transactions, the reader's view.

The statements of `ragqa.records.store` are the same for both: placeholders are ``?``, and ``ON CONFLICT``
handles existing rows. The differences are in the two engines, which also translate errors.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, TypeVar

from ragqa.errors import ConfigError, RecordError
from ragqa.infra.disk_cache import use_wal
from ragqa.records.reader import RecordReader

PATIENCE_SECONDS: Final = 30.0  # to wait for other processes' transactions, or for a server that is away
CONNECT_SECONDS: Final = 5  # to wait for a server to accept a connection
UNANSWERED_MS: Final = 20_000  # after which a connection without acknowledgements is given up
_LOCK: Final = 0x7261677161  # the key "ragqa" of a PostgreSQL advisory lock
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
Place: TypeAlias = Path | str  # a file, or postgresql://USER:PASSWORD@HOST/DATABASE
Execute: TypeAlias = Callable[..., Any]  # called with a statement and its values; returns a cursor


class AwayError(RecordError):
    """The server cannot be reached, or went away before it acknowledged; the same call may succeed later."""


RecordEngine: TypeAlias = "SqliteEngine | PostgresEngine"


def engine_of(place: Place) -> RecordEngine:
    """The engine for a file or an address. Raises ConfigError for an invalid address."""
    return PostgresEngine(place) if isinstance(place, str) else SqliteEngine(place)


class SqliteEngine:
    """One file with a write-ahead log. ``name`` is its name in messages."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.name = file.name

    @contextmanager
    def transaction(self, *, alone: bool = False) -> Iterator[Execute]:
        """A new connection in one transaction; with ``alone`` no other process can create tables meanwhile.

        Raises RecordError; after its subclass AwayError the call may be tried again.
        """
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.file, timeout=PATIENCE_SECONDS)) as connection:
                if alone:
                    use_wal(connection, PATIENCE_SECONDS)
                    connection.execute("BEGIN IMMEDIATE")
                with connection:
                    yield connection.execute
        except (sqlite3.Error, OSError) as error:
            msg = f"cannot use the record file {self.file}: {error}; set RAGQA_HOME to a folder you may write to"
            raise RecordError(msg) from error

    def own(self, schema: str) -> str:
        """A statement that creates a table, with this engine's column types."""
        return schema + " STRICT"

    def field(self, *path: str) -> str:
        """SQL for the text under these keys of the JSON in ``body``."""
        return f"json_extract(body, '$.{'.'.join(path)}')"


_WORD: Final = r"(?:[^@:/?#\s%]|%(?!00)[0-9A-Fa-f]{2})"
_ADDRESS: Final = re.compile(
    rf"postgres(?:ql)?://(?:{_WORD}+(?::{_WORD}*)?@)?(?P<where>[^@/?#\s%]*/[^@/?#\s%]+)(?:\?[^#\s@]*)?"
)
_RETRIED: Final = ("", "08", "53", "57", "25006")  # away; full; stopped or starting; no longer the primary
_REFUSED: Final = ("password", "pg_hba", "authentication", "does not exist")  # libpq gives no code when connecting


class PostgresEngine:
    """One database of a server, through psycopg.

    Each transaction has its own connection, as with a file. So no connection is held while nothing is stored, none is
    stale after a restart of the server, and a suspended process holds none.
    """

    def __init__(self, address: str) -> None:
        match = _ADDRESS.fullmatch(address)
        if not match:  # the message does not quote the address: its password cannot be located
            raise ConfigError(
                "RAGQA_RECORDS: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE, found something else; write "
                "special characters of the password as %40 and so on, or keep it in PGPASSFILE or PGPASSWORD"
            )
        try:
            import psycopg
        except ImportError as error:
            msg = "records in PostgreSQL need psycopg, which is not installed; run: pip install 'ragqa[postgresql]'"
            raise ConfigError(msg) from error
        self._psycopg = psycopg
        self._address = address
        self.name = f"postgresql://{match['where']}"

    @contextmanager
    def transaction(self, *, alone: bool = False) -> Iterator[Execute]:
        """As `SqliteEngine.transaction`; a commit without acknowledgement also raises RecordError."""
        psycopg = self._psycopg
        try:
            with psycopg.connect(
                self._address, connect_timeout=CONNECT_SECONDS, tcp_user_timeout=UNANSWERED_MS, client_encoding="utf8"
            ) as connection:
                if alone:
                    connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
                yield lambda statement, values=(): connection.execute(statement.replace("?", "%s"), values)
        except psycopg.Error as error:
            raise self._told(error) from None  # the text of the error may quote the address

    def _told(self, error: Exception) -> RecordError:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        words = lines[0].removeprefix("connection failed: ")[:300] if lines else type(error).__name__
        state, lost = (
            getattr(error, "sqlstate", None) or "",
            (self._psycopg.OperationalError, self._psycopg.InternalError),
        )
        if isinstance(error, lost) and (state in _RETRIED or state[:2] in _RETRIED):
            if not any(refusal in words for refusal in _REFUSED):
                return AwayError(f"the record server {self.name} is unreachable: {words}; try again later")
        elif not state:
            words = "the address has something that libpq does not understand"  # libpq's own text would quote it
        return RecordError(
            f"the record server {self.name} denies access: {words}; correct RAGQA_RECORDS or its permissions"
        )

    def own(self, schema: str) -> str:
        """As in SQLite, with numbers of eight bytes and texts ordered by their bytes."""
        return schema.replace("TEXT", 'TEXT COLLATE "C"').replace("REAL", "DOUBLE PRECISION")

    def field(self, *path: str) -> str:
        return f"body::json #>> '{{{','.join(path)}}}'"


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
