"""Reads passages from JSON lines of {id, title, text}, one document a line, gzipped or not."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragqa.corpus.chunking import chunk, plain_outline
from ragqa.corpus.files import JsonItem, describe
from ragqa.corpus.streams import check_max_tokens, files_identity
from ragqa.errors import CorpusError
from ragqa.types import Passage, Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION: Final = 1  # raise it when lines become other passages; part of the identity
LABEL = "JSON lines"
SUFFIXES = (".jsonl", ".jsonl.gz")
QUESTIONS = tuple(f"_questions{suffix}" for suffix in SUFFIXES)  # files with questions, not documents
ID_KEYS = ("id", "_id")  # BEIR writes "_id"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NUMBERED = re.compile(r" \([0-9]+\)$")


def stream(source: Path, chunk_max_tokens: int = 128) -> JsonLinesStream:
    """A stream of the documents in this file or folder."""
    return JsonLinesStream(source, chunk_max_tokens)


def looks_like_jsonl(path: Path) -> bool:
    """Whether `stream` would find files at ``path``, by name only, so that an invalid line still gets its own error."""
    return bool(files(path))


def files(source: Path) -> tuple[Path, ...]:
    """The files that `stream` would read, by name. A file given as ``source`` counts even if it has questions."""
    if not source.is_dir():
        return (source,) if source.is_file() and source.name.lower().endswith(SUFFIXES) else ()
    found = [path for path in source.iterdir() if path.name.lower().endswith(SUFFIXES) and path.is_file()]
    chosen = (path for path in found if not path.name.startswith(".") and not path.name.lower().endswith(QUESTIONS))
    return tuple(sorted(chosen, key=lambda path: path.name))


def read_json_lines(path: Path, name: str) -> Iterator[JsonItem]:
    """Yields the objects of a file, one a line; skips blank lines and a byte-order mark.

    Errors call the file ``name`` and count lines from 1: ``"facts.jsonl, line 17"``. A file whose name ends in ``.gz``
    is unpacked. Raises CorpusError if the file cannot be read or a line is not a JSON object in UTF-8.
    """
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                whole = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                if whole.strip():
                    yield _parse(whole, f"{name}, line {number:,}")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"{name} cannot be read: {reason}; check its permissions and that it is whole, and try again"
        raise CorpusError(msg) from error


def passages_of_document(
    document_id: str, title: str, spans: Iterable[Span], is_document: Callable[[str], bool]
) -> Iterator[Passage]:
    """The passages of one document: the first has the document's id, the others have it with ``#2``, ``#3``.

    No passage gets the id of another document: if there is a document "A#2", the second passage of "A" is "A#3".
    ``is_document`` says whether a document has an id.
    """
    suffix = 1
    for ordinal, span in enumerate(spans, start=1):
        passage_id = document_id
        while ordinal > 1 and (passage_id == document_id or is_document(passage_id)):
            suffix += 1
            passage_id = f"{document_id}#{suffix}"
        yield Passage(
            passage_id=passage_id,
            document_id=document_id,
            text=span.text,
            title=title,
            number=str(ordinal),
            start=span.start,
            end=span.end,
        )


def _parse(line: bytes, place: str) -> JsonItem:
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        found = f"a byte that is none (byte {error.start + 1:,} of the line)"
        msg = f"{place}: expected UTF-8 text, found {found}; save the file as UTF-8 and try again"
        raise CorpusError(msg) from error
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg}, column {error.colno:,}" if isinstance(error, json.JSONDecodeError) else error
        msg = f"{place}: expected one whole JSON object, found other text ({reason}); correct it and try again"
        raise CorpusError(msg) from error
    if not isinstance(value, dict):
        msg = f"{place}: expected one JSON object, found {describe(value)}; write one object a line and try again"
        raise CorpusError(msg)
    return JsonItem(place, value)


def _given_id(item: JsonItem) -> str:
    """The id in the line, empty if it has none."""
    return next((item.identifier(key) for key in ID_KEYS if item.values.get(key) is not None), "")


def _title_of(item: JsonItem) -> str:
    """The title on one line, empty if it is missing, null or blank."""
    return " ".join(item.text("title").split()) if item.values.get("title") is not None else ""


def _spans_of(text: str, max_tokens: int) -> tuple[Span, ...]:
    """The chunks of a line's text."""
    return tuple(span for section in plain_outline(text).sections for span in chunk(text, section.blocks, max_tokens))


@dataclass(frozen=True, slots=True)
class JsonLinesStream:
    """The documents of a .jsonl or .jsonl.gz file, or of all such files in a folder; lines in order, files by name.

    A line is an object of text, title (may be missing) and id (a text or a whole number; "_id" is read too). Texts are
    cleaned (`clean_text`); blank texts are left out. A text of at most ``max_tokens`` white-space separated tokens is
    one passage; a longer text is chunked (`chunk`). Passage ids are ``"ID"``, ``"ID#2"``, ``"ID#3"``, with a higher
    number if another document has that id. ``document_id`` is the id or, if that is missing or null, the title, with
    ``"Title (2)"`` for a repeated title. ``number`` is the ordinal in the document from 1; ``start`` and ``end`` are
    character offsets in the cleaned text. In a folder, ``*_questions.jsonl`` files are skipped.

    The source is read twice: first every id and title, of which 16 bytes a line stay in memory, so that ids are unique.
    Raises CorpusError if a line is not as described here, an id repeats or there is no text at all, and ConfigError if
    ``max_tokens`` is below 1.
    """

    source: Path
    max_tokens: int = 128
    format: str = field(default="jsonl", init=False)

    def __post_init__(self) -> None:
        check_max_tokens(self.max_tokens)
        if not files(self.source):
            msg = (
                f"no JSON lines in {self.source}; expected a {' or '.join(SUFFIXES)} file, or a folder of them, "
                "each line an object {id, title, text}"
            )
            raise CorpusError(msg)

    @property
    def name(self) -> str:
        return self.source.resolve().name

    def identity(self) -> str:
        return files_identity(files(self.source), "jsonl", VERSION, self.max_tokens)

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        names = _read_names(self.source)
        for position, item in enumerate(_lines_of(self.source)):
            text = item.text("text")
            if not text:
                continue
            title = _title_of(item)
            document_id = _given_id(item) or names.next_of(title)
            if position >= start:
                spans = _spans_of(text, self.max_tokens)
                yield position, tuple(passages_of_document(document_id, title, spans, names.is_document))


def _lines_of(source: Path) -> Iterator[JsonItem]:
    return (item for file in files(source) for item in read_json_lines(file, file.name))


@dataclass(slots=True)
class _Names:
    """The ids in a source, and the titles used as ids by lines without one; as hashes, in ascending order.

    Two ids with the same 64-bit hash would count as one: among ten million, a chance of one in 370,000.
    """

    given: NDArray[np.uint64]
    documents: NDArray[np.uint64]  # the ids of documents with text: given ids, and titles used as ids
    repeated: frozenset[int]  # titles of several lines without an id, and titles that are another line's id
    taken: set[str] = field(default_factory=set)  # names already used that another line could also get
    counts: Counter[str] = field(default_factory=Counter)

    def next_of(self, title: str) -> str:
        """The id of the next line that has this title and no id: the title, else ``"Title (2)"`` and so on."""
        name = title
        while name in self.taken or _holds(self.given, _hash(name)):
            self.counts[title] += 1
            name = f"{title} ({self.counts[title] + 1})"
        if name != title or _hash(title) in self.repeated or (self.repeated and _NUMBERED.search(title)):
            self.taken.add(name)
        return name

    def is_document(self, name: str) -> bool:
        return _holds(self.documents, _hash(name))


def _read_names(source: Path) -> _Names:
    import numpy as np  # not at the top: the page lists the bundled corpora without it

    given, filled, titles = array("Q"), array("Q"), array("Q")
    n_lines = 0
    for item in _lines_of(source):
        n_lines += 1
        document_id, title, text = _given_id(item), _title_of(item), item.text("text")
        if not document_id and not title:
            msg = f"{item.place}: expected an 'id' or a 'title', found neither; add one of them and try again"
            raise CorpusError(msg)
        code = _hash(document_id or title)
        if document_id:
            given.append(code)
        if text:
            (filled if document_id else titles).append(code)
    sorted_given, twice = np.unique(np.frombuffer(given, np.uint64), return_counts=True)
    if len(sorted_given) < len(given):
        _raise_repeated(source, set(sorted_given[twice > 1].tolist()))
    if not filled and not titles:
        msg = (
            f"{source}: expected at least one line with text under 'text', found {n_lines:,} lines, "
            "all blank; check that this is the right file and try again"
        )
        raise CorpusError(msg)
    kinds, times = np.unique(np.frombuffer(titles, np.uint64), return_counts=True)
    is_given = np.isin(kinds, sorted_given)
    documents = np.unique(np.concatenate([np.frombuffer(filled, np.uint64), kinds[~is_given]]))
    return _Names(sorted_given, documents, frozenset(kinds[(times > 1) | is_given].tolist()))


def _raise_repeated(source: Path, codes: set[int]) -> None:
    """Raises CorpusError that names the first line with a repeated id; only ids with these hashes are compared."""
    places: dict[str, str] = {}
    for item in _lines_of(source):
        document_id = _given_id(item)
        if document_id and _hash(document_id) in codes:
            if document_id in places:
                msg = (
                    f"{item.place}: expected an id of its own, found {document_id[:40]!r}, which "
                    f"{places[document_id]} has; give each line its own, or load one file at a time"
                )
                raise CorpusError(msg)
            places[document_id] = item.place


def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _holds(codes: NDArray[np.uint64], code: int) -> bool:
    import numpy as np

    place = int(np.searchsorted(codes, np.uint64(code)))
    return place < len(codes) and int(codes[place]) == code
