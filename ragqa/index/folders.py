"""Index folders on disk: names, locks, and atomic replacement. This module does not depend on their content.

Beside ``NAME/`` there may be, always on the same file system::

    .NAME.lock            held by the process that builds or deletes NAME; an empty file, deleted with the index
    .building-NAME-PID/   a running build, or the remains of a stopped or crashed build
    .old-NAME/            the index being replaced; while NAME is absent, this *is* the index
    .trash-NAME-PID/      a folder being deleted

Only the holder of the lock touches the last three, so those that the next holder finds are from a dead process. A
``.building`` folder with a journal is kept for the next build of that name, which resumes or removes it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ragqa.errors import ConfigError, IndexingError, IndexLockedError, IndexNotFoundError
from ragqa.index.manifest import BM25, CONTEXT, DENSE, ENGINE_FILES, FURTHER, MANIFEST, PASSAGE_FILES, REFERENCES
from ragqa.infra.files import Lock, flush, flush_tree, move
from ragqa.settings.paths import behind

_logger = logging.getLogger(__name__)

JOURNAL: Final = "journal.json"  # in a building folder: the build can be resumed
NAME_RULE: Final = "1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ENTRIES: Final = {MANIFEST, *PASSAGE_FILES, *ENGINE_FILES, REFERENCES, DENSE, BM25, CONTEXT, FURTHER}
_CLUTTER: Final = {".DS_Store", "Thumbs.db"}  # file managers leave these anywhere
_SWAP_SECONDS: Final = 5.0  # the longest time that a reader waits between the two renames of a replacement


def check_name(name: str) -> None:
    """Raises ConfigError unless ``name`` is a valid index name, which is always a plain folder name."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"expected an index name of {NAME_RULE}, found {name!r}; choose another name")


def index_names(indexes: Path) -> list[str]:
    """The sorted names of the indexes in this folder and `behind` it, damaged ones included."""
    folders = [folder for folder in (indexes, behind(indexes)) if folder and folder.is_dir()]
    paths = [path for folder in folders for path in folder.iterdir()]
    found = {path.name.removeprefix(".old-") for path in paths if _holds_index_files(path)}
    return sorted(name for name in found if _NAME.fullmatch(name))


def locate(name: str, indexes: Path) -> Path:
    """The folder of this index, restored if a builder died between its two renames.

    Raises ConfigError for an invalid name, IndexNotFoundError with the names of existing indexes.
    """
    check_name(name)
    target, old = indexes / name, indexes / f".old-{name}"
    deadline = time.monotonic() + _SWAP_SECONDS
    while not target.is_dir():
        if not old.is_dir() and not target.is_dir():  # checked twice: a builder may finish between the two checks
            further = behind(indexes)
            if further and name in index_names(further):
                return locate(name, further)
            there_are = ", ".join(index_names(indexes)) or "none yet"
            raise IndexNotFoundError(
                f"no index {name!r} in {indexes} (there are: {there_are}); build it with "
                f"`ragqa index build {name} --source PATH`"
            )
        try:
            with exclusive(name, indexes):  # this restores it
                pass
        except IndexLockedError:  # a running builder is about to rename its folder
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        except IndexingError:  # the folder is not writable: read the index in its old place
            return old
    return target


@contextmanager
def exclusive(name: str, indexes: Path) -> Iterator[None]:
    """Holds the lock of this index, and first removes the remains of dead processes.

    Raises IndexLockedError if another process or thread holds it, IndexingError if the folder is not writable.
    """
    check_name(name)
    try:
        indexes.mkdir(parents=True, exist_ok=True)
        lock = Lock(indexes / f".{name}.lock")
        is_held = lock.take()
    except OSError as error:
        msg = f"{indexes} cannot be written ({error.strerror}); set RAGQA_INDEXES to a folder of your own"
        raise IndexingError(msg) from error
    if not is_held:
        raise IndexLockedError(_who_holds(name, indexes))
    try:
        _clear_up(name, indexes)
        yield
    finally:
        lock.release()


@contextmanager
def building_folder(name: str, indexes: Path) -> Iterator[Path]:
    """A folder to build in: that of a stopped build, or an empty one. The caller must hold the lock.

    It is deleted afterwards unless it has a journal. Raises IndexingError at once if something other than an index has
    the name of the index.
    """
    _refuse_foreign(indexes / name)
    folder = indexes / f".building-{name}-{os.getpid()}"
    left = sorted(_of_process("building", name, indexes), key=lambda path: path.stat().st_mtime)
    for path in left[:-1]:
        delete(path)
    if not left:
        folder.mkdir()
    elif left[-1] != folder:
        move(left[-1], folder)
    try:
        yield folder
    finally:
        if not (folder / JOURNAL).is_file():
            delete(folder)


def replace(new: Path, name: str, indexes: Path) -> None:
    """Flushes the folder ``new`` to disk and moves it into the place of this index. The caller must hold the lock.

    After a crash at any moment, the old or the new index can be opened. Only an index is ever replaced.
    """
    target, old = indexes / name, indexes / f".old-{name}"
    _refuse_foreign(target)
    flush_tree(new)
    if os.path.lexists(target):
        move(target, old)
    try:
        move(new, target)
    except OSError:
        if old.is_dir():
            move(old, target)
        raise
    flush(indexes)
    _discard(old, name, indexes)


def remove(name: str, indexes: Path) -> None:
    """Removes this index, and nothing else, and the remains of a stopped build. The caller must hold the lock."""
    _refuse_foreign(indexes / name)
    _discard(indexes / name, name, indexes)
    for path in _of_process("building", name, indexes):
        delete(path)
    delete(indexes / f".{name}.lock")  # a process that opened it meanwhile finds it unlinked and is refused
    flush(indexes)


def stopped(name: str, indexes: Path) -> list[Path]:
    """The folders of stopped builds of this index that can be resumed. Raises ConfigError."""
    check_name(name)
    found = _of_process("building", name, indexes) if indexes.is_dir() else []
    return [path for path in found if (path / JOURNAL).is_file()]


def _clear_up(name: str, indexes: Path) -> None:
    target, old = indexes / name, indexes / f".old-{name}"
    if os.path.lexists(old):
        if os.path.lexists(target):
            _discard(old, name, indexes)
        else:
            move(old, target)
    stopped = [path for path in _of_process("building", name, indexes) if not (path / JOURNAL).is_file()]
    for path in stopped + _of_process("trash", name, indexes):
        _logger.info("removing %s, left by a process that died", path)
        delete(path)


def _discard(path: Path, name: str, indexes: Path) -> None:
    """Renames the folder and then deletes it, so that no half-deleted folder ever has the name of an index."""
    if os.path.lexists(path):
        trash = indexes / f".trash-{name}-{os.getpid()}"
        move(path, trash)
        delete(trash)


def delete(path: Path) -> None:
    """Deletes this file or folder, or logs a warning with the reason if it cannot."""
    try:
        if path.is_symlink() or path.is_file():
            path.unlink()
        else:
            shutil.rmtree(path)
    except OSError as error:  # the next build tries again
        _logger.warning("%s could not be removed: %s", path, error)


def _refuse_foreign(target: Path) -> None:
    """Raises IndexingError if this path exists and holds files that ragqa did not write."""
    if not os.path.lexists(target):
        return
    entries = {path.name for path in target.iterdir()} if target.is_dir() else {target.name}
    foreign = sorted(entries - _ENTRIES - _CLUTTER)
    if foreign:
        raise IndexingError(
            f"{target} holds what is no part of an index ({', '.join(foreign[:3])}) and is left alone; choose another "
            "name, or move it away"
        )


def _holds_index_files(path: Path) -> bool:
    return path.is_dir() and any((path / entry).exists() for entry in _ENTRIES)


def _who_holds(name: str, indexes: Path) -> str:
    pids = [path.name.rpartition("-")[2] for path in _of_process("building", name, indexes)]
    who = f"process {pids[0]}" if len(pids) == 1 else "another process"
    return f"index {name!r} is being built or deleted by {who}; wait until it is done, or stop it, and try again"


def _of_process(kind: str, name: str, indexes: Path) -> list[Path]:
    """The folders ``.KIND-NAME-PID`` of exactly this index name."""
    pattern = re.compile(rf"\.{kind}-{re.escape(name)}-\d+")
    return [path for path in indexes.iterdir() if pattern.fullmatch(path.name)]
