"""What a stream yields and what it returns."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Returning(Generic[Item, Result]):
    """A generator to loop over whose return value is its ``result`` afterwards."""

    result: Result

    def __init__(self, stream: Generator[Item, None, Result]) -> None:
        self.stream = stream

    def __iter__(self) -> Iterator[Item]:
        self.result = yield from self.stream


def drain(stream: Generator[Item, None, Result]) -> tuple[list[Item], Result]:
    """Everything the generator yields, and its return value."""
    whole = Returning(stream)
    return list(whole), whole.result
