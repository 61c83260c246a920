"""Runs the process of the local model: starts it at the first question, queues questions, restarts it if it ended.

Every ragqa process has at most one model's process. One answer is written at a time, in the order of the questions: a
queue orders them within a process, a lock in RAGQA_HOME between processes. The child does not read its address and key
from a file, the environment or the command line, so nobody else can call it.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from ragqa.errors import ConfigError, GenerationError
from ragqa.infra.cleaning import without_controls
from ragqa.infra.files import Lock
from ragqa.models.catalogue import LOCAL_MODELS, has_library, local_file, stored_models
from ragqa.settings.paths import Paths

CONTEXT_TOKENS: Final = 8192
LOADING_SECONDS: Final = 300.0  # enough for a file of gigabytes on a slow disk
WAIT_SECONDS: Final = 0.25  # between two checks, and between two progress messages
COMMAND: Final = (sys.executable, "-m", "ragqa.generation.local.child")
_INSTEAD: Final = "choose a smaller model (ragqa models list), or a generator without a language model"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the model listens, and the key that it requires."""

    base_url: str
    key: str


class Child:
    """One process of one model. ``address`` is None until it listens."""

    def __init__(self, file: Path, alias: str, command: Sequence[str] = COMMAND) -> None:
        """Starts it and returns at once."""
        self.file, self.alias = file, alias
        self.address: Address | None = None
        self.began = time.monotonic()
        self._said = ""
        self._key = secrets.token_urlsafe(32)
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs
        self._process = subprocess.Popen(  # noqa: S603 - our own words
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        told = {
            "file": str(file),
            "alias": alias,
            "key": self._key,
            "threads": max(1, _cores() - 1),
            "context": CONTEXT_TOKENS,
        }
        with suppress(OSError):  # if it ended at once, `check` reports it
            assert self._process.stdin  # noqa: S101 - a pipe was asked for
            self._process.stdin.write(json.dumps(told) + "\n")
            self._process.stdin.flush()
        self._listener = threading.Thread(target=self._listen, name="ragqa-local-model", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def lives_on(self, seconds: float) -> bool:
        """Waits this many seconds at most; returns whether the process still runs."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.is_alive

    def _listen(self) -> None:
        assert self._process.stdout  # noqa: S101 - likewise
        self._said = self._process.stdout.readline()

    def check(self) -> None:
        """Reads the message of the process, if there is one. Raises GenerationError if it failed to start."""
        seconds = time.monotonic() - self.began
        self._listener.join(WAIT_SECONDS)
        if self._listener.is_alive():
            if seconds > LOADING_SECONDS:
                self.stop()
                msg = (
                    f"expected the local model {self.alias} within {LOADING_SECONDS:g} s, found it still loading; try "
                )
                raise GenerationError(msg + f"again, {_INSTEAD}")
            return
        try:
            said = json.loads(self._said)
            self.address = Address(f"{said['url']}/v1", self._key)
        except (ValueError, KeyError, TypeError):
            reason = self.last_words()
            self.stop()
            msg = f"expected the local model {self.alias} to load, found: {reason}; check the file and the memory, or "
            raise GenerationError(msg + _INSTEAD) from None

    def last_words(self) -> str:
        """Why it ended, by its own message or that of the system."""
        self.lives_on(1)
        code = self._process.returncode
        try:
            error = str(json.loads(self._said)["error"])
        except (ValueError, KeyError, TypeError):
            error = ""
        if code is not None and code < 0:
            return f"its process was ended by signal {-code}" + (", perhaps for lack of memory" if code == -9 else "")
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4000))
        lines = self._log.read().decode("utf-8", "replace").replace(self._key, "[key]").splitlines()
        told = [line for line in lines if " E " in line or "Error" in line][:1] if error else lines[-1:]
        words = " ".join(without_controls(" ".join(filter(None, (error, *told)))).split())[:300]
        return words or f"its process ended with code {code}"

    def stop(self) -> None:
        """Ends the process, if it still runs."""
        with suppress(OSError):
            assert self._process.stdin  # noqa: S101 - likewise
            self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()


class Host:
    """The one child of this process and its queue. Thread-safe."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._child: Child | None = None
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()

    @property
    def pid(self) -> int | None:
        """The id of the model's process; None if none runs."""
        return self._child.pid if self._child and self._child.is_alive else None

    @contextmanager
    def turn(self, home: Path) -> Iterator[ModelLease]:
        """A place in the queue until the end of the block."""
        turn = ModelLease(self, Lock(home / "local-model.lock"))
        with self._changed:
            self._queue.append(turn)
        try:
            yield turn
        finally:
            turn.lock.release()
            with self._changed:
                self._queue.remove(turn)
                self._changed.notify_all()

    def ahead(self, turn: ModelLease) -> int:
        """The number of leases before this one, after waiting a moment for a change."""
        with self._changed:
            if self._queue[0] is not turn:
                self._changed.wait(WAIT_SECONDS)
            return self._queue.index(turn)

    def child(self, file: Path, alias: str) -> Child:
        """The process of this file, started if it does not run. Only for the lease whose turn it is."""
        child = self._child
        if child and (child.file != file or not child.is_alive):
            self.stop()
            child = None
        if child is None:
            child = self._child = Child(file, alias, self._command)
        return child

    def stop(self) -> None:
        """Ends the process, if one runs; the next question starts it again."""
        child, self._child = self._child, None
        if child:
            child.stop()


class ModelLease:
    """One question's time with the model."""

    def __init__(self, host: Host, lock: Lock) -> None:
        self.lock = lock
        self._host = host
        self._child: Child | None = None

    def waiting(self, file: Path, alias: str) -> Iterator[str]:
        """Yields progress a few times a second until `address` can be used. Raises GenerationError."""
        while ahead := self._host.ahead(self):
            yield f"Waiting for the local model: {ahead} before this one"
        while not self.lock.take():
            yield "Waiting for the local model: another ragqa process is using one"
            time.sleep(WAIT_SECONDS)
        self._child = child = self._host.child(file, alias)
        while child.address is None:
            yield f"Loading the local model {alias}: {time.monotonic() - child.began:.0f} s"
            try:
                child.check()
            except GenerationError:
                self._host.stop()
                raise

    @property
    def address(self) -> Address:
        """The address of the model, once `waiting` has ended."""
        address = self._child.address if self._child else None
        assert address  # noqa: S101
        return address

    def why_gone(self) -> str:
        """Why the process ended during a call; empty if it still runs."""
        if not self._child:
            return ""
        return "" if self._child.lives_on(0.5) else self._child.last_words()  # the connection breaks first


HOST: Final = Host()
atexit.register(HOST.stop)


class Local:
    """A local model by name or file, as a client uses it."""

    def __init__(self, name: str, paths: Paths | None = None) -> None:
        """Finds the library and the file; starts nothing. Raises ConfigError, ModelError."""
        if not has_library():
            msg = "expected the library that runs local models, found it is not installed; run make local, or: "
            raise ConfigError(msg + "pip install 'ragqa[local]'")
        paths = paths or Paths.from_env()
        self._home = paths.home
        self._file = local_file(name, paths.local_models)
        self.name = name if name in {model.name for model in LOCAL_MODELS} else self._file.stem

    @contextmanager
    def turn(self) -> Iterator[ModelLease]:
        """As `Host.turn`."""
        self._home.mkdir(parents=True, exist_ok=True)
        with HOST.turn(self._home) as turn:
            yield turn

    def waiting(self, turn: ModelLease) -> Iterator[str]:
        """As `ModelLease.waiting`, for this model."""
        return turn.waiting(self._file, self.name)


def usable_models(folder: Path) -> tuple[str, ...]:
    """The names of the models that can be used now: the file is here, and the library that runs it is installed."""
    return tuple(model.name for model in stored_models(folder)) if has_library() else ()


def _cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
