"""A folder that belongs to one run: what it was begun with, and that only one process writes there.

::

    DIR/
    ├── run.json        which input, settings and models this folder belongs to
    ├── journal.jsonl   what is done, item by item (`ragqa.evaluation.journal`)
    └── .lock

`ragqa score` and `ragqa eval answers` go on in such a folder after a stop, and refuse the folder of another run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ragqa.errors import ConfigError, RecordError
from ragqa.evaluation.journal import write_whole

RUN, JOURNAL, LOCK = "run.json", "journal.jsonl", ".lock"
DIGEST_LENGTH: Final = 64


@contextmanager
def held(folder: Path, doing: str) -> Iterator[None]:
    """The folder, made where it does not exist, for this process alone; ``doing`` says what another one does there.

    Raises RecordError where another process holds it or it cannot be written.
    """
    from filelock import FileLock, Timeout

    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            msg = f"another process is {doing} into {folder}; wait until it is done, or choose another folder"
            raise RecordError(msg) from error
    try:
        yield
    finally:
        lock.release()


def begun(
    folder: Path, stamp: Mapping[str, Any], outputs: Sequence[str], *, restart: bool
) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """This folder's stamp and models, after it was begun, or begun anew, or found to be of the same run.

    ``outputs`` are the files written at the end. Raises ConfigError where the folder belongs to another run,
    RecordError where it is damaged or cannot be written.
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
            run = _read_run(folder)
            _same_run(run["stamp"], stamp, folder)
            return run["stamp"], run["models"]
        write_run(folder, stamp, None)
        return stamp, None


def _same_run(was: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Raises ConfigError unless both name the same input, settings and version; the file's name may change."""
    differing = "; ".join(differences({**was, "input": ""}, {**now, "input": ""}))
    if differing:
        msg = (
            f"{folder} belongs to another run: {differing}. Repeat that run's command to go on with it, choose another "
            "folder, or begin this one anew with --restart"
        )
        raise ConfigError(msg)


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


def write_run(folder: Path, stamp: Mapping[str, Any], models: Mapping[str, Any] | None) -> None:
    """Writes ``run.json`` with its own digest; ``models`` may be known only later."""
    run = {"stamp": stamp, "models": models, "sha256": digest({"stamp": stamp, "models": models})}
    write_whole(folder / RUN, [json.dumps(run, indent=2) + "\n"])


def _read_run(folder: Path) -> dict[str, Any]:
    try:
        run = json.loads((folder / RUN).read_bytes())
        whole = run["sha256"] == digest({"stamp": run["stamp"], "models": run["models"]})
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        msg = f"{folder / RUN} is damaged; choose another folder, or begin this one anew with --restart"
        raise RecordError(msg)
    found: dict[str, Any] = run
    return found


def digest(value: Mapping[str, Any]) -> str:
    """The sha256, in hexadecimal, of this value as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@contextmanager
def translated(folder: Path) -> Iterator[None]:
    """The system's refusals as one message."""
    try:
        yield
    except OSError as error:
        msg = (
            f"{folder} cannot be used ({error.strerror or error}); what was done so far is kept. Make room or choose "
            "a folder you may write to, and run the command again"
        )
        raise RecordError(msg) from error
