"""Limits the C library to a few heaps in a process with many short threads, instead of eight per core.

Each question, each run of a page and each call of a model has a thread, and glibc gives threads separate heaps, up to
eight per core. Memory that is freed in one heap cannot be used by the others: after five minutes of mixed use a fifth
of the memory of sixteen heaps was free, and that share was growing. The memory of numpy and OpenVINO is there, that of
Python's own objects is not.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

HEAPS: Final = 2
_M_ARENA_MAX: Final = -8  # malloc.h


def share_heaps() -> bool:
    """Lets threads that start from now on share `HEAPS` heaps; False where the system's library does not support it.

    Does nothing where the environment already sets `MALLOC_ARENA_MAX`.
    """
    if not sys.platform.startswith("linux") or "MALLOC_ARENA_MAX" in os.environ:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    return mallopt is not None and mallopt(_M_ARENA_MAX, HEAPS) == 1
