"""A cache that all sessions share: models, indexes, runs, the queue.

Streamlit's own caches are not used, because a message of its protocol can empty them without any sign-in.
"""

from __future__ import annotations

import inspect
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from functools import update_wrapper
from threading import Lock
from typing import Final, Generic, ParamSpec, TypeVar, cast

import streamlit as st

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Entry:
    """A value and the time when it was computed; the lock is held while it is computed."""

    def __init__(self) -> None:
        self.lock, self.values, self.at = Lock(), list[object](), 0.0


class Shared(Generic[_P, _T]):
    """A function whose results are cached by its arguments, except those whose names begin with ``_``.

    If several threads need the same value, one computes it; errors are not cached. Arguments are compared by their
    ``repr``.
    """

    def __init__(self, compute: Callable[_P, _T], most: int, seconds: float, spinner: str) -> None:
        self._compute, self._most, self._seconds, self._spinner = compute, most, seconds, spinner
        self._names = inspect.signature(compute)
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = Lock()
        update_wrapper(self, compute)
        _ALL.append(self.clear)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """The cached value, else a new one."""
        bound = self._names.bind(*args, **kwargs).arguments
        key = repr([(name, value) for name, value in bound.items() if not name.startswith("_")])
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with entry.lock:
            if not entry.values or time.monotonic() - entry.at > self._seconds:
                with st.spinner(self._spinner) if self._spinner else nullcontext():
                    entry.values = [self._compute(*args, **kwargs)]
                entry.at = time.monotonic()
            return cast("_T", entry.values[0])

    def clear(self) -> None:
        """Removes every cached value."""
        with self._lock:
            self._entries.clear()


_ALL: Final[list[Callable[[], None]]] = []


def shared(
    *, most: int = 1_000, seconds: float = float("inf"), spinner: str = ""
) -> Callable[[Callable[_P, _T]], Shared[_P, _T]]:
    """Caches the ``most`` recently used values, each for ``seconds``; ``spinner`` is shown while one is computed."""
    return lambda compute: Shared(compute, most, seconds, spinner)


def forget() -> None:
    """Removes the cached values of every function, as a restart of the server would."""
    for clear in _ALL:
        clear()
