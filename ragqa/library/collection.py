"""One corpus of the library on disk: its documents, the files that wait to be added, and what its index holds.

::

    RAGQA_HOME/library/NAME/
    ├── library.json   this module's `Catalogue`, always replaced as a whole
    ├── next.json      the next catalogue and its file moves while a change runs; a killed change resumes from here
    ├── files/         the documents, under safe names
    ├── staged/        uploaded files that are not in the index yet
    ├── old/           earlier versions of documents, and removed documents
    ├── readings/      the parsed files, by their content (`ragqa.library.parse_cache`)
    ├── measured/      arrays that an index needs of each document (`ragqa.index.passage_arrays`); made again if missing
    └── changes.jsonl  what each indexing changed (`ragqa.library.changes`)
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ragqa.corpus.demo import DEMOS
from ragqa.corpus.documents.exported import MAX_DOCUMENTS
from ragqa.english.words import quantity
from ragqa.errors import CorpusError, RagqaError
from ragqa.index.folders import check_name, index_names
from ragqa.infra.cleaning import without_invisible
from ragqa.infra.files import locked, sha256_of, write_whole
from ragqa.infra.validation import adapter_of
from ragqa.library.names import corpus_name, free_name

CATALOGUE: Final = "library.json"
NEXT: Final = "next.json"
VERSION: Final = 1
MAX_BYTES: Final = 4 * 2**30  # of all files of a corpus
TRASH: Final = ".trash"
_PATIENCE: Final = 20.0  # seconds to wait for another session's change


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the corpus. ``name`` is its file in ``files/``; all versions share one ``document_id``."""

    document_id: str
    name: str
    sha256: str
    size: int
    added: str  # UTC, ISO 8601: when this version was added
    version: int = 1
    removed: bool = False  # the next indexing removes it


@dataclass(frozen=True, slots=True)
class Staged:
    """A file that waits to be indexed. ``replaces`` is the id of the document that it replaces; empty: none."""

    name: str
    sha256: str
    size: int
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A corpus's documents and metadata. ``indexed`` maps the ids of the indexed documents to their SHA-256."""

    name: str
    title: str
    created: str
    description: str = ""
    language: str = ""
    analyser: str = ""
    reason: str = ""  # why this analyser was chosen
    documents: tuple[Document, ...] = ()
    staged: tuple[Staged, ...] = ()
    indexed: dict[str, str] | None = None  # None: there is no index yet
    questions: tuple[str, ...] = ()
    version: int = VERSION

    @property
    def kept(self) -> tuple[Document, ...]:
        """The documents that the next index will hold, without staged files."""
        return tuple(one for one in self.documents if not one.removed)

    @property
    def is_current(self) -> bool:
        """Whether the index holds exactly the kept documents; staged files do not count."""
        return self.indexed == {one.document_id: one.sha256 for one in self.documents if not one.removed}

    def document(self, document_id: str) -> Document:
        """The document with this id. Raises CorpusError, which lists the ids that exist."""
        for one in self.documents:
            if one.document_id == document_id:
                return one
        there_are = ", ".join(one.document_id for one in self.documents[:10]) or "none yet"
        msg = f"expected a document of {self.title!r}, found {document_id[:80]!r}; choose one of: {there_are}"
        raise CorpusError(msg)


@dataclass(frozen=True, slots=True)
class Collection:
    """A corpus in its folder. Every change is made under a lock and is on disk when its method returns."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def read(self) -> Catalogue:
        """Reads the catalogue. Raises CorpusError where it is missing or invalid."""
        if (self.folder / NEXT).exists():  # a change is in progress, or its process was killed
            with self.lock(), writing(self.folder):
                self._go_on()
        return self._read()

    def _read(self) -> Catalogue:
        try:
            found: Catalogue = adapter_of(Catalogue).validate_json((self.folder / CATALOGUE).read_bytes())
        except FileNotFoundError as error:
            msg = f"no corpus {self.name!r} in the library; choose one of the list, or add files to make it"
            raise CorpusError(msg) from error
        except (OSError, ValueError) as error:
            msg = f"{self.folder / CATALOGUE} is not what ragqa wrote ({str(error)[:80]}); import an export of it"
            raise CorpusError(msg) from error
        return found

    def change(self, how: Callable[[Catalogue, list[_Move]], Catalogue]) -> Catalogue:
        """Applies ``how``, which appends its file moves to the list; returns the new catalogue. Raises CorpusError."""
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
        """Completes a change whose process was killed."""
        try:
            told = json.loads((self.folder / NEXT).read_bytes())
        except FileNotFoundError:
            return
        self._move([_Move(**move) for move in told["moves"]], again=True)
        self._write(CATALOGUE, told["catalogue"])
        (self.folder / NEXT).unlink(missing_ok=True)

    def _move(self, moves: Sequence[_Move], *, again: bool = False) -> None:
        """Moves files. With ``again`` some moves may be done already, and another file may have the old name."""
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
        """Locks the catalogue for a change. Raises CorpusError where another session holds the lock too long."""
        msg = f"{self.name!r} is being changed by another session; wait a moment and try again"
        with locked(self.folder.parent / f".{self.name}.lock", lambda: CorpusError(msg), _PATIENCE):
            yield

    def _write(self, name: str, told: dict[str, Any]) -> None:
        write_whole(self.folder / name, [json.dumps(told, ensure_ascii=False, indent=1)])

    # Files --------------------------------------------------------------------------------------------------------

    def path_of(self, one: Document | Staged) -> Path:
        """The path of its file."""
        return self.folder / _place(one)

    def stage(self, source: Path, name: str, replaces: str | None = None) -> str:
        """Moves the file at ``source`` into the staged files as ``name``, a safe file name.

        It becomes a new version of the document ``replaces`` (empty: of none; None: of the one with the same name).
        Returns a message where the file is left out, else an empty text. Raises CorpusError.
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
        """Deletes the staged files with these names."""

        def how(before: Catalogue, moves: list[_Move]) -> Catalogue:
            moves += [_Move(_place(one), "", one.sha256) for one in before.staged if one.name in names]
            return replace(before, staged=tuple(one for one in before.staged if one.name not in names))

        self.change(how)

    def set_replaces(self, name: str, document_id: str) -> None:
        """Sets which document the staged file replaces; empty: none."""

        def how(before: Catalogue, _moves: list[_Move]) -> Catalogue:
            if document_id:
                before.document(document_id)
            staged = (replace(one, replaces=document_id) if one.name == name else one for one in before.staged)
            return replace(before, staged=tuple(staged))

        self.change(how)

    def set_removed(self, document_id: str, *, removed: bool) -> None:
        """Marks a document for removal by the next indexing, or unmarks it."""

        def how(before: Catalogue, _moves: list[_Move]) -> Catalogue:
            before.document(document_id)
            marked = (
                replace(one, removed=removed) if one.document_id == document_id else one for one in before.documents
            )
            return replace(before, documents=tuple(marked))

        self.change(how)

    def describe(self, title: str, description: str) -> None:
        """Sets the title and description; the corpus keeps its name in addresses and records."""
        said, about = _visible(title, description)
        self.change(lambda before, _moves: replace(before, title=said or self.name, description=about))

    def accept(self, readable: Callable[[Staged], bool]) -> Catalogue:
        """Moves readable staged files to the documents, and removed documents to the earlier versions."""

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
    """A file of a collection that moves from ``path`` to ``to``, both within its folder; it is deleted if ``to`` is "".

    ``sha256`` is the hash of its content; empty where no other file can take its name.
    """

    path: str
    to: str
    sha256: str


def _place(one: Document | Staged) -> str:
    return f"{'files' if isinstance(one, Document) else 'staged'}/{one.name}"


def _to_old(one: Document) -> list[_Move]:
    """Keeps the previous version of a document and deletes the one before that."""
    path = PurePosixPath(one.name)
    kept, gone = (f"old/{path.stem}, version {version}{path.suffix}" for version in (one.version, one.version - 2))
    return [_Move(_place(one), kept, one.sha256), _Move(gone, "", "")]


class _LeftOutError(CorpusError):
    """The file is in the collection already."""


def collections(library: Path) -> tuple[Collection, ...]:
    """The corpora of the library, ordered by name."""
    if not library.is_dir():
        return ()
    found = (path for path in library.iterdir() if not path.name.startswith(".") and (path / CATALOGUE).is_file())
    return tuple(Collection(path) for path in sorted(found))


def collection_of(name: str, library: Path) -> Collection | None:
    """The corpus with this name; None where the library has none."""
    return next((collection for collection in collections(library) if collection.name == name), None)


def corpus_titles(names: Iterable[str], among: Iterable[Collection]) -> dict[str, str]:
    """The titles of these indexes: of a demonstration, of a corpus ``among`` those of the library, else their names."""
    found = {name: DEMOS[name].title if name in DEMOS else name for name in names}
    for collection in among:
        if collection.name in found:
            with suppress(RagqaError):
                found[collection.name] = collection.read().title
    return found


def new_name(title: str, indexes: Path, library: Path) -> str:
    """A valid name for a new corpus with this title, which no index and no corpus of the library has."""
    return corpus_name(title, {*index_names(indexes), *(one.name for one in library.glob("*"))})


def make_collection(name: str, library: Path, title: str = "", description: str = "") -> Collection:
    """Makes an empty corpus. Raises ConfigError for an invalid name, CorpusError where the name is taken."""
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
        said, about = _visible(title, description)
        collection._write(CATALOGUE, asdict(Catalogue(name, said or name, now(), about)))
    return collection


def _visible(title: str, description: str) -> tuple[str, str]:
    return " ".join(without_invisible(title).split())[:120], without_invisible(description).strip()[:2_000]


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raises an OSError of the block as CorpusError: the folder cannot be written."""
    try:
        yield
    except OSError as error:
        msg = f"{folder} cannot be written ({error.strerror or error}); make room, or set RAGQA_HOME"
        raise CorpusError(msg) from error


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def temporary(folder: Path) -> Path:
    """A unique path in ``folder`` for a file that is being written; makes the folder. Raises CorpusError."""
    with writing(folder):
        folder.mkdir(exist_ok=True)  # not those above it: the corpus may be deleted
    return folder / f".incoming-{secrets.token_hex(8)}"


def title_of(files: Sequence[str]) -> str:
    """The title of a corpus without a given name: that of its only file, else the number of files and the day."""
    if len(files) == 1:
        return files[0].rpartition(".")[0]
    return f"{quantity(len(files), 'document')}, {datetime.now(UTC):%Y-%m-%d}"
