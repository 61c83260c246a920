"""NLI results kept on disk, in SQLite, for every process that scores: numbers under hashes, no text.

`ragqa.repass.remembering` says what a key is made of.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from ragqa.disk_cache import KEYS_PER_QUERY, CacheFormat, DiskCache, write_rows
from ragqa.repass.arithmetic import is_distribution
from ragqa.types import NliProbabilities

SCHEMA_VERSION = 1
MAX_PAIRS = 1_000_000  # some 80 MB; at 360 pairs an answer, the last 2,800 different answers or more
PATIENCE_SECONDS = 0.5  # how long another process's transaction is waited for; ours take milliseconds

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

_FORMAT = CacheFormat(_SCHEMA, SCHEMA_VERSION, PATIENCE_SECONDS, "NLI results", "scoring")


class PairCache:
    """At most ``max_pairs`` results in one file, the least recently used ones leave first. Locks itself: share it.

    Use counts for a pair in the older half only, so that reading writes next to nothing; at least half of
    ``max_pairs`` are the most recently used ones. Numbers come back bit for bit as they were given.
    """

    def __init__(self, file: Path, max_pairs: int = MAX_PAIRS) -> None:
        """Nothing is opened before it is needed; the file and its folder are made where they are missing."""
        self.file = file
        self.max_pairs = max_pairs
        self._disk = DiskCache(file, _FORMAT)

    def known(self, keys: Sequence[bytes]) -> dict[bytes, NliProbabilities]:
        """Those of these keys that are kept, with their results; a row that holds no probabilities is not found."""
        return self._disk.attempt(lambda connection: self._read(connection, keys), {}) if keys else {}

    def keep(self, results: Mapping[bytes, NliProbabilities]) -> None:
        """Adds these results in one transaction, and drops the oldest beyond ``max_pairs``."""
        rows = [(key, r.contradiction, r.entailment, r.neutral) for key, r in results.items() if is_distribution(r)]
        if rows:
            self._disk.attempt(lambda found: write_rows(found, _KEEP, rows, _FORGET, self.max_pairs), None)

    def close(self) -> None:
        """Closes the file; the next use opens it again."""
        self._disk.close()

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
            write_rows(connection, _KEEP, ageing, _FORGET, self.max_pairs)
        return found


def _probabilities(numbers: Sequence[object]) -> NliProbabilities | None:
    """These three numbers as probabilities; None where they are none, as after a write that nobody of us made."""
    floats = [number for number in numbers if isinstance(number, float)]
    result = NliProbabilities(*floats) if len(floats) == 3 else None
    return result if result is not None and is_distribution(result) else None
