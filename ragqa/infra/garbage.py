"""Pauses the garbage collector while very many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collecting_paused() -> Iterator[None]:
    """No collection looks at the new objects meanwhile: reading 20,000 rows took twice as long with them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
