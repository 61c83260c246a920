"""The passages and vectors of an index in a Milvus collection, so that the asking machine stores no corpus.

Each passage has a row with a key. The ``rows`` of an index map positions to keys, since an update does not move
unchanged rows. `MilvusVectors` takes the place of a FAISS index. For BM25 see `ragqa.retrieval.milvus.bm25`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from ragqa.errors import IndexingError
from ragqa.infra.disk_cache import RecentResults
from ragqa.plugins.protocols import FloatMatrix
from ragqa.retrieval.milvus.client import MOST, MOST_PARTS, ROWS_AT_ONCE, FloatVector, Milvus, Sparse, mark_of
from ragqa.retrieval.ranking import Positions
from ragqa.types import Passage

REMEMBERED: Final = 16_384  # passages that a process caches, as passages just found are read next
PART_CHARS: Final = 16_000  # of a passage: a text in Milvus has at most 65,535 bytes
LOOKED_AFTER: Final = 5.0  # seconds between checks that no update has removed rows of this index
NOTHING: Final = {0: 1.0}  # for a passage without a word: Milvus requires a weight; no token has number 0


@cache
def _one() -> TypeAdapter[Passage]:
    return TypeAdapter(Passage)


def row_of(row: int, since: int, passage: Passage, *, hidden: bool, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the collection; ``fields`` are its vector and sparse fields. Raises IndexingError."""
    text = json.dumps(asdict(passage), ensure_ascii=False)
    parts = [text[start : start + PART_CHARS] for start in range(0, len(text), PART_CHARS)]
    if len(parts) > MOST_PARTS:
        msg = f"passage {passage.passage_id!r} has {len(text):,} characters, more than Milvus keeps; cut it in two"
        raise IndexingError(msg)
    own = {"row": row, "since": since, "hidden": hidden, "passage": parts}
    return own | {name: value or NOTHING if isinstance(value, dict) else value for name, value in fields.items()}


def mark_row(generation: int, dimension: int, sparse: Sequence[str]) -> dict[str, Any]:
    """The row that marks a generation."""
    dense = {"dense": np.eye(1, dimension, dtype=np.float32)[0]} if dimension else {}
    own = {"row": mark_of(generation), "since": generation, "hidden": True, "passage": ["{}"]}
    return own | dense | dict.fromkeys(sparse, NOTHING)


def _passage(parts: Sequence[str]) -> Passage:
    return _one().validate_json("".join(parts))


def placed(rows: Positions) -> Positions:
    """The keys by position, and the positions in the order of their keys; shape (2, n)."""
    return np.stack([rows, np.argsort(rows, kind="stable")]).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class EngineHits:
    """The hits of a search, best first. ``is_all``: the engine has no more; ``last`` is the score of its last row."""

    positions: Positions  # (n,)
    scores: FloatMatrix  # (n,), by the engine
    values: list[Any]  # (n,), of the additional field
    is_all: bool
    last: float


class MilvusPassages(Sequence[Passage]):
    """The passages of an index in order; a few thousand that were read or found are cached."""

    def __init__(self, milvus: Milvus, rows: Positions, generation: int) -> None:
        """``rows`` is the result of `placed`."""
        self.milvus, self.generation = milvus, generation
        self._rows, self._by_row = rows
        self._kept: RecentResults[int, Passage] = RecentResults(REMEMBERED)
        self._looked = float("-inf")

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, position: int) -> Passage: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[Passage, ...]: ...

    def __getitem__(self, position: int | slice) -> Passage | tuple[Passage, ...]:
        if isinstance(position, slice):
            return self._many(range(*position.indices(len(self))))
        if not -len(self) <= position < len(self):
            raise IndexError(f"expected a position below {len(self):,}, found {position:,}")
        return self._many([position % len(self)])[0]

    def __iter__(self) -> Iterator[Passage]:
        for start in range(0, len(self), ROWS_AT_ONCE):
            yield from self._many(range(start, min(start + ROWS_AT_ONCE, len(self))))

    def search(self, field: str, asked: FloatVector | Sparse, most: int, effort: int = 0, also: str = "") -> EngineHits:
        """At most ``most`` passages of this index; rows of other generations are left out. The passages are cached."""
        now = time.monotonic()
        if now > self._looked + LOOKED_AFTER:
            self.milvus.check_mark(self.generation)
            self._looked = now
        hits = self.milvus.search(field, asked, most, self.generation, effort, also)
        positions = self._positions_of([row for row, _, _ in hits])
        ours = [(position, *hit[1:]) for position, hit in zip(positions.tolist(), hits, strict=True) if position >= 0]
        self._kept.remember({position: _passage(entity["passage"]) for position, _, entity in ours})
        return EngineHits(
            np.array([position for position, _, _ in ours], dtype=np.int64),
            np.array([score for _, score, _ in ours], dtype=np.float32),
            [entity.get(also) for _, _, entity in ours],
            len(hits) < min(most, MOST) or most >= MOST,
            hits[-1][1] if hits else 0.0,
        )

    def field(self, positions: Sequence[int], name: str) -> list[Any]:
        """This field of the passages at these positions. Raises IndexingError, IndexMismatchError."""
        keys = self._rows[np.asarray(positions, dtype=np.int64)].tolist()
        values: dict[int, Any] = {}
        for start in range(0, len(keys), ROWS_AT_ONCE):
            values |= self.milvus.rows(keys[start : start + ROWS_AT_ONCE], name)
        return [values[key] for key in keys]

    def _positions_of(self, rows: Sequence[int]) -> Positions:
        """The positions of the rows with these keys; -1 for rows that are no passage of this index."""
        wanted = np.array(rows, dtype=np.int64)
        places = np.minimum(np.searchsorted(self._rows, wanted, sorter=self._by_row), len(self._rows) - 1)
        positions = self._by_row[places]
        return np.where(self._rows[positions] == wanted, positions, -1)

    def _many(self, positions: Sequence[int]) -> tuple[Passage, ...]:
        there = self._kept.known(positions)
        missing = [position for position in positions if position not in there]
        for position, parts in zip(missing, self.field(missing, "passage") if missing else (), strict=True):
            there[position] = _passage(parts)
        self._kept.remember(there)
        return tuple(there[position] for position in positions)


class MilvusVectors:
    """The part of a FAISS index that `DenseRetriever`, checks and builds use. Hidden passages are never found."""

    def __init__(self, passages: MilvusPassages, dimension: int, effort: int) -> None:
        self.d, self.ntotal = dimension, len(passages)
        self._passages = passages
        self._effort = effort

    def search(self, query: FloatMatrix, most: int, params: object = None) -> tuple[FloatMatrix, Positions]:
        """Scores and positions, each of shape (1, most); positions are padded with -1, as in FAISS."""
        del params
        wanted = most
        while True:  # until there are enough hits besides rows that an update has dropped
            hits = self._passages.search("dense", query[0].tolist(), wanted, self._effort)
            if hits.is_all or len(hits.positions) >= most:
                break
            wanted = min(2 * wanted, MOST)
        scores, positions = hits.scores[:most], hits.positions[:most]
        left = most - len(positions)
        return np.pad(scores, (0, left))[None], np.pad(positions, (0, left), constant_values=-1)[None]

    def reconstruct_n(self, start: int, count: int) -> FloatMatrix:
        """The vectors from ``start`` on, shape (count, d)."""
        return self.reconstruct_batch(np.arange(start, start + count))

    def reconstruct_batch(self, positions: npt.NDArray[np.int64]) -> FloatMatrix:
        """The vectors at these positions, shape (n, d)."""
        return np.array(self._passages.field(positions.tolist(), "dense"), dtype=np.float32).reshape(-1, self.d)
