"""Reads passages from folders of PDF, Word, HTML, XML, Excel, CSV and text files, and from ZIP archives of these.

A file that cannot be read is left out, with one line in ``messages``; the rest is indexed.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from ragqa.corpus.documents.furniture import PAGES
from ragqa.corpus.documents.kinds import SUFFIXES, advice, is_prose, kind_of
from ragqa.corpus.documents.model import UnreadableError
from ragqa.corpus.documents.process import Heading, Reader, Reading
from ragqa.corpus.files import files_below, storable_name
from ragqa.corpus.streams import check_max_tokens, file_identity, identity_of
from ragqa.errors import CorpusError
from ragqa.types import Passage

__all__ = [
    "DOCUMENT_FORMATS",
    "DocumentFormat",
    "DocumentStream",
    "Heading",
    "Reader",
    "Reading",
    "UnreadableError",
    "spread",
]

_LONGEST_NAME: Final = 40  # characters of a file's name in a summary
VERSION: Final = 23  # raise it when parsers or passages change: a build with another version starts over

SHOWN: Final = 5  # documents named in one line


@dataclass(frozen=True)
class DocumentFormat:
    """A `ragqa.corpus.streams.Format` of files with these suffixes; ZIP archives of them count."""

    name: str
    LABEL: str
    kinds: frozenset[str]

    def files(self, source: Path) -> Sequence[Path]:
        """The files that would be read, sorted by path, without the folder ``X_files`` of a saved page ``X.html``."""
        wanted = {suffix for suffix, kind in SUFFIXES.items() if kind in self.kinds}
        found = files_below(source, wanted)
        pages = {path.with_suffix("") for path in found if kind_of(path.name) == "HTML"}
        beside = {page.with_name(f"{page.name}{end}") for page in pages for end in ("_files", "-Dateien", "_fichiers")}
        shown = (path for path in found if not beside.intersection(path.parents))
        return tuple(path for path in shown if kind_of(path.name) != "XML" or is_prose(path))

    def stream(self, source: Path, chunk_max_tokens: int) -> DocumentStream:
        """A lazy stream of the passages. Raises CorpusError if there is no such file, and ConfigError."""
        check_max_tokens(chunk_max_tokens)
        kinds = self.kinds | {"ZIP"} | ({"text"} if self.name == "documents" else set())
        files = DocumentFormat(self.name, self.LABEL, kinds).files(source)
        if not files:
            msg = f"no file of the format {self.name!r} in {source}; expected {', '.join(self._suffixes())} files"
            raise CorpusError(msg)
        return DocumentStream(source, tuple(files), self.name, kinds, chunk_max_tokens)

    def _suffixes(self) -> list[str]:
        return [suffix for suffix, kind in SUFFIXES.items() if kind in self.kinds]


@dataclass(slots=True)
class DocumentStream:
    """A `ragqa.corpus.streams.PassageStream`; an article is a file, or a member of an archive.

    ``messages`` are lines about files that were left out, and warnings about other files; the code that shows a message
    removes it. ``progress`` is the number of files read and the total.
    """

    source: Path
    paths: tuple[Path, ...]
    format: str
    kinds: frozenset[str]
    max_tokens: int
    messages: deque[str] = field(default_factory=deque)
    progress: tuple[int, int] = (0, 1)
    unnumbered: list[str] = field(default_factory=list)  # documents without any number
    left_out: Counter[str] = field(default_factory=Counter)
    warnings: dict[str, list[str]] = field(default_factory=dict)  # warnings with file names, by words without numbers

    @property
    def name(self) -> str:
        return self.source.resolve().name

    def identity(self) -> str:
        settings = self.format, VERSION, self.max_tokens
        return identity_of(f"{self._named(path)} {file_identity(path, *settings)}" for path in self.paths)

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        names = [self._named(path) for path in self.paths]
        bare = Counter(name.rpartition(".")[0] for name in names)
        bare.update(name for name in names if bare[name.rpartition(".")[0]] > 1)  # such a name is an id, too
        number = 0
        if not start:
            self.messages.extend(_left_out(self.source))
        with Reader() as reader:
            for done, (path, name) in enumerate(zip(self.paths, names, strict=True), start=1):
                stem = name.rpartition(".")[0]
                document_id = stem if bare[stem] == 1 else name
                for member in self._members(reader, path, name):
                    if number >= start:
                        passages = self._read(reader, path, name, document_id, member)
                        self.progress = (done, len(self.paths))
                        if passages:
                            yield number, passages
                    number += 1
        self.messages.extend(self._summary())

    def _summary(self) -> Iterator[str]:
        """The lines on left-out text and on documents whose rules may not have been recognised."""
        for alike in self.warnings.values():
            yield alike[0] if len(alike) == 1 else f"{alike[0]} (and {len(alike) - 1:,} documents more like this)"
        if self.left_out:
            yield "left out: " + ", ".join(f"{what} ({times:,})" for what, times in self.left_out.most_common())
        if self.unnumbered:
            shown = ", ".join(map(_short, self.unnumbered[:SHOWN])) + (" …" if len(self.unnumbered) > SHOWN else "")
            yield f"{len(self.unnumbered):,} documents without any number, look whether they hold rules: {shown}"

    def _members(self, reader: Reader, path: Path, name: str) -> tuple[str, ...]:
        """The members of an archive that are read; one empty name for a file that is not an archive."""
        if kind_of(path.name) != "ZIP":
            return ("",)
        try:
            found = reader.members(path)
        except UnreadableError as error:
            self.messages.append(f"{name}: {error}")
            return ()
        wanted = sorted(member for member in {*found} if kind_of(member) in self.kinds and not _is_clutter(member))
        if not wanted:
            self.messages.append(f"{name}: expected documents in the archive, found none; take it out")
        return tuple(wanted)

    def _read(self, reader: Reader, path: Path, name: str, document_id: str, member: str) -> tuple[Passage, ...]:
        if member:
            name, document_id = f"{name}/{member}", f"{document_id}/{member}"
        kind = kind_of(name)
        if kind == "ZIP":
            self.messages.append(f"{name}: expected documents, found an archive within an archive; unpack it")
            return ()
        try:
            beside = pages_beside(path, self.paths) if kind == "HTML" and not member else ()
            reading = reader.read(path, kind, storable_name(document_id), self.max_tokens, member, beside)
        except UnreadableError as error:
            self._warn(name, str(error))
            return ()
        for warning in reading.warnings:
            self._warn(_short(name), warning)
        self.left_out.update(dict(reading.dropped))
        if not any(passage.number for passage in reading.passages):
            self.unnumbered.append(name)
        return reading.passages

    def _warn(self, name: str, warning: str) -> None:
        """Keeps a warning for the summary, where warnings that differ only in numbers become one line."""
        self.warnings.setdefault(re.sub(r"\d[\d,]*|:.*", "", warning), []).append(f"{name}: {warning}")

    def _named(self, path: Path) -> str:
        root = self.source if self.source.is_dir() else self.source.parent
        return storable_name(path.relative_to(root).as_posix())


def _short(name: str) -> str:
    """The name; the middle of a long name is left out, to keep the summary of a corpus short."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME // 2]}…{name[-_LONGEST_NAME // 2 :]}"


def pages_beside(path: Path, paths: Sequence[Path]) -> tuple[Path, ...]:
    """Some of the web pages in this page's folder, evenly spread: text that they share belongs to the site."""
    return spread([other for other in paths if other.parent == path.parent and kind_of(other.name) == "HTML"])


def spread(pages: Sequence[Path]) -> tuple[Path, ...]:
    """The pages to compare, evenly spread over several pages; () for a single page."""
    return tuple(pages[:: max(1, -(-len(pages) // PAGES))]) if len(pages) > 1 else ()


def _is_clutter(member: str) -> bool:
    """Whether an archive's member was added by an operating system."""
    parts = PurePosixPath(member).parts
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def _left_out(source: Path) -> Iterator[str]:
    """A line for each document of a kind that is not supported."""
    if source.is_dir():
        for folder, _, names in sorted(os.walk(source)):
            for name in sorted(names):
                if what := advice(name):
                    shown = storable_name((Path(folder) / name).relative_to(source).as_posix())
                    found = Path(name).suffix
                    yield f"{shown}: expected PDF, .docx, HTML, XML, .xlsx, CSV or text, found {found}; {what}"


_KINDS: Final = {
    "pdf": ("PDF", {"PDF"}),
    "docx": ("Word", {"Word"}),
    "html": ("HTML", {"HTML"}),
    "sheets": ("table", {"Excel", "CSV"}),
    "documents": ("PDF, Word, HTML, XML or table", {"PDF", "Word", "HTML", "XML", "Excel", "CSV", "ZIP"}),
}
DOCUMENT_FORMATS: Final = {
    name: DocumentFormat(name, label, frozenset(kinds)) for name, (label, kinds) in _KINDS.items()
}
