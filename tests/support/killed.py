"""A process that is killed (SIGKILL) at a chosen moment of its work, and what it had said by then."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "sqlite3.connect"}
Say = Callable[[Any], None]


@dataclass(frozen=True)
class Ended:
    """What the process said, in order; ``changes``: how many files it was to change, None where it was killed."""

    said: list[Any]
    changes: int | None


def in_a_process(
    work: Callable[[Say], None], *, at_change: int = 0, after: int = 0, moments: random.Random | None = None
) -> Ended:
    """Does the work in a fork of this process, which must run no threads yet.

    It is killed before the change of a file with the number ``at_change``, from 1, or, given ``moments``, a few
    milliseconds after it has said ``after`` things; else it ends by itself.
    """
    mine, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(mine)
        _work(work, theirs, at_change)
    os.close(theirs)
    said: list[Any] = []
    with os.fdopen(mine, encoding="utf-8") as lines:
        while True:
            if moments and len(said) == after:
                time.sleep(moments.uniform(0.0, 0.02))
                os.kill(pid, signal.SIGKILL)
            line = lines.readline()
            if not line.endswith("\n"):
                break
            said.append(json.loads(line))
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return Ended(said, None)
    assert status == 0, said
    return Ended(said[:-1], said[-1])


def _work(work: Callable[[Say], None], theirs: int, at_change: int) -> None:
    """Ends the process in any case."""
    changes, code = 0, 1

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal changes
        flags = arguments[2] if event == "open" else 0
        if event in _CHANGES or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
            changes += 1
            if changes == at_change:
                os.kill(os.getpid(), signal.SIGKILL)

    def say(what: Any) -> None:
        os.write(theirs, f"{json.dumps(what)}\n".encode())

    try:
        sys.addaudithook(watch)
        work(say)
        say(changes)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
