"""Passages on disk: one JSON object a line, where lines begin and where ids are; read as they are asked for."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from itertools import compress
from pathlib import Path
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from ragqa.errors import IndexMismatchError
from ragqa.index.manifest import HIDDEN, IDS, OFFSETS, ORDER, PASSAGES
from ragqa.retrieval.analysis import keys_of
from ragqa.retrieval.ranking import Mask, Positions
from ragqa.types import Passage

REMEMBERED: Final = 16_384  # parsed passages cached, all of a small corpus: at most some 20 MB
READ_AT_ONCE: Final = 1024  # lines parsed together where all are wanted: twice as fast
BYTES_AT_ONCE: Final = 2**20  # likewise
_FIELDS: Final = tuple(field.name for field in fields(Passage))
_OPTIONAL: Final = frozenset({"place", "effective", "until", "items"})  # not written where empty


class PassageFile(Sequence[Passage]):
    """The passages of an index in their order, each parsed when it is asked for; a slice is a tuple.

    The file stays readable when it is deleted. Nothing changes after construction: share it between threads.
    An access raises IndexMismatchError where a line is no passage.
    """

    def __init__(self, folder: Path) -> None:
        """Raises IndexMismatchError unless the lines begin where they should and the first and last are passages."""
        self._offsets = _mapped(folder / OFFSETS, np.int64)
        with (folder / PASSAGES).open("rb") as file:
            size = file.seek(0, 2)
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        if len(self._offsets) < 2 or self._offsets[0] != 0 or self._offsets[-1] != size:
            msg = f"{PASSAGES} has {size:,} bytes, which is not what {OFFSETS} says; they are of different indexes"
            raise IndexMismatchError(msg)
        self._one = TypeAdapter(Passage)
        self._many = TypeAdapter(tuple[Passage, ...])
        self._remembered = lru_cache(REMEMBERED)(self._parsed)
        _ = self[0], self[-1]

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, position: int) -> Passage: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[Passage, ...]: ...

    def __getitem__(self, position: int | slice) -> Passage | tuple[Passage, ...]:
        if isinstance(position, slice):
            return tuple(self[n] for n in range(*position.indices(len(self))))
        if not -len(self) <= position < len(self):
            raise IndexError(f"expected a position below {len(self):,}, found {position:,}")
        return self._remembered(position % len(self))

    def __iter__(self) -> Iterator[Passage]:
        for start in range(0, len(self), READ_AT_ONCE):
            lines = self._lines(start, min(start + READ_AT_ONCE, len(self)))
            yield from self._valid(self._many, b"[" + b",".join(lines.removesuffix(b"\n").split(b"\n")) + b"]")

    def _parsed(self, position: int) -> Passage:
        passage: Passage = self._valid(self._one, self._lines(position, position + 1))
        return passage

    def _lines(self, start: int, stop: int) -> bytes:
        return self._bytes[int(self._offsets[start]) : int(self._offsets[stop])]

    def _valid(self, adapter: Any, text: bytes) -> Any:  # noqa: ANN401 - a pydantic.TypeAdapter and what it makes
        try:
            return adapter.validate_json(text, strict=True)
        except ValueError as error:  # a pydantic.ValidationError, which is loaded where an index is opened alone
            found: Any = error
            msg = f"{PASSAGES} does not hold one passage a line: {found.errors()[0]['msg']}; rebuild the index"
            raise IndexMismatchError(msg) from error


class PositionOf(Mapping[str, int]):
    """Positions by passage id, in the order of the passages; a lookup reads one passage to be sure."""

    def __init__(self, passages: Sequence[Passage], ids: npt.NDArray[np.uint64]) -> None:
        """``ids``, shape (2, n_passages): the ids' keys, rising, and the position of each."""
        self._passages = passages
        self._keys, self._positions = ids

    def __getitem__(self, passage_id: str) -> int:

        [key] = keys_of([passage_id])
        for place in range(int(np.searchsorted(self._keys, key)), len(self._keys)):
            if self._keys[place] != key:
                break
            position = int(self._positions[place])
            if self._passages[position].passage_id == passage_id:
                return position
        raise KeyError(passage_id)

    def of_known(self, names: Sequence[str]) -> list[int]:
        """The positions of ids that are surely this index's own: no passage is read."""
        return self._positions[np.searchsorted(self._keys, keys_of(names))].tolist() if names else []

    def __iter__(self) -> Iterator[str]:
        return (passage.passage_id for passage in self._passages)

    def __len__(self) -> int:
        return len(self._passages)


def line_of(passage: Passage) -> bytes:
    """A passage's line of the file: a JSON object in UTF-8."""
    values = {name: getattr(passage, name) for name in _FIELDS if name not in _OPTIONAL or getattr(passage, name)}
    return (json.dumps(values, ensure_ascii=False) + "\n").encode()


def read_passages(folder: Path, wanted: npt.NDArray[np.bool_] | None = None) -> Iterator[Passage]:
    """The passages of the file in this folder, one after another: for building an index in bounded memory.

    With ``wanted``, shape (n_passages,), only those where it is True.
    """
    many, n_read = TypeAdapter(tuple[Passage, ...]), 0
    with (folder / PASSAGES).open("rb") as file:
        while lines := file.readlines(BYTES_AT_ONCE):
            if wanted is not None:
                n_read += len(lines)
                lines = [*compress(lines, wanted[n_read - len(lines) : n_read])]
            yield from many.validate_json(b"[" + b",".join(lines) + b"]", strict=True)


def open_lookups(folder: Path, n_passages: int) -> tuple[Positions, Mask, npt.NDArray[np.uint64]]:
    """Order of ties, hidden passages and ids, as `portion_files` wrote them. Raises IndexMismatchError."""
    shape = (n_passages,)
    order, hidden = _mapped(folder / ORDER, np.int64, shape), _mapped(folder / HIDDEN, np.bool_, shape)
    return order, hidden, _mapped(folder / IDS, np.uint64, (2, n_passages))


def _mapped(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...] | None = None) -> npt.NDArray[Any]:
    """The array of this file, memory-mapped read-only. Raises IndexMismatchError unless it is of this type and shape.

    Without ``shape`` it may have any length, in one dimension.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise IndexMismatchError(f"expected a NumPy array in {path.name}, found something else ({error})") from error
    if array.dtype != dtype or (array.ndim != 1 if shape is None else array.shape != shape):
        wanted = f"of {np.dtype(dtype)}" + (f" and shape {shape}" if shape else "")
        msg = f"expected an array {wanted} in {path.name}, found {array.dtype} of shape {array.shape}"
        raise IndexMismatchError(msg)
    return np.asarray(array)  # still mapped; np.memmap's own indexing is slower


def cited_in(references: Iterable[bytes]) -> Iterator[tuple[str, str, str]]:
    """Of these lines of `ragqa.index.references` that lead somewhere: the source, the first and the last target."""
    for line in references:
        source, _, _, target, last, _ = json.loads(line)
        if target:
            yield source, target, last or target
