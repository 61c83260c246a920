"""The audit log: one line an act, each chained to the one before, on disk before the act is acknowledged.

::

    RAGQA_HOME/audit/
    ├── audit.jsonl   one JSON object a line; ``hash`` is the sha256 of ``before``, the hash above it, and the rest
    ├── head.json     the latest line once more, written first: a log that was cut short no longer ends in it
    └── .lock         one process writes at a time

A process that is killed between the two leaves the line in the head alone; the next entry puts it back.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from ragqa.errors import RecordError
from ragqa.infra.journal import flush_folder, translated, write_whole

LOG, HEAD = "audit.jsonl", "head.json"
FIRST: Final = "0" * 64  # what stands before the first entry
MOST, LONGEST = 50, 8_000  # of a list, and characters of a text
_PATIENCE: Final = 20.0  # seconds for other processes' entries


@dataclass(frozen=True, slots=True)
class Break:
    """The first place at which the log is not as it was written. ``line`` counts from 1; 0 is the head's file."""

    line: int
    expected: str
    found: str

    def __str__(self) -> str:
        where = f"{LOG}, line {self.line}" if self.line else HEAD
        return f"{where}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class Verified:
    """How far the log is whole: so many entries, the last of which has this hash; ``broken`` is what comes then."""

    entries: int
    hash: str
    broken: Break | None = None


class AuditLog:
    """The log of one folder; any number of threads and processes may append to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, act: str, who: str, email: str = "", **about: object) -> None:
        """Adds an entry; it is on disk when this returns. Raises RecordError where it cannot be written.

        What is empty is left out.
        """
        with self._held():
            head = self._head()
            self._put_back(head)
            n, before = (head["n"], head["hash"]) if head else (0, FIRST)
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            told = {"act": act, "who": who, "email": email, **about}
            entry = {name: _short(value) for name, value in told.items() if value not in ("", None)}
            line = _line(entry | {"n": n + 1, "at": at, "before": before})
            write_whole(self.folder / HEAD, [line])
            self._add(line.encode())

    def entries(self) -> Iterator[dict[str, Any]]:
        """Every line that is an entry, oldest first, whether the chain holds or not."""
        for line in self._lines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry

    def verify(self, anchor: str = "") -> Verified:
        """Reads the whole log. ``anchor``, ``COUNT:HASH``, is what it said once and was noted elsewhere.

        Raises RecordError where the log cannot be read.
        """
        if not self.folder.is_dir():
            return Verified(0, FIRST, self._beside({}, Verified(0, FIRST), anchor))
        with self._held():
            n, before, hashes = 0, FIRST, {0: FIRST}
            for line in self._lines():
                broken = _broken(line, n + 1, before)
                if broken:
                    return Verified(n, before, broken)
                n, before = n + 1, json.loads(line)["hash"]
                hashes[n] = before
            whole = Verified(n, before)
            return Verified(n, before, self._beside(hashes, whole, anchor))

    def _beside(self, hashes: Mapping[int, str], whole: Verified, anchor: str) -> Break | None:
        """Whether head and anchor agree with a log that is whole in itself."""
        try:
            head = self._head()
        except RecordError:
            return Break(0, "the latest line of the log", "something else")
        n, stamp = (head["n"], head["hash"]) if head else (0, FIRST)
        if head is None and whole.entries:
            return Break(0, f"a copy of line {whole.entries}", "no such file")
        if n > whole.entries:
            missing = "cut off here" + (", or a process was killed writing it" if n == whole.entries + 1 else "")
            return Break(whole.entries + 1, f"entry {whole.entries + 1} of {n}, as {HEAD} says", f"the end: {missing}")
        if n < whole.entries:
            return Break(n + 1, f"the end, as {HEAD} says", f"{whole.entries - n} more that ragqa did not write")
        if stamp != whole.hash:
            return Break(n, f"hash {stamp[:16]}…, as {HEAD} says", f"{whole.hash[:16]}…")
        count, _, noted = anchor.partition(":")
        if anchor and hashes.get(int(count) if count.isdecimal() else -1) != noted:
            there = hashes.get(int(count)) if count.isdecimal() else None
            return Break(int(count) if count.isdecimal() else 0, f"the hash noted, {noted[:16]}…", str(there)[:16])
        return None

    def _head(self) -> dict[str, Any] | None:
        """The latest entry; None where there is none yet. Raises RecordError where the file is not what was written."""
        try:
            text = (self.folder / HEAD).read_text(encoding="utf-8")
        except FileNotFoundError:
            if (self.folder / LOG).exists() and (self.folder / LOG).stat().st_size:
                raise self._unusable(beside=True) from None
            return None
        try:
            head = json.loads(text)
            if isinstance(head, dict) and isinstance(head.get("n"), int) and _line(head) == text:
                return head
        except (ValueError, KeyError, TypeError):
            pass
        raise self._unusable()

    def _unusable(self, *, beside: bool = False) -> RecordError:
        what = f"is missing beside {LOG}" if beside else f"is not what ragqa wrote, or not what {LOG} ends in"
        return RecordError(
            f"{self.folder / HEAD} {what}; run `ragqa audit verify`, and move the folder away to begin a new log"
        )

    def _put_back(self, head: dict[str, Any] | None) -> None:
        """Completes a last line that a killed process left in the head alone. Raises RecordError where it cannot be."""
        if head is None:
            return
        path, line = self.folder / LOG, _line(head).encode()
        size = path.stat().st_size if path.exists() else 0
        with path.open("a+b") as file:
            start = max(0, size - 2 * len(line) - 8192)
            file.seek(start)
            tail = file.read()
        if tail.endswith(line):
            return
        whole = tail[: tail.rfind(b"\n") + 1]
        torn = tail[len(whole) :]
        above = json.loads(whole.splitlines()[-1])["hash"] if whole else FIRST
        if not line.startswith(torn) or above != head["before"]:
            raise self._unusable()
        self._add(line[len(torn) :])

    def _add(self, data: bytes) -> None:
        with (self.folder / LOG).open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        flush_folder(self.folder)

    def _lines(self) -> Iterator[str]:
        """The lines with their ends, whatever bytes they hold."""
        if (self.folder / LOG).exists():
            with (self.folder / LOG).open("r", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                yield from file

    @contextmanager
    def _held(self) -> Iterator[None]:
        with translated(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                with FileLock(self.folder / ".lock", timeout=_PATIENCE):
                    yield
            except Timeout as error:
                msg = f"{self.folder} is written by another process for over {_PATIENCE:.0f} seconds; try again"
                raise RecordError(msg) from error


def _short(value: object) -> object:
    """Names that somebody chose make no entry long."""
    if isinstance(value, list):
        return [_short(one) for one in value[:MOST]] + ([f"and {len(value) - MOST} more"] if len(value) > MOST else [])
    return value[:LONGEST] if isinstance(value, str) else value


def _line(entry: Mapping[str, Any]) -> str:
    """The one way in which an entry with this content is written, its hash computed anew."""
    told = {name: value for name, value in entry.items() if name != "hash"}
    return _text(told | {"hash": hashlib.sha256((told["before"] + _text(told)).encode()).hexdigest()}) + "\n"


def _text(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _broken(line: str, n: int, before: str) -> Break | None:
    """What is wrong with line ``n``, whose predecessor has the hash ``before``."""
    try:
        entry = json.loads(line)
        number, link, stamp = (entry[name] for name in ("n", "before", "hash"))
        again = _line(entry)
    except (ValueError, KeyError, TypeError, RecursionError):
        return Break(n, "an entry of the log", f"{line[:40]!r}")
    if number != n:
        return Break(n, f"entry {n}", f"entry {str(number)[:20]}: lines were removed, added or moved")
    if link != before:
        return Break(
            n, f"before {before[:16]}…, the hash of line {n - 1}", f"{str(link)[:16]}…: one of the two is altered"
        )
    if again != line:
        right = json.loads(again)["hash"]
        return Break(n, f"hash {right[:16]}… of what the line says", f"{str(stamp)[:16]}…, or other spacing")
    return None
