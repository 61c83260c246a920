"""Builds an index from a source, with progress: reads portions, writes BM25, vectors and files, then moves the folder.

A journal (`ragqa.index.journal`) records the finished steps: a build stopped at any moment resumes there when it is
started again with the same source and settings. Memory grows by some 60 bytes a passage, whatever its length.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import asdict
from dataclasses import replace as with_values
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from ragqa.corpus.documents import DOCUMENT_FORMATS
from ragqa.corpus.formats import open_stream
from ragqa.corpus.streams import LoadedStream, PassageStream, corpus_sha256
from ragqa.english.words import analyser_named
from ragqa.errors import ConfigError, CorpusError, IndexingError
from ragqa.index.encoded import write_dense
from ragqa.index.engine import drop, engine_of, publish_events
from ragqa.index.folders import building_folder, exclusive, replace
from ragqa.index.further import described, write_further
from ragqa.index.journal import BuildJournal, BuildProgress, resume
from ragqa.index.manifest import BM25, CONTEXT, DENSE, SCHEMA_VERSION, Manifest, describe_files, write_manifest
from ragqa.index.passage_arrays import AnalysisPlan
from ragqa.index.passages import add_items, read_passages
from ragqa.index.portions import counts_of, gathered, lengths_path, mentions_in, read_portions, write_lookups
from ragqa.index.references import write_references
from ragqa.index.reuse import KnownVectors
from ragqa.infra.files import flush
from ragqa.plugins.protocols import Encoder
from ragqa.retrieval.analysis import ANALYSIS_VERSION
from ragqa.retrieval.bm25 import write_bm25
from ragqa.retrieval.dense import check_size, search_effort
from ragqa.settings.config import IndexingConfig
from ragqa.settings.indexing import NO_ENCODER
from ragqa.types import ModelInfo
from ragqa.types.streams import returned

Building = Generator[BuildProgress, None, Manifest]
Step = Generator[BuildProgress, None, None]

LIBRARIES: Final = ("bm25s", "PyStemmer", "faiss-cpu", "sentence-transformers", "transformers", "torch", "numpy")
# Formats whose passages have numbers that other passages refer to.
REFERRING: Final = frozenset({"obliqa", *DOCUMENT_FORMATS})
version: Final = cache(metadata.version)


def build_index(
    name: str,
    source: Path | PassageStream,
    *,
    indexes: Path,
    config: IndexingConfig,
    encoder: Encoder | None,
    format: str | None = None,
    models: Mapping[str, Any] | None = None,
) -> Manifest:
    """Runs `build_events` to its end and returns the manifest of the new index."""
    return returned(
        build_events(name, source, indexes=indexes, config=config, encoder=encoder, format=format, models=models)
    )


def build_events(
    name: str,
    source: Path | PassageStream,
    *,
    indexes: Path,
    config: IndexingConfig,
    encoder: Encoder | None,
    format: str | None = None,
    models: Mapping[str, Any] | None = None,
    known: Mapping[str, KnownVectors] | None = None,
    uri: str = "",
) -> Building:
    """Builds ``indexes/NAME`` from ``source``, yields its progress and returns its manifest.

    ``encoder`` is None for an index without vectors; ``config.encoder`` must then be "none". ``models`` are the models
    of the configuration's further rankings, by retriever, as from `ragqa.loading.load_further`. ``known`` has vectors
    of the same encoder in the same precision, by ranking; they are reused and do not change the resulting index. If
    ``uri`` is the address of an engine, passages, words and vectors are stored there and not in the folder.

    An existing index of this name is unchanged until the new one is complete, and stays so if the build fails, is
    stopped or crashes. The next call with the same source and settings then resumes the build, unless the error was in
    the source or settings.

    Raises ConfigError (name), CorpusError, ModelError, IndexLockedError, IndexingError.
    """
    models, known = models or {}, known or {}
    with exclusive(name, indexes), building_folder(name, indexes) as folder:
        yield BuildProgress("corpus", 0, 1)
        stream = open_stream(source, format, config.chunk_max_tokens)
        from ragqa.corpus.choices import chosen_analyser, sample_of  # not needed to read an index

        if sample := () if config.analyser else sample_of(stream):
            _, chosen, reason = chosen_analyser(sample)
            config = with_values(config, analyser=chosen)
            yield BuildProgress("corpus", 0, 1, message=f"analyser {chosen}: {reason} --analyser chooses another one.")
        reading = _reading(stream.format, config)
        settings = _settings(stream, reading, config, encoder, models)
        try:
            journal, message = resume(folder, settings)
            yield BuildProgress("corpus", 0, 1, message=message)
            place = str(source if isinstance(source, Path) else stream.name)
            yield from read_portions(stream, place, journal, reading, settings["version of a library"])
            yield BuildProgress("corpus", 1, 1)
            manifest = yield from _finish(journal, name, stream, config, reading, encoder, models, known)
            ready, before = journal.index, engine_of(indexes / name)
            if uri:
                ready, manifest = yield from publish_events(journal, manifest, uri, indexes / name)
            replace(ready, name, indexes)
        except (ConfigError, CorpusError):
            journal.discard()
            raise
        except OSError as error:
            raise IndexingError(
                f"index {name!r} could not be written to {indexes}: {error}; make room and run the same command again, "
                "which resumes where this one stopped, or choose RAGQA_INDEXES"
            ) from error
        journal.discard()
        if before and not (manifest.engine and manifest.engine.collection == before.collection):
            drop(before)
        yield BuildProgress("files", 1, 1)
    return manifest


def _reading(format: str, config: IndexingConfig) -> AnalysisPlan:
    rankings = ["bm25", *(["context"] if config.context_passages else []), *config.rankings]
    return AnalysisPlan(
        rankings=tuple(name for name in rankings if name in {"bm25", "context", "document"}),
        analyser=analyser_named(config.analyser, format),
        context_passages=config.context_passages,
        indexed_text="text" if format == "obliqa" else "title-section-text",
        refers=format in REFERRING,
    )


def _settings(
    stream: PassageStream,
    reading: AnalysisPlan,
    config: IndexingConfig,
    encoder: Encoder | None,
    models: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that determines the content of the index, under the names that a message about a change uses."""
    return {
        "source": [stream.identity(), stream.format, config.chunk_max_tokens],
        "analyser": [asdict(reading.analyser), ANALYSIS_VERSION],
        "BM25 setting": [config.bm25_k1, config.bm25_b, config.context_passages],
        "encoder": asdict(encoder.info) if encoder else NO_ENCODER,
        "kind of vectors": config.vectors,
        "further ranking": [asdict(ranking) for ranking in described(config, models)],
        "version of a library": {library: version(library) for library in LIBRARIES},
    }


def _finish(
    journal: BuildJournal,
    name: str,
    stream: PassageStream,
    config: IndexingConfig,
    reading: AnalysisPlan,
    encoder: Encoder | None,
    models: Mapping[str, Any],
    known: Mapping[str, KnownVectors],
) -> Building:
    """Writes every file of the index except the passages and the files that the journal records as complete."""
    has_vectors = encoder is not None
    if has_vectors:
        check_size(config.vectors, journal.n_passages)
    yield from _write_bm25(journal, config, (BM25, CONTEXT) if config.context_passages else (BM25,))
    if encoder:
        path = journal.index / DENSE
        kind = config.vectors
        own = known.get("dense")
        yield from write_dense(journal, path, "dense", "vectors", encoder, reading.indexed_text, kind, own)
    yield from write_further(journal, reading, config, models, known)
    yield BuildProgress("files", 0, 1)
    write_lookups(journal)
    if reading.refers:
        write_references(journal.index, mentions_in(journal))
    sha256 = stream.sha256 if isinstance(stream, LoadedStream) else corpus_sha256(read_passages(journal.index))
    add_items(journal.index)
    info = encoder.info if encoder else ModelInfo(NO_ENCODER, "", "")
    rankings = described(config, models)
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        name=name,
        source=stream.name,
        format=stream.format,
        corpus_sha256=sha256,
        n_documents=len(np.unique(gathered(journal, "documents"))),
        n_passages=journal.n_passages,
        chunk_max_tokens=config.chunk_max_tokens,
        indexed_text=reading.indexed_text,
        analyser=reading.analyser,
        analysis_version=ANALYSIS_VERSION,
        bm25_k1=config.bm25_k1,
        bm25_b=config.bm25_b,
        context_passages=config.context_passages,
        encoder=info.name,
        encoder_fingerprint=info.fingerprint,
        encoder_precision=info.precision,
        dimension=journal.dimensions.get("dense", 0),
        vectors=config.vectors if has_vectors else "",
        search_effort=search_effort(config.vectors) if has_vectors else 0,
        libraries={library: version(library) for library in LIBRARIES},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        files=describe_files(journal.index, config.context_passages, rankings, has_vectors=has_vectors),
        rankings=rankings,
    )
    write_manifest(manifest, journal.index)
    return manifest


def _write_bm25(journal: BuildJournal, config: IndexingConfig, rankings: tuple[str, ...]) -> Step:

    total = journal.n_passages
    yield BuildProgress("BM25", 0, total)
    for number, ranking in enumerate(rankings):
        if ranking not in journal.finished:
            blocks = counts_of(journal, ranking)
            for done, of in write_bm25(blocks, config.bm25_k1, config.bm25_b, journal.index / ranking):
                yield BuildProgress("BM25", int(total * (number + done / max(of, 1)) / len(rankings)), total)
            lengths = np.concatenate([np.asarray(counts.lengths, dtype=np.int32) for counts in blocks])
            np.save(lengths_path(journal, ranking), lengths, allow_pickle=False)
            flush(lengths_path(journal, ranking))
            journal.finish(ranking, blocks.folder)
    yield BuildProgress("BM25", total, total)
