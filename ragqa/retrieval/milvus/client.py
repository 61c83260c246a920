"""A client for one collection of a Milvus server. `ragqa.retrieval.milvus.corpus` defines the content of its rows.

Each row has a generation, ``since``. An index belongs to a generation and sees no later rows. Rows that an update drops
stay until the next update, so that an open or copied index still finds them. The mark of a generation, the row
`mark_of`, exists as long as all rows of that generation do.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Final
from urllib.parse import urlsplit

from ragqa.errors import ConfigError, IndexingError, IndexMismatchError
from ragqa.infra.cleaning import plain_line

SECONDS: Final = 60.0  # timeout of a request; the first one after the server's start is slow
SLOW_SECONDS: Final = 600.0  # timeout of writing, flushing and loading
MOST: Final = 16_384  # rows that Milvus returns for one search
MOST_PARTS: Final = 100  # of a passage, each a text in Milvus
ROWS_AT_ONCE: Final = 500  # rows per request: some 2 MB, where 64 MB are allowed
MAX_DETAIL_CHARS: Final = 300  # of the server's own text in a message
MARKS: Final = 2**62  # the keys of generation marks start here; those of passages start at 0

Sparse = Mapping[int, float]
FloatVector = Sequence[float]


def check_address(uri: str) -> str:
    """The address, which is safe to store. Raises ConfigError if it is not an address or contains a login."""
    try:
        parts = urlsplit(uri)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port
        is_address = False
    if not is_address or "@" in parts.netloc or parts.query:
        msg = "expected --uri http://HOST:19530 or https://…, without a login (set RAGQA_MILVUS_TOKEN); correct it"
        raise ConfigError(msg)
    return uri


class Milvus:
    """One collection of a server. Threads may share it; after a failure, the next request connects again."""

    def __init__(self, uri: str, collection: str) -> None:
        """``RAGQA_MILVUS_URI`` takes precedence over ``uri``. Makes no request yet. Raises ConfigError."""
        self.uri = check_address(os.environ.get("RAGQA_MILVUS_URI", "").strip() or uri)
        self.collection = collection
        try:
            import grpc
            import pymilvus
        except ImportError as error:
            msg = "an index in Milvus needs pymilvus, which is not installed; run: pip install 'ragqa[milvus]'"
            raise ConfigError(msg) from error
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs the errors that `_ask` reports
        self._library: Any = pymilvus
        self._failures = pymilvus.MilvusException, grpc.RpcError
        self._client: Any = None
        self._lock = Lock()

    def check(self, kind: str) -> None:
        """Raises ConfigError unless Milvus supports this kind of vectors, IndexingError unless the server answers."""
        _vector_index(kind)
        self._ask(lambda client: client.list_collections())

    def create(self, dimension: int, kind: str, sparse: Sequence[str]) -> None:
        """Makes the empty collection. ``kind`` is Flat, or HNSW and a number; ``dimension`` 0 means no vectors.

        Raises ConfigError, IndexingError.
        """
        types = self._library.DataType
        schema = self._library.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("row", types.INT64, is_primary=True)
        schema.add_field("since", types.INT64)
        schema.add_field("hidden", types.BOOL)
        options = {"element_type": types.VARCHAR, "max_length": 65_535, "max_capacity": MOST_PARTS}
        schema.add_field("passage", types.ARRAY, **options)
        indexes = self._library.MilvusClient.prepare_index_params()
        for name in sparse:
            schema.add_field(name, types.SPARSE_FLOAT_VECTOR)
            indexes.add_index(name, index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        if dimension:
            schema.add_field("dense", types.FLOAT_VECTOR, dim=dimension)
            indexes.add_index("dense", metric_type="IP", **_vector_index(kind))
        self._ask(lambda client: client.create_collection(self.collection, schema=schema, index_params=indexes))

    def insert(self, rows: Iterable[dict[str, Any]]) -> Iterator[int]:
        """Adds these rows and yields the number added so far. At the end all are on the server's disk.

        Raises IndexingError.
        """
        n_rows, batch = 0, []
        for row in rows:
            batch.append(row)
            if len(batch) == ROWS_AT_ONCE:
                n_rows += self._send(batch)
                batch = []
                yield n_rows
        n_rows += self._send(batch) if batch else 0
        self._ask(lambda client: client.flush(self.collection, timeout=SLOW_SECONDS))
        self._ask(lambda client: client.load_collection(self.collection, timeout=SLOW_SECONDS))
        yield n_rows

    def _send(self, batch: Sequence[dict[str, Any]]) -> int:
        self._ask(lambda client: client.upsert(self.collection, batch, timeout=SLOW_SECONDS))
        return len(batch)

    def delete(self, rows: Sequence[int]) -> None:
        """Removes the rows with these keys; missing rows are ignored. Raises IndexingError."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            self._remove(f"row in {list(rows[start : start + ROWS_AT_ONCE])}")

    def delete_after(self, generation: int) -> None:
        """Removes every row of a later generation, left by an interrupted update. Raises IndexingError."""
        self._remove(f"since > {generation}")

    def _remove(self, within: str) -> None:
        self._ask(lambda client: client.delete(self.collection, filter=within, timeout=SLOW_SECONDS))

    def drop(self) -> None:
        """Removes the collection; a failure is only logged, as a leftover collection does no harm."""
        try:
            self._ask(lambda client: client.drop_collection(self.collection))
        except IndexingError as error:
            logging.getLogger(__name__).warning("%s is left behind: %s", self, error)

    def exists(self) -> bool:
        """Whether the server has this collection. Raises IndexingError."""
        return bool(self._ask(lambda client: client.has_collection(self.collection, timeout=SECONDS)))

    def count(self, generation: int) -> int:
        """The number of rows up to this generation, including marks. Raises IndexingError."""
        fields = ["count(*)"]
        options = {"output_fields": fields, "consistency_level": "Strong", "timeout": SECONDS}
        within = f"since <= {generation}"
        return int(self._ask(lambda client: client.query(self.collection, filter=within, **options))[0]["count(*)"])

    def check_mark(self, generation: int) -> None:
        """Raises IndexMismatchError if an update has removed rows of this generation, IndexingError if it fails."""
        options = {"filter": f"row in [{mark_of(generation)}]", "output_fields": ["row"], "timeout": SECONDS}
        if not self._ask(lambda client: client.query(self.collection, **options)):
            raise IndexMismatchError(
                f"{self} was updated twice since this index was opened or its folder was copied; ask again, and copy "
                "the folder again from the machine that builds it"
            )

    def search(
        self, field: str, asked: FloatVector | Sparse, most: int, generation: int, effort: int = 0, also: str = ""
    ) -> list[tuple[int, float, dict[str, Any]]]:
        """The rows nearest to a vector or sparse words, best first: key, score, ``passage`` and the field ``also``.

        Hidden rows and rows after ``generation`` are left out. ``effort`` is the number of candidates that an
        approximate index holds. Raises IndexingError.
        """
        fields = ["passage", also] if also else ["passage"]
        within = f"hidden == false and since <= {generation}"
        options = {"filter": within, "output_fields": fields, "timeout": SECONDS}
        most = min(most, MOST)
        how = {"metric_type": "IP", "params": {"ef": max(effort, most)} if effort else {}}
        options |= {"anns_field": field, "limit": most, "search_params": how}
        hits = self._ask(lambda client: client.search(self.collection, data=[asked], **options))[0]
        return [(int(hit["row"]), float(hit["distance"]), hit["entity"]) for hit in hits]

    def rows(self, rows: Sequence[int], field: str = "passage") -> dict[int, Any]:
        """This field of the rows with these keys. Raises IndexingError, IndexMismatchError if a row is missing."""
        options = {"output_fields": ["row", field], "timeout": SECONDS}
        replies = self._ask(lambda client: client.query(self.collection, filter=f"row in {list(rows)}", **options))
        by_row = {int(row["row"]): row[field] for row in replies}
        if len(by_row) != len(set(rows)):
            msg = f"{self} lacks rows of the index, {len(by_row)} of {len(rows)} are there; build it again"
            raise IndexMismatchError(msg)
        return by_row

    def _ask(self, do: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - whatever pymilvus gives
        try:
            with self._lock:
                client = self._client = self._client or self._connected()
            return do(client)
        except self._failures as error:
            with self._lock:
                self._client = None
            details = getattr(error, "details", None)
            said = str(getattr(error, "message", "") or (details() if details else error))
            words = plain_line(said, MAX_DETAIL_CHARS, os.environ.get("RAGQA_MILVUS_TOKEN", "").strip())
            msg = f"{self} does not answer: {words}; see that the server is there, and ask again"
            raise IndexingError(msg) from None
        except ValueError as error:  # a channel that another thread's failure has closed
            self._client = None
            raise IndexingError(f"{self} does not answer: {error}; ask again") from None

    def _connected(self) -> Any:  # noqa: ANN401 - a MilvusClient
        token = os.environ.get("RAGQA_MILVUS_TOKEN", "").strip()
        client = self._library.MilvusClient(uri=self.uri, token=token, timeout=SECONDS)
        if self.collection and client.has_collection(self.collection, timeout=SECONDS):
            client.load_collection(self.collection, timeout=SLOW_SECONDS)  # a restarted server may not have loaded it
        return client

    def __str__(self) -> str:
        return f"Milvus at {self.uri}, collection {self.collection},"


def _vector_index(kind: str) -> dict[str, Any]:
    if kind == "Flat":
        return {"index_type": "FLAT"}
    if kind.startswith("HNSW") and kind[4:].isdecimal():
        return {"index_type": "HNSW", "params": {"M": int(kind[4:]), "efConstruction": 200}}
    raise ConfigError(f"expected --vectors Flat (exact) or HNSW32 for Milvus, found {kind!r}; choose one of them")


def mark_of(generation: int) -> int:
    """The key of the row that marks a generation."""
    return MARKS + generation
