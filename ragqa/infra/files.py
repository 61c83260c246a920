"""Durable files: written whole, appended to, moved and locked. Nothing else in ragqa syncs, renames or locks.

"On disk" means here that data survive a power cut, not only a killed process. Every step is one call of `os`, so that
tests can stop at each of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def flush(path: Path) -> None:
    """Puts this file, or the names in this folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_open(file: IO[Any]) -> None:
    """Puts all data written to this open file on disk."""
    file.flush()
    os.fsync(file.fileno())


def flush_tree(folder: Path) -> None:
    """Puts this folder, with every file and folder below it, on disk."""
    for path in (*folder.rglob("*"), folder):
        flush(path)


def sha256_of(path: Path) -> str:
    """The sha256 of the file's bytes, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def move(source: Path, target: Path) -> Path:
    """Renames a file or folder on the same disk, in one step; replaces an existing file of that name."""
    os.replace(source, target)  # noqa: PTH105 - by os, as every step here
    return target


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """Writes a file with this text in one step: a reader finds the old file or the new one, complete.

    Characters that have no UTF-8 form (lone surrogates) are written as escapes. One process at a time may write it.
    """
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        for piece in pieces:
            _write_all(descriptor, piece.encode("utf-8", "backslashreplace"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    move(temporary, path)
    flush(path.parent)


@contextmanager
def replacing(path: Path, *, shared: bool = False) -> Iterator[Path]:
    """Gives a path beside this one to write to; when the block ends, that file replaces this one in one step.

    ``shared``: several processes may do so at once, and the last one wins. A killed process leaves the old file or the
    new one, complete. A power cut may leave neither, so use this only for data that can be recreated.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8) if shared else 'new'}")
    try:
        yield temporary
        move(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class Appending:
    """A file that only grows: the first write cuts off everything after ``end``, or, without ``cuts``, nothing."""

    def __init__(self, path: Path, *, cuts: bool = True) -> None:
        self.path, self._cuts = path, cuts
        self.end = 0  # in bytes
        self._descriptor: int | None = None

    def append(self, data: bytes, *, sync: bool = True) -> int:
        """Adds the data, on disk on return; returns their offset. ``sync`` False: a power cut may lose them."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            if self._cuts:
                os.ftruncate(self._descriptor, self.end)
            else:
                self.end = os.fstat(self._descriptor).st_size
            flush(self.path.parent)
        try:
            _write_all(self._descriptor, data)
            if sync:
                os.fsync(self._descriptor)
        except OSError:  # such as a full disk: what is torn goes, so that the next entry follows the last whole one
            os.ftruncate(self._descriptor, self.end)
            raise
        offset, self.end = self.end, self.end + len(data)
        return offset

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def append(path: Path, data: bytes) -> None:
    """Adds the data to the end of a file, created if missing, which may be append-only; they are on disk on return."""
    _append(Appending(path, cuts=False), data)


def append_json_lines(path: Path, rows: Iterable[object]) -> None:
    """Adds a line for each of these values, as `append`, after cutting off a half-written last line."""
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    file = Appending(path)
    file.end = _end_of_lines(path)
    _append(file, data)


def _append(file: Appending, data: bytes) -> None:
    try:
        file.append(data)
    finally:
        file.close()


def _end_of_lines(path: Path, block: int = 1 << 16) -> int:
    """The offset after the last whole line of a file; 0 if there is no file."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - block)
            file.seek(start)
            whole = file.read(end - start).rfind(b"\n") + 1
            if whole:
                return start + whole
            end = start
    return 0


def _write_all(descriptor: int, data: bytes) -> None:
    """Writes all data or raises OSError; one call of the system may write only a part."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class Lock:
    """A lock file that one thread of one process holds at a time; it is released when that process ends."""

    def __init__(self, path: Path) -> None:
        from filelock import FileLock  # it loads asyncio

        self._lock = FileLock(path, thread_local=False)

    def take(self, patience_seconds: float = 0.0) -> bool:
        """Takes the lock, waiting at most ``patience_seconds``; whether it is held now."""
        from filelock import Timeout

        try:
            self._lock.acquire(timeout=patience_seconds)
        except Timeout:
            return False
        return True

    def release(self) -> None:
        """Releases the lock; does nothing if it is not held."""
        self._lock.release()


@contextmanager
def locked(path: Path, refusal: Callable[[], Exception], patience_seconds: float = 0.0) -> Iterator[None]:
    """Holds the lock of this file; raises ``refusal()`` if another holder keeps it longer than the patience."""
    lock = Lock(path)
    if not lock.take(patience_seconds):
        raise refusal()
    try:
        yield
    finally:
        lock.release()
