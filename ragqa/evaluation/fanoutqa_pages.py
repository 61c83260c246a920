"""Where the text of Wikipedia's pages comes from: a folder or file of pages, or a MediaWiki server's ``api.php``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ragqa.corpus.files import Item, read_utf8
from ragqa.errors import ConfigError, CorpusError

SEARCH_LIMIT = 10
_SEARCHED_CHARS = 2_000  # of a page's text that a search in a folder looks at, with its title


class NoPageError(CorpusError):
    """The source has no page of that title. Told to the model that searched, or noted for a page it was to be given."""


class PageSource(Protocol):
    """Pages by title. Threads share it."""

    @property
    def name(self) -> str:
        """What a run is known by: where the pages come from."""
        ...

    def page(self, title: str, revision: int | None) -> str:
        """The page as Markdown at this revision (None: as the source has it).

        Raises NoPageError where there is none of that title, CorpusError where the source fails.
        """
        ...

    def search(self, query: str, limit: int) -> tuple[str, ...]:
        """Titles that match these words, best first."""
        ...


class FolderPages:
    """Pages in JSON lines of {title, text}, or one file a page (``TITLE.md`` or ``.txt``); revisions do not count."""

    def __init__(self, path: Path) -> None:
        """Reads every page. Raises CorpusError where there is none, or a file is something else."""
        self._texts = dict(_pages(path))
        if not self._texts:
            msg = f"{path}: expected pages, JSON lines of {{title, text}} or TITLE.md files, found none; name others"
            raise CorpusError(msg)
        self._by_key = {_key(title): title for title in self._texts}
        digest = hashlib.sha256(json.dumps(self._texts, sort_keys=True).encode()).hexdigest()
        self.name = f"{path.name}, {len(self._texts):,} pages, sha256 {digest[:12]}"

    def page(self, title: str, revision: int | None) -> str:
        found = self._by_key.get(_key(title))
        if found is None:
            msg = f"no page {title!r} among the {len(self._texts):,} given with --pages; add it, or name another source"
            raise NoPageError(msg)
        return self._texts[found]

    def search(self, query: str, limit: int = SEARCH_LIMIT) -> tuple[str, ...]:
        """Titles of pages that hold one of the words in their title or the beginning of their text, by BM25+."""
        words = _words(query)
        index, searched = self._index
        scores = zip(index.get_scores(words), self._texts, searched, strict=True)
        best = sorted((-float(score), title) for score, title, held in scores if not held.isdisjoint(words))
        return tuple(title for _, title in best[:limit])

    @cached_property
    def _index(self) -> tuple[Any, tuple[frozenset[str], ...]]:
        from rank_bm25 import BM25Plus

        searched = [_words(f"{title} {title} {text[:_SEARCHED_CHARS]}") for title, text in self._texts.items()]
        return BM25Plus(searched), tuple(map(frozenset, searched))


class WikiPages:
    """Pages of a MediaWiki server through `ragqa.corpus.wikipedia.mediawiki`, which keeps them on disk.

    ``revisions`` gives the revision of 20 November 2023 for titles that the data set knows; other pages come as they
    are today, which the paper's did not.
    """

    def __init__(self, wiki: Any, name: str, revisions: Mapping[str, int] | None = None) -> None:  # noqa: ANN401
        """``wiki`` is a `ragqa.corpus.wikipedia.mediawiki.MediaWiki` or anything with its ``page`` and ``search``."""
        self._wiki, self.name = wiki, name
        self._revisions = dict(revisions or {})

    def page(self, title: str, revision: int | None) -> str:
        try:
            found = self._wiki.page(title, revision=revision or self._revisions.get(title))
        except CorpusError as error:
            if title not in self._revisions and not any(_key(title) == _key(hit) for hit in self.search(title, 5)):
                raise NoPageError(str(error)) from error
            raise
        text: str = found.text
        return text

    def search(self, query: str, limit: int = SEARCH_LIMIT) -> tuple[str, ...]:
        return tuple(self._wiki.search(query, limit))


def open_pages(where: str, cache: Path, revisions: Mapping[str, int] | None = None) -> FolderPages | WikiPages:
    """The source that ``--pages`` names: a folder or file of pages, or the address of an ``api.php``.

    ``cache`` is where pages of a server are kept. Raises ConfigError where it is neither.
    """
    if where.startswith(("http://", "https://")):
        opened = _mediawiki()
        return WikiPages(opened(where, cache), where, revisions)
    path = Path(where).expanduser()
    if not path.exists():
        msg = f"--pages must name a folder or file of pages or the address of an api.php, found none at {where!r}"
        raise ConfigError(msg)
    return FolderPages(path)


def _mediawiki() -> Callable[[str, Path], Any]:
    import importlib

    opened: Callable[[str, Path], Any] = importlib.import_module("ragqa.corpus.wikipedia.mediawiki").MediaWiki
    return opened


def _pages(path: Path) -> Iterator[tuple[str, str]]:
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        match file.suffix.lower():
            case ".jsonl":
                yield from _lines(file)
            case ".md" | ".txt":
                yield file.stem.replace("_", " "), read_utf8(file, file.name)


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_utf8(file, file.name).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            msg = f"{file.name}, line {number}: expected a JSON object, found {line[:40]!r}; correct the file"
            raise CorpusError(msg) from error
        if not isinstance(values, dict):
            msg = f"{file.name}, line {number}: expected a JSON object, found {line[:40]!r}; correct the file"
            raise CorpusError(msg)
        item = Item(f"{file.name}, line {number}", values)
        yield item.line("title"), item.text("text")


def _key(title: str) -> str:
    return " ".join(title.replace("_", " ").split()).casefold()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
