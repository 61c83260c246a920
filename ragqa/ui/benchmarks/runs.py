"""Evaluations in the background, one at a time, and those that earlier sessions left on disk.

::

    RAGQA_HOME/evaluations/
    ├── RUN_ID/
    │   ├── request.json   what was asked, and how far it came
    │   ├── view.json      what the page shows, written when a run ends, however it ends
    │   └── …              the folder of that benchmark: run.json, journal.jsonl and what can be downloaded
    └── uploads/           question files that somebody uploaded, named by their content

A question is in its benchmark's journal before the page shows it: after Stop, a crash or `kill -9` the same request
goes on there.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragqa.errors import ConfigError, RagqaError, RecordError
from ragqa.evaluation.journal import write_whole
from ragqa.evaluation.run_folder import translated
from ragqa.paths import Paths
from ragqa.ui.benchmarks.request import BENCHMARKS, Request, run_id_of
from ragqa.ui.benchmarks.view import View, view_from_json, view_to_json

_logger = logging.getLogger(__name__)

REQUEST, VIEW = "request.json", "view.json"


@dataclass(frozen=True, slots=True)
class Job:
    """What a benchmark works from. It looks at ``stopped`` between questions; ``on_stop`` are called when it is set."""

    request: Request
    folder: Path
    paths: Paths
    restart: bool = False
    stopped: threading.Event = field(default_factory=threading.Event)
    on_stop: list[Callable[[], None]] = field(default_factory=list)


Work = Callable[[Job], Iterator[View]]  # the view after every step; the last one has the results


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A line of the list of runs. ``state`` is "running", "done", "stopped", "failed" or "interrupted"."""

    run_id: str
    title: str
    words: str
    started: str
    state: str
    done: int
    total: int
    headline: str


class BenchmarkRun:
    """One evaluation under way. `view` may be read at any time from any thread; it is replaced, never changed."""

    def __init__(self, run_id: str, job: Job, work: Work) -> None:
        """Starts at once."""
        self.run_id, self.job = run_id, job
        self.view = View(job.request)
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self._work = work
        self._first: tuple[float, int] | None = None  # when the first new question was done, and how many were then
        _write_request(job.folder, self.view, self.started, "interrupted")  # what is true if nobody writes again
        self._thread = threading.Thread(target=self._run, name="ragqa-evaluation", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the run after the question it is at; what is done is kept."""
        self.job.stopped.set()
        for call in self.job.on_stop:
            call()

    @property
    def is_stopping(self) -> bool:
        return self.job.stopped.is_set() and self.view.running

    def wait(self, timeout_seconds: float | None = None) -> View:
        """The view when the run has ended, or when the time is up."""
        self._thread.join(timeout_seconds)
        return self.view

    def _run(self) -> None:
        last = self.view
        try:
            with closing(self._work(self.job)) as views:  # type: ignore[type-var]
                for view in views:
                    last = view
                    self.view = replace(view, running=True, seconds_left=self._seconds_left(view))
            stopped = self.job.stopped.is_set() and last.done < last.total
            last = replace(last, phase="Stopped" if stopped else "Done", stopped=stopped)
        except RagqaError as error:
            last = replace(last, phase="Ended early", error=str(error))
        except Exception:  # the thread's last line: whatever it is, the page must say so without a trace
            reference = secrets.token_hex(4)
            _logger.exception("evaluation failed, reference %s", reference)
            words = f"Something failed inside ragqa. Reference {reference} in the server's log says what."
            last = replace(last, phase="Ended early", error=f"{words} What was done is kept; run it again to go on.")
        last = replace(last, running=False, seconds_left=None)
        self._keep(last)

    def _keep(self, view: View) -> None:
        """On disk first, so that who sees the run ended finds it there."""
        try:
            with translated(self.job.folder):
                write_whole(self.job.folder / VIEW, [view_to_json(view)])
            _write_request(self.job.folder, view, self.started, _state(view))
        except (RagqaError, ValueError) as error:
            _logger.warning("what the page shows could not be kept: %s", error)
            view = replace(view, error=view.error or f"The results are shown, but could not be kept: {error}")
        self.view = view

    def _seconds_left(self, view: View) -> float | None:
        if view.done <= view.n_kept:
            return None
        now = time.monotonic()
        if self._first is None:
            self._first = now, view.done
        since, at = self._first
        return (now - since) / (view.done - at) * (view.total - view.done) if view.done > at + 1 else None


class Runs:
    """The evaluations of one home: at most one under way, any number on disk. Sessions share it."""

    def __init__(self, paths: Paths, work: Mapping[str, Work]) -> None:
        self.folder = paths.home / "evaluations"
        self._paths, self._work = paths, work
        self._lock = threading.Lock()
        self._latest: BenchmarkRun | None = None

    @property
    def current(self) -> BenchmarkRun | None:
        """The run under way."""
        run = self._latest
        return run if run and run.view.running else None

    def start(self, request: Request, *, restart: bool = False) -> BenchmarkRun:
        """Starts or goes on with this run; ``restart`` throws its earlier questions away.

        Raises ConfigError while another one is under way, CorpusError where a file is gone, RecordError where nothing
        can be kept.
        """
        run_id = run_id_of(request)
        with self._lock:
            if self.current:
                msg = (
                    f"{BENCHMARKS[self.current.view.request.benchmark].title} is still under way; wait until it has "
                    "ended, or stop it first: two at a time would only share the processor and spoil the times"
                )
                raise ConfigError(msg)
            folder = self.folder / run_id
            with translated(folder):
                folder.mkdir(parents=True, exist_ok=True)
            job = Job(request, folder, self._paths, restart=restart)
            self._latest = BenchmarkRun(run_id, job, self._work[request.benchmark])
            return self._latest

    def live(self, run_id: str) -> BenchmarkRun | None:
        """The run of this id where it is the latest of this process, ended or not."""
        return self._latest if self._latest and self._latest.run_id == run_id else None

    def view(self, run_id: str) -> View:
        """What is known of this run; of one that was killed only what was asked. Raises RecordError."""
        live = self.live(run_id)
        if live:
            return live.view
        known = {summary.run_id for summary in self.list()}
        folder = self.folder / run_id
        if run_id not in known:
            msg = f"no evaluation {run_id[:60]!r} on this machine; choose one of the list, or run it"
            raise RecordError(msg)
        asked = _read_request(folder)
        if asked is not None and asked["state"] == "interrupted":
            words = "This run was interrupted. The questions that were done are kept: go on to see them and the rest."
            request = view_from_json(json.dumps({"request": asked["request"]}), REQUEST).request
            return View(request, phase="Interrupted", running=False, error=words)
        with translated(folder):
            text = (folder / VIEW).read_text(encoding="utf-8")
        return view_from_json(text, VIEW)

    def list(self) -> tuple[RunSummary, ...]:
        """Every run, newest first; folders that are none are passed over."""
        found = []
        for file in self.folder.glob(f"*/{REQUEST}"):
            asked = _read_request(file.parent)
            if asked is not None:
                live = self.live(file.parent.name)
                found.append(_summary(file.parent.name, asked, live))
        return tuple(sorted(found, key=lambda one: one.started, reverse=True))


def _summary(run_id: str, asked: Mapping[str, Any], live: BenchmarkRun | None) -> RunSummary:
    request = view_from_json(json.dumps({"request": asked["request"]}), REQUEST).request
    state, done, total, headline = asked["state"], asked["done"], asked["total"], asked["headline"]
    if live and live.view.running:
        state, done, total, headline = "running", live.view.done, live.view.total, _headline(live.view)
    title = BENCHMARKS[request.benchmark].title
    return RunSummary(run_id, title, request.words, asked["started"], state, done, total, headline)


def _state(view: View) -> str:
    return "failed" if view.error else "stopped" if view.stopped else "done"


def _headline(view: View) -> str:
    return ", ".join(f"{figure.label} {figure.text}" for figure in view.figures[:2])


def _write_request(folder: Path, view: View, started: str, state: str) -> None:
    entry = {
        "request": asdict(view.request),
        "started": started,
        "state": state,
        "done": view.done,
        "total": view.total,
        "headline": _headline(view),
    }
    with translated(folder):
        write_whole(folder / REQUEST, [json.dumps(entry, indent=2, ensure_ascii=False) + "\n"])


def _read_request(folder: Path) -> dict[str, Any] | None:
    """What `_write_request` wrote; None for anything else."""
    try:
        found = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
        texts = [found[key] for key in ("started", "state", "headline")]
        counts = [found["done"], found["total"]]
        view_from_json(json.dumps({"request": found["request"]}), REQUEST)
    except (OSError, ValueError, KeyError, TypeError, RecordError):
        return None
    whole = all(isinstance(text, str) for text in texts) and all(isinstance(count, int) for count in counts)
    return found if whole and found["request"]["benchmark"] in BENCHMARKS else None
