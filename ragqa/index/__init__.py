"""Indexes: build, open, list, verify, delete. `ragqa.index.manifest` describes the files of an index folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ragqa.errors import IndexingError, IndexMismatchError
from ragqa.index.folders import exclusive, index_names, locate, remove, stopped
from ragqa.index.manifest import (
    BM25,
    CONTEXT,
    DENSE,
    HIDDEN,
    IDS,
    ORDER,
    PASSAGES,
    REFERENCES,
    STARTED,
    Manifest,
    file_problems,
    read_manifest,
    rebuild_hint,
)
from ragqa.index.passages import ITEM, READ_AT_ONCE, PassageFile, PositionOf, cited_in, itemised, open_lookups
from ragqa.plugins.protocols import Retriever
from ragqa.retrieval.analysis import ANALYSIS_VERSION, context_analyser, headings, indexed_text
from ragqa.retrieval.bm25 import Bm25sRetriever, RankBm25Retriever, load_bm25
from ragqa.retrieval.citations import NAME as CITATIONS
from ragqa.retrieval.citations import NO_LINKS, CitationRetriever, Links
from ragqa.retrieval.dense import poor_vectors, read_vectors
from ragqa.retrieval.ranking import Mask, Positions, Rankable
from ragqa.settings.indexing import NO_ENCODER
from ragqa.types import ModelInfo, Passage

if TYPE_CHECKING:
    from ragqa.index.build import build_events, build_index
    from ragqa.index.journal import BuildProgress

__all__ = [
    "BuildProgress",
    "Index",
    "IndexEntry",
    "build_events",
    "build_index",
    "delete_index",
    "index_info",
    "list_indexes",
    "open_index",
    "verify_index",
]

_BUILDING: Final = {"BuildProgress": "journal", "build_events": "build", "build_index": "build"}
# Formats whose passages have no printed numbers, but are counted in each document.
_COUNTED: Final = frozenset(("text", "jsonl", "dump", "zim", "mediawiki", "kiwix"))
HASHED_AT_OPEN: Final = 64 * 2**20  # bytes: 0.04 s with SHA instructions, 0.2 s without; `verify_index` hashes all


def __getattr__(name: str) -> Any:  # noqa: ANN401 - one of the names of `_BUILDING`
    """Imports the modules that build an index only when they are used: opening an index needs no corpus format."""
    if name in _BUILDING:
        return getattr(import_module(f"ragqa.index.{_BUILDING[name]}"), name)
    raise AttributeError(f"module 'ragqa.index' has no attribute {name!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """An open index. Its content stays consistent, whatever happens to its folder later.

    Read-only and shared by every session; `ragqa.retrieval.retrievers_for` makes its retrievers.
    """

    manifest: Manifest
    passages: Sequence[Passage]  # each is read from disk at access
    position_of: Mapping[str, int]  # by passage id
    folder: Path
    order: Positions  # place of each passage's id among all sorted ids: breaks ties
    hidden: Mask  # passages that no retriever returns
    bm25s: Bm25sRetriever
    rank_bm25: RankBm25Retriever
    context: Bm25sRetriever | None  # ranks passages with their neighbours; None if the index has no such ranking
    citations: CitationRetriever | None  # follows citations; None if no passage refers to another
    further: Mapping[str, Callable[[Any], Retriever]]  # functions from a model to a further retriever, by name
    vectors: Any  # a memory-mapped faiss.Index of the manifest's kind, whose row i is passages[i]; None without vectors

    @property
    def links(self) -> Links:
        """The citations between passages, by position; empty if no passage refers to another."""
        return self.citations.links if self.citations else NO_LINKS

    def around(self, passage_id: str) -> int | None:
        """The position of the passage with this id, or of the passage around the item with this id; None if unknown."""
        places = map(self.position_of.get, (passage_id, passage_id.rpartition(ITEM)[0]))
        return next((place for place in places if place is not None), None)

    def passage(self, passage_id: str) -> Passage | None:
        """The passage, or the item or unit that was cut, with this id (`ragqa.index.passages.itemised`)."""
        place = self.around(passage_id)
        found = () if place is None else (self.passages[place], *itemised(self.passages, place))
        return next((one for one in found if one.passage_id == passage_id), None)

    def neighbours(self, passage: Passage) -> tuple[Passage | None, Passage | None]:
        """The passages before and after this one in its document; None at its ends and for an unknown passage."""
        position = self.position_of.get(passage.passage_id)
        if position is None:
            return None, None
        beside = [self.passages[n] if 0 <= n < len(self.passages) else None for n in (position - 1, position + 1)]
        before, after = (p if p and p.document_id == passage.document_id else None for p in beside)
        return before, after

    def asked_by_number(self, question: str, ranked: Sequence[str] = ()) -> tuple[Passage, ...]:
        """The passages that the question names by number; see `ragqa.corpus.numbered.asked_by_number`."""
        from ragqa.corpus.numbered import asked_by_number, names_a_rule  # three modules that few questions need

        if self.manifest.format in _COUNTED or not names_a_rule(question):  # "Article 5" is not the fifth passage
            return ()
        return asked_by_number(question, self.passages, ranked)

    def documents_named(self, question: str) -> Mapping[str, frozenset[str]]:
        """The names of documents in the question, and the ids of each; see `ragqa.corpus.numbered.documents_named`."""
        from ragqa.corpus.numbered import documents_named

        return documents_named(question, self.passages)

    def text_of(self, passage: Passage) -> str:
        """The text of this passage for encoders and rerankers; see `ragqa.index.manifest.Manifest.indexed_text`."""
        return indexed_text(passage, self.manifest.indexed_text)

    @property
    def name(self) -> str:
        return self.folder.name.removeprefix(".old-")

    def check_models(self, models: Mapping[str, ModelInfo]) -> None:
        """Raises IndexMismatchError unless these models, by retriever, made the further rankings of this index."""
        for ranking in self.manifest.rankings:
            found = models.get(ranking.name)
            if ranking.model and (found is None or found.fingerprint != ranking.fingerprint):
                loaded = f"{found.name} (sha256 {found.fingerprint})" if found else "none"
                raise IndexMismatchError(
                    f"the ranking {ranking.name!r} of index {self.name!r} was made with {ranking.model} (sha256 "
                    f"{ranking.fingerprint}), the model loaded is {loaded}; load that model, or "
                    f"{rebuild_hint(self.name, self.manifest)}"
                )

    def check_encoder(self, encoder: ModelInfo) -> None:
        """Raises IndexMismatchError unless this encoder made the vectors of this index."""
        if not self.manifest.has_vectors:
            raise IndexMismatchError(
                f"index {self.name!r} has no vectors to compare with those of {encoder.name}; to add them, "
                f"`ragqa index build {self.name} --source PATH` without --encoder {NO_ENCODER}"
            )
        if encoder.fingerprint != self.manifest.encoder_fingerprint:
            raise IndexMismatchError(
                f"index {self.name!r} was made with the encoder {self.manifest.encoder} (sha256 "
                f"{self.manifest.encoder_fingerprint}), the one loaded is {encoder.name} (sha256 "
                f"{encoder.fingerprint}); load that encoder, or {rebuild_hint(self.name, self.manifest)}"
            )


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One line of the list of indexes: the manifest, or None and the problem with it."""

    name: str
    manifest: Manifest | None
    problem: str = ""


def open_index(name: str, indexes: Path) -> Index:
    """The index of this name, after checking that every file exists with its size and (up to 64 MB in all) its sha256.

    If the index is replaced meanwhile, the new one is opened. Raises ConfigError, IndexNotFoundError, and
    IndexMismatchError with the command that rebuilds it.
    """
    for _ in range(3):
        folder = locate(name, indexes)
        before = _identity(folder)
        index, problem = None, None
        try:
            index = _load(folder)
        except (IndexMismatchError, OSError) as error:
            problem = error
        if before == _identity(folder):
            break
    if index is None:
        raise _mismatch(name, folder, [str(problem)]) from problem
    return index


def list_indexes(indexes: Path) -> tuple[IndexEntry, ...]:
    """Every index in this folder, sorted by name; a damaged manifest is reported, other files are not checked."""
    return tuple(_entry(name, indexes) for name in index_names(indexes))


def index_info(name: str, indexes: Path) -> Manifest:
    """The manifest of this index; other files are not checked. Raises as `open_index`."""
    folder = locate(name, indexes)
    try:
        return read_manifest(folder)
    except IndexMismatchError as error:
        raise _mismatch(name, folder, [str(error)]) from error


def verify_index(name: str, indexes: Path) -> Manifest:
    """The manifest, after checking every byte of the index. Raises IndexMismatchError that lists all problems."""
    folder = locate(name, indexes)
    manifest = index_info(name, indexes)
    problems = list(file_problems(folder, manifest))
    if problems:
        raise _mismatch(name, folder, problems)
    index = open_index(name, indexes)
    try:
        problems += _passage_problems(index)
    except IndexMismatchError as error:
        problems.append(str(error))
    if index.vectors is not None and poor_vectors(index.vectors, manifest.vectors):
        problems.append(f"{DENSE} holds vectors that are not finite or not of length 1")
    if problems:
        raise _mismatch(name, folder, problems)
    return manifest


def delete_index(name: str, indexes: Path) -> None:
    """Deletes this index, damaged or not, and the remains of a stopped build.

    Raises ConfigError, IndexNotFoundError, IndexLockedError, IndexingError.
    """
    if not stopped(name, indexes):
        indexes = locate(name, indexes).parent
    engine = None
    with suppress(IndexingError):
        engine = index_info(name, indexes).engine
    with exclusive(name, indexes):
        for folder in stopped(name, indexes):
            if (folder / STARTED).exists():
                from ragqa.index.engine import drop_started

                drop_started(folder)
        try:
            remove(name, indexes)
        except OSError as error:
            raise IndexingError(f"index {name!r} could not be deleted: {error}; check who owns {indexes}") from error
    if engine:
        from ragqa.index.engine import drop

        drop(engine)


def _load(folder: Path) -> Index:
    """The index in this folder. Raises IndexMismatchError without the next step, which callers add."""
    manifest = read_manifest(folder)
    for problem in file_problems(folder, manifest, HASHED_AT_OPEN):
        raise IndexMismatchError(problem)
    if manifest.analysis_version != ANALYSIS_VERSION:
        msg = f"its text was analysed by version {manifest.analysis_version}, expected version {ANALYSIS_VERSION}"
        raise IndexMismatchError(msg)
    passages: Sequence[Passage]
    vectors: Any
    load: Any
    ranker: Any
    if manifest.engine:
        from ragqa.index.engine import open_published, vocabulary_of
        from ragqa.retrieval.milvus.bm25 import MilvusBm25

        passages, vectors = open_published(folder, manifest, manifest.engine)
        load, ranker = vocabulary_of, MilvusBm25
    else:
        passages, load, ranker = PassageFile(folder), load_bm25, Bm25sRetriever
        vectors = read_vectors(folder / DENSE, manifest.vectors) if manifest.has_vectors else None
    model = load(folder / BM25)
    n_vectors, dimension = (vectors.ntotal, vectors.d) if vectors is not None else (len(passages), 0)
    counts = {len(passages), n_vectors, model.scores["num_docs"], manifest.n_passages}
    if len(counts) > 1 or dimension != manifest.dimension:
        raise IndexMismatchError(
            f"holds {len(passages):,} passages, {n_vectors:,} vectors of {dimension} numbers and BM25 scores of "
            f"{model.scores['num_docs']:,} passages; expected {manifest.n_passages:,} and {manifest.dimension}"
        )
    order, hidden, ids = open_lookups(folder, len(passages))
    corpus = Rankable(passages, order, hidden)
    context = None
    if manifest.context_passages:
        analyser = context_analyser(manifest.analyser)
        context = ranker(load(folder / CONTEXT), analyser, corpus, "context")
    position_of = PositionOf(passages, ids)
    citations = None
    if CITATIONS in manifest.retrievers:
        citations = CitationRetriever(folder / REFERENCES, corpus, position_of.of_known, cited_in)
    further = {}
    if manifest.rankings:
        from ragqa.index.further import open_further

        further = open_further(folder, manifest, corpus, position_of)
    return Index(
        manifest=manifest,
        passages=passages,
        position_of=position_of,
        folder=folder,
        order=order,
        hidden=hidden,
        bm25s=ranker(model, manifest.analyser, corpus),
        rank_bm25=RankBm25Retriever(manifest.analyser, corpus, manifest.bm25_k1, manifest.bm25_b),
        context=context,
        citations=citations,
        further=further,
        vectors=vectors,
    )


def _passage_problems(index: Index) -> list[str]:
    """The problems of the passages and their lookup files, after reading all; only ids are held in memory."""
    ids: list[str] = []
    is_heading = [np.empty(0, dtype=np.bool_)]
    passages = iter(index.passages)
    while batch := tuple(islice(passages, READ_AT_ONCE)):
        ids += [passage.passage_id for passage in batch]
        is_heading.append(headings(batch, index.manifest.analyser))
    if len(set(ids)) != len(ids):
        return ["two passages have the same id"]
    problems, hidden = [], np.concatenate(is_heading)
    if any(index.position_of.get(passage_id) != n for n, passage_id in enumerate(ids)):
        problems.append(f"{IDS} names other passages than {PASSAGES}")
    if not np.array_equal(np.argsort(index.order), sorted(range(len(ids)), key=ids.__getitem__)):
        problems.append(f"{ORDER} is not the order of the ids")
    if not np.array_equal(index.hidden, hidden if not hidden.all() else np.zeros_like(hidden)):
        problems.append(f"{HIDDEN} hides other passages than the analyser")
    return problems


def _entry(name: str, indexes: Path) -> IndexEntry:
    try:
        return IndexEntry(name, index_info(name, indexes))
    except IndexingError as error:
        return IndexEntry(name, None, str(error))


def _identity(folder: Path) -> tuple[int, int] | None:
    """The device and inode of this folder, which do not depend on its name; None if it does not exist."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _mismatch(name: str, folder: Path, problems: list[str]) -> IndexMismatchError:
    try:
        manifest = read_manifest(folder)
    except (IndexMismatchError, OSError):
        manifest = None
    return IndexMismatchError(f"index {name!r} cannot be used: {'; '.join(problems)}; {rebuild_hint(name, manifest)}")
