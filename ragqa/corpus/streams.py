"""What every corpus format gives: a stream of articles in a fixed order, readable from any one of them on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, Protocol, runtime_checkable

from ragqa.errors import CorpusError
from ragqa.types import Passage

CorpusFormat = Literal["obliqa", "text", "jsonl", "pandachat", "dump", "zim", "mediawiki", "kiwix"]


WHOLE_FILE_BYTES: Final = 64 * 2**20  # a file up to this size is identified by all of its bytes
EDGE_BYTES: Final = 2**20


@runtime_checkable
class PassageStream(Protocol):
    """A source read article by article in bounded memory; nothing is read before it is asked for.

    ``name`` is how a manifest calls the source: the file's or folder's name, or an address.
    """

    @property
    def format(self) -> CorpusFormat: ...

    @property
    def name(self) -> str: ...

    def identity(self) -> str:
        """64 hexadecimal digits that change with the source or with how it is cut; cheap even for a huge file."""
        ...

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        """Each article's position in the source, from 0, and its passages; those before ``start`` are passed over.

        Positions ascend; those of articles without text are left out, so there may be gaps. The same every time:
        ``articles(n)`` gives exactly what ``articles()`` gives from position n on. Passage ids are unique in the
        source. Raises CorpusError where the source cannot be read, with the place.
        """
        ...


def open_stream(
    source: Path | PassageStream, format: CorpusFormat | None = None, chunk_max_tokens: int = 128
) -> PassageStream | None:
    """The stream of ``source``, None where it is none of a kind that can be streamed (then see `load_corpus`).

    ``source`` that is a stream already is given back. ``format`` None takes what the files look like
    (`detect_format`). Raises CorpusError where there is no such file, ConfigError where ``chunk_max_tokens`` is
    below 1.
    """
    if not isinstance(source, Path):
        return source
    from ragqa.corpus import detect_format
    from ragqa.corpus.jsonl import JsonLinesStream
    from ragqa.corpus.wikipedia.dump import DumpStream
    from ragqa.corpus.wikipedia.zim import ZimStream

    match format or (detect_format(source) if source.exists() else None):
        case "jsonl":
            return JsonLinesStream(source, chunk_max_tokens)
        case "dump":
            return DumpStream(source, chunk_max_tokens)
        case "zim":
            return ZimStream(source, chunk_max_tokens)
        case _:
            return None


def file_identity(path: Path, *settings: object) -> str:
    """sha256 over the file and the settings; of more than 64 MB only size, time, first and last megabyte are read.

    A large file rewritten in its middle with the same size and the same time of change goes unnoticed. The file's
    name does not count. Raises CorpusError where it cannot be read.
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
