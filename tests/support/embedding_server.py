"""A real HTTP server on 127.0.0.1 that speaks the embeddings and the reranking protocol and misbehaves on demand.

::

    with EmbeddingServer(status(429, retry_after="0"), vectors()) as server:
        ApiEncoder("openai:test", environ={"OPENAI_BASE_URL": server.base_url}).encode(["one", "two"])
        assert server.sent == [["one", "two"], ["one", "two"]]

Each request is met by the next behaviour; the last one meets all that follow. The machinery, `status` and `page` are
those of `tests.support.openai_server`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

from tests.support.openai_server import Behaviour, Exchange, OpenAIServer, behaviour, page, status

__all__ = [
    "DIMENSION",
    "EmbeddingServer",
    "altered",
    "cut_json",
    "page",
    "reset",
    "score_of",
    "scores",
    "status",
    "vector_of",
    "vectors",
]

DIMENSION = 16


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """The vector of length 1 that stands for this text, the same on every machine."""
    digest = hashlib.shake_256(text.encode()).digest(2 * dimension)
    numbers = [int.from_bytes(digest[2 * n : 2 * n + 2], "big") - 32767.5 for n in range(dimension)]
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]


def _answer(texts: list[str], dimension: int = DIMENSION, scale: float = 1.0) -> dict[str, Any]:
    items = [
        {"object": "embedding", "index": n, "embedding": [scale * number for number in vector_of(text, dimension)]}
        for n, text in enumerate(texts)
    ]
    return {"object": "list", "data": items, "model": "test", "usage": {"prompt_tokens": 1, "total_tokens": 1}}


@behaviour
def vectors(
    exchange: Exchange, dimension: int = DIMENSION, *, scale: float = 1.0, backwards: bool = False, seconds: float = 0.0
) -> None:
    """A good answer, ``scale`` long, after ``seconds``; ``backwards`` lists the last text's vector first."""
    exchange.wait(seconds)
    if exchange.request.path.endswith("/rerank"):
        scores()(exchange)
        return
    body = _answer(exchange.request.body["input"], dimension, scale)
    if backwards:
        body["data"].reverse()
    exchange.send(200, json.dumps(body).encode())


def score_of(question: str, document: str) -> float:
    """The relevance score in [0, 1) that stands for this pair, the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{question}|{document}".encode()).digest()[:6], "big") / 2**48


@behaviour
def scores(
    exchange: Exchange, name: str = "data", change: Callable[[dict[str, Any]], object] = lambda _body: None
) -> None:
    """A good answer to ``/rerank``, best first as servers list them under this name, but for what ``change`` spoilt."""
    query, documents = exchange.request.body["query"], exchange.request.body["documents"]
    items = [{"index": n, "relevance_score": score_of(query, text)} for n, text in enumerate(documents)]
    items.sort(key=lambda item: -item["relevance_score"])
    body = {"object": "list", name: items, "model": "test", "usage": {"total_tokens": 1}}
    change(body)
    exchange.send(200, json.dumps(body).encode())


@behaviour
def altered(exchange: Exchange, change: Callable[[dict[str, Any]], object]) -> None:
    """A good answer that ``change`` spoilt in place: a count, a number, an index."""
    body = _answer(exchange.request.body["input"])
    change(body)
    exchange.send(200, json.dumps(body).encode())  # NaN and Infinity are written as Python writes them


@behaviour
def cut_json(exchange: Exchange) -> None:
    """Half of the answer, sent as if it were all of it."""
    body = json.dumps(_answer(exchange.request.body["input"])).encode()
    exchange.send(200, body[: len(body) // 2])


@behaviour
def reset(exchange: Exchange, after: bytes = b"") -> None:
    """The connection reset, instead of an answer or after this beginning of one."""
    if after:
        exchange.begin_stream()
        exchange.data(after.decode())
    exchange.cut()


class EmbeddingServer(OpenAIServer):
    """Runs from ``with`` to the end of the block; ``requests`` holds what came in, ``sent`` the texts of each."""

    def __init__(self, *script: Behaviour) -> None:
        super().__init__(*(script or (vectors(),)))

    def __enter__(self) -> EmbeddingServer:
        super().__enter__()
        return self

    @property
    def sent(self) -> list[list[str]]:
        return [request.body.get("input") or request.body["documents"] for request in self.requests]
