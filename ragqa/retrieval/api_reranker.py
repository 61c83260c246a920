"""A reranker behind an API: Voyage's, or any server whose ``/rerank`` takes a query and documents, such as vLLM's.

Voyage lists its scores under ``data`` (docs.voyageai.com/reference/reranker-api); vLLM, llama.cpp, Infinity, Jina and
Cohere list them under ``results``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from ragqa.errors import ConfigError
from ragqa.infra.http import ModelApi, Service, batches, items_in_order, sendable
from ragqa.retrieval.reranker import TextReranker
from ragqa.types import ModelInfo

DOCUMENTS_PER_REQUEST: Final = {"voyage": 1000, "openai": 32}  # Voyage's maximum; a user's own server is slower
CHARS_PER_REQUEST: Final = 300_000  # Voyage takes 300,000 tokens at least, the question counted once per document
INSTEAD: Final = "or leave the reranker out"
SERVICE: Final = Service("a reranker", "/rerank", "reranking server", "rerankers", INSTEAD)


class ApiReranker(TextReranker):
    """A reranker shared by every session and thread: it holds connections and a key, no weights, and caches no score.

    ``info.fingerprint`` is the sha256 of provider, base URL and model name, as the weights behind an API cannot be
    hashed.
    """

    def __init__(self, name: str, *, environ: Mapping[str, str] | None = None) -> None:
        """A reranker called ``voyage:MODEL`` or ``openai:MODEL``; makes no request yet.

        ``VOYAGE_API_KEY`` and ``VOYAGE_BASE_URL`` (or ``OPENAI_…``) are read from ``environ``, by default that of the
        process. Raises ModelError for a name that is not of an API, ConfigError for a base URL or key that cannot work
        and for ``openai:`` without a base URL, as OpenAI itself has no rerankers.
        """
        self._api = ModelApi(name, SERVICE, environ)
        provider, base_url, _ = self._api.identity
        if provider == "openai" and base_url == self._api.provider.default_url:
            raise ConfigError(
                f"{name}: expected OPENAI_BASE_URL to be the address of a server with /rerank, such as vLLM's or "
                f"llama.cpp's, found OpenAI's own, which has no rerankers; set it, {INSTEAD}"
            )
        self._most = DOCUMENTS_PER_REQUEST[provider]
        self._options: dict[str, Any] = {"truncation": True} if self._api.provider.is_voyage else {}
        identity = json.dumps(["rerank", *self._api.identity])
        self._info = ModelInfo(name, hashlib.sha256(identity.encode()).hexdigest(), "api")

    @property
    def info(self) -> ModelInfo:
        """Its ``precision`` is "api"."""
        return self._info

    def close(self) -> None:
        """Closes connections; the reranker cannot be used afterwards."""
        self._api.close()

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """The server's relevance score per text, in the order given; equal texts are sent once.

        Voyage cuts a text that exceeds the model's window; another server may refuse it. Raises ModelError if the
        server gives no valid reply, ConfigError if it requires a key and there is none.
        """
        query = sendable(question)
        wanted = list(map(sendable, texts))
        scores_by_id: dict[str, float] = {}
        for batch in batches(list(dict.fromkeys(wanted)), self._most, CHARS_PER_REQUEST, len(query)):
            scores = self._api.post(
                {"query": query, "documents": batch, **self._options},
                f"{len(batch)} scores",
                max(map(len, (query, *batch))),
                partial(_scores, n_texts=len(batch)),
            )
            scores_by_id |= zip(batch, scores, strict=True)
        return [scores_by_id[text] for text in wanted]


def _scores(content: bytes, n_texts: int) -> list[float]:
    """The scores of a reply in the order of the texts. Raises ValueError."""
    items = items_in_order(content, n_texts, ("data", "results"))
    scores = [item.get("relevance_score") for item in items]
    if not {type(score) for score in scores} <= {int, float}:
        raise ValueError("a relevance_score that is not a number")
    try:
        numbers = [float(score) for score in scores]  # type: ignore[arg-type]
    except OverflowError:  # an integer of 400 digits
        numbers = [math.inf]
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a relevance_score that is not finite")
    return numbers
