"""Runs a benchmark item by item, with each step on disk before the next, so that a killed run can continue.

::

    for progress in run(benchmark, settings, folder, paths): ...     # close() or ``stop.set()`` ends it after the item

For each item the journal gets ``begun``, a ``reply`` for every completion of a language model, ``solved``, then
``scored`` or ``failed``. The next run restores scored items, scores solved ones, and repeats begun ones with the
completions already received, so that no completion is requested twice.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from ragqa.errors import ConfigError, GenerationError, RagqaError, RecordError
from ragqa.evaluation.benchmark import Benchmark, Item, Outcome, Settings, Status, Task
from ragqa.evaluation.report import File, Report, Row
from ragqa.evaluation.store import RunStore, open_store
from ragqa.generation.llm.reply_cache import caching_replies
from ragqa.infra.files import write_whole
from ragqa.infra.journal import held, translated
from ragqa.infra.version import __version__
from ragqa.settings.paths import Paths
from ragqa.types.streams import mapped

REPORT = "report.json"
MAX_FAILURES_IN_A_ROW = 5  # then the server is down or refuses, and further questions would only cost time
SYNCED_SECONDS = 0.2  # a slower solution is synced to disk at once, a quicker one with its score
REDRAWN_SECONDS = 0.25  # between two updates of rows and figures, so that thousands of items stay fast


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run. ``outcome`` is the one that has just ended; rows and figures may lag behind it.

    ``resumed`` describes what was found of an earlier run. The last progress has ``outcomes`` of every item in order,
    and the whole report; ``report.files`` are those in the folder.
    """

    phase: str
    done: int = 0
    total: int = 0
    outcome: Outcome | None = None
    rows: tuple[Row, ...] = ()
    report: Report = field(default_factory=Report)
    seconds_left: float | None = None
    resumed: str = ""
    outcomes: tuple[Outcome, ...] = ()


def run(
    benchmark: Benchmark,
    settings: Settings,
    folder: Path,
    paths: Paths,
    *,
    restart: bool = False,
    stop: threading.Event | None = None,
    task: Task | None = None,
) -> Iterator[RunProgress]:
    """Loads the benchmark, restores items in the folder, solves and scores the rest, and writes the files.

    ``restart`` discards an earlier run; ``task`` is one that is already loaded. Once ``stop`` is set, by any thread, no
    further item is begun, and one in progress is solved and kept, but not scored. Raises what loading raises,
    ConfigError if the folder belongs to another run, RecordError if it is in use, damaged or cannot be written, and
    GenerationError if `MAX_FAILURES_IN_A_ROW` items failed in a row. A single item may fail without ending the run.
    """
    if task is None:
        steps = benchmark.load({**settings, "folder": folder, "restart": restart}, paths)
        task = yield from mapped(steps, RunProgress)
    if not task.solves:
        yield _reported(benchmark, task, folder)
        return
    limit = settings.get("limit")
    task = replace(task, items=tuple(task.items[:limit]))
    if not task.items:
        msg = f"expected at least one question to ask, found none (limit: {limit}); change the file or the limit"
        raise ConfigError(msg)
    stop = stop or threading.Event()
    stamp = {"benchmark": benchmark.name, "ragqa_version": __version__, **task.stamp}
    opened = open_store(folder, stamp, task.scoring, outputs=(*benchmark.outputs, *task.outputs), restart=restart)
    with opened as store, task.during(folder):
        task = replace(task, stamp=store.stamp)
        outcomes = {item.number: store.outcome(item, restored=True) for item in task.items}
        pending = [outcome.item for outcome in outcomes.values() if not outcome.is_done]
        watched = _ShownOutcomes(benchmark, task, outcomes)
        yield watched.progress(resumed=store.words(list(outcomes.values())))
        workers = _Workers(benchmark, task, store, pending, stop)
        try:
            for outcome in workers.outcomes():
                yield watched.progress(outcome)
        finally:
            workers.stop()
            workers.wait()
        ended = tuple(outcomes.values())
        yield watched.progress(phase="Writing the files")
        report = benchmark.report(task, ended)
        files = _exported(benchmark, task, ended, report, folder)
        yield replace(watched.progress(phase="Done"), report=replace(report, files=files), outcomes=ended)


def _reported(benchmark: Benchmark, task: Task, folder: Path) -> RunProgress:
    """The result of a run without items to solve."""
    with held(folder, "writing"):
        report = benchmark.report(task, ())
        files = _exported(benchmark, task, (), report, folder)
    rows = tuple(benchmark.row(task, Outcome(item, Status.SCORED)) for item in task.items)
    n_items = len(task.items)
    return RunProgress("Done", n_items, n_items, rows=rows, report=replace(report, files=files))


def _exported(
    benchmark: Benchmark, task: Task, outcomes: Sequence[Outcome], report: Report, folder: Path
) -> tuple[File, ...]:
    """The benchmark's files, and ``report.json`` with the report's data unless it is one of them."""
    files = tuple(benchmark.export(task, outcomes, report, folder))
    if not report.data or any(file.name == REPORT for file in files):
        return files
    with translated(folder):
        write_whole(folder / REPORT, [json.dumps(report.data, indent=2, ensure_ascii=False) + "\n"])
    return (*files, File("Report (JSON)", REPORT))


def folder_of(benchmark: Benchmark, settings: Settings, paths: Paths) -> Path:
    """The default folder of a run."""
    return paths.home / "evaluations" / benchmark.run_id(settings)


class _ShownOutcomes:
    """The outcomes so far with their rows and figures, which are updated at most a few times a second."""

    def __init__(self, benchmark: Benchmark, task: Task, outcomes: dict[int, Outcome]) -> None:
        self._benchmark, self._task, self._outcomes = benchmark, task, outcomes
        self._rows = {n: benchmark.row(task, one) for n, one in outcomes.items() if one.is_done}
        self._began, self._n_before = time.monotonic(), len(self._rows)
        self._ordered: tuple[Row, ...] = ()
        self._report = Report(columns=task.columns)
        self._drawn_at = -math.inf

    def progress(self, outcome: Outcome | None = None, phase: str = "", resumed: str = "") -> RunProgress:
        """The progress after ``outcome`` has ended."""
        if outcome is not None:
            self._outcomes[outcome.item.number] = outcome
            if outcome.status is not Status.LEFT:
                self._rows[outcome.item.number] = self._benchmark.row(self._task, outcome)
        if outcome is None or time.monotonic() > self._drawn_at + REDRAWN_SECONDS:
            self._ordered = tuple(self._rows[number] for number in sorted(self._rows))
            if self._ordered:
                self._report = replace(self._report, figures=self._benchmark.figures(self._task, self._ordered))
            self._drawn_at = time.monotonic()
        n_new, total = len(self._rows) - self._n_before, len(self._outcomes)
        left = (time.monotonic() - self._began) / n_new * (total - len(self._rows)) if n_new > 1 else None
        return RunProgress(
            phase or self._benchmark.doing, len(self._rows), total, outcome, self._ordered, self._report, left, resumed
        )


class _Workers:
    """Threads that solve and score.

    They are daemons, so that a second Ctrl-C ends the process despite a silent server.
    """

    def __init__(
        self, benchmark: Benchmark, task: Task, store: RunStore, pending: Sequence[Item], stop: threading.Event
    ) -> None:
        self._benchmark, self._task, self._store, self._stop = benchmark, task, store, stop
        self._waiting = deque(pending)
        self._ended: SimpleQueue[Outcome | BaseException | None] = SimpleQueue()
        self._lock = threading.Lock()  # over the two below
        self._failures = 0  # in a row
        self._given_up: Outcome | None = None  # the last of too many failures; what ends later changes nothing
        self._threads = [
            threading.Thread(target=self._work, name=f"ragqa-run-{n}", daemon=True)
            for n in range(max(1, min(task.parallel, len(pending))) if pending else 0)
        ]

    def outcomes(self) -> Iterator[Outcome | None]:
        """Each item's outcome once it is stored, in the order of ending; None in the first pause after one."""
        for thread in self._threads:
            thread.start()
        running, is_pause = len(self._threads), True
        while running:
            try:
                ended = self._ended.get(timeout=None if is_pause else REDRAWN_SECONDS)
            except Empty:
                is_pause = True
                yield None
                continue
            is_pause = False
            if ended is None:
                running -= 1
            elif isinstance(ended, BaseException):
                self.stop()
                raise ended
            else:
                yield ended
        if self._given_up is not None:
            raise GenerationError(
                f"{self._failures} questions in a row got no answer, the last because: {self._given_up.note} What was "
                f"answered is kept in {self._store.folder}; when the cause is gone, run the same command again"
            )

    def stop(self) -> None:
        self._stop.set()

    def wait(self) -> None:
        """Waits until the items in progress have ended."""
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    item = self._waiting.popleft()
                except IndexError:
                    break
                self._one(item)
                outcome = self._store.outcome(item)
                with self._lock:
                    if self._given_up is None:
                        self._failures = self._failures + 1 if outcome.status is Status.FAILED else 0
                        if self._failures >= MAX_FAILURES_IN_A_ROW:
                            self._given_up = outcome
                            self.stop()
                self._ended.put(outcome)
        except BaseException as error:  # of any kind: the waiting thread must learn of it
            self._ended.put(error)
        finally:
            self._ended.put(None)

    def _one(self, item: Item) -> None:
        store, benchmark, task = self._store, self._benchmark, self._task
        try:
            solution = store.solution(item)
            if solution is None:
                store.keep(item, "begun", sync=False)
                began = time.monotonic()
                with caching_replies(store.replies(item)):
                    solution = benchmark.solve(task, item)
                sync = time.monotonic() - began > SYNCED_SECONDS
                store.keep(item, "solved", sync=sync, solution=dict(solution))
                if self._stop.is_set():
                    return
            store.keep(item, "scored", scores=dict(benchmark.score(task, item, solution)))
        except RecordError:
            raise  # the folder itself failed, so nothing more can be stored
        except RagqaError as error:
            store.keep(item, "failed", note=str(error))
