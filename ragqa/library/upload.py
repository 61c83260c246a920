"""Files on their way in: what was dropped or chosen from a server's folder becomes files that wait on a collection.

Nothing is trusted: not a name, not a size, not what an archive says of itself.
"""

from __future__ import annotations

import os
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO, Final

from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.corpus.documents.kinds import SUFFIXES, advice, kind_of
from ragqa.corpus.documents.model import MAX_BYTES
from ragqa.corpus.files import files_below, storable_name
from ragqa.errors import CorpusError
from ragqa.library.collection import Collection, temporary, writing
from ragqa.library.names import member_name, safe_name

FOLDERS: Final = "RAGQA_LIBRARY_FOLDERS"
_CHUNK: Final = 2**20
LISTED: Final = 2_000  # files of a server's folder
ABANDONED_SECONDS: Final = 3600.0


def take(collection: Collection, name: str, data: BinaryIO, reader: Reader, replaces: str | None = None) -> list[str]:
    """Puts a file among those that wait, an archive's members each; gives a line on each that is left out.

    ``replaces`` is the document that it is a new version of; None: the one of the same name, if any. Raises
    CorpusError where nothing can be stored.
    """
    shown = safe_name(name)
    kind = kind_of(shown)
    if not kind:
        what = advice(shown) or "take it out"
        return [f"{shown}: expected PDF, .docx, HTML, .xlsx, CSV, text or .zip, found another kind of file; {what}"]
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
    """Writes at most `MAX_BYTES`; whether that is all of it."""
    size = 0
    with path.open("wb") as file:
        while chunk := data.read(_CHUNK):
            size += len(chunk)
            if size > MAX_BYTES:
                return False
            file.write(chunk)
    return True


def _unpacked(collection: Collection, name: str, path: Path, reader: Reader) -> Iterator[str]:
    """Each member of an archive that was looked at in the reading process first: its sizes hold."""
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
            with writing(collection.folder), zipfile.ZipFile(path) as archive, archive.open(member) as packed:
                copied(packed, inner)
            line = collection.stage(inner, shown)
            if line:
                yield line
        except (zipfile.BadZipFile, KeyError, NotImplementedError, EOFError, zlib.error) as error:
            yield f"{name}/{shown}: expected a whole file, found a damaged one ({str(error)[:60]}); pack it again"
        finally:
            inner.unlink(missing_ok=True)


def _is_clutter(member: str) -> bool:
    """Whether it is what systems add to archives, or would climb out of the archive."""
    parts = member.replace("\\", "/").split("/")
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


# A server's folders -----------------------------------------------------------------------------------------------


def server_folders(environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    """The folders that `RAGQA_LIBRARY_FOLDERS` lists, those that are there, by a name to show."""
    env = os.environ if environ is None else environ
    paths = [Path(text).expanduser() for text in env.get("RAGQA_LIBRARY_FOLDERS", "").split(os.pathsep) if text.strip()]
    found: dict[str, Path] = {}
    for path in paths:
        if path.is_dir():
            name = path.name or str(path)
            found[name if name not in found else str(path)] = path
    return found


def files_of(folder: Path) -> tuple[str, ...]:
    """The documents below a server's folder by their paths in it, at most 2,000."""
    try:
        found = files_below(folder, SUFFIXES)
    except CorpusError:
        return ()
    return tuple(storable_name(path.relative_to(folder).as_posix()) for path in found[:LISTED])


def take_from_folder(collection: Collection, folder: str, names: tuple[str, ...], reader: Reader) -> list[str]:
    """Copies files of a listed folder, each by one of the names that `files_of` gave; as `take`. Raises CorpusError."""
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
    """Removes what uploads left that were broken off an hour ago or before."""
    for path in (collection.folder / "staged").glob(".incoming-*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()
