"""A question that runs in its own thread, so that a rerun of the page never loses it, and the server's runs."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from ragqa.errors import RagqaError
from ragqa.infra import logs
from ragqa.infra.job import Job
from ragqa.infra.metrics import METRICS
from ragqa.pipeline import Pipeline
from ragqa.records.view import View, advance
from ragqa.records.view import ended as view_at_end
from ragqa.server.queue import QueuePlace, RunQueue
from ragqa.settings.config import Config
from ragqa.types import Question
from ragqa.types.events.generation import BestSoFar

_logger = logging.getLogger(__name__)


_under_way: set[Run] = set()  # the running and waiting runs of this process


class Run(Job[View]):
    """A run of a question or a checked text."""

    def __init__(
        self,
        question: Question,
        config: Config,
        load: Callable[[], Pipeline],
        owner: str = "",
        turn: QueuePlace | None = None,
    ) -> None:
        """Starts at once, or when its ``turn`` comes. ``load`` gives the pipeline; it is called in the thread, because
        it may load models.

        ``owner`` is the id of the person who began it.
        """
        super().__init__(View(question, config), "run", "ask again")
        self._turn, self._load = turn, load
        self.owner = owner
        self.id = secrets.token_urlsafe(16)
        self._why = ""
        _under_way.add(self)
        self.start()

    def stop(self, why: str = "Stopped at your request") -> None:
        """Ends the run after the present event and keeps its results; a best answer so far becomes the answer."""
        self._why = self._why or why
        super().stop()
        if self._turn:
            self._turn.give_up()

    def _run(self) -> None:
        with logs.about(run=self.id[:6]):  # not the whole id, which gives access to the run
            super()._run()

    def work(self) -> None:
        """Waits for its turn and follows the pipeline."""
        if not self._turn or self._turn.wait(self._wait_behind):
            self._follow()
        else:
            self.stopped.set()  # stopped by a person or by the end of the server
            self._end("Stopped before its turn came; ask again.")

    def failed(self, words: str, error: RagqaError | None) -> None:
        """Ends the run with this error and keeps its results."""
        METRICS.count("ragqa_errors_total", kind=type(error).__name__ if error else "internal")
        self._end(words)

    def ended(self) -> None:
        """Leaves the queue, so that the next run can begin."""
        if self._turn:
            self._turn.leave()
        _under_way.discard(self)
        self._count()

    def _wait_behind(self, place: int) -> None:
        before = "you are next" if place == 1 else "1 is before you" if place == 2 else f"{place - 1} are before you"
        self.view = replace(self.view, phase=f"Waiting for a turn: {before}")

    def _count(self) -> None:
        with logs.about(record=self.view.record_id):
            _logger.info("%s after %.1f s", self._outcome(), self.seconds)
        METRICS.count("ragqa_questions_total", outcome=self._outcome())
        for stage, seconds in self.view.seconds.items():
            METRICS.observe("ragqa_stage_seconds", seconds, stage=stage)

    def _outcome(self) -> str:
        view = self.view
        if view.error:
            return "stopped" if self.stopped.is_set() else "failed"
        return "passages only" if not view.answer else "refused" if view.answer.is_refusal else "answered"

    def _follow(self) -> None:
        self.view = replace(self.view, phase="Loading the models (once)")
        pipeline = self._load()
        store = pipeline.records
        if store:
            store.begin(self.id)  # raises at once, before a long wait, if nothing can be stored
        self.view = replace(self.view, phase="Retrieving passages")
        with closing(pipeline.run(self.view.asked)) as events:  # type: ignore[type-var]
            for event in events:
                is_kept = bool(self.view.record_id)
                self.view = advance(self.view, event)
                if store and self.view.record_id and not is_kept:
                    store.link(self.id, self.view.record_id)
                is_stored = not isinstance(event, BestSoFar)  # the next event has the id of its record
                if self.stopped.is_set() and self.view.running and is_stored:
                    self._end(f"{self._why}. What was there stays; ask again to continue.")
                    return
        if self.view.running:  # a run for passages alone has no record that ends it
            self.view = replace(self.view, running=False, phase="Done")

    def _end(self, error: str) -> None:
        self.view = view_at_end(self.view, error)


class KeptRun(Run):
    """A run of another process, as its record shows it; nothing of it runs here."""

    def __init__(self, run_id: str, view: View, owner: str) -> None:
        self.id, self.view, self.owner = run_id, view, owner
        self._began = self._ended = time.monotonic()

    def stop(self, why: str = "") -> None:
        """Does nothing: the run belongs to another process."""

    def wait(self, timeout_seconds: float | None = None) -> View:
        """The stored view."""
        return self.view


STOPPING = "This server is being stopped"


def finish(turns: RunQueue, seconds: float) -> None:
    """Closes the queue and lets running runs end: for three quarters of ``seconds`` by themselves, then stopped.

    Runs that have still not ended are cut off and named in the log; their stored part stays.
    """
    turns.close(f"{STOPPING}; ask again in a minute, when it is there again.")
    runs = list(_under_way)
    for run in _waited(runs, 0.75 * seconds):
        run.stop(STOPPING)
    for run in _waited(runs, 0.25 * seconds):
        _logger.warning(
            "run %s is cut off at: %s; its record: %s", run.id[:6], run.view.phase, run.view.record_id or "none"
        )


def _waited(runs: list[Run], seconds: float) -> list[Run]:
    """The runs that are still running after this time in total."""
    until = time.monotonic() + seconds
    return [run for run in runs if run.wait(max(0.0, until - time.monotonic())).running]


MOST_RUNS = 200
MOST_ENDED = 60  # ended runs that are kept; each takes about a megabyte, and its record stays
KEPT_SECONDS = 6 * 3600.0  # for which a run is kept after its last use; its record stays


class Runs:
    """The runs of one server by their unguessable ids, which are in their addresses. Safe between threads.

    A run is dropped when it was not used for ``seconds``, or when ``most`` others were used since; if it is still
    running it is stopped. At most ``most_ended`` ended runs are kept.
    """

    def __init__(
        self,
        most: int = MOST_RUNS,
        seconds: float = KEPT_SECONDS,
        now: Callable[[], float] = time.monotonic,
        most_ended: int = MOST_ENDED,
    ) -> None:
        self._most, self._seconds, self._now, self._most_ended = most, seconds, now, most_ended
        self._runs: dict[str, tuple[Run, float]] = {}  # ordered by last use
        self._lock = threading.Lock()

    def add(self, run: Run) -> None:
        """Keeps the run, and drops runs that were not used for too long."""
        with self._lock:
            self._runs[run.id] = (run, self._now())
            self._let_go()

    def find(self, run_id: str) -> Run | None:
        """The run with this id, which counts as a use; None where there is none."""
        with self._lock:
            self._let_go()
            found = self._runs.pop(run_id, None)
            if found is None:
                return None
            self._runs[run_id] = (found[0], self._now())
            return found[0]

    def __len__(self) -> int:
        with self._lock:
            return len(self._runs)

    def _let_go(self) -> None:
        since = self._now() - self._seconds
        for run_id, (run, looked_at) in list(self._runs.items()):
            if looked_at >= since and len(self._runs) <= self._most:
                break
            run.stop()
            del self._runs[run_id]
        ended = [run_id for run_id, (run, _) in self._runs.items() if not run.view.running]
        for run_id in ended[: -self._most_ended]:
            del self._runs[run_id]
