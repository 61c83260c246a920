"""What `--source` names: a path, or the address of a wiki's server with the titles of its pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragqa.errors import ConfigError
from ragqa.paths import Paths

if TYPE_CHECKING:
    from ragqa.corpus.streams import PassageStream


def open_source(
    source: str, titles: Path | None, as_of: str, book: str, chunk_max_tokens: int, paths: Paths
) -> Path | PassageStream:
    """The path, or the stream of the pages; nothing is fetched yet. Raises ConfigError, CorpusError."""
    if not source.startswith(("http://", "https://")):
        given = [name for name, value in {"--titles": titles, "--as-of": as_of, "--book": book}.items() if value]
        if given:
            msg = f"{' and '.join(given)} need the address of a wiki as --source, found the path {source!r}; correct it"
            raise ConfigError(msg)
        return Path(source)
    from ragqa.corpus.wikipedia.pages import open_pages, read_titles

    if titles is None:
        msg = "an address as --source needs --titles FILE, the titles of its pages, one a line, found none; add it"
        raise ConfigError(msg)
    return open_pages(
        source, read_titles(titles), paths.wiki_pages, as_of=as_of or None, book=book, max_tokens=chunk_max_tokens
    )
