"""A corpus to an index folder, with progress: read, BM25, vectors, files; then into its place as a whole."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from ragqa.analysers import Analyser, analyser_named
from ragqa.config import IndexingConfig
from ragqa.errors import CorpusError, IndexingError
from ragqa.indexing.folders import building_folder, exclusive, replace
from ragqa.manifest import BM25, CONTEXT, DENSE, PASSAGES, SCHEMA_VERSION, Manifest, describe_files, write_manifest
from ragqa.protocols import Encoder, FloatMatrix
from ragqa.types import Passage

if TYPE_CHECKING:
    from ragqa.corpus import Corpus, CorpusFormat
    from ragqa.retrieval.analysis import IndexedText

__all__ = ["BuildProgress", "build_events", "build_index"]

Stage = Literal["corpus", "BM25", "vectors", "files"]
Building = Generator["BuildProgress", None, Manifest]

ENCODED_AT_ONCE: Final = 256  # texts between two signs of progress: 3 s on two cores
LIBRARIES: Final = ("bm25s", "PyStemmer", "faiss-cpu", "sentence-transformers", "transformers", "torch", "numpy")


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """``done`` of ``total`` passages (files in the last stage) of this stage are done; a stage ends at its total."""

    stage: Stage
    done: int
    total: int


def build_index(
    name: str,
    source: Path,
    *,
    indexes: Path,
    config: IndexingConfig,
    encoder: Encoder,
    format: CorpusFormat | None = None,
) -> Manifest:
    """The manifest of the index just built; see `build_events`, which this runs to its end."""
    building = build_events(name, source, indexes=indexes, config=config, encoder=encoder, format=format)
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
) -> Building:
    """Builds ``indexes/NAME`` from the corpus at ``source``, yields how far it is, returns its manifest.

    An index of that name stays as it is until the new one is whole, and for ever if building fails, is stopped or
    dies. Raises ConfigError (name), CorpusError, ModelError, IndexLockedError, IndexingError.
    """
    from ragqa.corpus import load_corpus

    with exclusive(name, indexes), building_folder(name, indexes) as folder:
        yield BuildProgress("corpus", 0, 1)
        corpus = load_corpus(source, format, config.chunk_max_tokens)
        _check_passages(corpus.passages, source)
        yield BuildProgress("corpus", 1, 1)
        try:
            manifest = yield from _fill(folder, name, source, corpus, config, encoder)
            replace(folder, name, indexes)
        except OSError as error:
            msg = f"index {name!r} could not be written to {indexes}: {error}; make room or choose RAGQA_INDEXES"
            raise IndexingError(msg) from error
        yield BuildProgress("files", 1, 1)
    return manifest


def _fill(folder: Path, name: str, source: Path, corpus: Corpus, config: IndexingConfig, encoder: Encoder) -> Building:
    """Writes every file of the index into ``folder``."""
    from ragqa.retrieval.analysis import ANALYSIS_VERSION, indexed_text
    from ragqa.retrieval.dense import write_vectors

    passages = corpus.passages
    kind: IndexedText = "text" if corpus.format == "obliqa" else "title-section-text"
    analyser = analyser_named(config.analyser, corpus.format)
    yield from _write_bm25(folder, passages, analyser, config)
    vectors = yield from _encode([indexed_text(passage, kind) for passage in passages], encoder)
    yield BuildProgress("files", 0, 1)
    write_vectors(vectors, folder / DENSE)
    write_passages(passages, folder / PASSAGES)
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
        libraries={library: version(library) for library in LIBRARIES},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        files=describe_files(folder, config.context_passages),
    )
    write_manifest(manifest, folder)
    return manifest


def _write_bm25(
    folder: Path, passages: Sequence[Passage], analyser: Analyser, config: IndexingConfig
) -> Generator[BuildProgress, None, None]:
    from ragqa.retrieval.analysis import analysed_text, context_analyser, context_tokens, tokenise
    from ragqa.retrieval.bm25 import build_bm25, save_bm25

    yield BuildProgress("BM25", 0, len(passages))
    tokens = [tokenise(analysed_text(passage, analyser), analyser) for passage in passages]
    save_bm25(build_bm25(tokens, config.bm25_k1, config.bm25_b), folder / BM25)
    if config.context_passages:
        plain = context_analyser(analyser)
        singles = [tokenise(analysed_text(passage, plain), plain) for passage in passages]
        windows = context_tokens(passages, singles, config.context_passages)
        save_bm25(build_bm25(windows, config.bm25_k1, config.bm25_b), folder / CONTEXT)
    yield BuildProgress("BM25", len(passages), len(passages))


def _encode(texts: Sequence[str], encoder: Encoder) -> Generator[BuildProgress, None, FloatMatrix]:
    """Shape (n_texts, dimension). Equal texts are encoded once, so that they tie exactly."""
    from ragqa.retrieval.dense import check_unit_rows

    rows: dict[str, int] = {}
    row_of_text = [rows.setdefault(text, len(rows)) for text in texts]
    distinct, total = list(rows), len(rows)
    parts = []
    yield BuildProgress("vectors", 0, total)
    for start in range(0, total, ENCODED_AT_ONCE):
        batch = distinct[start : start + ENCODED_AT_ONCE]
        vectors = encoder.encode(batch)
        check_unit_rows(vectors, len(batch), encoder.info.name)
        parts.append(vectors)
        yield BuildProgress("vectors", start + len(batch), total)
    return np.concatenate(parts)[row_of_text]


def write_passages(passages: Sequence[Passage], path: Path) -> None:
    """Writes one JSON object a line, UTF-8, in the order given."""
    names = [field.name for field in fields(Passage)]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for passage in passages:
            file.write(json.dumps({name: getattr(passage, name) for name in names}, ensure_ascii=False) + "\n")


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
