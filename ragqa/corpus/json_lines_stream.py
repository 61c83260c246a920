"""JSON lines article by article: the passages of `load_jsonl`, in bounded memory and from any article on."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragqa.corpus.formats import CorpusFormat
from ragqa.corpus.json_items import Item
from ragqa.corpus.jsonl import (
    check_max_tokens,
    given_id,
    json_line_files,
    no_files,
    no_text,
    passages_of_document,
    read_json_lines,
    repeated_id,
    spans_of,
    title_of,
    unnamed,
)
from ragqa.corpus.streams import file_identity
from ragqa.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION: Final = 1  # of how lines become passages; part of the identity


@dataclass(frozen=True, slots=True)
class JsonLinesStream:
    """The lines of a .jsonl or .jsonl.gz file, or of a folder of them, as `load_jsonl` reads them.

    The file is read twice: first every id and title, of which 16 bytes a line are kept, so that no id is given twice.
    """

    source: Path
    max_tokens: int = 128
    format: CorpusFormat = field(default="jsonl", init=False)

    def __post_init__(self) -> None:
        check_max_tokens(self.max_tokens)
        if not json_line_files(self.source):
            raise no_files(self.source)

    @property
    def name(self) -> str:
        return self.source.resolve().name

    def identity(self) -> str:
        files = json_line_files(self.source)
        settings = ("jsonl", VERSION, self.max_tokens)
        parts = [f"{path.name} {file_identity(path, *settings)}" for path in files]
        return sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        names = _read_names(self.source)
        for position, item in enumerate(_items(self.source)):
            text = item.text("text")
            if not text:
                continue
            title = title_of(item)
            document_id = given_id(item) or names.next_of(title)
            if position >= start:
                spans = spans_of(text, self.max_tokens)
                yield position, tuple(passages_of_document(document_id, title, spans, names.is_document))


def _items(source: Path) -> Iterator[Item]:
    return (item for file in json_line_files(source) for item in read_json_lines(file, file.name))


@dataclass(slots=True)
class _Names:
    """The ids a source gives and what follows for the lines without one; by their hashes, in ascending order.

    Two ids with the same 64-bit hash would count as one: among ten million a chance of one in 370,000.
    """

    given: NDArray[np.uint64]
    documents: NDArray[np.uint64]  # of the lines with text, the ids and the titles that are ids
    repeated: frozenset[int]  # titles that several lines without an id have, or that are another line's id
    taken: set[str] = field(default_factory=set)  # names already given that another line may ask for
    counts: Counter[str] = field(default_factory=Counter)

    def next_of(self, title: str) -> str:
        """The id of the next line that has only this title: the title, else ``"Title (2)"`` and so on."""
        name = title
        while name in self.taken or _holds(self.given, _hash(name)):
            self.counts[title] += 1
            name = f"{title} ({self.counts[title] + 1})"
        if name != title or _hash(title) in self.repeated or (self.repeated and _NUMBERED.search(title)):
            self.taken.add(name)
        return name

    def is_document(self, name: str) -> bool:
        return _holds(self.documents, _hash(name))


_NUMBERED = re.compile(r" \([0-9]+\)$")


def _read_names(source: Path) -> _Names:
    import numpy as np

    given, filled, titles = array("Q"), array("Q"), array("Q")
    n_lines = 0
    for item in _items(source):
        n_lines += 1
        document_id, title, text = given_id(item), title_of(item), item.text("text")
        if not document_id and not title:
            raise unnamed(item)
        code = _hash(document_id or title)
        if document_id:
            given.append(code)
        if text:
            (filled if document_id else titles).append(code)
    sorted_given, twice = np.unique(np.frombuffer(given, np.uint64), return_counts=True)
    if len(sorted_given) < len(given):
        _raise_repeated(source, set(sorted_given[twice > 1].tolist()))
    if not filled and not titles:
        raise no_text(source, n_lines)
    kinds, times = np.unique(np.frombuffer(titles, np.uint64), return_counts=True)
    is_given = np.isin(kinds, sorted_given)
    documents = np.unique(np.concatenate([np.frombuffer(filled, np.uint64), kinds[~is_given]]))
    return _Names(sorted_given, documents, frozenset(kinds[(times > 1) | is_given].tolist()))


def _raise_repeated(source: Path, codes: set[int]) -> None:
    """Raises CorpusError that names the first line whose id stands before; only lines of these hashes are looked at."""
    places: dict[str, str] = {}
    for item in _items(source):
        document_id = given_id(item)
        if document_id and _hash(document_id) in codes:
            if document_id in places:
                raise repeated_id(document_id, item.place, places[document_id])
            places[document_id] = item.place


def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _holds(codes: NDArray[np.uint64], code: int) -> bool:
    import numpy as np

    place = int(np.searchsorted(codes, np.uint64(code)))
    return place < len(codes) and int(codes[place]) == code
