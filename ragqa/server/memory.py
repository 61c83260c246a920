"""The C library's memory in a process of many short threads: a few heaps instead of eight a core.

Each question, each drawing of a page and each call of a model is a thread, and glibc gives threads heaps of their own,
up to eight a core. What is freed in one is of no use to the others: after five minutes of mixed use a fifth of what
sixteen heaps held was free, and that share grew on. Python's own objects do not lie there, numpy's and OpenVINO's do.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

HEAPS: Final = 2
_M_ARENA_MAX: Final = -8  # malloc.h


def share_heaps() -> bool:
    """Lets threads that begin from now on share `HEAPS` heaps; False where the system's library knows no such thing.

    `MALLOC_ARENA_MAX` in the environment, which says the same, is heeded and left alone.
    """
    if not sys.platform.startswith("linux") or "MALLOC_ARENA_MAX" in os.environ:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    return mallopt is not None and mallopt(_M_ARENA_MAX, HEAPS) == 1
