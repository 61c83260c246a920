"""How much work something is, in processor time: the clock on the wall also counts what other programs do."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

FLOOR = 0.002  # seconds: below, what is measured is mostly the measuring


def effort(work: Callable[[], object], enough: float = 0.0) -> float:
    """Processor seconds of this thread for ``work``: the least of three runs, fewer where one takes ``enough``."""
    least = float("inf")
    gc.disable()  # a collection looks at all that earlier tests left
    try:
        for _ in range(3):
            began = time.thread_time()
            work()
            least = min(least, time.thread_time() - began)
            if least <= enough:
                break
    finally:
        gc.enable()
    return least


def grows_no_faster(work: Callable[[int], object], size: int, times: int = 8) -> bool:
    """Whether work of ``times`` the size is about ``times`` the work: below half of what a square would be."""
    most = max(effort(lambda: work(size)), FLOOR) * times * times / 2
    return effort(lambda: work(size * times), most) <= most
