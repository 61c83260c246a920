"""Batches of several sessions over the streams of one engine: each core at work on a batch of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["MAX_STREAMS", "FairWorkers"]

MAX_STREAMS = 4  # batches computed at once, one core or more for each

Batch = TypeVar("Batch")
Found = TypeVar("Found")


class FairWorkers(Generic[Batch, Found]):
    """So many threads that compute batches; share it between sessions.

    A session has at most as many batches waiting as there are threads, and batches are served in the order they came:
    one that brings hundreds does not keep another waiting.
    """

    def __init__(self, compute: Callable[[Batch], Found], n_threads: int) -> None:
        """``compute`` is called from ``n_threads`` threads at once, at least 1."""
        self._compute = compute
        self._n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="ragqa-batches")

    def map(self, batches: Iterable[Batch]) -> Iterator[Found]:
        """One result per batch, in the order given. An error of ``compute`` is raised where its result would stand."""
        waiting: deque[Future[Found]] = deque()
        try:
            for batch in batches:
                if len(waiting) == self._n_threads:
                    yield waiting.popleft().result()
                waiting.append(self._pool.submit(self._compute, batch))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
