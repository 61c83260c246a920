"""An index's passages, words and vectors in a Milvus collection, so that a machine that asks holds no corpus.

A collection is written once, whole, by `Milvus.write`, and never changed: another build is another collection. Row
``position`` is passage ``position``: its fields, its vector, and its BM25 scores as sparse fields (``bm25``,
``context``) by the place of each token in the index's vocabulary, so that an inner product with the question's words
is the score that bm25s gives. `MilvusVectors` stands where a FAISS index would, `MilvusBm25` where bm25s's retriever.
"""

from __future__ import annotations

import json
import logging
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from threading import Lock
from typing import Any, Final, overload
from urllib.parse import urlsplit

import numpy as np
from pydantic import TypeAdapter

from ragqa.errors import ConfigError, IndexingError, IndexMismatchError
from ragqa.protocols import FloatMatrix
from ragqa.retrieval.analysis import tokenise
from ragqa.retrieval.bm25 import Bm25sRetriever
from ragqa.retrieval.ranking import Positions
from ragqa.retrieval.token_table import keys_of, places_of
from ragqa.types import Passage, Ranking

SECONDS: Final = 60.0  # for an answer of the server: the first after it was started; flushing has more
SLOW_SECONDS: Final = 600.0
REMEMBERED: Final = 16_384  # passages a process keeps: those just found are asked for at once
MOST: Final = 16_384  # rows that Milvus gives for one question
PART_CHARS: Final = 16_000  # of a passage: a text of Milvus has at most 65,535 bytes
MOST_PARTS: Final = 100
ROWS_AT_ONCE: Final = 500  # rows a request: some 2 MB, of at most 64
NOTHING: Final = {0: 1.0}  # of a passage without a known word: Milvus wants one weight; no token has place 0

Sparse = Mapping[int, float]
FloatVector = Sequence[float]


def check_address(uri: str) -> str:
    """The address as it may be written down. Raises ConfigError where it is none, or holds a login."""
    parts = urlsplit(uri)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
        msg = "expected --uri http://HOST:19530 or https://…, without a login (set RAGQA_MILVUS_TOKEN); correct it"
        raise ConfigError(msg)
    return uri


class Milvus:
    """One collection of a server. Safe between threads; after a failure the next request connects anew."""

    def __init__(self, uri: str, collection: str) -> None:
        """``RAGQA_MILVUS_URI`` counts before ``uri``. Raises ConfigError. Nothing is asked yet."""
        self.uri = check_address(os.environ.get("RAGQA_MILVUS_URI", "").strip() or uri)
        self.collection = collection
        try:
            import grpc
            import pymilvus
        except ImportError as error:
            msg = "an index in Milvus needs pymilvus, which is not installed; run: pip install 'ragqa[milvus]'"
            raise ConfigError(msg) from error
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs what it raises, which is told below
        self._library: Any = pymilvus
        self._failures = pymilvus.MilvusException, grpc.RpcError
        self._client: Any = None
        self._lock = Lock()

    def check(self, kind: str) -> None:
        """Raises ConfigError unless Milvus makes this kind of vectors, IndexingError unless the server answers."""
        _vector_index(kind)
        self._ask(lambda client: client.list_collections())

    def write(self, dimension: int, kind: str, sparse: Sequence[str], rows: Iterable[dict[str, Any]]) -> Iterator[int]:
        """Makes the collection of these rows, yields how many are there; dropped again where that fails.

        ``kind`` is that of the vectors: Flat, or HNSW and a number; ``dimension`` 0: none. Raises ConfigError,
        IndexingError.
        """
        types = self._library.DataType
        schema = self._library.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("position", types.INT64, is_primary=True)
        schema.add_field("hidden", types.BOOL)
        schema.add_field("document", types.VARCHAR, max_length=65_535)
        told = {"element_type": types.VARCHAR, "max_length": 65_535, "max_capacity": MOST_PARTS}
        schema.add_field("passage", types.ARRAY, **told)
        indexes = self._library.MilvusClient.prepare_index_params()
        for name in sparse:
            schema.add_field(name, types.SPARSE_FLOAT_VECTOR)
            indexes.add_index(name, index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        if dimension:
            schema.add_field("dense", types.FLOAT_VECTOR, dim=dimension)
            indexes.add_index("dense", metric_type="IP", **_vector_index(kind))
        n_rows, batch = 0, []
        self._ask(lambda client: client.create_collection(self.collection, schema=schema, index_params=indexes))
        try:
            for row in rows:
                batch.append(row)
                if len(batch) == ROWS_AT_ONCE:
                    n_rows += self._insert(batch)
                    batch = []
                    yield n_rows
            n_rows += self._insert(batch) if batch else 0
            self._ask(lambda client: client.flush(self.collection, timeout=SLOW_SECONDS))
            self._ask(lambda client: client.load_collection(self.collection, timeout=SLOW_SECONDS))
            if self.count() != n_rows:
                msg = f"{self} holds {self.count():,} rows of {n_rows:,} that were sent; run the same command again"
                raise IndexingError(msg)
            yield n_rows
        except BaseException:
            self.drop()
            raise

    def _insert(self, batch: Sequence[dict[str, Any]]) -> int:
        self._ask(lambda client: client.upsert(self.collection, batch, timeout=SLOW_SECONDS))
        return len(batch)

    def drop(self) -> None:
        """Removes the collection as well as may be: what stays behind is in nobody's way."""
        try:
            self._ask(lambda client: client.drop_collection(self.collection))
        except IndexingError as error:
            logging.getLogger(__name__).warning("%s is left behind: %s", self, error)

    def count(self) -> int:
        """How many rows there are. Raises IndexingError."""
        fields = ["count(*)"]
        told = {"output_fields": fields, "consistency_level": "Strong", "timeout": SECONDS}
        return int(self._ask(lambda client: client.query(self.collection, filter="", **told))[0]["count(*)"])

    def search(
        self,
        field: str,
        asked: FloatVector | Sparse,
        most: int,
        documents: Sequence[str] = (),
        effort: int = 0,
    ) -> list[tuple[int, float, Passage]]:
        """The rows nearest to a vector or sparse words, best first: position, score, passage; of ``documents`` alone.

        Hidden ones are left out. ``effort``: candidates held by an approximate index. Raises IndexingError.
        """
        within = "hidden == false" + (f" and document in {json.dumps(list(documents))}" if documents else "")
        told = {"filter": within, "output_fields": ["passage"], "timeout": SECONDS}
        most = min(most, MOST)
        how = {"metric_type": "IP", "params": {"ef": max(effort, most)} if effort else {}}
        told |= {"anns_field": field, "limit": most, "search_params": how}
        found = self._ask(lambda client: client.search(self.collection, data=[asked], **told))[0]
        return [(int(hit["position"]), float(hit["distance"]), _passage(hit["entity"]["passage"])) for hit in found]

    def rows(self, positions: Sequence[int], field: str = "passage") -> dict[int, Any]:
        """This field of the rows at these positions. Raises IndexingError; IndexMismatchError where one is missing."""
        told = {"output_fields": ["position", field], "timeout": SECONDS}
        found = self._ask(lambda client: client.query(self.collection, filter=f"position in {list(positions)}", **told))
        by_position = {int(row["position"]): row[field] for row in found}
        if len(by_position) != len(set(positions)):
            msg = f"{self} lacks rows of the index, {len(by_position)} of {len(positions)} are there; build it again"
            raise IndexMismatchError(msg)
        return by_position

    def _ask(self, do: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - whatever pymilvus gives
        try:
            with self._lock:
                client = self._client = self._client or self._connected()
            return do(client)
        except self._failures as error:
            with self._lock:
                self._client = None
            details = getattr(error, "details", None)
            words = str(getattr(error, "message", "") or (details() if details else error))[:300]
            msg = f"{self} does not answer: {words}; see that the server is there, and ask again"
            raise IndexingError(msg) from None
        except ValueError as error:  # a channel that another thread's failure has closed
            self._client = None
            msg = f"{self} does not answer: {error}; ask again"
            raise IndexingError(msg) from None

    def _connected(self) -> Any:  # noqa: ANN401 - a MilvusClient
        token = os.environ.get("RAGQA_MILVUS_TOKEN", "").strip()
        client = self._library.MilvusClient(uri=self.uri, token=token, timeout=SECONDS)
        if self.collection and client.has_collection(self.collection, timeout=SECONDS):
            client.load_collection(self.collection, timeout=SLOW_SECONDS)  # a server started again may not have done so
        return client

    def __str__(self) -> str:
        return f"Milvus at {self.uri}, collection {self.collection},"


def _vector_index(kind: str) -> dict[str, Any]:
    if kind == "Flat":
        return {"index_type": "FLAT"}
    if kind.startswith("HNSW") and kind[4:].isdecimal():
        return {"index_type": "HNSW", "params": {"M": int(kind[4:]), "efConstruction": 200}}
    msg = f"expected --vectors Flat (exact) or HNSW32 for Milvus, found {kind!r}; choose one of them"
    raise ConfigError(msg)


@cache
def _one() -> TypeAdapter[Passage]:
    return TypeAdapter(Passage)


def row_of(position: int, passage: Passage, *, hidden: bool, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the collection; ``fields`` are its vector and sparse fields."""
    text = json.dumps(asdict(passage), ensure_ascii=False)
    parts = [text[start : start + PART_CHARS] for start in range(0, len(text), PART_CHARS)]
    if len(parts) > MOST_PARTS:
        msg = f"passage {passage.passage_id!r} has {len(text):,} characters, more than Milvus keeps; cut it in two"
        raise IndexingError(msg)
    own = {"position": position, "hidden": hidden, "document": passage.document_id, "passage": parts}
    return own | {name: value or NOTHING if isinstance(value, dict) else value for name, value in fields.items()}


def _passage(parts: Sequence[str]) -> Passage:
    return _one().validate_json("".join(parts))


class MilvusPassages(Sequence[Passage]):
    """The passages of a collection in their order; the last few thousand asked for or found are remembered."""

    def __init__(self, milvus: Milvus, n_passages: int) -> None:
        self.milvus = milvus
        self._n = n_passages
        self._kept: OrderedDict[int, Passage] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, position: int) -> Passage: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[Passage, ...]: ...

    def __getitem__(self, position: int | slice) -> Passage | tuple[Passage, ...]:
        if isinstance(position, slice):
            return self._many(range(*position.indices(self._n)))
        if not -self._n <= position < self._n:
            msg = f"expected a position below {self._n:,}, found {position:,}"
            raise IndexError(msg)
        return self._many([position % self._n])[0]

    def __iter__(self) -> Iterator[Passage]:
        for start in range(0, self._n, ROWS_AT_ONCE):
            yield from self._many(range(start, min(start + ROWS_AT_ONCE, self._n)))

    def search(
        self, field: str, asked: FloatVector | Sparse, most: int, effort: int = 0
    ) -> tuple[FloatMatrix, Positions]:
        """Scores and positions, best first, shapes (n,); what was found is remembered."""
        found = self.milvus.search(field, asked, most, effort=effort)
        self._remember({position: passage for position, _, passage in found})
        scores = np.array([score for _, score, _ in found], dtype=np.float32)
        return scores, np.array([position for position, _, _ in found], dtype=np.int64)

    def _many(self, positions: Sequence[int]) -> tuple[Passage, ...]:
        with self._lock:
            there = {position: self._kept[position] for position in positions if position in self._kept}
        missing = [position for position in positions if position not in there]
        for start in range(0, len(missing), ROWS_AT_ONCE):
            rows = self.milvus.rows(missing[start : start + ROWS_AT_ONCE])
            there |= {position: _passage(parts) for position, parts in rows.items()}
        self._remember(there)
        return tuple(there[position] for position in positions)

    def _remember(self, found: Mapping[int, Passage]) -> None:
        with self._lock:
            self._kept.update(found)
            while len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)


class MilvusVectors:
    """What `DenseRetriever` and checks ask of a FAISS index, asked of a collection. Hidden passages are never found."""

    def __init__(self, passages: MilvusPassages, dimension: int, effort: int) -> None:
        self.d, self.ntotal = dimension, len(passages)
        self._passages = passages
        self._effort = effort

    def search(self, query: FloatMatrix, most: int, params: object = None) -> tuple[FloatMatrix, Positions]:
        """Shapes (1, most), filled up with -1 as FAISS does."""
        del params
        scores, positions = self._passages.search("dense", query[0].tolist(), most, self._effort)
        left = most - len(positions)
        return np.pad(scores, (0, left))[None], np.pad(positions, (0, left), constant_values=-1)[None]

    def reconstruct_n(self, start: int, count: int) -> FloatMatrix:
        """The vectors from ``start`` on, shape (count, d)."""
        found: dict[int, Any] = {}
        for first in range(start, start + count, ROWS_AT_ONCE):
            found |= self._passages.milvus.rows(range(first, min(first + ROWS_AT_ONCE, start + count)), "dense")
        return np.array([found[start + n] for n in range(count)], dtype=np.float32)


class MilvusBm25(Bm25sRetriever):
    """BM25 as bm25s scores it, its matrix in the collection; the vocabulary, and how rare words are, here."""

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a token with the question; a word said twice counts twice."""
        places = places_of(keys_of(tokenise(question, self.analyser)), self._model.vocabulary).tolist()
        if not places or top_k < 1:
            return Ranking(self.name, ())
        asked = {place + 1: float(times) for place, times in Counter(places).items()}
        passages: Any = self._passages
        wanted = top_k + 1
        while True:  # until all that tie with the last one are there
            scores, positions = passages.search(self.name, asked, wanted)
            if len(scores) < wanted or wanted >= MOST or scores[-1] < scores[top_k - 1]:
                return self._best(positions[scores > 0], scores[scores > 0], top_k)
            wanted = min(2 * wanted, MOST)
