"""Passages on disk: a file with one JSON object a line, and arrays to find lines and ids; each is read at access.

Behind the passages, the file has their numbered items and the units that were cut into passages, a line each
(`itemised`): what has a number can be found under it. No retriever ranks these lines.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from itertools import compress, takewhile
from pathlib import Path
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from ragqa.errors import IndexMismatchError
from ragqa.index.manifest import HIDDEN, IDS, OFFSETS, ORDER, PASSAGES
from ragqa.infra.files import flush
from ragqa.retrieval.analysis import keys_of
from ragqa.retrieval.ranking import Mask, Positions
from ragqa.types import Passage

REMEMBERED: Final = 16_384  # parsed passages cached, all of a small corpus: at most some 20 MB
READ_AT_ONCE: Final = 1024  # lines parsed together when all are read: twice as fast
BYTES_AT_ONCE: Final = 2**20  # bytes read together, for the same reason
ITEM: Final = "@"  # in the id of an item, between that of its passage and its number
_FIELDS: Final = tuple(field.name for field in fields(Passage))
_OPTIONAL: Final = frozenset({"place", "effective", "until", "items"})  # not written if empty


class PassageFile(Sequence[Passage]):
    """The passages of an index in order, each parsed at access; a slice is a tuple.

    The file stays readable after it is deleted. Threads may share this object, as it does not change after
    construction. An access raises IndexMismatchError if a line is not a passage.
    """

    def __init__(self, folder: Path) -> None:
        """Raises IndexMismatchError unless the offsets fit the file and its first and last lines are passages.

        The lines after the last offset must be items.
        """
        self._offsets = _mapped(folder / OFFSETS, np.int64)
        with (folder / PASSAGES).open("rb") as file:
            size = file.seek(0, 2)
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        end = int(self._offsets[-1]) if len(self._offsets) > 1 and self._offsets[0] == 0 else -1
        beyond = self._bytes[end : self._bytes.find(b"\n", end)] if 0 < end < size else b""
        if end != size and not (beyond and ITEM in self._valid(TypeAdapter(Passage), beyond).passage_id):
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
        except ValueError as error:  # a pydantic.ValidationError
            found: Any = error
            msg = f"{PASSAGES} does not hold one passage a line: {found.errors()[0]['msg']}; rebuild the index"
            raise IndexMismatchError(msg) from error


class PositionOf(Mapping[str, int]):
    """Positions by passage id, in the order of the passages; a lookup reads a passage to confirm its id."""

    def __init__(self, passages: Sequence[Passage], ids: npt.NDArray[np.uint64]) -> None:
        """``ids`` has the keys of the ids, ascending, and the position of each; shape (2, n_passages)."""
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
        """The positions of ids that must be in this index; no passage is read."""
        return self._positions[np.searchsorted(self._keys, keys_of(names))].tolist() if names else []

    def __iter__(self) -> Iterator[str]:
        return (passage.passage_id for passage in self._passages)

    def __len__(self) -> int:
        return len(self._passages)


def line_of(passage: Passage) -> bytes:
    """The line of this passage in the file: a JSON object in UTF-8."""
    values = {name: getattr(passage, name) for name in _FIELDS if name not in _OPTIONAL or getattr(passage, name)}
    return (json.dumps(values, ensure_ascii=False) + "\n").encode()


def read_passages(folder: Path, wanted: npt.NDArray[np.bool_] | None = None) -> Iterator[Passage]:
    """Yields the passages of the file in this folder, to build an index in bounded memory.

    With ``wanted``, shape (n_passages,), only the passages for which it is True.
    """
    many, n_read = TypeAdapter(tuple[Passage, ...]), 0
    with (folder / PASSAGES).open("rb") as file:
        while lines := file.readlines(BYTES_AT_ONCE):
            if wanted is not None:
                n_read += len(lines)
                lines = [*compress(lines, wanted[n_read - len(lines) : n_read])]
            yield from many.validate_json(b"[" + b",".join(lines) + b"]", strict=True)


def itemised(passages: Sequence[Passage], position: int) -> tuple[Passage, ...]:
    """What begins in the passage at this position and has a number: its items in order, and units that were cut.

    Each is a passage with the id ``PASSAGE_ID@NUMBER``. The parts of a unit that was cut are joined, a line each after
    its own number.
    """
    from ragqa.corpus.files import unique  # not needed to open an index

    passage = passages[position]
    cut = [(number, position - end) for _, end, number in passage.spans() if end < 0]
    wholes = ((number, _joined(passages[position:end], number)) for number, end in cut)
    places = (*passage.places(), *wholes)
    ids = unique([f"{passage.passage_id}{ITEM}{number}" for number, _ in places])
    return tuple(
        replace(passage, passage_id=name, text=text, number=number, items="")
        for name, (number, text) in zip(ids, places, strict=True)
    )


def _joined(passages: Sequence[Passage], number: str) -> str:
    """The texts of these parts of a unit, each after what its number adds to that of the part before.

    The head of a table that was cut is repeated in its parts, and not here.
    """
    lines, before, head = [], number.split("."), ""
    for one in passages:
        own = one.number.split(".")
        n_same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(own, before, strict=False)))
        added, (first, *rest) = " ".join(filter(None, own[n_same:])), one.text.split("\n")
        text = "\n".join(rest) if rest and first == head and own == before else one.text
        lines.append(f"{added}\t{text}" if added else text)
        before, head = own, first
    return "\n".join(lines)


def add_items(folder: Path) -> None:
    """Appends what `itemised` gives for all passages to the file of the passages, whose offsets are written."""
    passages = PassageFile(folder)
    with (folder / PASSAGES).open("ab") as file:
        for position in range(len(passages)):
            file.writelines(map(line_of, itemised(passages, position)))
    flush(folder / PASSAGES)


def open_lookups(folder: Path, n_passages: int) -> tuple[Positions, Mask, npt.NDArray[np.uint64]]:
    """The order at ties, the hidden passages and the ids, as `ragqa.index.portions.write_lookups` writes them.

    Raises IndexMismatchError.
    """
    shape = (n_passages,)
    order, hidden = _mapped(folder / ORDER, np.int64, shape), _mapped(folder / HIDDEN, np.bool_, shape)
    return order, hidden, _mapped(folder / IDS, np.uint64, (2, n_passages))


def _mapped(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...] | None = None) -> npt.NDArray[Any]:
    """The array of this file, memory-mapped read-only. Raises IndexMismatchError unless it is of this type and shape.

    Without ``shape`` it must have one dimension, of any length.
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
    """The source, first and last target of the resolved references among these lines of `ragqa.index.references`."""
    for line in references:
        source, _, _, target, last, _ = json.loads(line)
        if target:
            yield source, target, last or target
