"""Reads a source in portions of several thousand passages; each is completely on disk before the journal records it.

A portion has its lines of `passages.jsonl`, and below ``portions/`` the files ``NUMBER.npz`` (`ARRAYS`), ``NUMBER.ids``
(JSON lines of [id, position], sorted by id), ``NUMBER.documents`` (a JSON list of ids) and ``NUMBER.mentions`` (the
mentions in each passage). Its blocks of counts for each lexical ranking are below ``counts/``. The lookup files of an
index are made from these files.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from ragqa.corpus.streams import PassageStream, TellingStream
from ragqa.errors import CorpusError
from ragqa.index.journal import BuildJournal, BuildProgress
from ragqa.index.manifest import HIDDEN, IDS, OFFSETS, ORDER, PASSAGES
from ragqa.index.passage_arrays import (
    ARRAYS,
    AnalysisPlan,
    KeepingStream,
    PassageArrays,
    joined,
    kept_articles,
    measure,
)
from ragqa.infra.files import flush
from ragqa.retrieval.analysis import Keys, context_windows, keys_of, places_of
from ragqa.retrieval.bm25 import CountsFolder, counted
from ragqa.retrieval.document_bm25 import by_document
from ragqa.types import Passage

IDS_AT_ONCE: Final = 65_536  # bytes of ids read at once from each portion while all are merged
SUFFIXES: Final = ("npz", "ids", "documents", "mentions")
_TYPES: Final = ARRAYS | {"documents": np.uint64}  # (n_documents,), keys


def gathered(journal: BuildJournal, name: str) -> npt.NDArray[Any]:
    """The array of this name (of `ARRAYS`), concatenated over all portions."""
    parts = [np.empty((0, 2) if name == "texts" else 0, dtype=_TYPES[name])]
    for number in range(journal.n_portions):
        with np.load(portion_path(journal, number, "npz"), allow_pickle=False) as arrays:
            parts.append(arrays[name])
    return np.concatenate(parts)


def mentions_in(journal: BuildJournal) -> Iterator[bytes]:
    """The mentions in each passage, a line each."""
    for number in range(journal.n_portions):
        with portion_path(journal, number, "mentions").open("rb") as lines:
            yield from lines


def counts_of(journal: BuildJournal, ranking: str) -> CountsFolder:
    """The counts of this ranking that are written so far."""
    return CountsFolder(journal.folder / "counts" / ranking, journal.n_blocks.get(ranking, 0))


def lengths_path(journal: BuildJournal, ranking: str) -> Path:
    """The file for the lengths of all texts, in tokens of this ranking, shape (n_passages,)."""
    return journal.folder / f"{ranking}.lengths.npy"


def windows_of(journal: BuildJournal, n_beside: int) -> npt.NDArray[np.int64]:
    """The context window of each passage, as in `context_windows`; shape (n_passages, 2)."""
    parts, first = [np.empty((0, 2), dtype=np.int64)], 0
    for number in range(journal.n_portions):
        with np.load(portion_path(journal, number, "npz"), allow_pickle=False) as arrays:
            document_of = arrays["document_of"]
        parts.append(context_windows(document_of, n_beside) + first)
        first += len(document_of)
    return np.concatenate(parts)


def documents_of(journal: BuildJournal) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The ids of all documents in order of first occurrence, and the place of each passage's document among them.

    Raises CorpusError if the passages of one document are in several portions.
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


def write_lookups(journal: BuildJournal) -> None:
    """Writes the lookup files, without which opening an index would read every passage.

    They have the start of each line, the keys of ids, the order at ties and the hidden passages: headings, unless all
    passages are headings.
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
    """The [id, position] pairs of a portion, by id; the file is open only while a block is read."""
    offset = 0
    while True:
        with path.open("rb") as file:
            file.seek(offset)
            lines = file.readlines(IDS_AT_ONCE)
        if not lines:
            return
        offset += sum(map(len, lines))
        yield from map(json.loads, lines)


def portion_path(journal: BuildJournal, number: int, suffix: str) -> Path:
    """The path of this file of a portion."""
    return journal.folder / "portions" / f"{number:06}.{suffix}"


PORTION_PASSAGES: Final = 8_192  # rounded up to whole articles: seconds of work, some 100 MB
PORTION_CHARS: Final = 8_000_000


def read_portions(
    source: PassageStream, place: str, journal: BuildJournal, reading: AnalysisPlan, libraries: dict[str, str]
) -> Generator[BuildProgress, None, None]:
    """Reads the rest of the source. Errors call it ``place``. Raises CorpusError if it is not a corpus."""
    portion = _Portion(reading, place)
    with (journal.index / PASSAGES).open("ab") as file:
        file.truncate(journal.n_bytes)
        if journal.is_read:
            return
        keys = np.sort(gathered(journal, "ids"))
        for position, article in _articles(source, journal.next_article, reading, libraries):
            yield from _told(source)
            portion.add(article)
            if portion.is_full:
                keys = _write(portion.measured(), keys, file, place, journal, reading)
                journal.n_articles += portion.n_articles
                journal.next_article = position + 1
                journal.save()
                note = f"{journal.n_articles:,} articles, {journal.n_passages:,} passages"
                yield BuildProgress("corpus", 0, 1, note)
                portion = _Portion(reading, place)
        if portion.n_articles:
            _write(portion.measured(), keys, file, place, journal, reading)
            journal.n_articles += portion.n_articles
    yield from _told(source)
    if not journal.n_passages:
        raise CorpusError(f"expected passages in {place}, found none; choose a folder with documents in it")
    journal.is_read = True
    journal.save()


@dataclass(slots=True)
class _Portion:
    """Collects articles until there are enough; articles that are not analysed yet are analysed together."""

    reading: AnalysisPlan
    place: str
    n_articles: int = 0
    n_passages: int = 0
    n_chars: int = 0
    _parts: list[PassageArrays] = field(default_factory=list)
    _waiting: list[Passage] = field(default_factory=list)

    def add(self, article: Sequence[Passage] | PassageArrays) -> None:
        self.n_articles += 1
        self.n_passages += len(article)
        if isinstance(article, PassageArrays):
            self._parts.append(article)
            self.n_chars += len(article.lines)
        else:
            self._waiting += article
            self.n_chars += sum(len(passage.text) for passage in article)

    @property
    def is_full(self) -> bool:
        return self.n_passages >= PORTION_PASSAGES or self.n_chars >= PORTION_CHARS

    def measured(self) -> PassageArrays:
        return joined(self._parts) if self._parts else measure(self._waiting, self.reading, self.place)


def _articles(
    source: PassageStream, start: int, reading: AnalysisPlan, libraries: dict[str, str]
) -> Iterator[tuple[int, Sequence[Passage] | PassageArrays]]:
    if isinstance(source, KeepingStream) and source.kept:
        return kept_articles(source, source.kept, start, reading, libraries)
    return source.articles(start)


def _told(source: PassageStream) -> Iterator[BuildProgress]:
    """The messages of the source, one event each, and then its progress."""
    if isinstance(source, TellingStream):
        done, total = source.progress
        while source.messages:
            yield BuildProgress("corpus", done, total, message=source.messages.popleft())
        yield BuildProgress("corpus", done, total, f"{done:,} of {total:,} documents")


def _write(
    portion: PassageArrays, keys: Keys, file: BinaryIO, place: str, journal: BuildJournal, reading: AnalysisPlan
) -> Keys:
    """Writes a portion and records it in the journal, without saving that; returns the ascending keys of all ids."""
    own = portion.arrays["ids"]
    _check(portion, keys, place, journal)
    _write_counts(portion, journal, reading)
    number, first = journal.n_portions, journal.n_passages
    by_id = sorted((name, first + n) for n, name in enumerate(portion.names))
    (journal.folder / "portions").mkdir(exist_ok=True)
    arrays: dict[str, Any] = {**portion.arrays, "documents": keys_of(portion.documents)}
    np.savez(portion_path(journal, number, "npz"), allow_pickle=False, **arrays)
    portion_path(journal, number, "ids").write_text(
        "".join(json.dumps(pair) + "\n" for pair in by_id), encoding="utf-8"
    )
    portion_path(journal, number, "documents").write_text(json.dumps(portion.documents), encoding="utf-8")
    portion_path(journal, number, "mentions").write_bytes(portion.mentions)
    file.write(portion.lines)
    file.flush()
    for path in (*(portion_path(journal, number, suffix) for suffix in SUFFIXES), journal.index / PASSAGES):
        flush(path)
    journal.n_portions += 1
    journal.n_passages += len(portion)
    journal.n_bytes += len(portion.lines)
    return np.insert(keys, np.searchsorted(keys, np.sort(own)), np.sort(own))


def _write_counts(portion: PassageArrays, journal: BuildJournal, reading: AnalysisPlan) -> None:
    document_of = portion.arrays["document_of"]
    tables = dict(zip(reading.analysers, portion.tables, strict=True))
    for ranking in reading.rankings:
        table, windows = tables[reading.analyser_of(ranking)], None
        if ranking == "context":
            windows = context_windows(document_of, reading.context_passages)
        elif ranking == "document":
            table, windows = by_document(table, document_of)
        folder = counts_of(journal, ranking)
        for counts in counted(table, windows):
            number = journal.n_blocks.get(ranking, 0)
            for path in folder.write(number, counts):
                flush(path)
            journal.n_blocks[ranking] = number + 1


def _check(portion: PassageArrays, keys: Keys, place: str, journal: BuildJournal) -> None:
    """Raises CorpusError unless each passage has a unique id."""
    own = np.sort(portion.arrays["ids"])
    repeated = {*keys[places_of(own, keys)].tolist(), *own[1:][own[1:] == own[:-1]].tolist()}
    if not repeated:
        return
    own_keys = portion.arrays["ids"].tolist()  # compare ids, as two different ids may share a key
    wanted = {name for name, key in zip(portion.names, own_keys, strict=True) if key in repeated}
    earlier = (sorted_ids(portion_path(journal, number, "ids")) for number in range(journal.n_portions))
    seen = {name for run in earlier for name, _ in run if name in wanted}
    for name in portion.names:
        if name in seen:
            raise CorpusError(f"expected every passage in {place} to have its own id, found {name!r} twice")
        seen.add(name)
