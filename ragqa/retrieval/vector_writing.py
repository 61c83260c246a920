"""Vectors to a FAISS file in bounded memory, byte for byte the file that FAISS writes of an index it holds.

FAISS writes an index's own description first and its vectors' codes last, so that the file is that of an empty index
with another count, followed by codes made a block at a time (`faiss/impl/index_write.cpp`). Of HNSW this is not true:
its graph and vectors are built in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import faiss
import numpy as np
import numpy.typing as npt

from ragqa.protocols import FloatMatrix
from ragqa.retrieval.vectors import empty_index, groups_of, search_effort

ADDED_AT_ONCE: Final = 16_384  # vectors, 24 MB of 384 numbers
TRAINED_PER_GROUP: Final = 64
TRAINED_AT_LEAST: Final = 65_536
_SEED: Final = 1
_COUNT: Final = 8  # where the number of vectors stands: after four letters and the dimension
_LISTS: Final = 32  # bytes at the end of an empty IVF index: "ilar", groups, bytes a code, "sprs", 0
_LIBRARY: Any = faiss

Longs = npt.NDArray[np.int64]


class Rows(Protocol):
    """Vectors in memory or on disk: an array of shape (n_vectors, dimension), or what gives rows of one as asked."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: Longs, /) -> Any: ...  # noqa: ANN401 - an array of shape (len(rows), dimension)


def write_vectors(vectors: Rows, path: Path, kind: str = "Flat", rows: Longs | None = None) -> None:
    """Writes a FAISS index of this kind, inner product; vector i of it is ``vectors[rows[i]]``.

    ``vectors``, shape (n_distinct, dimension), rows of length 1, is read in pieces. What has to be learnt is learnt
    from a sample of it, the same each time. Raises ConfigError where FAISS cannot make it.
    """
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
    """An index that is a list of codes: its file ends with how many there are, in bytes or numbers, and the codes."""
    head = _head(index, len(rows), 8)
    units = index.code_size // 4 if isinstance(index, faiss.IndexFlat) else index.code_size
    with path.open("wb") as file:
        file.write(head)
        file.write(np.int64(len(rows) * units).tobytes())
        for _, block in _blocks(vectors, rows):
            index.sa_encode(block).tofile(file)


def _write_lists(index: Any, vectors: Rows, rows: Longs, path: Path) -> None:  # noqa: ANN401 - a faiss.IndexIVF
    """An index of groups: its file ends with each group's size, then the codes and places of each group's vectors."""
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
    said = sizes if all_said else np.stack([used, sizes[used]], axis=1).ravel()
    file.write(b"ilar" + np.array([index.nlist, index.code_size], dtype=np.int64).tobytes())
    file.write((b"full" if all_said else b"sprs") + np.int64(len(said)).tobytes() + said.tobytes())


def _codes(index: Any, block: FloatMatrix, groups: Longs) -> npt.NDArray[np.uint8]:  # noqa: ANN401
    codes = np.empty((len(block), index.code_size), dtype=np.uint8)
    groups = np.ascontiguousarray(groups)
    pointer = _LIBRARY.swig_ptr
    index.encode_vectors(len(block), pointer(block), pointer(groups), pointer(codes))
    return codes


def _head(index: Any, n_vectors: int, n_left_out: int) -> bytes:  # noqa: ANN401
    """The file of this index, still empty, without its last bytes and with this count of vectors."""
    head = bytearray(faiss.serialize_index(index).tobytes()[:-n_left_out])
    head[_COUNT : _COUNT + 8] = np.int64(n_vectors).tobytes()
    return bytes(head)
