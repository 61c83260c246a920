"""The engines of records, a SQLite file or a PostgreSQL server: transactions and the translation of their errors.

The statements of `ragqa.records.store` are the same for both: placeholders are ``?``, and ``ON CONFLICT``
handles existing rows. The differences are in this module.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from ragqa.errors import ConfigError, RecordError
from ragqa.infra.disk_cache import use_wal

PATIENCE_SECONDS: Final = 30.0  # to wait for other processes' transactions, or for a server that is away
CONNECT_SECONDS: Final = 5  # to wait for a server to accept a connection
UNANSWERED_MS: Final = 20_000  # after which a connection without acknowledgements is given up
_LOCK: Final = 0x7261677161  # the key "ragqa" of a PostgreSQL advisory lock

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
