"""Dense retrieval: inner product over unit vectors (= cosine) with FAISS.

The vectors of the passages are a FAISS file: exact, or approximate for corpora too large for an exact search.

=================  =================================================================================================
``Flat``           a question is compared with every vector: exact
``SQ8, SQfp16``    the same with vectors rounded to a quarter or half of the bytes
``IVF4096,SQ8``    4,096 groups of similar vectors; a question is compared with the nearest quarter of the groups
``IVF4096,PQ48``   the same with 48 bytes a vector: small, and far from exact
``HNSW32``         a graph of neighbours that is walked towards the question; slow to build and to open, and dozens of
                   equal vectors can be cut off from the rest; ``HNSW32_SQ8``: a quarter of the bytes
=================  =================================================================================================

Files are written in bounded memory, byte for byte as FAISS writes an index from memory. FAISS writes the description of
an index first and the codes of its vectors last. So the file starts as that of an empty index with another count, and
codes follow, a block at a time (`faiss/impl/index_write.cpp`). The graph and vectors of HNSW are built in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import numpy as np
import numpy.typing as npt

from ragqa.errors import ConfigError, IndexMismatchError, ModelError
from ragqa.plugins.protocols import Encoder, FloatMatrix
from ragqa.retrieval.ranking import CorpusRanker, Positions, Rankable
from ragqa.types import Ranking

GROUPS_SEARCHED: Final = 1 / 4  # of IVF: finds .97 (.99) of the exact top 100 (10), 200 ADGM questions; 1/8: .91 (.97)
HNSW_EFFORT: Final = 512  # candidates held during the walk: .99 of the exact top 100 of 130,000 ADGM-like vectors
CHECKED_AT_ONCE: Final = 65_536  # vectors, 100 MB of 384 numbers
LEAST_PER_GROUP: Final = 39  # vectors to train a group with: FAISS's own minimum
PQ_GROUPS: Final = 256  # values of one byte of PQ
ADDED_AT_ONCE: Final = 16_384  # vectors, 24 MB of 384 numbers
TRAINED_PER_GROUP: Final = 64
TRAINED_AT_LEAST: Final = 65_536
_SEED: Final = 1
_COUNT: Final = 8  # offset of the number of vectors in a file: after four letters and the dimension
_LISTS: Final = 32  # bytes at the end of an empty IVF index: "ilar", groups, bytes a code, "sprs", 0

Longs = npt.NDArray[np.int64]


def _faiss() -> Any:  # noqa: ANN401 - a module, whose type stubs describe the C++ constructors
    import faiss

    return faiss


def search_effort(kind: str) -> int:
    """The search effort of an approximate index, 0 for an exact one.

    IVF: the number of groups searched (FAISS's nprobe). HNSW: the number of candidates held (efSearch). Both the FAISS
    file and the manifest store it.
    """
    if kind.startswith("IVF"):
        return max(1, round(groups_of(kind) * GROUPS_SEARCHED))
    return HNSW_EFFORT if kind.startswith("HNSW") else 0


def check_size(kind: str, n_passages: int) -> None:
    """Raises ConfigError if there are too few passages to train this kind of index."""
    needed = LEAST_PER_GROUP * max(groups_of(kind), PQ_GROUPS if "PQ" in kind else 0)
    if n_passages < needed:
        raise ConfigError(
            f"vectors {kind!r} need at least {needed:,} passages to learn from, found {n_passages:,}; choose fewer "
            "groups, or --vectors Flat, which is exact and quick at this size"
        )


def check_kind(kind: str, dimension: int) -> None:
    """Raises ConfigError if FAISS cannot make this kind of index for vectors of this dimension."""
    empty_index(kind, dimension)


def read_vectors(path: Path, kind: str = "Flat") -> Any:  # noqa: ANN401 - a faiss.Index
    """The FAISS index of this file, memory-mapped. It opens in milliseconds, except that the graph of HNSW is read.

    Raises IndexMismatchError unless it is of this kind.
    """
    faiss = _faiss()
    try:
        index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        reason = str(error).rpartition("Error: ")[2]
        raise IndexMismatchError(f"expected FAISS vectors in {path.name}, found something else ({reason})") from error
    expected = empty_index(kind, index.d)
    is_flat = isinstance(expected, faiss.IndexFlat) and isinstance(index, faiss.IndexFlat)
    same = is_flat or type(index) is type(expected)
    if not same or index.metric_type != faiss.METRIC_INNER_PRODUCT or getattr(index, "nlist", 0) != groups_of(kind):
        msg = f"expected a FAISS index {kind!r} of inner products in {path.name}, found {type(index).__name__}"
        raise IndexMismatchError(msg)
    return index


def search_parameters(index: Any, shown: npt.NDArray[np.uint8] | None) -> Any:  # noqa: ANN401 - FAISS's own types
    """FAISS's search parameters that restrict a search to some vectors; None if ``shown`` is None.

    Bit i of ``shown``, lowest first, says whether vector i may be found; the array must outlive the result. The search
    effort is that of the index.
    """
    if shown is None:
        return None
    faiss = _faiss()
    selector = faiss.IDSelectorBitmap(shown)
    if isinstance(index, faiss.IndexIVF):
        return faiss.SearchParametersIVF(sel=selector, nprobe=index.nprobe)
    if isinstance(index, faiss.IndexHNSW):
        return faiss.SearchParametersHNSW(sel=selector, efSearch=index.hnsw.efSearch)
    return faiss.SearchParameters(sel=selector)


def poor_vectors(index: Any, kind: str) -> bool:  # noqa: ANN401 - a faiss.Index
    """Whether any vector is not finite or not of length 1; a rounded vector may have a length of 0.5 to 1.5."""
    slack = 0.5 if "SQ" in kind or "PQ" in kind else 1e-3
    for start in range(0, index.ntotal, CHECKED_AT_ONCE):
        rows = index.reconstruct_n(start, min(CHECKED_AT_ONCE, index.ntotal - start))
        if not np.allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=0, atol=slack):  # False for NaN and infinity, too
            return True
    return False


def groups_of(kind: str) -> int:
    """The number of groups of an IVF index, 0 for other kinds."""
    match = re.match(r"IVF(\d+)", kind)
    return int(match[1]) if match else 0


def empty_index(kind: str, dimension: int) -> Any:  # noqa: ANN401 - a faiss.Index
    """An empty inner-product index of this kind. Raises ConfigError if FAISS cannot make one."""
    faiss = _faiss()
    try:
        return faiss.index_factory(dimension, kind, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        reason = str(error).rpartition("Error: ")[2].rpartition("failed: ")[2].strip() or str(error)
        raise ConfigError(
            f"expected vectors that FAISS can make of {dimension} numbers, found {kind!r} ({reason}); choose --vectors "
            "Flat, IVF4096,SQ8 or HNSW32 (the number after PQ must divide that of the encoder)"
        ) from error


# Writing ------------------------------------------------------------------------------------------------------------


class Rows(Protocol):
    """Vectors of shape (n_vectors, dimension), in memory or on disk, that can be indexed by an array of row numbers."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: Longs, /) -> Any: ...  # noqa: ANN401 - an array of shape (len(rows), dimension)


def write_vectors(vectors: Rows, path: Path, kind: str = "Flat", rows: Longs | None = None) -> None:
    """Writes an inner-product FAISS index of this kind, whose vector i is ``vectors[rows[i]]``.

    ``vectors``, shape (n_distinct, dimension), rows of length 1, is read in pieces. An index that needs training is
    trained on a sample with a fixed seed. Raises ConfigError if FAISS cannot make the index.
    """
    faiss = _faiss()
    rows = np.arange(vectors.shape[0]) if rows is None else rows
    index = empty_index(kind, vectors.shape[1])
    if not index.is_trained:
        wanted = max(TRAINED_PER_GROUP * groups_of(kind), TRAINED_AT_LEAST)
        sample = np.arange(len(rows))
        if len(rows) > wanted:
            sample = np.sort(np.random.default_rng(_SEED).choice(len(rows), wanted, replace=False))
        index.train(_taken(vectors, rows[sample]))
    if isinstance(index, faiss.IndexIVF):
        index.nprobe = search_effort(kind)
        _write_lists(index, vectors, rows, path)
    elif isinstance(index, faiss.IndexHNSW):
        index.hnsw.efSearch = search_effort(kind)
        for _, block in _blocks(vectors, rows):
            index.add(block)
        faiss.write_index(index, str(path))
    else:
        _write_codes(index, vectors, rows, path)


def _taken(vectors: Rows, rows: Longs) -> FloatMatrix:
    return np.ascontiguousarray(vectors[rows], dtype=np.float32)


def _blocks(vectors: Rows, rows: Longs) -> Iterator[tuple[int, FloatMatrix]]:
    for start in range(0, len(rows), ADDED_AT_ONCE):
        yield start, _taken(vectors, rows[start : start + ADDED_AT_ONCE])


def _write_codes(index: Any, vectors: Rows, rows: Longs, path: Path) -> None:  # noqa: ANN401 - a faiss.IndexFlatCodes
    """Writes an index that is a list of codes: its file ends with their size, in bytes or numbers, and the codes."""
    faiss = _faiss()
    head = _head(index, len(rows), 8)
    units = index.code_size // 4 if isinstance(index, faiss.IndexFlat) else index.code_size
    with path.open("wb") as file:
        file.write(head)
        file.write(np.int64(len(rows) * units).tobytes())
        for _, block in _blocks(vectors, rows):
            index.sa_encode(block).tofile(file)


def _write_lists(index: Any, vectors: Rows, rows: Longs, path: Path) -> None:  # noqa: ANN401 - a faiss.IndexIVF
    """Writes an index of groups: its file ends with the size of each group and then its vectors' codes and places."""
    group_of = np.empty(len(rows), dtype=np.int64)
    for start, block in _blocks(vectors, rows):
        group_of[start : start + len(block)] = index.quantizer.assign(block, 1)[:, 0]
    by_group = np.argsort(group_of, kind="stable")
    sizes = np.bincount(group_of, minlength=index.nlist)
    ends = np.cumsum(sizes)
    with path.open("wb") as file:
        file.write(_head(index, len(rows), _LISTS))
        _write_sizes(index, sizes, file)
        first = 0
        while first < len(sizes):  # whole groups, as many as fit into a block
            begin = ends[first] - sizes[first]
            last = max(first + 1, int(np.searchsorted(ends, begin + ADDED_AT_ONCE, side="right")))
            places = by_group[begin : ends[last - 1]]
            codes = np.empty((len(places), index.code_size), dtype=np.uint8)
            for start, block in _blocks(vectors, rows[places]):
                codes[start : start + len(block)] = _codes(index, block, group_of[places[start : start + len(block)]])
            for group in range(first, last):
                held = slice(ends[group] - sizes[group] - begin, ends[group] - begin)
                codes[held].tofile(file)
                places[held].tofile(file)
            first = last


def _write_sizes(index: Any, sizes: Longs, file: BinaryIO) -> None:  # noqa: ANN401
    used = np.flatnonzero(sizes)
    all_said = len(used) > index.nlist // 2
    described = sizes if all_said else np.stack([used, sizes[used]], axis=1).ravel()
    file.write(b"ilar" + np.array([index.nlist, index.code_size], dtype=np.int64).tobytes())
    file.write((b"full" if all_said else b"sprs") + np.int64(len(described)).tobytes() + described.tobytes())


def _codes(index: Any, block: FloatMatrix, groups: Longs) -> npt.NDArray[np.uint8]:  # noqa: ANN401
    faiss = _faiss()
    codes = np.empty((len(block), index.code_size), dtype=np.uint8)
    groups = np.ascontiguousarray(groups)
    pointer = faiss.swig_ptr
    index.encode_vectors(len(block), pointer(block), pointer(groups), pointer(codes))
    return codes


def _head(index: Any, n_vectors: int, n_left_out: int) -> bytes:  # noqa: ANN401
    """The file content of this empty index, with this count of vectors and without its last ``n_left_out`` bytes."""
    faiss = _faiss()
    head = bytearray(faiss.serialize_index(index).tobytes()[:-n_left_out])
    head[_COUNT : _COUNT + 8] = np.int64(n_vectors).tobytes()
    return bytes(head)


class DenseRetriever(CorpusRanker):
    """Ranks by cosine. A search does not change the FAISS index.

    FAISS searches for one question in one thread, so its OpenMP settings do not matter here.
    """

    def __init__(self, vectors: Any, corpus: Rankable, encoder: Encoder, name: str = "dense") -> None:  # noqa: ANN401
        """``vectors`` is a faiss.Index."""
        super().__init__(name, corpus)
        hidden = corpus.hidden
        self._n_shown = len(hidden) - int(np.count_nonzero(hidden))
        some_hidden = self._n_shown < len(hidden)
        self._bitmap = np.packbits(~hidden, bitorder="little") if some_hidden else None  # FAISS reads it in place
        self._parameters = search_parameters(vectors, self._bitmap)
        self._vectors = vectors
        self._encoder = encoder

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """The ``top_k`` passages of highest cosine in [-1, 1], however low; none for a blank question.

        An approximate index rounds cosines and may miss a passage.
        """
        if not question.strip() or top_k < 1:
            return Ranking(self.name, ())
        query = self._encoder.encode_query(question)
        check_unit_rows(query, 1, self._encoder.info.name)
        if query.shape[1] != self._vectors.d:
            raise IndexMismatchError(
                f"the index holds vectors of {self._vectors.d} numbers, the encoder {self._encoder.info.name} makes "
                f"{query.shape[1]}; rebuild the index with this encoder (`ragqa index build`)"
            )
        return self._best(*self._nearest(query, top_k), top_k)

    def _nearest(self, query: FloatMatrix, top_k: int) -> tuple[Positions, FloatMatrix]:
        """At least the ``top_k`` nearest passages and all that tie with the last (FAISS cuts ties arbitrarily).

        An approximate index may find fewer passages, and finds only the ties in the part that it searches.
        """
        total = self._n_shown
        wanted = min(top_k + 1, total)
        while True:
            scores, positions = self._vectors.search(query, wanted, params=self._parameters)
            n_nearest = int(np.count_nonzero(positions[0] >= 0))  # FAISS fills up with -1 at the end
            if n_nearest < wanted or wanted == total or scores[0, -1] < scores[0, top_k - 1]:
                return positions[0, :n_nearest], scores[0, :n_nearest]
            wanted = min(2 * wanted, total)


def check_unit_rows(vectors: FloatMatrix, n_texts: int, encoder_name: str) -> None:
    """Raises ModelError unless ``vectors`` has one finite row of length 1 per text."""
    if vectors.ndim != 2 or len(vectors) != n_texts or vectors.shape[1] == 0:
        problem = f"an array of shape {vectors.shape}"
    elif not np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3):  # False for NaN and infinity, too
        problem = "rows that are not finite or not of length 1"
    else:
        return
    raise ModelError(
        f"expected {n_texts} vectors of length 1 from the encoder {encoder_name}, found {problem}; "
        "choose another encoder, for example all-MiniLM-L6-v2"
    )
