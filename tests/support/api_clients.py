"""The clients of a provider's API, encoder and reranker, as one kind of thing: how each is made, asked and refused."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from ragqa.errors import ModelError
from ragqa.retrieval.api_encoder import ApiEncoder
from ragqa.retrieval.api_reranker import ApiReranker
from tests.support.embedding_server import Behaviour, altered, score_of, scores, vector_of

KEY = 'test/key+"0123456789_abcdef'  # JSON writes it otherwise
QUESTION = "Which conduct must a firm report?"
TEXTS = ["Firms must keep records.", "Auditors are registered.", "Über §3 – 監査"]


@dataclass(frozen=True)
class Kind:
    """One kind of client: its name at a provider, what it is asked, what is said where it gets no answer."""

    maker: type
    name: str
    ask: Callable[[Any, list[str]], list[Any]]
    right: Callable[[list[str]], list[Any]]
    spoilt: Callable[[Callable[[dict], object]], Behaviour]
    expected: str
    longest: int
    serves: str
    lists: str
    instead: str

    @property
    def provider(self) -> str:
        """``"OPENAI"``: the beginning of its variables."""
        return self.name.partition(":")[0].upper()


KINDS = {
    "encoder": Kind(
        ApiEncoder,
        "openai:test",
        lambda encoder, texts: [pytest.approx(row, abs=1e-6) for row in encoder.encode(texts).tolist()],
        lambda texts: [vector_of(text) for text in texts],
        altered,
        *("expected 3 vectors by 'test'", 24, "a server of embeddings", "data"),
        "or use all-MiniLM-L6-v2, which is bundled",
    ),
    "reranker": Kind(
        ApiReranker,
        "voyage:rerank-2",
        lambda reranker, texts: reranker.score(QUESTION, texts),
        lambda texts: [score_of(QUESTION, text) for text in texts],
        lambda change: scores("data", change),
        *("expected 3 scores by 'rerank-2' from the reranking server", 33, "a server of rerankers", "data or results"),
        "or leave the reranker out",
    ),
}


def refused(ask: Callable[[], object], error: type[Exception] = ModelError) -> str:
    """What the client says instead of an answer, after a look for the key in the error and all that it came from."""
    with pytest.raises(error) as caught:
        ask()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert KEY[:9] not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)
