"""What an index is built from, as one kind of thing: a stream of articles, or a corpus read as one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragqa.types import Passage

if TYPE_CHECKING:
    from ragqa.corpus import Corpus, CorpusFormat
    from ragqa.corpus.streams import PassageStream


class CorpusStream:
    """A corpus in memory as a `PassageStream`: an article is a document, or documents whose passages are mixed."""

    def __init__(self, corpus: Corpus, name: str) -> None:
        self.name = name
        self.sha256 = corpus.sha256
        self.format: Any = corpus.format
        self._passages = corpus.passages

    def identity(self) -> str:
        return self.sha256

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        last = {passage.document_id: place for place, passage in enumerate(self._passages)}
        begin = end = number = 0
        for place, passage in enumerate(self._passages):
            end = max(end, last[passage.document_id])
            if place == end:
                if number >= start:
                    yield number, self._passages[begin : place + 1]
                begin, number = place + 1, number + 1


def open_source(
    source: Path | PassageStream, format: CorpusFormat | None, chunk_max_tokens: int
) -> PassageStream | CorpusStream:
    """The source as a stream, in bounded memory where it can be read so. Raises CorpusError, ConfigError."""
    from ragqa.corpus import load_corpus
    from ragqa.corpus.streams import open_stream

    stream = open_stream(source, format, chunk_max_tokens)
    if stream is not None:
        return stream
    path = Path(str(source))
    return CorpusStream(load_corpus(path, format, chunk_max_tokens), path.resolve().name)
