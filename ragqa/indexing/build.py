"""A corpus to an index folder, with progress: read, BM25, vectors, files; then into its place as a whole."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragqa.analysers import Analyser, analyser_named
from ragqa.config import IndexingConfig
from ragqa.errors import CorpusError, IndexingError
from ragqa.indexing.folders import building_folder, exclusive, replace
from ragqa.indexing.further import write_further
from ragqa.indexing.passages import write_lookups, write_passages
from ragqa.indexing.steps import ENCODED, BuildProgress, encode, tokens_of
from ragqa.manifest import BM25, CONTEXT, DENSE, SCHEMA_VERSION, Manifest, describe_files, write_manifest
from ragqa.protocols import Encoder
from ragqa.types import Passage

if TYPE_CHECKING:
    from ragqa.corpus import Corpus, CorpusFormat
    from ragqa.retrieval.analysis import IndexedText

__all__ = ["BuildProgress", "build_events", "build_index"]

Building = Generator[BuildProgress, None, Manifest]

LIBRARIES: Final = ("bm25s", "PyStemmer", "faiss-cpu", "sentence-transformers", "transformers", "torch", "numpy")


def build_index(
    name: str,
    source: Path,
    *,
    indexes: Path,
    config: IndexingConfig,
    encoder: Encoder,
    format: CorpusFormat | None = None,
    models: Mapping[str, Any] | None = None,
) -> Manifest:
    """The manifest of the index just built; see `build_events`, which this runs to its end."""
    building = build_events(name, source, indexes=indexes, config=config, encoder=encoder, format=format, models=models)
    while True:
        try:
            next(building)
        except StopIteration as finished:
            manifest: Manifest = finished.value
            return manifest


def build_events(
    name: str,
    source: Path,
    *,
    indexes: Path,
    config: IndexingConfig,
    encoder: Encoder,
    format: CorpusFormat | None = None,
    models: Mapping[str, Any] | None = None,
) -> Building:
    """Builds ``indexes/NAME`` from the corpus at ``source``, yields how far it is, returns its manifest.

    ``models`` are those of the configuration's further rankings, by their retrievers' names, as
    `ragqa.loading.load_further` gives them. An index of that name stays as it is until the new one is whole, and for
    ever if building fails, is stopped or dies.

    Raises ConfigError (name), CorpusError, ModelError, IndexLockedError, IndexingError.
    """
    from ragqa.corpus import load_corpus

    with exclusive(name, indexes), building_folder(name, indexes) as folder:
        yield BuildProgress("corpus", 0, 1)
        corpus = load_corpus(source, format, config.chunk_max_tokens)
        _check_passages(corpus.passages, source)
        yield BuildProgress("corpus", 1, 1)
        try:
            manifest = yield from _fill(folder, name, source, corpus, config, encoder, models or {})
            replace(folder, name, indexes)
        except OSError as error:
            msg = f"index {name!r} could not be written to {indexes}: {error}; make room or choose RAGQA_INDEXES"
            raise IndexingError(msg) from error
        yield BuildProgress("files", 1, 1)
    return manifest


def _fill(
    folder: Path,
    name: str,
    source: Path,
    corpus: Corpus,
    config: IndexingConfig,
    encoder: Encoder,
    models: Mapping[str, Any],
) -> Building:
    """Writes every file of the index into ``folder``."""
    from ragqa.retrieval.analysis import ANALYSIS_VERSION, indexed_text
    from ragqa.retrieval.vectors import check_size, search_effort, write_vectors

    passages = corpus.passages
    check_size(config.vectors, len(passages))
    kind: IndexedText = "text" if corpus.format == "obliqa" else "title-section-text"
    analyser = analyser_named(config.analyser, corpus.format)
    yield from _write_bm25(folder, passages, analyser, config)
    texts = (indexed_text(passage, kind) for passage in passages)
    vectors, rows = yield from encode(texts, encoder, config.vectors, folder / ENCODED)
    write_vectors(vectors, folder / DENSE, config.vectors, rows)
    (folder / ENCODED).unlink()
    rankings = yield from write_further(folder, passages, analyser, kind, config, models)
    yield BuildProgress("files", 0, 1)
    write_passages(passages, folder)
    write_lookups(passages, analyser, folder)
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        name=name,
        source=Path(source).resolve().name,
        format=corpus.format,
        corpus_sha256=corpus.sha256,
        n_documents=len({passage.document_id for passage in passages}),
        n_passages=len(passages),
        chunk_max_tokens=config.chunk_max_tokens,
        indexed_text=kind,
        analyser=analyser,
        analysis_version=ANALYSIS_VERSION,
        bm25_k1=config.bm25_k1,
        bm25_b=config.bm25_b,
        context_passages=config.context_passages,
        encoder=encoder.info.name,
        encoder_fingerprint=encoder.info.fingerprint,
        encoder_precision=encoder.info.precision,
        dimension=vectors.shape[1],
        vectors=config.vectors,
        search_effort=search_effort(config.vectors),
        libraries={library: version(library) for library in LIBRARIES},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        files=describe_files(folder, config.context_passages, rankings),
        rankings=rankings,
    )
    write_manifest(manifest, folder)
    return manifest


def _write_bm25(
    folder: Path, passages: Sequence[Passage], analyser: Analyser, config: IndexingConfig
) -> Generator[BuildProgress, None, None]:
    from ragqa.retrieval.analysis import context_analyser, context_windows
    from ragqa.retrieval.bm25 import build_bm25, save_bm25, scored_bm25
    from ragqa.retrieval.token_table import token_table

    yield BuildProgress("BM25", 0, len(passages))
    save_bm25(build_bm25(tokens_of(passages, analyser), config.bm25_k1, config.bm25_b), folder / BM25)
    if config.context_passages:
        table = token_table(tokens_of(passages, context_analyser(analyser)))
        windows = context_windows(passages, config.context_passages)
        save_bm25(scored_bm25(table, config.bm25_k1, config.bm25_b, windows), folder / CONTEXT)
    yield BuildProgress("BM25", len(passages), len(passages))


def _check_passages(passages: Sequence[Passage], source: Path) -> None:
    """Raises CorpusError unless there are passages, each with its own id, that can be written as UTF-8."""
    if not passages:
        msg = f"expected passages in {source}, found none; choose a folder with documents in it"
        raise CorpusError(msg)
    seen: set[str] = set()
    for passage in passages:
        if passage.passage_id in seen:
            msg = f"expected every passage in {source} to have its own id, found {passage.passage_id!r} twice"
            raise CorpusError(msg)
        seen.add(passage.passage_id)
        try:
            "".join((passage.passage_id, passage.document_id, passage.title, passage.section, passage.text)).encode()
        except UnicodeEncodeError as error:
            msg = (
                f"expected Unicode text in {source}, found half a character (a lone surrogate) in passage "
                f"{passage.passage_id!r}; save the document as UTF-8 again"
            )
            raise CorpusError(msg) from error
