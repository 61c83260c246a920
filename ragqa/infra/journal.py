"""The files of a run: a journal that survives kill -9, in a folder that belongs to one run.

::

    DIR/
    ├── run.json        the stamp: benchmark, input, settings and models of the run
    ├── journal.jsonl   the finished steps, item by item
    └── .lock           only one process writes here

An entry is one line, ``{"sha256": "<of the entry>", "entry": {…}}``, and is on disk before `Journal.append` returns. A
process that dies while writing leaves at most a torn last line, which the next reader drops.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragqa.errors import ConfigError, RecordError
from ragqa.infra.files import Appending, Lock, write_whole

RUN, JOURNAL, LOCK = "run.json", "journal.jsonl", ".lock"

BEFORE_DIGEST, BEFORE_ENTRY, AFTER_ENTRY = b'{"sha256": "', b'", "entry": ', b"}\n"
DIGEST_LENGTH = 64


class Journal:
    """The entries of one file. Only one process uses it at a time: its owner holds a lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dropped_torn_line = False
        self._file = Appending(path)  # to the end of the last whole line

    def read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(offset, entry) of every whole line in order; a torn last line is skipped, and `append` cuts it off.

        Raises RecordError if a line other than the last is damaged.
        """
        self._file.end, self.dropped_torn_line = 0, False
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                entry = _entry(line)
                if entry is None:
                    if file.read(1):
                        raise RecordError(
                            f"{self.path}, line {number}, was altered: its checksum is not that of its content. Put "
                            "the file back, choose another folder, or start over with --restart"
                        )
                    self.dropped_torn_line = True
                    return
                yield self._file.end, entry
                self._file.end += len(line)

    def entry_at(self, offset: int) -> dict[str, Any]:
        """The entry whose line begins at ``offset``. Raises RecordError if it is no longer there."""
        with self.path.open("rb") as file:
            file.seek(offset)
            entry = _entry(file.readline())
        if entry is None:
            msg = f"{self.path} was altered while it was in use, at byte {offset:,}; run the same command again"
            raise RecordError(msg)
        return entry

    def append(self, entry: dict[str, Any], *, sync: bool = True) -> int:
        """Adds this entry, on disk on return; returns the offset of its line. Call `read` to the end first.

        ``sync`` False: the entry survives a killed process, and after the next synced entry a power cut, too.

        Raises ValueError, and writes nothing, if the entry holds a number that is not finite.
        """
        return self._file.append(_line(entry), sync=sync)

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        self._file.close()


def _line(entry: dict[str, Any]) -> bytes:
    payload = json.dumps(entry, allow_nan=False).encode("ascii")
    return BEFORE_DIGEST + _digest(payload) + BEFORE_ENTRY + payload + AFTER_ENTRY


def _entry(line: bytes) -> dict[str, Any] | None:
    """The entry in this line; None unless the line is exactly as `_line` writes it."""
    digest = line[len(BEFORE_DIGEST) :][:DIGEST_LENGTH]
    before = BEFORE_DIGEST + digest + BEFORE_ENTRY
    payload = line[len(before) : -len(AFTER_ENTRY)]
    if not (line.startswith(before) and line.endswith(AFTER_ENTRY) and _digest(payload) == digest):
        return None
    entry: dict[str, Any] = json.loads(payload)
    return entry


def _digest(payload: bytes) -> bytes:
    return hashlib.sha256(payload).hexdigest().encode("ascii")


@contextmanager
def held(folder: Path, doing: str) -> Iterator[None]:
    """Holds the folder, created if missing, for this process alone; ``doing`` describes the work of another holder.

    Raises RecordError if another process holds it or it cannot be written.
    """
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(folder / LOCK)
        if not lock.take():
            msg = f"another process is {doing} into {folder}; wait until it is done, or choose another folder"
            raise RecordError(msg)
    try:
        yield
    finally:
        lock.release()


def begun(folder: Path, stamp: dict[str, Any], outputs: Sequence[str], *, restart: bool) -> dict[str, Any]:
    """Begins this folder, begins it anew (``restart``), or checks that it belongs to the run with this stamp.

    Returns the stamp in the folder, in which the input may have another name. ``outputs`` are the files written at the
    end. Raises ConfigError if the folder belongs to another run, RecordError if it is damaged or cannot be written.
    """
    with translated(folder):
        there = [name for name in (JOURNAL, *outputs) if (folder / name).exists()]
        if not (folder / RUN).exists():
            if there:
                msg = f"{folder} holds {', '.join(there)} of something else ({RUN} is missing); choose another folder"
                raise ConfigError(msg)
        elif restart:
            for name in there:  # run.json stays until it is replaced: it marks the folder as ours
                (folder / name).unlink()
        elif there:
            found = read_stamp(folder)
            _same_run(found, stamp, folder)
            return found
        run = {"stamp": stamp, "sha256": digest(stamp)}
        write_whole(folder / RUN, [json.dumps(run, indent=2) + "\n"])
    return stamp


def _same_run(was: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Raises ConfigError unless both name the same input, settings and version; the file's name may change."""
    differing = "; ".join(differences({**was, "input": ""}, {**now, "input": ""}))
    if differing:
        raise ConfigError(
            f"{folder} belongs to another run: {differing}. Repeat that run's command to continue it, choose another "
            "folder, or start over with --restart"
        )


def differences(was: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """``"name was this, is that"`` for every value that differs, nested names joined with dots."""
    for name in dict.fromkeys([*was, *now]):
        old, new = was.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from differences(old, new, f"{prefix}{name}.")
        elif old != new:
            yield f"{prefix}{name} was {_shown(old)}, is {_shown(new)}"


def _shown(value: object) -> str:
    text = str(value)
    return f"{text[:12]}…" if len(text) == DIGEST_LENGTH else text[:80]


def read_stamp(folder: Path) -> dict[str, Any]:
    """The stamp of this folder. Raises RecordError if ``run.json`` is missing or damaged."""
    try:
        run = json.loads((folder / RUN).read_bytes())
        stamp: dict[str, Any] = run["stamp"]
        whole = run["sha256"] == digest(stamp)
    except (OSError, ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise RecordError(f"{folder / RUN} is damaged; choose another folder, or start over with --restart")
    return stamp


def digest(value: Mapping[str, Any]) -> str:
    """The sha256, in hexadecimal, of this value as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@contextmanager
def translated(folder: Path) -> Iterator[None]:
    """Translates OSError into a RecordError with one message."""
    try:
        yield
    except OSError as error:
        raise RecordError(
            f"{folder} cannot be used ({error.strerror or error}); what was done so far is kept. Make room or choose "
            "a folder you may write to, and run the command again"
        ) from error
