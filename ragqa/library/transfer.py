"""Exports a corpus as one file and imports it; deletes a corpus so that it can be restored.

An export holds the documents and their descriptions, never an index. The index is built again, so that nothing
computed elsewhere has to be trusted.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from ragqa.corpus.documents import Reader
from ragqa.corpus.documents.exported import ABOUT, FILES, refuse
from ragqa.corpus.documents.kinds import kind_of
from ragqa.corpus.documents.model import MAX_BYTES
from ragqa.errors import CorpusError
from ragqa.index import list_indexes
from ragqa.index.engine import drop, engine_of
from ragqa.index.folders import exclusive
from ragqa.infra.files import move, sha256_of
from ragqa.library.collection import (
    TRASH,
    Collection,
    Document,
    collections,
    corpus_titles,
    make_collection,
    now,
    temporary,
    writing,
)
from ragqa.library.names import corpus_name, free_name, safe_name
from ragqa.library.upload import copied, unpacking

KEPT_DELETED: Final = 10  # deleted corpora that can be restored; the oldest is erased first
_INDEX: Final = "index"
_DELETED: Final = re.compile(r"(.+)@(\d{4}-\d\d-\d\dT\d{6})")


def export(collection: Collection, target: Path) -> None:
    """Writes the documents and their descriptions as a ZIP archive. Raises CorpusError."""
    catalogue = collection.read()
    about = {
        "ragqa": 1,
        "name": collection.name,
        "title": catalogue.title,
        "description": catalogue.description,
        "documents": [
            {"id": one.document_id, "file": one.name, "version": one.version, "added": one.added}
            for one in catalogue.kept
        ],
    }
    with writing(target.parent), zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(ABOUT, json.dumps(about, ensure_ascii=False, indent=1))
        for one in catalogue.kept:
            archive.write(collection.path_of(one), f"{FILES}{one.name}")


def import_corpus(data: BinaryIO, library: Path, reader: Reader, taken: tuple[str, ...] = ()) -> Collection:
    """Makes a new corpus from an export, with documents that still have to be indexed.

    ``taken`` are names of indexes that the corpus must not get. Raises CorpusError where ``data`` is not an export or
    is larger than an upload may be; then nothing of it is kept.
    """
    with writing(library):
        library.mkdir(parents=True, exist_ok=True)
    path = temporary(library)
    try:
        with writing(library):
            if not copied(data, path):
                refuse(f"one of more than {MAX_BYTES >> 20} MB")
        about = reader.exported(path)
        found = collections(library)
        name = corpus_name(about["title"], {*taken, *(one.name for one in library.glob("*"))})
        taken_titles = set(corpus_titles([one.name for one in found], found).values())
        titles = (about["title"], *(f"{about['title']} ({n})" for n in range(2, len(taken_titles) + 3)))
        title = next(one for one in titles if one not in taken_titles)
        collection = make_collection(name, library, title, about["description"])
        try:
            with writing(collection.folder), unpacking(path) as archive:
                documents = [_unpacked(collection, archive, *one) for one in about["documents"]]
            collection.change(lambda before, _moves: replace(before, documents=tuple(documents)))
        except BaseException:
            shutil.rmtree(collection.folder)
            raise
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        refuse(f"something else ({str(error)[:60]})")
    finally:
        path.unlink(missing_ok=True)
    return collection


def _unpacked(
    collection: Collection, archive: zipfile.ZipFile, document_id: str, member: str, version: int, added: str
) -> Document:
    folder = collection.folder / "files"
    folder.mkdir(exist_ok=True)
    name = free_name(safe_name(member), [path.name for path in folder.iterdir()])
    if kind_of(name) in {"", "ZIP"}:
        refuse(f"one with a file of another kind, {name!r}")
    with archive.open(member) as packed:
        copied(packed, folder / name)
    size = (folder / name).stat().st_size
    return Document(document_id, name, sha256_of(folder / name), size, added or now(), version)


# Deleting -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deleted:
    """A deleted corpus that can be restored with its index."""

    key: str
    name: str
    title: str
    at: str


def delete(collection: Collection, indexes: Path) -> None:
    """Moves a corpus and its index to the library's trash, which keeps the ten corpora that were deleted last.

    Raises IndexLockedError while it is being indexed, CorpusError.
    """
    trash = collection.folder.parent / TRASH
    target = trash / f"{collection.name}@{now()[:19].replace(':', '')}"
    with exclusive(collection.name, indexes), writing(collection.folder):
        trash.mkdir(exist_ok=True)
        if (indexes / collection.name).is_dir():  # the index first: after a kill the corpus can be deleted again
            if (collection.folder / _INDEX).is_dir():
                shutil.rmtree(collection.folder / _INDEX)
            shutil.move(indexes / collection.name, collection.folder / _INDEX)
        move(collection.folder, target)
    for old in deleted(collection.folder.parent)[KEPT_DELETED:]:
        erase(old.key, collection.folder.parent)


def deleted(library: Path) -> tuple[Deleted, ...]:
    """The corpora in the trash, the newest first."""
    found = []
    for path in (library / TRASH).glob("*@*"):
        match = _DELETED.fullmatch(path.name)
        if match:
            try:
                title = Collection(path).read().title
            except CorpusError:
                title = match[1]
            found.append(Deleted(path.name, match[1], title, match[2]))
    return tuple(sorted(found, key=lambda one: one.at, reverse=True))


def restore(key: str, library: Path, indexes: Path) -> Collection:
    """Restores a deleted corpus and its index. Raises CorpusError where its name is taken or it is not in the trash."""
    one = _deleted(key, library)
    source = library / TRASH / key
    indexed = one.name in {entry.name for entry in list_indexes(indexes)}
    is_own = not (source / _INDEX).is_dir() and Collection(source).read().indexed is not None  # a restore was cut off
    if (library / one.name).exists() or (indexed and not is_own):
        msg = f"expected the name {one.name!r} to be free, found another corpus of that name; delete that first"
        raise CorpusError(msg)
    with exclusive(one.name, indexes), writing(library):
        if (source / _INDEX).is_dir():
            shutil.move(source / _INDEX, indexes / one.name)
        move(source, library / one.name)
    return Collection(library / one.name)


def erase(key: str, library: Path) -> None:
    """Erases a corpus in the trash, also from the engine that holds its index. Raises CorpusError."""
    _deleted(key, library)
    engine = engine_of(library / TRASH / key / _INDEX)
    with writing(library):
        shutil.rmtree(library / TRASH / key)
    if engine:
        drop(engine)


def _deleted(key: str, library: Path) -> Deleted:
    for one in deleted(library):
        if one.key == key:
            return one
    raise CorpusError(f"expected something that was deleted, found {key[:80]!r}; choose from the list")
