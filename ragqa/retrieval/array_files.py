"""One-dimensional NumPy files written piece by piece, byte for byte as `np.save` writes the whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt


@contextmanager
def array_file(path: Path, length: int, dtype: npt.DTypeLike) -> Iterator[BinaryIO]:
    """The file, open behind its header, for ``array.tofile`` of pieces that are ``length`` numbers together."""
    described: dict[str, Any] = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (length,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, described)
        yield file
