"""The audit log: one line per act, chained by hashes, on disk before the act is acknowledged.

::

    RAGQA_HOME/audit/
    ├── audit-1-400000.jsonl   a file put aside by `AuditLog.rotate`, with the numbers of its first and last line
    ├── audit.jsonl   one JSON object per line; ``hash`` is the sha256 of ``before`` (the previous hash) and the rest
    ├── head.json     a copy of the latest line, written first, so that a truncated log can be recognised
    └── .lock         one process writes at a time

If a process is killed between both writes, only the head has the line; the next entry restores it in the log.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ragqa.errors import RecordError
from ragqa.infra.files import append, flush, locked, move, write_whole
from ragqa.infra.journal import translated
from ragqa.server.access.anchor import anchor_place, note

LOG, HEAD = "audit.jsonl", "head.json"
FIRST: Final = "0" * 64  # the hash before the first entry
MOST, LONGEST = 50, 8_000  # items of a list, and characters of a text, in an entry
_LOOKED_BACK: Final = 2**24  # bytes that hold the longest entry and one that is torn
_ASIDE: Final = re.compile(r"audit-(\d+)-\d+\.jsonl")
_PATIENCE: Final = 20.0  # seconds to wait for other processes' entries


@dataclass(frozen=True, slots=True)
class Break:
    """The first place where the log was altered. ``line`` counts from 1; 0 is the head's file."""

    line: int
    expected: str
    found: str

    def __str__(self) -> str:
        where = f"{LOG}, line {self.line}" if self.line else HEAD
        return f"{where}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class Verified:
    """The intact part of the log: the number of its entries and the last hash; ``broken`` is the first break."""

    entries: int
    hash: str
    broken: Break | None = None


class AuditLog:
    """The log of one folder; any number of threads and processes may append to it."""

    def __init__(self, folder: Path, anchor: str = "") -> None:
        """``anchor`` is where the hash of each entry is also noted; see `ragqa.server.access.anchor`."""
        self.folder, self._anchor = folder, anchor

    def append(self, act: str, who: str, email: str = "", **about: object) -> None:
        """Adds an entry; it is on disk when this returns. Raises RecordError where it cannot be written.

        Empty values are left out.
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
            append(self.folder / LOG, line.encode())
            if self._anchor:
                note(self._anchor, n + 1, json.loads(line)["hash"])

    def entries(self) -> Iterator[dict[str, Any]]:
        """Every valid entry, oldest first, even where the chain is broken."""
        for line in _lines_of([*self._aside(), self.folder / LOG]):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry

    def verify(self, *anchors: str) -> Verified:
        """Verifies the whole log. ``anchors``, each ``COUNT:HASH``, are earlier hashes that were noted elsewhere.

        Raises RecordError where the log cannot be read.
        """
        while True:
            aside = self._aside()
            found = self._verified(anchors)
            if found.broken is None or self._aside() == aside:
                return found  # else another process has put the log aside meanwhile

    def _verified(self, anchors: Sequence[str]) -> Verified:
        if not self.folder.is_dir():
            return Verified(0, FIRST, self._beside({}, Verified(0, FIRST), anchors, None))
        with self._held():  # only to fix the log's present end: reading takes long, and others go on writing
            files = [*self._aside(), self.folder / LOG]
            size = files[-1].stat().st_size if files[-1].exists() else 0
            head_text = (self.folder / HEAD).read_bytes() if (self.folder / HEAD).exists() else None
        n, before, noted = 0, FIRST, {0: FIRST}
        wanted = {anchor.partition(":")[0] for anchor in anchors}
        with translated(self.folder):
            for line in _lines_of(files, size):
                broken = _broken(line, n + 1, before)
                if broken:
                    return Verified(n, before, broken)
                n, before = n + 1, json.loads(line)["hash"]
                if str(n) in wanted:
                    noted[n] = before
        whole = Verified(n, before)
        return Verified(n, before, self._beside(noted, whole, anchors, head_text))

    def rotate(self) -> Path | None:
        """Renames the log after its first and last line number; the next entry continues the chain in a new file.

        None where there are no entries. Raises RecordError.
        """
        with self._held():
            head = self._head()
            if head is None:
                return None
            self._put_back(head)
            if not self._log_size():
                return None
            with (self.folder / LOG).open(encoding="utf-8") as file:
                first = json.loads(file.readline())["n"]
            aside = self.folder / f"audit-{first}-{head['n']}.jsonl"
            move(self.folder / LOG, aside)
            flush(self.folder)
            return aside

    def _aside(self) -> list[Path]:
        """The files that were put aside, in order."""
        named = ((_ASIDE.fullmatch(path.name), path) for path in self.folder.glob("audit-*-*.jsonl"))
        return [path for _, path in sorted((int(match[1]), path) for match, path in named if match)]

    def _log_size(self) -> int:
        return (self.folder / LOG).stat().st_size if (self.folder / LOG).exists() else 0

    def _beside(
        self, hashes: Mapping[int, str], whole: Verified, anchors: Sequence[str], text: bytes | None
    ) -> Break | None:
        """The first break between an intact log and its head (``text`` of its file) or the anchors; None if none."""
        head = _entry(text.decode("utf-8", "replace")) if text is not None else None
        if text is not None and head is None:
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
        for count, _, noted in (anchor.partition(":") for anchor in anchors if anchor):
            line = int(count) if count.isdecimal() else 0
            if not line or hashes.get(line) != noted:
                return Break(line, f"the hash noted, {noted[:16]}…", str(hashes.get(line))[:16])
        return None

    def _head(self) -> dict[str, Any] | None:
        """The latest entry; None where there is none yet. Raises RecordError if the head was altered or is missing."""
        try:
            text = (self.folder / HEAD).read_text(encoding="utf-8")
        except FileNotFoundError:
            if self._log_size() or self._aside():
                raise self._unusable(beside=True) from None
            return None
        head = _entry(text)
        if head is None:
            raise self._unusable()
        return head

    def _unusable(self, *, beside: bool = False) -> RecordError:
        what = f"is missing beside {LOG}" if beside else f"is not what ragqa wrote, or not what {LOG} ends in"
        return RecordError(
            f"{self.folder / HEAD} {what}; run `ragqa audit verify`, and move the folder away to begin a new log"
        )

    def _put_back(self, head: dict[str, Any] | None) -> None:
        """Restores a last line that a killed process wrote only to the head. Raises RecordError where it cannot."""
        if head is None:
            return
        path, line, aside = self.folder / LOG, _line(head).encode(), self._aside()
        size = self._log_size()
        if not size and aside:
            path, size = aside[-1], aside[-1].stat().st_size
        with path.open("a+b") as file:
            file.seek(max(0, size - len(line)))
            if file.read() == line:
                return
            file.seek(max(0, size - _LOOKED_BACK))
            tail = file.read()
        whole = tail[: tail.rfind(b"\n") + 1]
        torn = tail[len(whole) :]
        above = _entry(whole[whole[:-1].rfind(b"\n") + 1 :].decode("utf-8", "replace")) if whole else {"hash": FIRST}
        if not line.startswith(torn) or above is None or above["hash"] != head["before"]:
            raise self._unusable()
        append(self.folder / LOG, line[len(torn) :])

    @contextmanager
    def _held(self) -> Iterator[None]:
        with translated(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            msg = f"{self.folder} is written by another process for over {_PATIENCE:.0f} seconds; try again"
            with locked(self.folder / ".lock", lambda: RecordError(msg), _PATIENCE):
                yield


def _lines_of(files: Sequence[Path], size: int | None = None) -> Iterator[str]:
    """The lines with their line ends, also with invalid UTF-8; only the first ``size`` bytes of the last file."""
    for path in files:
        left = size if path is files[-1] else None
        if path.exists():
            with path.open("rb") as file:
                for line in file:
                    if left is not None and left <= 0:
                        return
                    yield line[:left].decode("utf-8", "backslashreplace")
                    left = None if left is None else left - len(line)


def _entry(text: str) -> dict[str, Any] | None:
    """The entry of this line; None where the line was altered."""
    try:
        found = json.loads(text)
        return found if isinstance(found, dict) and isinstance(found.get("n"), int) and _line(found) == text else None
    except (ValueError, KeyError, TypeError):
        return None


def _short(value: object) -> object:
    """The value, shortened so that long names do not make long entries."""
    if isinstance(value, list):
        return [_short(one) for one in value[:MOST]] + ([f"and {len(value) - MOST} more"] if len(value) > MOST else [])
    return value[:LONGEST] if isinstance(value, str) else value


def _line(entry: Mapping[str, Any]) -> str:
    """The canonical line of an entry, with its hash computed again."""
    told = {name: value for name, value in entry.items() if name != "hash"}
    return _text(told | {"hash": hashlib.sha256((told["before"] + _text(told)).encode()).hexdigest()}) + "\n"


def _text(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _broken(line: str, n: int, before: str) -> Break | None:
    """What is wrong with line ``n``, if anything; ``before`` is the hash of the line before."""
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


def audit_log(home: Path) -> AuditLog:
    """The log of this RAGQA_HOME, with the anchor that RAGQA_AUDIT_ANCHOR names."""
    return AuditLog(home / "audit", anchor_place())
