"""Background jobs of the library: one at a time, with priority for questions; a stopped job can be resumed."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np

from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.errors import ConfigError, RagqaError
from ragqa.infra.job import Job
from ragqa.library import parse_cache
from ragqa.library.collection import Collection
from ragqa.library.update import MAX_TOKENS, FurtherModels, index_events, no_further
from ragqa.plugins.protocols import Encoder, FloatMatrix
from ragqa.plugins.registry import is_api_name
from ragqa.types import ModelInfo

Kind = Literal["read", "index", "both", "gaps"]
LoadEncoder = Callable[[], Encoder | None]
GIVES_WAY_SECONDS: Final = 60.0  # the longest wait for questions between two steps
_POLL_SECONDS: Final = 0.1
_AT_ONCE: Final = 16  # texts that are encoded before the job checks again for questions


@dataclass(frozen=True, slots=True)
class JobView:
    """The progress of a job: ``done`` of ``total`` in this phase; ``corpus`` is the name of the job."""

    corpus: str
    kind: Kind
    phase: str = "Starting"
    file: str = ""
    done: float = 0
    total: float = 0
    seconds_left: float | None = None
    messages: tuple[str, ...] = ()
    error: str = ""
    running: bool = True
    stopped: bool = False


@dataclass(slots=True)
class _Clock:
    """Estimates the remaining seconds of a phase from its speed so far."""

    phase: str = ""
    began: float = 0.0
    first: float = 0.0

    def left(self, phase: str, done: float, total: float) -> float | None:
        if phase != self.phase:
            self.phase, self.began, self.first = phase, time.monotonic(), done
        took = time.monotonic() - self.began
        if done <= self.first or took < 1.0 or not total:
            return None
        return took / (done - self.first) * (total - done)


class BackgroundJob(Job[JobView]):
    """A job that waits for its turn and gives way to questions. Subclasses implement `do`."""

    def __init__(self, name: str, kind: Kind, jobs: Jobs) -> None:
        """Does not start the job: call `start` when the subclass is ready."""
        super().__init__(JobView(name, kind), f"library-{kind}")
        self._jobs, self._clock = jobs, _Clock()

    @abstractmethod
    def do(self) -> None:
        """Does the work until it is stopped or complete; a complete job shows the phase "Done"."""

    def work(self) -> None:
        """Waits for its turn, then works until it is complete or stopped."""
        while not self._jobs.turn.acquire(timeout=_POLL_SECONDS):
            self._show("Waiting for another job", 0, 0)
            if self.stopped.is_set():
                self._end(replace(self.view, phase="Stopped", stopped=True))
                return
        try:
            self.do()
        finally:
            self._jobs.turn.release()
        stopped = self.stopped.is_set() and self.view.phase != "Done"
        self._end(replace(self.view, phase="Stopped" if stopped else "Done", stopped=stopped))

    def failed(self, words: str, error: RagqaError | None) -> None:
        """Shows the error, unless it is only a consequence of stopping the job."""
        self._end(replace(self.view, error="" if error and self.stopped.is_set() else words))

    def _end(self, view: JobView) -> None:
        self.view = replace(view, running=False, seconds_left=None, file="")

    def _give_way(self) -> None:
        """Waits while questions are answered, at most `GIVES_WAY_SECONDS`, so that the job always progresses."""
        until, view = time.monotonic() + GIVES_WAY_SECONDS, self.view
        while self._jobs.is_asked() and time.monotonic() < until and not self.stopped.wait(_POLL_SECONDS):
            self.view = replace(view, file="gives way to a question", seconds_left=None)
        self.view = view

    def _show(self, phase: str, done: float, total: float, file: str = "") -> None:
        left = self._clock.left(phase, done, total)
        self.view = replace(self.view, phase=phase, done=done, total=total, seconds_left=left, file=file)


class LibraryJob(BackgroundJob):
    """Reads files, builds an index, or both; a stopped job is resumed by starting it again."""

    def __init__(self, collection: Collection, kind: Kind, jobs: Jobs, load_encoder: LoadEncoder) -> None:
        """Starts when no other job of ``jobs`` is running. ``load_encoder`` is called in the thread."""
        super().__init__(collection.name, kind, jobs)
        self.collection, self._load_encoder = collection, load_encoder
        self._reader = Reader()
        self.start()

    def stop(self) -> None:
        """Stops the job as soon as possible, also while it reads a file."""
        super().stop()
        if self.view.kind != "index":
            self._reader.close()

    def do(self) -> None:
        """Reads, indexes, or both."""
        with self._reader:
            if self.view.kind != "index":
                self._read()
            if self.view.kind != "read" and not self.stopped.is_set():
                self._index()

    def _read(self) -> None:
        waiting = self.collection.read().staged
        total = sum(one.size for one in waiting)
        done = 0
        for one in waiting:
            if self.stopped.is_set():
                return
            self._show("Reading", done, total, one.name)
            self._give_way()
            try:
                parse_cache.read(self.collection, one, self._reader, MAX_TOKENS, self.stopped.is_set)
            except UnreadableError as error:
                if not self.stopped.is_set():
                    self.view = replace(self.view, messages=(*self.view.messages, f"{one.name}: {error}"))
            done += one.size
        if self.view.kind == "read" and not self.stopped.is_set():
            self._show("Done", total, total)

    def _index(self) -> None:
        indexes, load_further = self._jobs.indexes, self._jobs.load_further
        events = index_events(self.collection, indexes, self._load_patient, load_further=load_further)
        with closing(events):
            for event in events:
                if event.message:
                    self.view = replace(self.view, messages=(*self.view.messages, event.message))
                self._show(_PHASES.get(event.stage, f"Ranking {event.stage}"), event.done, event.total, event.note)
                self._give_way()
                if self.stopped.is_set():
                    return
        self._show("Done", 1, 1)

    def _load_patient(self) -> Encoder | None:
        encoder = self._load_encoder()
        return _Patient(encoder, self._give_way) if encoder and not is_api_name(encoder.info.name) else encoder


@dataclass(frozen=True, slots=True)
class _Patient:
    """An encoder that gives way to questions between small batches; batching does not change an embedding."""

    encoder: Encoder
    give_way: Callable[[], None]

    @property
    def info(self) -> ModelInfo:
        return self.encoder.info

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        parts = []
        for start in range(0, len(texts), _AT_ONCE) or (0,):
            self.give_way()
            parts.append(self.encoder.encode(texts[start : start + _AT_ONCE]))
        return np.concatenate(parts)

    def encode_query(self, text: str) -> FloatMatrix:
        return self.encoder.encode_query(text)


_PHASES = {
    "corpus": "Cutting into passages",
    "BM25": "Counting words",
    "vectors": "Encoding passages",
    "files": "Writing the index",
}


@dataclass(slots=True)
class Jobs:
    """The jobs of this process, the latest of each name, shared by all sessions."""

    indexes: Path
    load_further: FurtherModels = no_further
    is_asked: Callable[[], bool] = bool  # whether a question is being answered
    turn: threading.Lock = field(default_factory=threading.Lock)  # held by the one job that is running
    latest: dict[str, BackgroundJob] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, collection: Collection, kind: Kind, load_encoder: LoadEncoder) -> BackgroundJob:
        """Starts a job for this collection. Raises as `begin`."""
        return self.begin(collection.name, lambda: LibraryJob(collection, kind, self, load_encoder))

    def begin(self, name: str, make: Callable[[], BackgroundJob]) -> BackgroundJob:
        """Makes and keeps a job with this name. Raises ConfigError while one with this name is running."""
        with self._lock:
            if self.running(name):
                msg = f"{name!r} is being worked on; wait until that has ended, or stop it first"
                raise ConfigError(msg)
            self.latest[name] = job = make()
            return job

    def running(self, name: str) -> BackgroundJob | None:
        """The running job with this name, or None."""
        job = self.latest.get(name)
        return job if job and job.view.running else None
