"""Uploads: files that were dropped on the page or chosen from a server's folder become staged files of a collection.

Nothing is trusted: neither names, nor sizes, nor what an archive says about its members.
"""

from __future__ import annotations

import lzma
import os
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, Final

from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.corpus.documents.kinds import SUFFIXES, advice, kind_of
from ragqa.corpus.documents.model import MAX_BYTES
from ragqa.corpus.files import files_below, storable_name
from ragqa.errors import CorpusError
from ragqa.infra.files import flush_open
from ragqa.library.collection import Collection, temporary, writing
from ragqa.library.names import member_name, safe_name

FOLDERS: Final = "RAGQA_LIBRARY_FOLDERS"
_CHUNK: Final = 2**20
LISTED: Final = 2_000  # files of a server's folder that are listed at most
ABANDONED_SECONDS: Final = 3600.0


def take(collection: Collection, name: str, data: BinaryIO, reader: Reader, replaces: str | None = None) -> list[str]:
    """Stages a file, or each member of an archive; returns a line for each file that is left out.

    ``replaces`` is the id of the document that the file replaces; None: the document with the same name, if any. Raises
    CorpusError where files cannot be stored.
    """
    shown = safe_name(name)
    kind = kind_of(shown)
    if not kind:
        what = advice(shown) or "take it out"
        return [
            f"{shown}: expected PDF, .docx, HTML, XML, .xlsx, CSV, text or .zip, found another kind of file; {what}"
        ]
    collection.read()  # raises where somebody has deleted it meanwhile
    path = temporary(collection.folder / "staged")
    try:
        with writing(collection.folder):
            too_large = not copied(data, path)
        if too_large:
            return [f"{shown}: expected at most {MAX_BYTES >> 20} MB, found more; split it"]
        if kind == "ZIP":
            return list(_unpacked(collection, shown, path, reader))
        return [line for line in [collection.stage(path, shown, replaces)] if line]
    finally:
        path.unlink(missing_ok=True)


def copied(data: IO[bytes], path: Path) -> bool:
    """Copies at most `MAX_BYTES` to ``path``, on disk on return; returns whether that is everything."""
    size = 0
    with path.open("wb") as file:
        while chunk := data.read(_CHUNK):
            size += len(chunk)
            if size > MAX_BYTES:
                return False
            file.write(chunk)
        flush_open(file)
    return True


@contextmanager
def unpacking(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive at this path. Raises BadZipFile for whatever damaged bytes or names make its readers raise."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (lzma.LZMAError, zlib.error, EOFError, ValueError) as error:
        raise zipfile.BadZipFile(str(error)) from error
    except OSError as error:
        if error.errno is not None:  # bz2 has none for damaged bytes
            raise
        raise zipfile.BadZipFile(str(error)) from error


def _unpacked(collection: Collection, name: str, path: Path, reader: Reader) -> Iterator[str]:
    """Stages each member of an archive. The reading process checks its sizes first, so they can be trusted."""
    try:
        found = reader.members(path)
    except UnreadableError as error:
        yield f"{name}: {error}"
        return
    wanted = [member for member in sorted(found) if kind_of(member) and not _is_clutter(member)]
    if not wanted:
        yield f"{name}: expected documents in the archive, found none; take it out"
    for member in wanted:
        shown = member_name(storable_name(member))
        if kind_of(member) == "ZIP":
            yield f"{name}/{shown}: expected documents, found an archive within an archive; unpack it"
            continue
        inner = temporary(collection.folder / "staged")
        try:
            with writing(collection.folder), unpacking(path) as archive, archive.open(member) as packed:
                copied(packed, inner)
            line = collection.stage(inner, shown)
            if line:
                yield line
        except (zipfile.BadZipFile, KeyError, NotImplementedError) as error:
            yield f"{name}/{shown}: expected a whole file, found a damaged one ({str(error)[:60]}); pack it again"
        finally:
            inner.unlink(missing_ok=True)


def _is_clutter(member: str) -> bool:
    """Whether a member is a hidden or system file, or its path leads out of the archive."""
    parts = member.replace("\\", "/").split("/")
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


# A server's folders -----------------------------------------------------------------------------------------------


def server_folders() -> dict[str, Path]:
    """The existing folders of `RAGQA_LIBRARY_FOLDERS`, by the name to show."""
    listed = os.environ.get("RAGQA_LIBRARY_FOLDERS", "").split(os.pathsep)
    found: dict[str, Path] = {}
    for path in (Path(text).expanduser() for text in listed if text.strip()):
        if path.is_dir():
            name = path.name or str(path)
            found[name if name not in found else str(path)] = path
    return found


def files_of(folder: Path) -> tuple[str, ...]:
    """The relative paths of the documents below a server's folder, at most 2,000."""
    try:
        found = files_below(folder, SUFFIXES)
    except CorpusError:
        return ()
    return tuple(storable_name(path.relative_to(folder).as_posix()) for path in found[:LISTED])


def take_from_folder(collection: Collection, folder: str, names: tuple[str, ...], reader: Reader) -> list[str]:
    """Stages files of a listed folder by their names from `files_of`; returns and raises as `take`."""
    root = server_folders().get(folder)
    if root is None:
        raise CorpusError(f"expected one of the folders that {FOLDERS} lists, found {folder[:80]!r}; choose another")
    paths = {storable_name(path.relative_to(root).as_posix()): path for path in files_below(root, SUFFIXES)}
    lines = []
    for name in names:
        if name in paths:
            with paths[name].open("rb") as data:
                lines += take(collection, member_name(name), data, reader)
    return lines


def clear_incoming(collection: Collection) -> None:
    """Removes the partial files of uploads that were interrupted an hour ago or earlier."""
    for path in (collection.folder / "staged").glob(".incoming-*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()
