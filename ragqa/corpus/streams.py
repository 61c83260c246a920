"""The interface of every corpus format: a stream of articles in a fixed order, readable from any article on."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from ragqa.errors import ConfigError, CorpusError
from ragqa.types import Passage

WHOLE_FILE_BYTES: Final = 64 * 2**20  # a file up to this size is identified by all of its bytes
EDGE_BYTES: Final = 2**20


@runtime_checkable
class PassageStream(Protocol):
    """A source that is read lazily, article by article, in bounded memory.

    ``name`` is the source's name in a manifest: the name of the file or folder, or an address.
    """

    @property
    def format(self) -> str: ...

    @property
    def name(self) -> str: ...

    def identity(self) -> str:
        """64 hexadecimal digits that change with the source or the way it is chunked; cheap even for a huge file."""
        ...

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        """Yields each article's position in the source, from 0, and its passages, beginning at position ``start``.

        Positions ascend, with gaps where articles have no text. The result is always the same: ``articles(n)`` yields
        exactly what ``articles()`` yields from position n on. Passage ids are unique in the source. Raises CorpusError
        with the place if the source cannot be read.
        """
        ...


@runtime_checkable
class TellingStream(PassageStream, Protocol):
    """A stream that reports its progress and what it left out. The code that shows a message removes it."""

    messages: deque[str]
    progress: tuple[int, int]  # documents read, documents in total


class Format(Protocol):
    """The interface of a module that reads one kind of source; `ragqa.corpus.formats` lists the modules."""

    @property
    def LABEL(self) -> str:  # noqa: N802 - a constant of modules
        """The name of its files in messages: ``"JSON lines"``."""
        ...

    def files(self, source: Path) -> Sequence[Path]:
        """The files of this kind at ``source``, in the order of reading."""
        ...

    def stream(self, source: Path, chunk_max_tokens: int) -> PassageStream:
        """The passages of ``source``, of at most ``chunk_max_tokens`` tokens. Raises CorpusError, ConfigError."""
        ...


@dataclass(frozen=True, slots=True)
class LoadedStream:
    """Passages in memory as a stream. An article is a document, or several documents whose passages interleave."""

    format: str
    name: str
    passages: tuple[Passage, ...]
    sha256: str

    def identity(self) -> str:
        return self.sha256

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        last = {passage.document_id: place for place, passage in enumerate(self.passages)}
        begin = end = number = 0
        for place, passage in enumerate(self.passages):
            end = max(end, last[passage.document_id])
            if place == end:
                if number >= start:
                    yield number, self.passages[begin : place + 1]
                begin, number = place + 1, number + 1


def loaded(format: str, source: Path, passages: tuple[Passage, ...]) -> LoadedStream:
    """A stream of passages that were read from ``source``."""
    return LoadedStream(format, source.resolve().name, passages, corpus_sha256(passages))


def corpus_sha256(passages: Iterable[Passage]) -> str:
    """sha256 over id, title, section and text of every passage in order; the same on every machine."""
    digest = hashlib.sha256()
    for passage in passages:
        fields = [passage.passage_id, passage.title, passage.section, passage.text]
        digest.update(json.dumps(fields, ensure_ascii=True).encode("ascii") + b"\n")
    return digest.hexdigest()


def file_identity(path: Path, *settings: object) -> str:
    """sha256 over the file and the settings; for files above 64 MB, over size, time, and first and last megabyte.

    A change in the middle of a large file that keeps its size and modification time is not detected. The name of the
    file does not count. Raises CorpusError if it cannot be read.
    """
    digest = hashlib.sha256(repr(settings).encode())
    try:
        status = path.stat()
        with path.open("rb") as file:
            if status.st_size <= WHOLE_FILE_BYTES:
                digest.update(hashlib.file_digest(file, "sha256").digest())
            else:
                digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
                digest.update(file.read(EDGE_BYTES))
                file.seek(-EDGE_BYTES, 2)
                digest.update(file.read(EDGE_BYTES))
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}; check its permissions and try again"
        raise CorpusError(msg) from error
    return digest.hexdigest()


def files_identity(paths: Iterable[Path], *settings: object) -> str:
    """sha256 over the names and the `file_identity` of several files."""
    return identity_of(f"{path.name} {file_identity(path, *settings)}" for path in paths)


def identity_of(parts: Iterable[str]) -> str:
    """sha256 over these texts."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def check_max_tokens(max_tokens: int) -> None:
    """Raises ConfigError if a chunk could not hold a token."""
    if max_tokens < 1:
        msg = f"chunk size must be at least 1 token, got {max_tokens}; change the setting and try again"
        raise ConfigError(msg)
