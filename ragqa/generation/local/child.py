"""The model's own process: ``python -m ragqa.generation.local.child``, the only place that imports its library.

It reads one line of JSON from its standard input that says what to serve: ``file``, ``alias``, ``key``, ``threads``,
``context``. It writes one line in return: ``{"url": ...}`` once it listens on 127.0.0.1, or ``{"error": ...}``. It ends
when its standard input closes or its parent ends, even if the parent is killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any, TextIO

READ_AT_ONCE = 128  # tokens of the prompt between two progress reports; more is not faster on a CPU
IDLE_SECONDS = 900  # without a question; then the memory is freed, and the next question loads the model again
NICE = 5  # scoring and other visitors' retrieval take precedence


def main() -> None:
    """Serves until the parent ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")  # the library prints to standard output too
    os.dup2(2, 1)
    told = json.loads(sys.stdin.readline())
    parent = os.getppid()
    threading.Thread(target=_leave_at_end_of, args=(sys.stdin,), daemon=True).start()
    _be_ended_with(sys.stdin)
    if hasattr(os, "nice"):
        os.nice(NICE)
    try:
        server = _serve(told)
    except Exception as error:  # of any kind: the parent reports it
        _say(out, error=f"{type(error).__name__}: {error}")
        return
    _say(out, url=server.listening_address)
    while os.getppid() == parent:  # a fork of the parent may hold our standard input open longer than it lives
        time.sleep(1)
    os._exit(0)


def _serve(told: dict[str, Any]) -> Any:  # noqa: ANN401 - the library has no types
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = told["file"]
    params.model_alias = {told["alias"]}
    params.api_keys = [told["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # a free one
    params.n_ctx = told["context"]
    params.n_parallel = 1  # memory for one question; further ones wait in the parent
    params.cache_ram_mib = 0
    params.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE  # weights are repacked: mapping holds them twice
    params.n_batch = params.n_ubatch = READ_AT_ONCE
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = told["threads"]
    params.sleep_idle_seconds = IDLE_SECONDS
    params.warmup = params.ui = False
    params.offline = True
    params.verbosity = 1  # errors
    return xllamacpp.Server(params)


def _say(out: TextIO, **words: str) -> None:
    out.write(json.dumps(words) + "\n")
    out.flush()


def _be_ended_with(stream: TextIO) -> None:
    """Makes the system end this process with the stream, because the library blocks our threads while it loads."""
    with suppress(ImportError, OSError):
        import fcntl

        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(stream, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(stream, fcntl.F_SETFL, fcntl.fcntl(stream, fcntl.F_GETFL) | os.O_ASYNC)


def _leave_at_end_of(stream: TextIO) -> None:
    stream.read()
    os._exit(0)


if __name__ == "__main__":
    main()
