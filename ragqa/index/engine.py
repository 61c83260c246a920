"""Moves the corpus of an index into a Milvus collection, updates it there, and opens such an index.

The folder of such an index has no text. It has the manifest, which names the collection and its generation, the keys
and order of the ids, the hidden passages, the references, the keys of the vocabularies and further rankings. It also
has the row of each passage (`ROWS`), a digest of everything that determines a row (`DIGESTS`), and the rows that the
last update dropped (`LEFT_OUT`).

The index is first built as a folder, so that resuming, checks and sources work the same. The existing index of this
name is unchanged until all rows are in the engine and counted. Rows of unchanged passages are not written again.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as changed
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.errors import ConfigError, IndexingError, IndexMismatchError
from ragqa.index.journal import BuildJournal, BuildProgress
from ragqa.index.manifest import (
    BM25,
    CONTEXT,
    DENSE,
    DIGESTS,
    HIDDEN,
    LEFT_OUT,
    ROWS,
    STARTED,
    CorpusEngine,
    Manifest,
    describe_files,
    index_files,
    read_manifest,
    write_manifest,
)
from ragqa.index.passages import PassageFile, line_of
from ragqa.index.portions import gathered, lengths_path, windows_of
from ragqa.infra.files import flush
from ragqa.retrieval.analysis import Keys, analysed_text, context_analyser, tokenise
from ragqa.retrieval.dense import read_vectors
from ragqa.retrieval.milvus.bm25 import SparseModel, SparseWords, idf_of
from ragqa.retrieval.milvus.client import Milvus
from ragqa.retrieval.milvus.corpus import MilvusPassages, MilvusVectors, mark_row, placed, row_of
from ragqa.retrieval.ranking import Positions
from ragqa.retrieval.ranking import index_files as checked
from ragqa.settings.indexing import IndexingConfig

KIND: Final = "milvus"
MOST_NEW: Final = 0.5  # above this share of new passages, a new collection is written
MOST_DRIFT: Final = 1.05  # above this change of the average passage length, too: see `ragqa.retrieval.milvus.bm25`

Moving = Generator[BuildProgress, None, tuple[Path, Manifest]]


def check_engine(engine: str, uri: str, vectors: str = IndexingConfig().vectors) -> None:
    """Raises ConfigError or IndexingError unless both are empty, or the engine answers and supports these vectors."""
    if engine not in {"", KIND} or bool(engine) != bool(uri):
        msg = f"expected --engine {KIND} with --uri http://HOST:19530, or neither, found {engine!r}, {uri!r}"
        raise ConfigError(msg)
    if engine:
        Milvus(uri, "").check(vectors)


@dataclass(frozen=True, slots=True, eq=False)
class _Corpus:
    """The built index, as files in the journal's folder."""

    journal: BuildJournal
    manifest: Manifest
    passages: PassageFile
    hidden: npt.NDArray[np.bool_]
    windows: Positions  # (n_passages, 2), of the context ranking
    digests: npt.NDArray[np.uint64]  # (n_passages, 3): of everything that determines a row, and of the encoded text

    @property
    def sparse(self) -> tuple[str, ...]:
        """The lexical rankings of the index."""
        return (BM25, CONTEXT) if self.manifest.context_passages else (BM25,)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """The rows of the new generation: the key of each passage's row, and the rows to write."""

    milvus: Milvus
    engine: CorpusEngine
    rows: Positions  # keys by position
    new: Positions  # positions whose rows are written, ascending
    left_out: Positions  # keys of rows of the previous generation that the new one drops
    words: dict[str, SparseWords]
    n_before: int  # number of rows and marks that exist before the new rows are written


def publish_events(journal: BuildJournal, manifest: Manifest, uri: str, place: Path) -> Moving:
    """Moves the corpus that this journal has built into the engine at ``uri``, and yields its progress.

    Returns the folder that becomes the index, and its manifest. ``place`` is the folder of the existing index; its
    collection is updated if possible. Raises ConfigError, IndexingError; the existing index is then unchanged.
    """
    yield BuildProgress(KIND, 0, manifest.n_passages)
    corpus = _corpus(journal, manifest)
    plan = _update(corpus, uri, place) or _anew(corpus, uri)
    milvus, engine = plan.milvus, plan.engine
    try:
        for done in milvus.insert(_rows(corpus, plan)):
            yield BuildProgress(KIND, min(done, len(plan.new)), len(plan.new))
        expected, found = plan.n_before + len(plan.new) + 1, milvus.count(engine.generation)
        if found != expected:
            raise IndexingError(f"{milvus} holds {found:,} rows, expected {expected:,}; run the same command again")
    except BaseException:
        with suppress(IndexingError):  # no index sees leftover rows, and the next attempt removes them
            milvus.delete_after(engine.generation - 1) if plan.n_before else milvus.drop()
        raise
    folder, manifest = _written(corpus, plan)
    (journal.folder / STARTED).unlink(missing_ok=True)
    return folder, manifest


def engine_of(place: Path) -> CorpusEngine | None:
    """The engine of the index in this folder; None if there is no index or it has no engine."""
    with suppress(IndexMismatchError, OSError):
        return read_manifest(place).engine
    return None


def drop(engine: CorpusEngine) -> None:
    """Removes a collection; failures are ignored."""
    with suppress(IndexingError, ConfigError):
        Milvus(engine.uri, engine.collection).drop()


def drop_started(folder: Path) -> None:
    """Removes the collection that a stopped build in this folder was writing, if any."""
    with suppress(OSError, ValueError, LookupError):
        drop(CorpusEngine(**json.loads((folder / STARTED).read_bytes())))


# Planning -----------------------------------------------------------------------------------------------------------


def _corpus(journal: BuildJournal, manifest: Manifest) -> _Corpus:
    passages = PassageFile(journal.index)
    hidden = np.load(journal.index / HIDDEN, allow_pickle=False)
    windows = windows_of(journal, manifest.context_passages)
    lines = np.frombuffer(b"".join(_digest(line_of(passage)) for passage in passages), dtype="S8")
    rows = b"".join(
        _digest(lines[n].ljust(8, b"\0") + lines[first:last].tobytes() + bytes([bool(hidden[n])]))
        for n, (first, last) in enumerate(windows.tolist())
    )
    own = np.frombuffer(rows, dtype="<u8").astype(np.uint64)
    digests = np.column_stack([own, gathered(journal, "texts")])
    return _Corpus(journal, manifest, passages, hidden, windows, digests)


def _digest(said: bytes) -> bytes:
    return blake2b(said, digest_size=8).digest()


def _update(corpus: _Corpus, uri: str, place: Path) -> _Plan | None:
    """A plan that updates the existing collection; None if there is none, or if too much has changed."""
    try:
        before = read_manifest(place)
    except (IndexMismatchError, OSError):
        return None
    engine, n_before = before.engine, before.n_passages
    if engine is None or engine.uri != uri or _said(before) != _said(corpus.manifest):
        return None
    was, rows = np.load(place / DIGESTS, allow_pickle=False)[:, 0], np.load(place / ROWS, allow_pickle=False)[0]
    order = np.argsort(was)
    places = np.minimum(np.searchsorted(was, corpus.digests[:, 0], sorter=order), n_before - 1)
    kept = np.where(was[order[places]] == corpus.digests[:, 0], rows[order[places]], -1)
    new = np.flatnonzero(kept < 0)
    words = {name: _words(corpus, name, place / name) for name in corpus.sparse}
    drift = max(max(one.length / one.length0, one.length0 / one.length) for one in words.values())
    if len(new) > MOST_NEW * len(kept) or drift > MOST_DRIFT or len(np.unique(kept[kept >= 0])) < np.sum(kept >= 0):
        return None
    milvus = Milvus(uri, engine.collection)
    if not milvus.exists():
        return None
    milvus.delete_after(engine.generation)
    if engine.generation > 1:
        milvus.delete([mark_row(engine.generation - 1, 0, ())["row"]])  # first, as the mark says that all rows exist
    milvus.delete(np.load(place / LEFT_OUT, allow_pickle=False).tolist())
    if milvus.count(engine.generation) != n_before + 1:
        return None
    kept[new] = np.arange(engine.next_row, engine.next_row + len(new))
    then = changed(engine, generation=engine.generation + 1, next_row=engine.next_row + len(new))
    left_out = np.setdiff1d(rows, kept)
    return _Plan(milvus, then, kept, new, left_out, words, n_before + 1)


def _said(manifest: Manifest) -> Manifest:
    """The manifest's fields that determine a row, apart from the passage and its neighbours."""
    own = changed(manifest, source="", format="", corpus_sha256="", n_documents=0, n_passages=0, created="")
    return changed(own, chunk_max_tokens=0, files=(), rankings=(), engine=None)


def _anew(corpus: _Corpus, uri: str) -> _Plan:
    """A plan that writes a new collection; the collection of a stopped build is removed."""
    manifest, started = corpus.manifest, corpus.journal.folder / STARTED
    drop_started(corpus.journal.folder)
    name = f"ragqa_{manifest.name.replace('-', '_')}_{secrets.token_hex(4)}"
    engine = CorpusEngine(KIND, uri, name, 1, manifest.n_passages)
    told = {"kind": KIND, "uri": uri, "collection": name, "generation": 1, "next_row": manifest.n_passages}
    started.write_text(json.dumps(told), encoding="utf-8")
    flush(started)
    milvus = Milvus(uri, name)
    milvus.create(manifest.dimension, manifest.vectors, corpus.sparse)
    everything = np.arange(manifest.n_passages)
    words = {name: _words(corpus, name, None) for name in corpus.sparse}
    return _Plan(milvus, engine, everything, everything, np.empty(0, np.int64), words, 0)


def _words(corpus: _Corpus, name: str, before: Path | None) -> SparseWords:
    """The words of a ranking: known words keep the numbers from the folder ``before``, other words get new numbers."""
    folder = corpus.journal.index / name
    said = json.loads((folder / "params.index.json").read_text(encoding="utf-8"))
    vocabulary: Keys = np.load(folder / "vocabulary.npy", allow_pickle=False)
    idf = idf_of(np.load(folder / "indptr.csc.index.npy", allow_pickle=False), said["num_docs"])
    lengths = np.load(lengths_path(corpus.journal, name), allow_pickle=False)
    length = float(lengths.mean()) or 1.0
    numbers, idf0, length0 = np.arange(1, len(vocabulary) + 1), idf, length
    next_number = len(vocabulary) + 1
    if before:
        known = vocabulary_of(before).words
        places = np.minimum(np.searchsorted(known.vocabulary, vocabulary), max(0, len(known.vocabulary) - 1))
        same = known.vocabulary[places] == vocabulary if len(known.vocabulary) else np.zeros(len(vocabulary), np.bool_)
        numbers = known.next_number + np.cumsum(~same) - 1
        next_number = known.next_number + int(np.sum(~same))
        idf0, length0 = idf.copy(), known.length0
        numbers[same], idf0[same] = known.numbers[places[same]], known.idf0[places[same]]
    return SparseWords(vocabulary, numbers, idf0, idf, lengths, length0, length, next_number, said["k1"], said["b"])


# Writing ------------------------------------------------------------------------------------------------------------


def _rows(corpus: _Corpus, plan: _Plan) -> Iterator[dict[str, Any]]:
    """The new rows, followed by the mark of their generation."""
    manifest, generation = corpus.manifest, plan.engine.generation
    vectors = read_vectors(corpus.journal.index / DENSE, manifest.vectors) if manifest.has_vectors else None
    analysers = {BM25: manifest.analyser, CONTEXT: context_analyser(manifest.analyser)}

    @lru_cache(4 * (manifest.context_passages + 1))
    def tokens_of(position: int, name: str) -> list[str]:
        return tokenise(analysed_text(corpus.passages[position], analysers[name]), analysers[name])

    for n in plan.new.tolist():
        fields: dict[str, Any] = {} if vectors is None else {"dense": vectors.reconstruct(n)}
        for name, words in plan.words.items():
            first, last = corpus.windows[n].tolist() if name == CONTEXT else (n, n + 1)
            tokens = [token for position in range(first, last) for token in tokens_of(position, name)]
            fields[name] = words.weights(tokens, int(words.lengths[n]))
        row = int(plan.rows[n])
        yield row_of(row, generation, corpus.passages[n], hidden=bool(corpus.hidden[n]), fields=fields)
    yield mark_row(generation, manifest.dimension, corpus.sparse)


def _written(corpus: _Corpus, plan: _Plan) -> tuple[Path, Manifest]:
    """Writes the folder of the index, which has no text, and returns it with its manifest."""
    journal, manifest = corpus.journal, corpus.manifest
    new = journal.folder / "published"
    shutil.rmtree(new, ignore_errors=True)
    options = {"has_vectors": manifest.has_vectors, "engine": True}
    found = [entry.path for entry in manifest.files]
    for path in index_files(manifest.context_passages, manifest.rankings, found=found, **options):
        (new / path).parent.mkdir(parents=True, exist_ok=True)
        if (journal.index / path).exists():
            shutil.copyfile(journal.index / path, new / path)
    arrays: dict[str, npt.NDArray[Any]] = {ROWS: placed(plan.rows), DIGESTS: corpus.digests, LEFT_OUT: plan.left_out}
    for name, words in plan.words.items():
        arrays |= {f"{name}/numbers.npy": words.numbers, f"{name}/idf0.npy": words.idf0}
        arrays[f"{name}/lengths.npy"] = words.lengths
        told = {"length0": words.length0, "next_number": words.next_number}
        (new / name / "words.json").write_text(json.dumps(told), encoding="utf-8")
    for path, array in arrays.items():
        np.save(new / path, array, allow_pickle=False)
    files = describe_files(new, manifest.context_passages, manifest.rankings, **options)
    manifest = changed(manifest, files=files, engine=plan.engine)
    write_manifest(manifest, new)
    return new, manifest


# Opening ------------------------------------------------------------------------------------------------------------


def open_published(
    folder: Path, manifest: Manifest, engine: CorpusEngine
) -> tuple[MilvusPassages, MilvusVectors | None]:
    """The passages and vectors in the collection.

    Raises IndexingError if the server does not answer, IndexMismatchError if rows of this generation are missing.
    """
    milvus = Milvus(engine.uri, engine.collection)
    rows = _mapped(folder / ROWS)
    found = milvus.count(engine.generation)
    milvus.check_mark(engine.generation)
    if found <= rows.shape[1]:
        raise IndexMismatchError(f"{milvus} holds {found:,} rows; the index has at least {rows.shape[1] + 1:,}")
    passages = MilvusPassages(milvus, rows, engine.generation)
    effort = manifest.search_effort
    return passages, MilvusVectors(passages, manifest.dimension, effort) if manifest.has_vectors else None


def known_texts(index_folder: Path) -> npt.NDArray[np.uint64]:
    """The digests of the encoded texts of an index in an engine, shape (n_passages, 2)."""
    digests: npt.NDArray[np.uint64] = _mapped(index_folder / DIGESTS)[:, 1:]
    return digests


def vocabulary_of(folder: Path) -> SparseModel:
    """The BM25 model of an index in an engine, without its matrix."""
    with checked("the words of an index in an engine", folder):
        said = json.loads((folder / "params.index.json").read_text(encoding="utf-8"))
        own = json.loads((folder / "words.json").read_text(encoding="utf-8"))
        indptr, lengths = _mapped(folder / "indptr.csc.index.npy"), _mapped(folder / "lengths.npy")
        n_texts, mean = said["num_docs"], float(lengths.mean()) or 1.0
        words = SparseWords(
            vocabulary=_mapped(folder / "vocabulary.npy"),
            numbers=_mapped(folder / "numbers.npy"),
            idf0=_mapped(folder / "idf0.npy"),
            idf=idf_of(indptr, n_texts),
            lengths=lengths,
            length0=own["length0"],
            length=mean,
            next_number=own["next_number"],
            k1=said["k1"],
            b=said["b"],
        )
        return SparseModel(words, indptr, n_texts)


def _mapped(path: Path) -> Any:  # noqa: ANN401 - an array of any type
    """The memory-mapped array of this file, whose integrity the manifest has already checked."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
