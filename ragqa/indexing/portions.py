"""A source read in portions of some thousand passages: each is on disk as a whole before the journal says so.

Of a portion there are its lines of `passages.jsonl`, and below ``portions/`` the files ``NUMBER.npz`` (`ARRAYS`),
``NUMBER.ids`` (JSON lines of [id, position], sorted by id) and ``NUMBER.documents`` (a JSON list of ids); its blocks of
counts for each lexical ranking are below ``counts/``. What opening an index needs is put together from these files.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from ragqa.analysers import Analyser
from ragqa.corpus.streams import PassageStream, TellingStream
from ragqa.errors import CorpusError
from ragqa.indexing.folders import flush
from ragqa.indexing.journal import BuildProgress, Journal, tokens_of
from ragqa.indexing.passages import line_of
from ragqa.manifest import HIDDEN, IDS, OFFSETS, ORDER, PASSAGES
from ragqa.retrieval.analysis import IndexedText, context_analyser, context_windows, headings, indexed_text
from ragqa.retrieval.bm25_scores import CountsFolder, counted
from ragqa.retrieval.document_bm25 import by_document
from ragqa.retrieval.token_table import Keys, TokenTable, keys_of, places_of, token_table
from ragqa.types import Passage

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
    return CountsFolder(journal.folder / "counts" / ranking, journal.n_blocks.get(ranking, 0))


def documents_of(journal: Journal) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The ids of all documents in order of first occurrence, and for each passage the place of its document there.

    Raises CorpusError where passages of one document stand in several articles.
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


PORTION_PASSAGES: Final = 8_192  # an article more where one does not end there: seconds of work, some 100 MB
PORTION_CHARS: Final = 8_000_000


@dataclass(frozen=True, slots=True)
class Reading:
    """How passages are read: by the rankings by words, and by encoders."""

    rankings: tuple[str, ...]  # of bm25, context and document
    analyser: Analyser
    context_passages: int
    indexed_text: IndexedText


def read_portions(
    source: PassageStream, place: str, journal: Journal, reading: Reading
) -> Generator[BuildProgress, None, None]:
    """Reads what is left of the source, which errors call ``place``. Raises CorpusError where it is no corpus."""
    portion: list[Passage] = []
    n_articles = n_chars = 0
    with (journal.index / PASSAGES).open("ab") as file:
        file.truncate(journal.n_bytes)
        if journal.is_read:
            return
        keys = np.sort(gathered(journal, "ids"))
        for position, passages in source.articles(journal.next_article):
            yield from _told(source)
            portion += passages
            n_articles += 1
            n_chars += sum(len(passage.text) for passage in passages)
            if len(portion) >= PORTION_PASSAGES or n_chars >= PORTION_CHARS:
                keys = _write(portion, keys, file, place, journal, reading)
                journal.n_articles += n_articles
                journal.next_article = position + 1
                journal.save()
                note = f"{journal.n_articles:,} articles, {journal.n_passages:,} passages"
                yield BuildProgress("corpus", 0, 1, note)
                portion, n_articles, n_chars = [], 0, 0
        if portion:
            _write(portion, keys, file, place, journal, reading)
            journal.n_articles += n_articles
    yield from _told(source)
    if not journal.n_passages:
        msg = f"expected passages in {place}, found none; choose a folder with documents in it"
        raise CorpusError(msg)
    journal.is_read = True
    journal.save()


def _told(source: PassageStream) -> Iterator[BuildProgress]:
    """What the source has to say, a message each, and how far it is."""
    if isinstance(source, TellingStream):
        done, total = source.progress
        while source.messages:
            yield BuildProgress("corpus", done, total, message=source.messages.popleft())
        yield BuildProgress("corpus", done, total, f"{done:,} of {total:,} documents")


def _write(
    portion: Sequence[Passage], keys: Keys, file: BinaryIO, place: str, journal: Journal, reading: Reading
) -> Keys:
    """Writes a portion and says so in the journal, which is not saved yet; the keys of all ids, rising."""
    own = keys_of(passage.passage_id for passage in portion)
    _check(portion, own, keys, place, journal)
    lines = [line_of(passage) for passage in portion]
    numbers: dict[str, int] = {}
    document_of = [numbers.setdefault(passage.document_id, len(numbers)) for passage in portion]
    _write_counts(portion, np.array(document_of), journal, reading)
    arrays = {
        "bytes": [len(line) for line in lines],
        "ids": own,
        "texts": digests_of(indexed_text(passage, reading.indexed_text) for passage in portion),
        "headings": headings(portion, reading.analyser),
        "document_of": document_of,
        "documents": keys_of(numbers),
    }
    number, first = journal.n_portions, journal.n_passages
    by_id = sorted((passage.passage_id, first + n) for n, passage in enumerate(portion))
    (journal.folder / "portions").mkdir(exist_ok=True)
    typed: dict[str, Any] = {name: np.asarray(arrays[name], dtype) for name, dtype in ARRAYS.items()}
    np.savez(portion_path(journal, number, "npz"), **typed)
    portion_path(journal, number, "ids").write_text(
        "".join(json.dumps(pair) + "\n" for pair in by_id), encoding="utf-8"
    )
    portion_path(journal, number, "documents").write_text(json.dumps(list(numbers)), encoding="utf-8")
    file.writelines(lines)
    file.flush()
    for path in (*(portion_path(journal, number, suffix) for suffix in SUFFIXES), journal.index / PASSAGES):
        flush(path)
    journal.n_portions += 1
    journal.n_passages += len(portion)
    journal.n_bytes += sum(map(len, lines))
    return np.insert(keys, np.searchsorted(keys, np.sort(own)), np.sort(own))


def _write_counts(
    portion: Sequence[Passage], document_of: npt.NDArray[np.int64], journal: Journal, reading: Reading
) -> None:

    tables: dict[Analyser, TokenTable] = {}
    for ranking in reading.rankings:
        analyser = reading.analyser if ranking == "bm25" else context_analyser(reading.analyser)
        if analyser not in tables:
            tables[analyser] = token_table(tokens_of(portion, analyser))
        table, windows = tables[analyser], None
        if ranking == "context":
            windows = context_windows(portion, reading.context_passages)
        elif ranking == "document":
            table, windows = by_document(table, document_of)
        folder = counts_of(journal, ranking)
        for counts in counted(table, windows):
            number = journal.n_blocks.get(ranking, 0)
            for path in folder.write(number, counts):
                flush(path)
            journal.n_blocks[ranking] = number + 1


def _check(portion: Sequence[Passage], own: Keys, keys: Keys, place: str, journal: Journal) -> None:
    """Raises CorpusError unless each passage has its own id and can be written as UTF-8."""
    seen: set[str] = set()
    repeated = set(keys[places_of(own, keys)].tolist())
    if repeated:  # by their keys, which two ids may have in common
        wanted = {passage.passage_id for passage, key in zip(portion, own.tolist(), strict=True) if key in repeated}
        earlier = (sorted_ids(portion_path(journal, number, "ids")) for number in range(journal.n_portions))
        seen = {name for run in earlier for name, _ in run if name in wanted}
    for passage in portion:
        if passage.passage_id in seen:
            msg = f"expected every passage in {place} to have its own id, found {passage.passage_id!r} twice"
            raise CorpusError(msg)
        seen.add(passage.passage_id)
        try:
            "".join((passage.passage_id, passage.document_id, passage.title, passage.section, passage.text)).encode()
        except UnicodeEncodeError as error:
            msg = (
                f"expected Unicode text in {place}, found half a character (a lone surrogate) in passage "
                f"{passage.passage_id!r}; save the document as UTF-8 again"
            )
            raise CorpusError(msg) from error


def digests_of(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """The first 128 bits of each text's BLAKE2b, shape (n_texts, 2): equal for equal texts, and for no others."""
    digests = b"".join(blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, 2)
