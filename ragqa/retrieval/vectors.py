"""Passages' vectors as a FAISS file: exact, or approximate for corpora too large to compare a question with all of it.

=================  =================================================================================================
``Flat``           every vector, every comparison: exact
``SQ8, SQfp16``    likewise with a quarter or half of the bytes, rounded
``IVF4096,SQ8``    4,096 groups of similar vectors, of which a question is compared with the nearest quarter
``IVF4096,PQ48``   likewise with 48 bytes a vector: small, and far from exact
``HNSW32``         a graph of neighbours that is walked towards the question; slow to build and to open, and where
                   dozens of vectors are equal they can be cut off from the rest; ``HNSW32_SQ8``: a quarter of the bytes
=================  =================================================================================================
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import faiss
import numpy as np
import numpy.typing as npt

from ragqa.errors import ConfigError, IndexMismatchError

GROUPS_SEARCHED: Final = 1 / 4  # of IVF's: of the exact top 100 (10) of 200 ADGM questions .97 (.99); 1/8: .91 (.97)
HNSW_EFFORT: Final = 512  # candidates kept while walking: .99 of the exact top 100 of 130,000 ADGM-like vectors
CHECKED_AT_ONCE: Final = 65_536  # vectors, 100 MB of 384 numbers
LEAST_PER_GROUP: Final = 39  # FAISS's own limit below which a group is not well placed
PQ_GROUPS: Final = 256  # places that each byte of PQ can name
_LIBRARY: Any = faiss  # its type stubs describe the C++ constructors


def search_effort(kind: str) -> int:
    """How much of an approximate index a question is compared with, 0 where all of it is.

    IVF: groups (FAISS's nprobe); HNSW: candidates (efSearch). The FAISS file holds it, the manifest repeats it.
    """
    if kind.startswith("IVF"):
        return max(1, round(groups_of(kind) * GROUPS_SEARCHED))
    return HNSW_EFFORT if kind.startswith("HNSW") else 0


def check_size(kind: str, n_passages: int) -> None:
    """Raises ConfigError where there are too few passages to train this kind of index."""
    needed = LEAST_PER_GROUP * max(groups_of(kind), PQ_GROUPS if "PQ" in kind else 0)
    if n_passages < needed:
        msg = (
            f"vectors {kind!r} need at least {needed:,} passages to learn from, found {n_passages:,}; choose fewer "
            "groups, or --vectors Flat, which is exact and quick at this size"
        )
        raise ConfigError(msg)


def check_kind(kind: str, dimension: int) -> None:
    """Raises ConfigError where FAISS cannot make this kind of index of vectors of so many numbers."""
    empty_index(kind, dimension)


def read_vectors(path: Path, kind: str = "Flat") -> Any:  # noqa: ANN401 - a faiss.Index
    """The FAISS index of this file, memory-mapped: milliseconds to open (HNSW: its graph is read and checked).

    Raises IndexMismatchError unless it is of this kind.
    """
    try:
        index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        reason = str(error).rpartition("Error: ")[2]
        msg = f"expected FAISS vectors in {path.name}, found something else ({reason})"
        raise IndexMismatchError(msg) from error
    expected = empty_index(kind, index.d)
    is_flat = isinstance(expected, faiss.IndexFlat) and isinstance(index, faiss.IndexFlat)
    same = is_flat or type(index) is type(expected)
    if not same or index.metric_type != faiss.METRIC_INNER_PRODUCT or getattr(index, "nlist", 0) != groups_of(kind):
        msg = f"expected a FAISS index {kind!r} of inner products in {path.name}, found {type(index).__name__}"
        raise IndexMismatchError(msg)
    return index


def search_parameters(index: Any, shown: npt.NDArray[np.uint8] | None) -> Any:  # noqa: ANN401 - FAISS's own types
    """What a search in this index takes where only some vectors may be found, None where all may.

    Bit i of ``shown``, lowest first, says whether vector i may; the array must outlive what is returned. The effort is
    the index's own.
    """
    if shown is None:
        return None
    selector = _LIBRARY.IDSelectorBitmap(shown)
    if isinstance(index, faiss.IndexIVF):
        return _LIBRARY.SearchParametersIVF(sel=selector, nprobe=index.nprobe)
    if isinstance(index, faiss.IndexHNSW):
        return _LIBRARY.SearchParametersHNSW(sel=selector, efSearch=index.hnsw.efSearch)
    return _LIBRARY.SearchParameters(sel=selector)


def poor_vectors(index: Any, kind: str) -> bool:  # noqa: ANN401 - a faiss.Index
    """Whether any vector is not finite or not of length 1; one that was rounded may be 0.5 to 1.5 long."""
    slack = 0.5 if "SQ" in kind or "PQ" in kind else 1e-3
    for start in range(0, index.ntotal, CHECKED_AT_ONCE):
        rows = index.reconstruct_n(start, min(CHECKED_AT_ONCE, index.ntotal - start))
        if not np.allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=0, atol=slack):  # False for NaN and infinity, too
            return True
    return False


def groups_of(kind: str) -> int:
    """IVF's number of groups, 0 without."""
    found = re.match(r"IVF(\d+)", kind)
    return int(found[1]) if found else 0


def empty_index(kind: str, dimension: int) -> Any:  # noqa: ANN401 - a faiss.Index
    """An index of this kind without a vector, inner product. Raises ConfigError where FAISS cannot make one."""
    try:
        return faiss.index_factory(dimension, kind, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        reason = str(error).rpartition("Error: ")[2].rpartition("failed: ")[2].strip() or str(error)
        msg = (
            f"expected vectors that FAISS can make of {dimension} numbers, found {kind!r} ({reason}); choose --vectors "
            "Flat, IVF4096,SQ8 or HNSW32 (the number after PQ must divide that of the encoder)"
        )
        raise ConfigError(msg) from error
