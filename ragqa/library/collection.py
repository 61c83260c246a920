"""One corpus of the library on disk: what is in it, what waits to be put into it, and what its index holds.

::

    RAGQA_HOME/library/NAME/
    ├── library.json   this module's `Catalogue`, replaced as a whole
    ├── next.json      the next one, with the files that move for it, while they do; after a kill they go on from here
    ├── files/         the documents, by safe names
    ├── staged/        what was dropped in and is not in the index yet
    ├── old/           earlier versions of documents, and those that were taken out
    ├── readings/      what was read of each file, by its content (`ragqa.library.parse_cache`)
    ├── measured/      what an index needs of each document (`ragqa.index.passage_arrays`); computed again where missing
    └── changes.jsonl  what each indexing changed (`ragqa.library.changes`)
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ragqa.corpus.documents.exported import MAX_DOCUMENTS
from ragqa.errors import CorpusError
from ragqa.index.folders import check_name
from ragqa.infra.files import locked, sha256_of, write_whole
from ragqa.library.names import free_name

CATALOGUE: Final = "library.json"
NEXT: Final = "next.json"
VERSION: Final = 1
MAX_BYTES: Final = 4 * 2**30  # of all files of a corpus
TRASH: Final = ".trash"
_PATIENCE: Final = 20.0  # seconds for another session's change


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the corpus. ``name`` is its file in ``files/``; ``document_id`` stays through all versions."""

    document_id: str
    name: str
    sha256: str
    size: int
    added: str  # UTC, ISO 8601: when this version came
    version: int = 1
    removed: bool = False  # it goes with the next indexing


@dataclass(frozen=True, slots=True)
class Staged:
    """A file that waits. ``replaces`` is the id of the document that it is a new version of; empty: a new one."""

    name: str
    sha256: str
    size: int
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is known of a corpus. ``indexed`` are the ids and contents of the documents that its index holds."""

    name: str
    title: str
    created: str
    description: str = ""
    language: str = ""
    analyser: str = ""
    reason: str = ""  # why this analyser
    documents: tuple[Document, ...] = ()
    staged: tuple[Staged, ...] = ()
    indexed: dict[str, str] | None = None  # None: there is no index yet
    questions: tuple[str, ...] = ()
    version: int = VERSION

    @property
    def kept(self) -> tuple[Document, ...]:
        """The documents that the next index will hold, before anything staged."""
        return tuple(one for one in self.documents if not one.removed)

    @property
    def is_current(self) -> bool:
        """Whether the index holds these documents, all that is staged left aside."""
        return self.indexed == {one.document_id: one.sha256 for one in self.documents if not one.removed}

    def document(self, document_id: str) -> Document:
        """The document of this id. Raises CorpusError with those there are."""
        for one in self.documents:
            if one.document_id == document_id:
                return one
        there_are = ", ".join(one.document_id for one in self.documents[:10]) or "none yet"
        msg = f"expected a document of {self.title!r}, found {document_id[:80]!r}; choose one of: {there_are}"
        raise CorpusError(msg)


@dataclass(frozen=True, slots=True)
class Collection:
    """A corpus by its folder; every change is made under a lock and on disk when it returns."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def read(self) -> Catalogue:
        """Raises CorpusError where the catalogue is missing or is none."""
        if (self.folder / NEXT).exists():  # a change is under way, or its process was killed
            with self.lock(), writing(self.folder):
                self._go_on()
        return self._read()

    def _read(self) -> Catalogue:
        try:
            found: Catalogue = _adapter().validate_json((self.folder / CATALOGUE).read_bytes())
        except FileNotFoundError as error:
            msg = f"no corpus {self.name!r} in the library; choose one of the list, or add files to make it"
            raise CorpusError(msg) from error
        except (OSError, ValueError) as error:
            msg = f"{self.folder / CATALOGUE} is not what ragqa wrote ({str(error)[:80]}); import an export of it"
            raise CorpusError(msg) from error
        return found

    def change(self, how: Callable[[Catalogue, list[_Move]], Catalogue]) -> Catalogue:
        """The catalogue after this change; ``how`` adds to the list what becomes of files. Raises CorpusError."""
        moves: list[_Move] = []
        with self.lock(), writing(self.folder):
            self._go_on()
            changed = how(self._read(), moves)
            if moves:
                told = {"catalogue": asdict(changed), "moves": [asdict(move) for move in moves]}
                self._write(NEXT, told)
                self._move(moves)
            self._write(CATALOGUE, asdict(changed))
            (self.folder / NEXT).unlink(missing_ok=True)
        return changed

    def _go_on(self) -> None:
        """Ends a change whose process was killed."""
        try:
            told = json.loads((self.folder / NEXT).read_bytes())
        except FileNotFoundError:
            return
        self._move([_Move(**move) for move in told["moves"]], again=True)
        self._write(CATALOGUE, told["catalogue"])
        (self.folder / NEXT).unlink(missing_ok=True)

    def _move(self, moves: Sequence[_Move], *, again: bool = False) -> None:
        """``again``: some are done, and a file may have the name that another had."""
        for one in moves:
            path = self.folder / one.path
            if not path.is_file() or (again and one.sha256 and sha256_of(path) != one.sha256):
                continue
            if one.to:
                (self.folder / one.to).parent.mkdir(exist_ok=True)
                shutil.move(path, self.folder / one.to)
            else:
                path.unlink()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Holds what changes the catalogue. Raises CorpusError where another session does so for long."""
        msg = f"{self.name!r} is being changed by another session; wait a moment and try again"
        with locked(self.folder.parent / f".{self.name}.lock", lambda: CorpusError(msg), _PATIENCE):
            yield

    def _write(self, name: str, told: dict[str, Any]) -> None:
        write_whole(self.folder / name, [json.dumps(told, ensure_ascii=False, indent=1)])

    # Files --------------------------------------------------------------------------------------------------------

    def path_of(self, one: Document | Staged) -> Path:
        """Where its file is."""
        return self.folder / _place(one)

    def stage(self, source: Path, name: str, replaces: str | None = None) -> str:
        """Takes the file at ``source``, which is moved, as ``name``, a safe one; gives a line where it is left out.

        It is a new version of the document that has the same name, or of ``replaces``. Raises CorpusError.
        """
        size, digest = source.stat().st_size, sha256_of(source)

        def how(before: Catalogue, moves: list[_Move]) -> Catalogue:
            same = next((one.document_id for one in before.kept if one.name.casefold() == name.casefold()), "")
            target = same if replaces is None else replaces
            self._check_room(before, size)
            held = next((one for one in before.kept if one.sha256 == digest), None)
            waits = next((one for one in before.staged if one.sha256 == digest), None)
            if held or waits:
                what = f"the document {held.document_id}" if held else f"{waits.name if waits else ''}, which waits"
                raise _LeftOutError(f"{name}: the same content as {what}; left out")
            stale = [one for one in before.staged if target and one.replaces == target]
            moves += [_Move(_place(one), "", one.sha256) for one in stale]
            staged = tuple(one for one in before.staged if one not in stale)
            made = Staged(free_name(name, [one.name for one in staged]), digest, size, target)
            moves.append(_Move(os.path.relpath(source, self.folder), _place(made), digest))
            return replace(before, staged=(*staged, made))

        try:
            self.change(how)
        except _LeftOutError as error:
            return str(error)
        return ""

    def _check_room(self, before: Catalogue, size: int) -> None:
        total = sum(one.size for one in before.kept) + sum(one.size for one in before.staged) + size
        if len(before.kept) + len(before.staged) >= MAX_DOCUMENTS or total > MAX_BYTES:
            raise CorpusError(
                f"expected at most {MAX_DOCUMENTS:,} documents of {MAX_BYTES >> 30} GB in all in a corpus, found more; "
                "make another corpus for the rest"
            )

    def unstage(self, names: tuple[str, ...]) -> None:
        """Throws away what waits under these names."""

        def how(before: Catalogue, moves: list[_Move]) -> Catalogue:
            moves += [_Move(_place(one), "", one.sha256) for one in before.staged if one.name in names]
            return replace(before, staged=tuple(one for one in before.staged if one.name not in names))

        self.change(how)

    def set_replaces(self, name: str, document_id: str) -> None:
        """Says of which document the waiting file is a new version; empty: of none."""

        def how(before: Catalogue, _moves: list[_Move]) -> Catalogue:
            if document_id:
                before.document(document_id)
            staged = (replace(one, replaces=document_id) if one.name == name else one for one in before.staged)
            return replace(before, staged=tuple(staged))

        self.change(how)

    def set_removed(self, document_id: str, *, removed: bool) -> None:
        """Marks a document as going with the next indexing, or takes that back."""

        def how(before: Catalogue, _moves: list[_Move]) -> Catalogue:
            before.document(document_id)
            marked = (
                replace(one, removed=removed) if one.document_id == document_id else one for one in before.documents
            )
            return replace(before, documents=tuple(marked))

        self.change(how)

    def describe(self, title: str, description: str) -> None:
        """Renames the corpus for its readers; its name in addresses and records stays."""
        said = " ".join(title.split())[:120] or self.name
        self.change(lambda before, _moves: replace(before, title=said, description=description.strip()[:2_000]))

    def accept(self, readable: Callable[[Staged], bool]) -> Catalogue:
        """Moves what waits and can be read among the documents, and what was taken out to the old ones."""

        def how(before: Catalogue, moves: list[_Move]) -> Catalogue:
            documents = {one.document_id: one for one in before.documents}
            for one in [one for one in documents.values() if one.removed]:
                moves += _to_old(one)
                del documents[one.document_id]
            waiting = []
            for staged in before.staged:
                if readable(staged):
                    made = self._accepted(staged, documents, moves)
                    documents[made.document_id] = made
                else:
                    waiting.append(staged)
            return replace(before, documents=tuple(documents.values()), staged=tuple(waiting))

        return self.change(how)

    def _accepted(self, staged: Staged, documents: dict[str, Document], moves: list[_Move]) -> Document:
        earlier = documents.get(staged.replaces)
        if earlier:
            moves += _to_old(earlier)
        others = [one for one in documents.values() if one is not earlier]
        name = free_name(staged.name, [one.name for one in others])
        taken = {one.document_id for one in others}
        stem = name.rpartition(".")[0] or name
        document_id = earlier.document_id if earlier else stem if stem not in taken else free_name(name, taken)
        made = Document(
            document_id, name, staged.sha256, staged.size, now(), version=earlier.version + 1 if earlier else 1
        )
        moves.append(_Move(_place(staged), _place(made), staged.sha256))
        return made


@dataclass(frozen=True, slots=True)
class _Move:
    """A file of a collection, by its path there, that goes to another, or is removed where ``to`` is empty.

    ``sha256`` is of its content; empty: no other file will have its name.
    """

    path: str
    to: str
    sha256: str


def _place(one: Document | Staged) -> str:
    return f"{'files' if isinstance(one, Document) else 'staged'}/{one.name}"


def _to_old(one: Document) -> list[_Move]:
    """Keeps the last version of a document besides the one that counts."""
    path = PurePosixPath(one.name)
    kept, gone = (f"old/{path.stem}, version {version}{path.suffix}" for version in (one.version, one.version - 2))
    return [_Move(_place(one), kept, one.sha256), _Move(gone, "", "")]


class _LeftOutError(CorpusError):
    """A file that is there already."""


def collections(library: Path) -> tuple[Collection, ...]:
    """The corpora of the library by name."""
    if not library.is_dir():
        return ()
    found = (path for path in library.iterdir() if not path.name.startswith(".") and (path / CATALOGUE).is_file())
    return tuple(Collection(path) for path in sorted(found))


def collection_of(name: str, library: Path) -> Collection | None:
    """The corpus of this name, None where the library has none."""
    return next((collection for collection in collections(library) if collection.name == name), None)


def make_collection(name: str, library: Path, title: str = "", description: str = "") -> Collection:
    """A new, empty corpus. Raises ConfigError for an impossible name, CorpusError where there is one of that name."""
    check_name(name)
    folder = library / name
    with writing(library):
        library.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except FileExistsError as error:
            msg = f"expected a new name, found {name!r}, which is in the library; choose another"
            raise CorpusError(msg) from error
        collection = Collection(folder)
        said = " ".join(title.split())[:120] or name
        collection._write(CATALOGUE, asdict(Catalogue(name, said, now(), description.strip()[:2_000])))
    return collection


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the system says where nothing can be written here, as a CorpusError."""
    try:
        yield
    except OSError as error:
        msg = f"{folder} cannot be written ({error.strerror or error}); make room, or set RAGQA_HOME"
        raise CorpusError(msg) from error


def now() -> str:
    """UTC in ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def temporary(folder: Path) -> Path:
    """A path of its own below ``folder`` for a file that is being written."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f".incoming-{secrets.token_hex(8)}"


@cache
def _adapter() -> Any:  # noqa: ANN401 - pydantic is imported by who reads a catalogue
    from pydantic import TypeAdapter

    return TypeAdapter(Catalogue)
