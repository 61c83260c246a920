"""Further rankings of an index: writes and opens their files and makes their retrievers (`ragqa.index.manifest`)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragqa.errors import IndexingError, IndexMismatchError
from ragqa.index.journal import BuildJournal, BuildProgress
from ragqa.index.manifest import FURTHER, FurtherRanking, Manifest
from ragqa.index.passages import read_passages
from ragqa.plugins.protocols import Retriever
from ragqa.plugins.registry import RETRIEVERS, entry_points_of, load, retriever_name
from ragqa.retrieval.analysis import context_analyser, indexed_text
from ragqa.retrieval.dense import DenseRetriever, read_vectors
from ragqa.retrieval.document_bm25 import DocumentBm25, load_documents, write_documents
from ragqa.retrieval.late_interaction import late_retriever, load_tokens, save_tokens
from ragqa.retrieval.ranking import Rankable
from ragqa.retrieval.splade import SpladeRetriever, load_sparse, save_sparse
from ragqa.settings.config import IndexingConfig
from ragqa.types import ModelInfo

if TYPE_CHECKING:
    from ragqa.index.passage_arrays import AnalysisPlan
    from ragqa.index.reuse import KnownVectors

Writing = Generator[BuildProgress, None, None]


def described(config: IndexingConfig, models: Mapping[str, Any]) -> tuple[FurtherRanking, ...]:
    """The further rankings of this configuration. ``models`` are their models, by retriever.

    Raises IndexingError if a model is missing.
    """
    rankings: list[FurtherRanking] = []
    for asked in config.rankings:
        name = retriever_name(asked)
        if name != "document" and name not in models and ":" in asked:
            msg = f"expected a model for the ranking {asked!r}, found none; load it with `ragqa.loading.load_further`"
            raise IndexingError(msg)
        number = 1 + sum(one.name.startswith("dense:") for one in rankings)
        folder = f"dense-{number}" if name.startswith("dense:") else name
        info = models[name].info if name in models else ModelInfo("", "", "")
        rankings.append(FurtherRanking(name, folder, info.name, info.fingerprint, info.precision))
    return tuple(rankings)


def write_further(
    journal: BuildJournal,
    reading: AnalysisPlan,
    config: IndexingConfig,
    models: Mapping[str, Any],
    known: Mapping[str, KnownVectors],
) -> Writing:
    """Writes ``further/`` for the further rankings of the configuration, except what the journal records as complete.

    ``known`` vectors, by ranking, are reused. SPLADE and late interaction hold all texts in memory, and SPLADE also its
    vectors; both start again from the beginning after a stop. Raises ModelError.
    """
    from ragqa.index.encoded import write_dense  # opening an index needs neither module
    from ragqa.index.portions import counts_of

    for ranking in described(config, models):
        place, name = journal.index / FURTHER / ranking.folder, ranking.name
        if name.startswith("dense:"):
            place.mkdir(parents=True, exist_ok=True)
            path, kind = place / "vectors.faiss", config.vectors
            yield from write_dense(
                journal, path, ranking.folder, name, models[name], reading.indexed_text, kind, known.get(name)
            )
        elif name in journal.finished:
            yield BuildProgress(name, journal.n_passages, journal.n_passages)
        else:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            if name in entry_points_of(RETRIEVERS):
                steps = load(RETRIEVERS, name).write(place, read_passages(journal.index)) or ()
                yield from (BuildProgress(name, done, total) for done, total in steps)
                journal.finish(name)
            elif name == "document":
                yield from _write_documents(place, journal, config)
                journal.finish(name, counts_of(journal, name).folder)
            else:
                yield from _write_tokens(place, name, journal, reading, models[name])
                journal.finish(name)


def open_further(
    folder: Path, manifest: Manifest, corpus: Rankable, position_of: Mapping[str, int]
) -> dict[str, Callable[[Any], Retriever]]:
    """For each further ranking, a function from its model to its retriever; the files are open and memory-mapped.

    Raises IndexMismatchError.
    """
    makers = {}
    for ranking in manifest.rankings:
        if ranking.name in entry_points_of(RETRIEVERS):  # made with the open index: `ragqa.loading.added_retrievers`
            continue
        place = folder / FURTHER / ranking.folder
        maker, n_passages = _opened(ranking.name, place, manifest, corpus, position_of)
        if n_passages != manifest.n_passages:
            msg = f"{FURTHER}/{ranking.folder} is of {n_passages:,} passages, expected {manifest.n_passages:,}"
            raise IndexMismatchError(msg)
        makers[ranking.name] = maker
    return makers


def _write_documents(place: Path, journal: BuildJournal, config: IndexingConfig) -> Writing:

    from ragqa.index.portions import counts_of, documents_of

    ids, document_of = documents_of(journal)
    counts, total = counts_of(journal, "document"), journal.n_passages
    for done, of in write_documents(counts, ids, document_of, config.bm25_k1, config.bm25_b, place):
        yield BuildProgress("document", int(total * done / max(of, 1)), total)
    yield BuildProgress("document", total, total)


def _write_tokens(place: Path, name: str, journal: BuildJournal, reading: AnalysisPlan, model: Any) -> Writing:  # noqa: ANN401

    texts = [indexed_text(passage, reading.indexed_text) for passage in read_passages(journal.index)]
    steps = (save_sparse if name == "splade" else save_tokens)(texts, model, place)
    yield from (BuildProgress(name, done, total) for done, total in steps)


def _opened(
    name: str, place: Path, manifest: Manifest, corpus: Rankable, position_of: Mapping[str, int]
) -> tuple[Callable[[Any], Retriever], int]:
    """A function from a model to the retriever, and the number of passages in its files."""
    if name == "document":
        documents = load_documents(place)
        retriever = DocumentBm25(documents, context_analyser(manifest.analyser), corpus)
        return (lambda _: retriever), len(documents.document_of)
    if name == "splade":
        sparse = load_sparse(place)
        return partial(SpladeRetriever, sparse, corpus), sparse.shape[0]
    if name == "late":
        tokens = load_tokens(place)
        return (lambda model: late_retriever(tokens, corpus, model, position_of)), len(tokens.text_of)
    vectors = read_vectors(place / "vectors.faiss", manifest.vectors)
    return (lambda model: DenseRetriever(vectors, corpus, model, name)), vectors.ntotal
