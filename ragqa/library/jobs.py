"""Reading and indexing in the background: a thread a corpus, watched from any session; stopped, it goes on later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.errors import ConfigError, RagqaError
from ragqa.infra.job import Job
from ragqa.library import parse_cache
from ragqa.library.collection import Collection
from ragqa.library.update import MAX_TOKENS, FurtherModels, index_events, no_further
from ragqa.plugins.protocols import Encoder

Kind = Literal["read", "index"]


@dataclass(frozen=True, slots=True)
class JobView:
    """How far a job is: ``done`` of ``total`` of the phase; ``files`` the lines of the files read so far."""

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
    """How long the rest of a phase takes at the pace so far."""

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


class LibraryJob(Job[JobView]):
    """Files being read, or an index being built; stopped, it goes on from there when it is started again."""

    def __init__(
        self,
        collection: Collection,
        kind: Kind,
        indexes: Path,
        load_encoder: Callable[[], Encoder | None],
        load_further: FurtherModels = no_further,
    ) -> None:
        """Starts at once. What loads models is called in the thread, since it may take seconds."""
        super().__init__(JobView(collection.name, kind), f"library-{kind}")
        self.collection, self._indexes, self._load_encoder = collection, indexes, load_encoder
        self._load_further = load_further
        self._clock = _Clock()
        self._reader = Reader()
        self.start()

    def stop(self) -> None:
        """Ends it as soon as may be; a file that is being read is let go of."""
        super().stop()
        if self.view.kind == "read":
            self._reader.close()

    def work(self) -> None:
        """Reads, or indexes, to the end or until it is stopped."""
        with self._reader:
            if self.view.kind == "read":
                self._read()
            else:
                self._index()
        stopped = self.stopped.is_set() and self.view.phase != "Done"
        self._end(replace(self.view, phase="Stopped" if stopped else "Done", stopped=stopped))

    def failed(self, words: str, error: RagqaError | None) -> None:
        """Says why, unless that is only what stopping it brought."""
        self._end(replace(self.view, error="" if error and self.stopped.is_set() else words))

    def _end(self, view: JobView) -> None:
        self.view = replace(view, running=False, seconds_left=None, file="")

    def _read(self) -> None:
        waiting = self.collection.read().staged
        total = sum(one.size for one in waiting)
        done = 0
        for one in waiting:
            if self.stopped.is_set():
                return
            self._show("Reading", done, total, one.name)
            try:
                parse_cache.read(self.collection, one, self._reader, MAX_TOKENS, self.stopped.is_set)
            except UnreadableError as error:
                if not self.stopped.is_set():
                    self.view = replace(self.view, messages=(*self.view.messages, f"{one.name}: {error}"))
            done += one.size
        self._show("Done", total, total)

    def _index(self) -> None:
        events = index_events(self.collection, self._indexes, self._load_encoder, load_further=self._load_further)
        with closing(events):
            for event in events:
                if event.message:
                    self.view = replace(self.view, messages=(*self.view.messages, event.message))
                self._show(_PHASES.get(event.stage, f"Ranking {event.stage}"), event.done, event.total, event.note)
                if self.stopped.is_set():
                    return
        self._show("Done", 1, 1)

    def _show(self, phase: str, done: float, total: float, file: str = "") -> None:
        left = self._clock.left(phase, done, total)
        self.view = replace(self.view, phase=phase, done=done, total=total, seconds_left=left, file=file)


_PHASES = {
    "corpus": "Cutting into passages",
    "BM25": "Counting words",
    "vectors": "Encoding passages",
    "files": "Writing the index",
}


@dataclass(slots=True)
class Jobs:
    """The jobs of this process, the latest of each corpus; sessions share them."""

    indexes: Path
    load_further: FurtherModels = no_further
    latest: dict[str, LibraryJob] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, collection: Collection, kind: Kind, load_encoder: Callable[[], Encoder | None]) -> LibraryJob:
        """Raises ConfigError while one is under way for this corpus."""
        with self._lock:
            if self.running(collection.name):
                msg = f"{collection.name!r} is being worked on; wait until that has ended, or stop it first"
                raise ConfigError(msg)
            job = LibraryJob(collection, kind, self.indexes, load_encoder, self.load_further)
            self.latest[collection.name] = job
            return job

    def running(self, name: str) -> LibraryJob | None:
        """The job under way for this corpus."""
        job = self.latest.get(name)
        return job if job and job.view.running else None
