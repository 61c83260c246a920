"""Indexes: build, open, list, verify, delete. What an index folder holds is said in `ragqa.manifest`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragqa.errors import IndexingError, IndexMismatchError
from ragqa.indexing.build import BuildProgress, build_events, build_index
from ragqa.indexing.folders import exclusive, index_names, locate, remove
from ragqa.manifest import BM25, CONTEXT, DENSE, PASSAGES, Manifest, file_problems, read_manifest, rebuild_hint
from ragqa.types import ModelInfo, Passage

if TYPE_CHECKING:
    from ragqa.retrieval.bm25 import Bm25sRetriever
    from ragqa.retrieval.rank_bm25 import RankBm25Retriever
    from ragqa.retrieval.ranking import Mask, Positions

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

HASHED_AT_OPEN: Final = 64 * 2**20  # bytes: 0.04 s with SHA instructions, 0.2 s without; `verify_index` hashes all


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """An open index: everything in it belongs together, whatever happens to its folder from now on.

    Read-only and shared by every session; `ragqa.retrieval.retrievers_for` makes retrievers of it.
    """

    manifest: Manifest
    passages: tuple[Passage, ...]
    position_of: Mapping[str, int]  # by passage id
    folder: Path
    order: Positions  # place of each passage's id among all ids: breaks ties
    hidden: Mask  # passages that no retriever returns
    bm25s: Bm25sRetriever
    rank_bm25: RankBm25Retriever
    context: Bm25sRetriever | None  # each passage read with its neighbours; None where the index has no such ranking
    vectors: Any  # a memory-mapped faiss.IndexFlatIP; row i is passages[i]

    def neighbours(self, passage: Passage) -> tuple[Passage | None, Passage | None]:
        """The passages before and after this one in its document; None at its ends and for a passage of elsewhere."""
        position = self.position_of.get(passage.passage_id)
        if position is None:
            return None, None
        beside = [self.passages[n] if 0 <= n < len(self.passages) else None for n in (position - 1, position + 1)]
        before, after = (p if p and p.document_id == passage.document_id else None for p in beside)
        return before, after

    @property
    def name(self) -> str:
        return self.folder.name.removeprefix(".old-")

    def check_encoder(self, encoder: ModelInfo) -> None:
        """Raises IndexMismatchError unless this encoder made the vectors of this index."""
        if encoder.fingerprint != self.manifest.encoder_fingerprint:
            msg = (
                f"index {self.name!r} was made with the encoder {self.manifest.encoder} (sha256 "
                f"{self.manifest.encoder_fingerprint}), the one loaded is {encoder.name} (sha256 "
                f"{encoder.fingerprint}); load that encoder, or {rebuild_hint(self.name, self.manifest)}"
            )
            raise IndexMismatchError(msg)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One line of the list of indexes: the manifest, or None and what is wrong with it."""

    name: str
    manifest: Manifest | None
    problem: str = ""


def open_index(name: str, indexes: Path) -> Index:
    """The index of that name, checked: every file there, of its size and (up to 64 MB in all) its sha256.

    An index replaced meanwhile is opened as the new one. Raises ConfigError, IndexNotFoundError, IndexMismatchError
    with the command that rebuilds it.
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
    """Every index in this folder by name, damaged ones with what is wrong (of the manifest only: it is quick)."""
    return tuple(_entry(name, indexes) for name in index_names(indexes))


def index_info(name: str, indexes: Path) -> Manifest:
    """The manifest of this index; its files are not looked at. Raises as `open_index`."""
    folder = locate(name, indexes)
    try:
        return read_manifest(folder)
    except IndexMismatchError as error:
        raise _mismatch(name, folder, [str(error)]) from error


def verify_index(name: str, indexes: Path) -> Manifest:
    """The manifest, after reading every byte. Raises IndexMismatchError that names everything that is wrong."""
    import numpy as np

    folder = locate(name, indexes)
    manifest = index_info(name, indexes)
    problems = list(file_problems(folder, manifest))
    if problems:
        raise _mismatch(name, folder, problems)
    index = open_index(name, indexes)
    if len({passage.passage_id for passage in index.passages}) != manifest.n_passages:
        problems.append("two passages have the same id")
    vectors = index.vectors.reconstruct_n(0, index.vectors.ntotal)
    if not np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3):
        problems.append(f"{DENSE} holds vectors that are not finite or not of length 1")
    if problems:
        raise _mismatch(name, folder, problems)
    return manifest


def delete_index(name: str, indexes: Path) -> None:
    """Deletes this index, damaged or not. Raises ConfigError, IndexNotFoundError, IndexLockedError, IndexingError."""
    locate(name, indexes)
    with exclusive(name, indexes):
        try:
            remove(name, indexes)
        except OSError as error:
            msg = f"index {name!r} could not be deleted: {error}; check who owns {indexes}"
            raise IndexingError(msg) from error


def _load(folder: Path) -> Index:
    """The index in this folder. Raises IndexMismatchError without a word on what to do."""
    from ragqa.retrieval.analysis import ANALYSIS_VERSION, context_analyser, hidden_passages
    from ragqa.retrieval.bm25 import Bm25sRetriever, load_bm25
    from ragqa.retrieval.dense import read_vectors
    from ragqa.retrieval.rank_bm25 import RankBm25Retriever
    from ragqa.retrieval.ranking import tie_order

    manifest = read_manifest(folder)
    for problem in file_problems(folder, manifest, HASHED_AT_OPEN):
        raise IndexMismatchError(problem)
    if manifest.analysis_version != ANALYSIS_VERSION:
        msg = f"its words were read by analysis {manifest.analysis_version}, questions would be by {ANALYSIS_VERSION}"
        raise IndexMismatchError(msg)
    passages = _read_passages(folder / PASSAGES)
    vectors = read_vectors(folder / DENSE)
    model = load_bm25(folder / BM25)
    counts = {len(passages), vectors.ntotal, model.scores["num_docs"], manifest.n_passages}
    if len(counts) > 1 or vectors.d != manifest.dimension:
        msg = (
            f"holds {len(passages):,} passages, {vectors.ntotal:,} vectors of {vectors.d} numbers and BM25 scores of "
            f"{model.scores['num_docs']:,} passages; expected {manifest.n_passages:,} and {manifest.dimension}"
        )
        raise IndexMismatchError(msg)
    order, hidden = tie_order(passages), hidden_passages(passages, manifest.analyser)
    context = None
    if manifest.context_passages:
        analyser = context_analyser(manifest.analyser)
        context = Bm25sRetriever(load_bm25(folder / CONTEXT), analyser, passages, order, hidden, "context")
    return Index(
        manifest=manifest,
        passages=passages,
        position_of={passage.passage_id: n for n, passage in enumerate(passages)},
        folder=folder,
        order=order,
        hidden=hidden,
        bm25s=Bm25sRetriever(model, manifest.analyser, passages, order, hidden),
        rank_bm25=RankBm25Retriever(manifest.analyser, passages, order, hidden, manifest.bm25_k1, manifest.bm25_b),
        context=context,
        vectors=vectors,
    )


def _read_passages(path: Path) -> tuple[Passage, ...]:
    from pydantic import TypeAdapter, ValidationError

    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    try:
        return TypeAdapter(tuple[Passage, ...]).validate_json(b"[" + b",".join(lines) + b"]", strict=True)
    except ValidationError as error:
        msg = f"{path.name} does not hold one passage a line: {error.errors()[0]['msg']}"
        raise IndexMismatchError(msg) from error


def _entry(name: str, indexes: Path) -> IndexEntry:
    try:
        return IndexEntry(name, index_info(name, indexes))
    except IndexingError as error:
        return IndexEntry(name, None, str(error))


def _identity(folder: Path) -> tuple[int, int] | None:
    """Which folder this is, whatever its name; None where there is none."""
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
