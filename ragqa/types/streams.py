"""A generator that yields as it works and returns a result: drained in one place."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

Yielded = TypeVar("Yielded")
Returned = TypeVar("Returned")
Shown = TypeVar("Shown")


def mapped(
    stream: Generator[Yielded, Any, Returned], each: Callable[[Yielded], Shown]
) -> Generator[Shown, None, Returned]:
    """Yields what ``each`` makes of every yielded value, and returns what the generator returns."""
    while True:
        try:
            value = next(stream)
        except StopIteration as stop:
            result: Returned = stop.value
            return result
        yield each(value)


def returned(stream: Generator[Yielded, Any, Returned], each: Callable[[Yielded], object] | None = None) -> Returned:
    """What the generator returns, after all that it yields; ``each`` is called with every yielded value, in order."""
    while True:
        try:
            value = next(stream)
        except StopIteration as stop:
            result: Returned = stop.value
            return result
        if each is not None:
            each(value)
