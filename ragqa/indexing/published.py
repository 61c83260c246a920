"""An index's corpus moved into a Milvus collection, and such an index opened.

What stays in its folder holds no text: the manifest, which names the collection, the ids' keys and their order, what
is hidden, what refers to what, the vocabularies' keys, and further rankings. It is built as a folder first, so that
stopping, checking and its source are the same; until all rows are in the engine and counted, that folder is the index.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import numpy as np

from ragqa.errors import IndexingError
from ragqa.indexing.build import Building
from ragqa.indexing.folders import building_folder, exclusive, replace
from ragqa.indexing.journal import BuildProgress
from ragqa.manifest import BM25, CONTEXT, Engine, Manifest, describe_files, index_files, write_manifest
from ragqa.retrieval.bm25 import Bm25Model
from ragqa.retrieval.milvus import Milvus, MilvusPassages, MilvusVectors, row_of
from ragqa.retrieval.token_table import Keys

KIND = "milvus"
_AT_ONCE = 4_096  # passages and vectors read together


def publish_events(
    index: Any,  # noqa: ANN401 - a `ragqa.indexing.Index`, which imports this module
    uri: str,
    indexes: Path,
    before: Engine | None = None,
) -> Building:
    """Moves an open index of ``indexes`` into the engine at ``uri``, yields how far it is, returns the new manifest.

    ``before`` is where an earlier build of it is, dropped at the end. Raises ConfigError, IndexingError; the index
    stays as it is then.
    """
    manifest: Manifest = index.manifest
    name = f"ragqa_{manifest.name.replace('-', '_')}_{secrets.token_hex(4)}"
    milvus = Milvus(uri, name)
    total = manifest.n_passages
    sparse = [BM25, *([CONTEXT] if index.context else [])]
    yield BuildProgress(KIND, 0, total)
    with exclusive(manifest.name, indexes), building_folder(manifest.name, indexes) as folder:
        for done in milvus.write(manifest.dimension, manifest.vectors, sparse, _rows(index)):
            yield BuildProgress(KIND, done, total)
        new = folder / "published"
        refers = [entry.path for entry in manifest.files]
        paths = index_files(
            manifest.context_passages, manifest.rankings, has_vectors=manifest.has_vectors, found=refers, engine=True
        )
        for path in paths:
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(index.folder / path, new / path)
        files = describe_files(
            new, manifest.context_passages, manifest.rankings, has_vectors=manifest.has_vectors, engine=True
        )
        manifest = changed(manifest, files=files, engine=Engine(KIND, uri, name))
        write_manifest(manifest, new)
        replace(new, manifest.name, indexes)
    if before:
        drop(before)
    return manifest


def drop(engine: Engine) -> None:
    """Removes a collection as well as may be."""
    with suppress(IndexingError):
        Milvus(engine.uri, engine.collection).drop()


def open_published(folder: Path, manifest: Manifest, engine: Engine) -> tuple[MilvusPassages, MilvusVectors | None]:
    """Passages and vectors of the collection. Raises IndexingError where it does not answer or holds another count."""
    milvus = Milvus(engine.uri, engine.collection)
    passages = MilvusPassages(milvus, milvus.count())
    effort = manifest.search_effort
    return passages, MilvusVectors(passages, manifest.dimension, effort) if manifest.has_vectors else None


def vocabulary_of(folder: Path) -> Bm25Model:
    """A BM25 model without its matrix: it knows how rare words are."""
    said = json.loads((folder / "params.index.json").read_text(encoding="utf-8"))
    indptr = np.load(folder / "indptr.csc.index.npy", mmap_mode="r", allow_pickle=False)
    vocabulary: Keys = np.load(folder / "vocabulary.npy", mmap_mode="r", allow_pickle=False)
    nothing = {"data": np.empty(0, np.float32), "indices": np.empty(0, np.int32)}
    scores = nothing | {"indptr": indptr, "num_docs": said["num_docs"]}
    return Bm25Model(vocabulary, scores, said["k1"], said["b"])


def _rows(index: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    matrices = {"bm25": by_passage(index.bm25s.model, len(index.passages))}
    if index.context:
        matrices["context"] = by_passage(index.context.model, len(index.passages))
    for start in range(0, len(index.passages), _AT_ONCE):
        passages = index.passages[start : start + _AT_ONCE]
        vectors = index.vectors.reconstruct_n(start, len(passages)) if index.vectors is not None else None
        for n, passage in enumerate(passages):
            fields: dict[str, Any] = {} if vectors is None else {"dense": vectors[n]}
            for name, (starts, places, scores) in matrices.items():
                own = slice(starts[start + n], starts[start + n + 1])
                fields[name] = dict(zip((places[own] + 1).tolist(), scores[own].tolist(), strict=True))
            yield row_of(start + n, passage, hidden=bool(index.hidden[start + n]), fields=fields)


def by_passage(model: Bm25Model, n_passages: int) -> tuple[Any, Any, Any]:
    """The matrix by passage: where each begins, shape (n + 1,), then tokens' places and scores."""
    indptr, texts = model.scores["indptr"], model.scores["indices"]
    order = np.argsort(texts, kind="stable")
    places = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    starts = np.concatenate([[0], np.cumsum(np.bincount(texts, minlength=n_passages))])
    return starts, places[order], model.scores["data"][order]
