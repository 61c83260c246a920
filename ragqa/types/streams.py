"""Helpers for generators that yield events while they work and return a result."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

Yielded = TypeVar("Yielded")
Returned = TypeVar("Returned")
Shown = TypeVar("Shown")


def mapped(
    stream: Generator[Yielded, Any, Returned], each: Callable[[Yielded], Shown]
) -> Generator[Shown, None, Returned]:
    """Yields ``each(value)`` for every value of the generator, and returns the generator's result."""
    while True:
        try:
            value = next(stream)
        except StopIteration as stop:
            result: Returned = stop.value
            return result
        yield each(value)


def returned(stream: Generator[Yielded, Any, Returned], each: Callable[[Yielded], object] | None = None) -> Returned:
    """The generator's result, after it is exhausted; ``each`` is called with every yielded value, in order."""
    while True:
        try:
            value = next(stream)
        except StopIteration as stop:
            result: Returned = stop.value
            return result
        if each is not None:
            each(value)
