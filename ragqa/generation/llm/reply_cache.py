"""A cache of replies already received and paid for, so that a resumed run does not request them again.

Code that answers many questions sets the cache for one question and its thread::

    with caching_replies(cache):
        for event in pipeline.run(question): ...
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class ReplyCache(Protocol):
    """The replies of one question. Called from several threads."""

    def get(self, request: str) -> Mapping[str, Any] | None:
        """A cached reply to this request that was not returned yet; equal requests get theirs in order of arrival."""
        ...

    def put(self, request: str, reply: Mapping[str, Any]) -> None:
        """Stores this reply; it is on disk when this returns."""
        ...


_cache: ContextVar[ReplyCache | None] = ContextVar("ragqa_replies", default=None)


@contextmanager
def caching_replies(cache: ReplyCache) -> Iterator[None]:
    """Within this context, requests are looked up in ``cache`` first, and their replies are stored there."""
    token = _cache.set(cache)
    try:
        yield
    finally:
        _cache.reset(token)


def reply_cache() -> ReplyCache | None:
    """The cache of this context, None where there is none."""
    return _cache.get()


def request_key(messages: Sequence[Mapping[str, object]], temperature: float, seed: int | None) -> str:
    """The sha256, in hexadecimal, of what decides a reply; the model and its limits are fixed for a run."""
    return hashlib.sha256(json.dumps([list(map(dict, messages)), temperature, seed]).encode()).hexdigest()
