"""The files of portions: where they are, what is in them, and what opening an index needs, put together from them.

Below ``portions/`` a portion has ``NUMBER.npz`` (`ARRAYS`), ``NUMBER.ids`` (JSON lines of [id, position], sorted by id)
and ``NUMBER.documents`` (a JSON list of ids); its blocks of counts are below ``counts/``.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.errors import CorpusError
from ragqa.indexing.journal import Journal
from ragqa.manifest import HIDDEN, IDS, OFFSETS, ORDER

if TYPE_CHECKING:
    from ragqa.retrieval.bm25_scores import CountsFolder

IDS_AT_ONCE: Final = 65_536  # bytes of each portion's ids while all are merged
SUFFIXES: Final = ("npz", "ids", "documents")
ARRAYS: Final[dict[str, Any]] = {
    "bytes": np.int64,  # (n_passages,), of each line
    "ids": np.uint64,  # (n_passages,), keys
    "texts": np.uint64,  # (n_passages, 2), digests of what an encoder reads
    "headings": np.bool_,  # (n_passages,)
    "document_of": np.int32,  # (n_passages,), place among the portion's documents
    "documents": np.uint64,  # (n_documents,), keys
}


def gathered(journal: Journal, name: str) -> npt.NDArray[Any]:
    """The array of this name (of `ARRAYS`), of all portions in a row."""
    parts = [np.empty((0, 2) if name == "texts" else 0, dtype=ARRAYS[name])]
    for number in range(journal.n_portions):
        with np.load(portion_path(journal, number, "npz"), allow_pickle=False) as arrays:
            parts.append(arrays[name])
    return np.concatenate(parts)


def counts_of(journal: Journal, ranking: str) -> CountsFolder:
    """The counts of this ranking, as far as they are there."""
    from ragqa.retrieval.bm25_scores import CountsFolder

    return CountsFolder(journal.folder / "counts" / ranking, journal.n_blocks.get(ranking, 0))


def documents_of(journal: Journal) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The ids of all documents in order of first occurrence, and for each passage the place of its document there.

    Raises CorpusError where a document goes on after others, in an article of its own.
    """
    ids: list[str] = []
    document_of = [np.empty(0, dtype=np.int32)]
    for number in range(journal.n_portions):
        with np.load(portion_path(journal, number, "npz"), allow_pickle=False) as arrays:
            document_of.append(arrays["document_of"] + np.int32(len(ids)))
        ids += json.loads(portion_path(journal, number, "documents").read_text(encoding="utf-8"))
    if len(set(ids)) < len(ids):
        [(again, _)] = Counter(ids).most_common(1)
        msg = f"expected the passages of a document together, found {again!r} in two places; leave out --also document"
        raise CorpusError(msg)
    return tuple(ids), np.concatenate(document_of)


def write_lookups(journal: Journal) -> None:
    """Writes what opening an index would otherwise have to read every passage for.

    Where lines begin, keys of ids, the order of ties, what is hidden: headings, unless all are.
    """
    folder = journal.index
    offsets = np.concatenate([[0], np.cumsum(gathered(journal, "bytes"))]).astype(np.int64)
    np.save(folder / OFFSETS, offsets, allow_pickle=False)
    keys = gathered(journal, "ids")
    positions = np.argsort(keys, kind="stable")
    np.save(folder / IDS, np.stack([keys[positions], positions.astype(np.uint64)]), allow_pickle=False)
    order = np.empty(journal.n_passages, dtype=np.int64)
    runs = [sorted_ids(portion_path(journal, number, "ids")) for number in range(journal.n_portions)]
    for place, (_, position) in enumerate(heapq.merge(*runs)):
        order[position] = place
    np.save(folder / ORDER, order, allow_pickle=False)
    headings = gathered(journal, "headings")
    np.save(folder / HIDDEN, headings if not headings.all() else np.zeros_like(headings), allow_pickle=False)


def sorted_ids(path: Path) -> Iterator[list[Any]]:
    """The [id, position] of a portion, by id; its file is open only while some of them are read."""
    offset = 0
    while True:
        with path.open("rb") as file:
            file.seek(offset)
            lines = file.readlines(IDS_AT_ONCE)
        if not lines:
            return
        offset += sum(map(len, lines))
        yield from map(json.loads, lines)


def portion_path(journal: Journal, number: int, suffix: str) -> Path:
    """Where this file of a portion is."""
    return journal.folder / "portions" / f"{number:06}.{suffix}"
