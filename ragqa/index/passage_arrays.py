"""The data of a build that depends on single passages only: computed once, joined, and kept for the next build.

Counting words is most of the work of a lexical index, and the counts of a document do not depend on other documents. A
source that gives each article a key for its content (`KeepingStream`) is read and counted only where it has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from ragqa.corpus.reference_grammar import GRAMMAR_VERSION, line_of_mentions, mentions
from ragqa.corpus.streams import TellingStream
from ragqa.english.words import Analyser
from ragqa.errors import CorpusError
from ragqa.index.passages import line_of
from ragqa.infra.files import replacing
from ragqa.retrieval.analysis import (
    ANALYSIS_VERSION,
    IndexedText,
    TokenTable,
    analysed_text,
    context_analyser,
    headings,
    indexed_text,
    joined_tables,
    keys_of,
    token_table,
    tokenise,
)
from ragqa.types import Passage

VERSION: Final = 1  # raise it when this module writes other data: kept files are then unusable
ARRAYS: Final[dict[str, Any]] = {
    "bytes": np.int64,  # (n_passages,), of each line
    "ids": np.uint64,  # (n_passages,), keys
    "texts": np.uint64,  # (n_passages, 2), digests of the texts for an encoder
    "headings": np.bool_,  # (n_passages,)
    "document_of": np.int32,  # (n_passages,), place of each passage's document among the documents
}


@dataclass(frozen=True, slots=True)
class AnalysisPlan:
    """How passages are analysed: for lexical rankings, for encoders, and for references if ``refers`` is true."""

    rankings: tuple[str, ...]  # of bm25, context and document
    analyser: Analyser
    context_passages: int
    indexed_text: IndexedText
    refers: bool = False

    def analyser_of(self, ranking: str) -> Analyser:
        """The analyser of this ranking."""
        return self.analyser if ranking == "bm25" else context_analyser(self.analyser)

    @property
    def analysers(self) -> tuple[Analyser, ...]:
        """The distinct analysers of all rankings."""
        return tuple(dict.fromkeys(map(self.analyser_of, self.rankings)))


@dataclass(frozen=True, slots=True, eq=False)
class PassageArrays:
    """Analysed passages. ``arrays`` are those of `ARRAYS`; ``tables`` has one token table for each analyser."""

    names: tuple[str, ...]  # ids of the passages
    documents: tuple[str, ...]  # ids of the documents, in order of first occurrence
    lines: bytes  # of `passages.jsonl`
    mentions: bytes  # the mentions in each passage, a line each; empty unless the plan analyses references
    arrays: dict[str, npt.NDArray[Any]]
    tables: tuple[TokenTable, ...]

    def __len__(self) -> int:
        return len(self.names)


def measure(passages: Sequence[Passage], reading: AnalysisPlan, place: str) -> PassageArrays:
    """Analyses these passages. Errors call the source ``place``. Raises CorpusError for invalid Unicode text."""
    lines = [_line(passage, place) for passage in passages]
    numbers: dict[str, int] = {}
    arrays = {
        "bytes": [len(line) for line in lines],
        "ids": keys_of(passage.passage_id for passage in passages),
        "texts": digests_of(indexed_text(passage, reading.indexed_text) for passage in passages),
        "headings": headings(passages, reading.analyser),
        "document_of": [numbers.setdefault(passage.document_id, len(numbers)) for passage in passages],
    }
    named = "".join(line_of_mentions(mentions(passage.text)) for passage in passages) if reading.refers else ""
    return PassageArrays(
        tuple(passage.passage_id for passage in passages),
        tuple(numbers),
        b"".join(lines),
        named.encode(),
        {name: np.asarray(arrays[name], dtype) for name, dtype in ARRAYS.items()},
        tuple(
            token_table(tokenise(analysed_text(passage, analyser), analyser) for passage in passages)
            for analyser in reading.analysers
        ),
    )


def joined(parts: Sequence[PassageArrays]) -> PassageArrays:
    """The concatenation of these parts; there must be at least one."""
    if len(parts) == 1:
        return parts[0]
    numbers: dict[str, int] = {}
    arrays = {name: np.concatenate([part.arrays[name] for part in parts]) for name in ARRAYS}
    document_of = []
    for part in parts:
        own = np.array([numbers.setdefault(name, len(numbers)) for name in part.documents], dtype=np.int32)
        document_of.append(own[part.arrays["document_of"]])
    arrays["document_of"] = np.concatenate(document_of)
    return PassageArrays(
        tuple(name for part in parts for name in part.names),
        tuple(numbers),
        b"".join(part.lines for part in parts),
        b"".join(part.mentions for part in parts),
        arrays,
        tuple(joined_tables(tables) for tables in zip(*(part.tables for part in parts), strict=True)),
    )


def digests_of(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """The first 128 bits of each text's BLAKE2b, shape (n_texts, 2): equal only for equal texts."""
    digests = b"".join(blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _line(passage: Passage, place: str) -> bytes:
    try:
        return line_of(passage)
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"expected Unicode text in {place}, found half a character (a lone surrogate) in passage "
            f"{passage.passage_id!r}; save the document as UTF-8 again"
        ) from error


# Kept --------------------------------------------------------------------------------------------------------------


@runtime_checkable
class KeepingStream(TellingStream, Protocol):
    """A stream whose analysed articles are kept in the folder ``kept``; None: nothing is kept."""

    kept: Path | None

    def keys(self) -> Sequence[str]:
        """For each article, a file name that changes with everything that determines its passages."""
        ...

    def article(self, position: int) -> tuple[Passage, ...]:
        """The passages of one article."""
        ...


def kept_articles(
    source: KeepingStream, folder: Path, start: int, reading: AnalysisPlan, libraries: dict[str, str]
) -> Iterator[tuple[int, PassageArrays]]:
    """The position and analysed passages of each article from ``start`` on; a kept article is not read again."""
    said = [VERSION, ANALYSIS_VERSION, GRAMMAR_VERSION, asdict(reading), libraries]
    setting = sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
    keys = source.keys()
    for position in range(start, len(keys)):
        path = folder / f"{keys[position]}-{setting}.npz"
        found = _load(path)
        if found is None:
            passages = source.article(position)
            if not passages:
                continue
            found = measure(passages, reading, source.name)
            for other in folder.glob(f"{keys[position]}-*.npz"):
                other.unlink(missing_ok=True)
            _keep(found, path)
        source.progress = (position + 1, len(keys))
        yield position, found


def _keep(one: PassageArrays, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    said = json.dumps([one.names, one.documents]).encode()
    texts = {"said": said, "lines": one.lines, "mentions": one.mentions}
    arrays = {name: np.frombuffer(text, np.uint8) for name, text in texts.items()} | one.arrays
    for n, table in enumerate(one.tables):
        arrays |= {f"numbers{n}": _small(table.numbers), f"starts{n}": table.starts, f"words{n}": table.vocabulary}
    with replacing(path) as new, new.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _load(path: Path) -> PassageArrays | None:
    """The passages kept in this file; None if it is missing or incomplete."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            names, documents = json.loads(kept["said"].tobytes())
            tables: list[TokenTable] = []
            while f"numbers{len(tables)}" in kept:
                n = len(tables)
                tables.append(TokenTable(kept[f"numbers{n}"].astype(np.int32), kept[f"starts{n}"], kept[f"words{n}"]))
            arrays = {name: kept[name] for name in ARRAYS}
            lines, mentioned = kept["lines"].tobytes(), kept["mentions"].tobytes()
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    return PassageArrays(tuple(names), tuple(documents), lines, mentioned, arrays, tuple(tables))


def _small(numbers: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
