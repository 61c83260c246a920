"""Replies already received and paid for, so that a run which goes on after a stop asks for none of them again.

Whoever answers many questions says where they are kept, for the time of one question and for the thread that asks it::

    with remembering(memory):
        for event in pipeline.run(question): ...
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class ReplyMemory(Protocol):
    """The replies of one question. Called from several threads."""

    def recall(self, request: str) -> Mapping[str, Any] | None:
        """A reply kept for this request and not recalled yet; equal requests get theirs in the order they came."""
        ...

    def keep(self, request: str, reply: Mapping[str, Any]) -> None:
        """Keeps this reply, for good when this returns."""
        ...


_memory: ContextVar[ReplyMemory | None] = ContextVar("ragqa_replies", default=None)


@contextmanager
def remembering(memory: ReplyMemory) -> Iterator[None]:
    """Within it, requests made in this context are looked up in ``memory`` first, and their replies kept there."""
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)


def remembered() -> ReplyMemory | None:
    """The memory of this context, None where nothing is kept."""
    return _memory.get()


def request_key(messages: Sequence[Mapping[str, object]], temperature: float, seed: int | None) -> str:
    """The sha256, in hexadecimal, of what decides a reply; the model and its limits belong to the run."""
    return hashlib.sha256(json.dumps([list(map(dict, messages)), temperature, seed]).encode()).hexdigest()
