"""What lets several sessions share one model: a lock that is served in order, and a bounded memory of results."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from threading import Condition, Lock
from types import TracebackType
from typing import Generic, TypeVar

REMEMBERED_QUERIES = 256  # vectors of questions that an encoder keeps at hand: 0.4 MB of 384 float32 each

Key = TypeVar("Key")
Value = TypeVar("Value")


class FairLock:
    """A lock whose waiters are served in the order they came; a context manager.

    `threading.Lock` lets the thread that just released it take it again at once, so a session that scores batch after
    batch would keep another one waiting until it is done.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._next_ticket = 0
        self._serving = 0
        self._left: set[int] = set()  # tickets whose thread was interrupted while it waited

    def __enter__(self) -> None:
        with self._changed:
            ticket = self._next_ticket
            self._next_ticket += 1
            try:
                while self._serving != ticket:
                    self._changed.wait()
            except BaseException:
                self._left.add(ticket)
                self._skip_left()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._serving += 1
            self._skip_left()

    def _skip_left(self) -> None:
        while self._serving in self._left:
            self._left.remove(self._serving)
            self._serving += 1
        self._changed.notify_all()


class RecentResults(Generic[Key, Value]):
    """The most recently used results, at most ``capacity``; safe to use from several threads."""

    def __init__(self, capacity: int = REMEMBERED_QUERIES) -> None:
        self.capacity = capacity
        self._results: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._results)

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The remembered result of this key, else the computed one, remembered from now on."""
        known = self.known([key])
        if key not in known:
            known = {key: compute()}
            self.remember(known)
        return known[key]

    def known(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Those of these keys that are remembered, with their results; they become the most recent."""
        found: dict[Key, Value] = {}
        with self._lock:
            for key in keys:
                if key in self._results:
                    self._results.move_to_end(key)
                    found[key] = self._results[key]
        return found

    def remember(self, results: Mapping[Key, Value]) -> None:
        """Adds these results and forgets the least recently used ones beyond the capacity."""
        with self._lock:
            for key, value in results.items():
                self._results[key] = value
                self._results.move_to_end(key)
            while len(self._results) > self.capacity:
                self._results.popitem(last=False)
