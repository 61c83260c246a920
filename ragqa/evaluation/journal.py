"""An append-only file of JSON objects that survives kill -9, and files that appear whole or not at all.

One entry is one line, ``{"sha256": "<of the entry>", "entry": {…}}``, and is on disk before `Journal.append` returns. A
process that dies while it writes leaves at most a torn last line, which the next reader drops.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ragqa.errors import RecordError

BEFORE_DIGEST, BEFORE_ENTRY, AFTER_ENTRY = b'{"sha256": "', b'", "entry": ', b"}\n"
DIGEST_LENGTH = 64


class Journal:
    """The entries of one file. Used by one process at a time: its owner holds a lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dropped_torn_line = False
        self._descriptor: int | None = None
        self._end = 0  # of the last whole line, in bytes

    def read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(offset, entry) of every whole line in order; notes a torn last line, which `append` will cut off.

        Raises RecordError where a line that is not the last one is damaged.
        """
        self._end, self.dropped_torn_line = 0, False
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                entry = _entry(line)
                if entry is None:
                    if file.read(1):
                        msg = (
                            f"{self.path}, line {number}, was altered: its checksum is not that of its content. Put "
                            "the file back as it was, choose another folder, or begin this one anew with --restart"
                        )
                        raise RecordError(msg)
                    self.dropped_torn_line = True
                    return
                yield self._end, entry
                self._end += len(line)

    def entry_at(self, offset: int) -> dict[str, Any]:
        """The entry whose line begins there. Raises RecordError where there is none any more."""
        with self.path.open("rb") as file:
            file.seek(offset)
            entry = _entry(file.readline())
        if entry is None:
            msg = f"{self.path} was altered while it was in use, at byte {offset:,}; run the same command again"
            raise RecordError(msg)
        return entry

    def append(self, entry: dict[str, Any]) -> int:
        """Adds this entry, on disk when this returns; gives the offset of its line. Call `read` to the end first.

        Raises ValueError where the entry holds a number that is not finite, and then writes nothing.
        """
        line = _line(entry)
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            os.ftruncate(self._descriptor, self._end)
            flush_folder(self.path.parent)
        _write_all(self._descriptor, line)
        os.fsync(self._descriptor)
        offset, self._end = self._end, self._end + len(line)
        return offset

    def close(self) -> None:
        """Gives the file back; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _line(entry: dict[str, Any]) -> bytes:
    payload = json.dumps(entry, allow_nan=False).encode("ascii")
    return BEFORE_DIGEST + _digest(payload) + BEFORE_ENTRY + payload + AFTER_ENTRY


def _entry(line: bytes) -> dict[str, Any] | None:
    """The entry in this line; None where the line is not exactly what `_line` makes of one."""
    digest = line[len(BEFORE_DIGEST) :][:DIGEST_LENGTH]
    before = BEFORE_DIGEST + digest + BEFORE_ENTRY
    payload = line[len(before) : -len(AFTER_ENTRY)]
    if not (line.startswith(before) and line.endswith(AFTER_ENTRY) and _digest(payload) == digest):
        return None
    entry: dict[str, Any] = json.loads(payload)
    return entry


def _digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).hexdigest().encode("ascii")


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """Puts a file with this text in place in one step: a reader finds the old one or the new one, whole.

    Characters that have no UTF-8 form (lone surrogates) are written as escapes.
    """
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        for piece in pieces:
            _write_all(descriptor, piece.encode("utf-8", "backslashreplace"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)  # noqa: PTH105 - like every other step on disk here, by os, so that tests can stop it
    flush_folder(path.parent)


def _write_all(descriptor: int, data: bytes) -> None:
    """All of it, or OSError; the system may take less than it is given."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def flush_folder(folder: Path) -> None:
    """The names in this folder are on disk, not only in the system's memory."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
