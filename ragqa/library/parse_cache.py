"""The parse cache: parsed files by the hash of their content, so that preview and indexes parse a file only once."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.documents import VERSION, Reader, Reading, UnreadableError, spread
from ragqa.corpus.documents.kinds import kind_of
from ragqa.corpus.documents.process import EndedError
from ragqa.corpus.files import passage_id_of
from ragqa.corpus.streams import identity_of
from ragqa.infra.files import replacing, sha256_of
from ragqa.infra.validation import adapter_of
from ragqa.library.collection import Collection, Document, Staged, writing
from ragqa.types import Passage

FORMAT: Final = "documents"
MEASURED: Final = "measured"  # a folder of the corpus: see `ragqa.index.passage_arrays`


def read(
    collection: Collection,
    one: Document | Staged,
    reader: Reader,
    max_tokens: int,
    is_stopped: Callable[[], bool] | None = None,
) -> Reading:
    """The parsed file, from the cache or by ``reader``. Raises UnreadableError, CorpusError.

    Passages have ids without a document, as ``:4.2.1``. Where ``is_stopped`` is true after an error, somebody stopped
    the reader: the error is not about the file and is not cached.
    """
    path = _path(collection, one, max_tokens)
    kept = _kept(path)
    if kept is not None:
        return kept
    try:
        beside = _pages(collection) if kind_of(one.name) == "HTML" else ()
        reading = reader.read(collection.path_of(one), kind_of(one.name), "", max_tokens, beside=beside)
    except UnreadableError as error:
        about_it = not isinstance(error, EndedError) and not (is_stopped and is_stopped())
        if about_it and _is_there(collection, one):
            _keep(path, {"refused": str(error)})
        raise
    if _is_there(collection, one):
        _keep(path, asdict(reading))
    return reading


def _is_there(collection: Collection, one: Document | Staged) -> bool:
    """Whether the file still has this content: somebody may have taken it back, or added another with its name."""
    try:
        return sha256_of(collection.path_of(one)) == one.sha256
    except OSError:
        return False


def known(collection: Collection, one: Document | Staged, max_tokens: int) -> Reading | None:
    """The file's parse from the cache; None where it was not parsed yet. Raises UnreadableError."""
    return _kept(_path(collection, one, max_tokens))


def is_known(collection: Collection, one: Document | Staged, max_tokens: int) -> bool:
    """Whether the cache has a result for the file, readable or not."""
    return _path(collection, one, max_tokens).is_file()


def is_readable(collection: Collection, one: Document | Staged, max_tokens: int) -> bool:
    """Whether the file was parsed and has passages."""
    try:
        found = known(collection, one, max_tokens)
    except UnreadableError:
        return False
    return found is not None and bool(found.passages)


def passages_of(reading: Reading, document: Document) -> tuple[Passage, ...]:
    """The passages with this document's ids; a missing title becomes the file's name."""
    stem = document.name.rpartition(".")[0] or document.name
    return tuple(
        replace(
            passage,
            passage_id=passage_id_of(document.document_id, passage.passage_id.removeprefix(":")),
            document_id=document.document_id,
            title=passage.title or stem,
        )
        for passage in reading.passages
    )


def _pages(collection: Collection) -> tuple[Path, ...]:
    """Web pages of the corpus, staged ones included; text that they share (menus) is not part of a document."""
    catalogue = collection.read()
    held: tuple[Document | Staged, ...] = (*catalogue.kept, *catalogue.staged)
    return spread([collection.path_of(one) for one in held if kind_of(one.name) == "HTML"])


def earlier(collection: Collection, sha256: str, max_tokens: int) -> Reading | None:
    """The cached parse of this content, even if the file is gone; an earlier parser's where there is no newer one."""
    return _by(collection, f"{sha256}-*-{max_tokens}-{VERSION}.json") or before(collection, sha256, max_tokens)


def before(collection: Collection, sha256: str, max_tokens: int) -> Reading | None:
    """The cached parse of this content by the latest earlier version of the parser."""
    newest = range(VERSION - 1, 0, -1)
    return next((one for n in newest if (one := _by(collection, f"{sha256}-*-{max_tokens}-{n}.json"))), None)


def read_again(collection: Collection, sha256: str, reader: Reader, max_tokens: int) -> None:
    """Parses an earlier version of a document, unless this parser did so before. Raises UnreadableError."""
    if _by(collection, f"{sha256}-*-{max_tokens}-{VERSION}.json"):
        return
    for path in sorted((collection.folder / "old").glob("*")):
        if sha256_of(path) == sha256:
            kind = kind_of(path.name)
            reading = reader.read(path, kind, "", max_tokens, beside=_pages(collection) if kind == "HTML" else ())
            _keep(collection.folder / "readings" / f"{sha256}-{kind}-{max_tokens}-{VERSION}.json", asdict(reading))
            return


def _by(collection: Collection, pattern: str) -> Reading | None:
    for path in sorted((collection.folder / "readings").glob(pattern)):
        with suppress(UnreadableError):
            return _kept(path)
    return None


def forget(collection: Collection, max_tokens: int) -> None:
    """Removes the cached parses and arrays of files that are gone."""
    catalogue = collection.read()
    held: list[Document | Staged] = [*catalogue.documents, *catalogue.staged]
    wanted = {_path(collection, one, max_tokens) for one in held}
    for path in (collection.folder / "readings").glob("*.json"):
        if path not in wanted:
            path.unlink(missing_ok=True)
    counted = {_measured_as(one, max_tokens) for one in catalogue.documents}
    for path in (collection.folder / MEASURED).glob("*.npz"):
        if path.name.partition("-")[0] not in counted:
            path.unlink(missing_ok=True)


@dataclass(slots=True)
class LibraryStream:
    """A corpus as a `ragqa.corpus.streams.PassageStream`; each document is an article."""

    collection: Collection
    documents: tuple[Document, ...]
    max_tokens: int
    kept: Path | None = None  # the folder of each document's arrays, for this build and the next
    format: str = FORMAT
    messages: deque[str] = field(default_factory=deque)
    progress: tuple[int, int] = (0, 1)

    @property
    def name(self) -> str:
        return self.collection.name

    def identity(self) -> str:
        settings = f"{VERSION} {self.max_tokens}"
        return identity_of([settings, *map(_said, self.documents)])

    def keys(self) -> tuple[str, ...]:
        return tuple(_measured_as(one, self.max_tokens) for one in self.documents)

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        for number in range(start, len(self.documents)):
            if passages := self.article(number):
                yield number, passages

    def article(self, position: int) -> tuple[Passage, ...]:
        document = self.documents[position]
        self.progress = (position + 1, len(self.documents))
        try:
            with Reader() as reader:  # starts a process only where it has to parse
                return passages_of(read(self.collection, document, reader, self.max_tokens), document)
        except UnreadableError as error:
            self.messages.append(f"{document.name}: {error}")
            return ()


def _said(one: Document) -> str:
    """Everything that determines a document's passages, except how they are cut."""
    return f"{one.document_id}\t{one.name}\t{one.sha256}"


def _measured_as(one: Document, max_tokens: int) -> str:
    return identity_of([f"{VERSION} {max_tokens}", _said(one)])[:32]


def _path(collection: Collection, one: Document | Staged, max_tokens: int) -> Path:
    kind = kind_of(one.name) or "none"
    return collection.folder / "readings" / f"{one.sha256}-{kind}-{max_tokens}-{VERSION}.json"


def _kept(path: Path) -> Reading | None:
    try:
        content = path.read_bytes()
        told = json.loads(content)
        if isinstance(told, dict) and isinstance(told.get("refused"), str):
            raise UnreadableError(told["refused"])
        found: Reading = adapter_of(Reading).validate_json(content)
    except (OSError, ValueError, RecursionError):  # pydantic's ValidationError is a ValueError
        return None  # not a file that `_keep` wrote: the document is parsed again
    return found


def _keep(path: Path, told: dict[str, Any]) -> None:
    with writing(path.parent):
        path.parent.mkdir(exist_ok=True)  # not those above it: the corpus may be deleted
        with replacing(path, shared=True) as new:
            new.write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
