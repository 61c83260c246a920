"""Evaluations in the background, one at a time, and earlier ones on disk.

::

    RAGQA_HOME/evaluations/
    ├── RUN_ID/
    │   ├── request.json   the settings of the run, and its progress
    │   ├── view.json      the content of the page, written when a run ends for any reason
    │   └── …              files of the run itself: run.json, journal.jsonl and downloads
    └── uploads/           uploaded question files, named by their content

An item is in the journal before the page shows it, so that the run can continue after Stop, a crash or `kill -9`.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragqa.errors import ConfigError, RagqaError, RecordError
from ragqa.evaluation.benchmark import Benchmark, Settings, Status
from ragqa.evaluation.loading import sharing
from ragqa.evaluation.report import Report, Row
from ragqa.evaluation.run import RunProgress, run
from ragqa.infra.files import write_whole
from ragqa.infra.job import Job
from ragqa.infra.journal import translated
from ragqa.infra.validation import adapter_of
from ragqa.settings.paths import Paths
from ragqa.ui import access
from ragqa.ui.state import resources

_logger = logging.getLogger(__name__)

REQUEST, VIEW = "request.json", "view.json"


@dataclass(frozen=True, slots=True)
class EvaluationView:
    """Everything that is shown of one evaluation, as plain values that can be stored; empty until known.

    ``failed`` counts items without a solution or a score, ``error`` says why the run ended early.
    """

    benchmark: str
    settings: Mapping[str, Any]
    phase: str = "Starting"
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    rows: tuple[Row, ...] = ()
    report: Report = field(default_factory=Report)
    failed: int = 0
    error: str = ""
    running: bool = True
    stopped: bool = False

    @property
    def n_restored(self) -> int:
        """The number of rows that were restored from an earlier run."""
        return sum(row.restored for row in self.rows)

    @property
    def complete(self) -> bool:
        """Whether every requested item is done."""
        return not (self.running or self.error or self.failed) and self.done >= self.total > 0


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


class BackgroundRun(Job[EvaluationView]):
    """A running evaluation. When stopped, it ends after the items in progress; completed items are stored."""

    def __init__(
        self, run_id: str, benchmark: Benchmark, settings: Settings, folder: Path, paths: Paths, *, restart: bool
    ) -> None:
        """Starts the run at once."""
        super().__init__(
            EvaluationView(benchmark.name, settings), "evaluation", "what was done is stored: continue the run"
        )
        self.run_id, self.benchmark, self.folder = run_id, benchmark, folder
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self._paths, self._restart = paths, restart
        self._load = access.bound(resources.pipeline)
        _write_request(folder, self.view, self.started, "interrupted")  # the right state if the process is killed
        self.start()

    def work(self) -> None:
        """Evaluates until it is complete or stopped."""
        settings, stop = self.view.settings, self.stopped
        steps = run(self.benchmark, settings, self.folder, self._paths, restart=self._restart, stop=stop)
        with sharing(self._load), closing(steps):  # type: ignore[type-var]
            for step in steps:
                self.view = _after(self.view, step)
                if stop.is_set() and not step.total:  # still loading
                    break
        last = self.view
        stopped = stop.is_set() and (last.done < last.total or not last.total)
        self._end(replace(last, phase="Stopped" if stopped else "Done", stopped=stopped))

    def failed(self, words: str, error: RagqaError | None) -> None:
        """Ends the run with this error; completed items stay stored."""
        self._end(replace(self.view, phase="Ended early", error=words))

    def _end(self, view: EvaluationView) -> None:
        """Stores the view before it is shown as ended, so that it can always be found on disk."""
        view = replace(view, running=False, seconds_left=None)
        try:
            with translated(self.folder):
                write_whole(self.folder / VIEW, [view_to_json(view)])
            _write_request(self.folder, view, self.started, _state(view))
        except (RagqaError, ValueError) as error:
            _logger.warning("what the page shows could not be stored: %s", error)
            view = replace(view, error=view.error or f"The results are shown, but could not be stored: {error}")
        self.view = view


def _after(view: EvaluationView, step: RunProgress) -> EvaluationView:
    """The view after this step of the run; the report's data are in a separate file."""
    report = replace(step.report, columns=step.report.columns or view.report.columns, data={})
    return replace(
        view,
        phase=step.phase,
        done=step.done,
        total=step.total,
        seconds_left=step.seconds_left,
        rows=step.rows,
        report=report,
        failed=sum(outcome.status is Status.FAILED for outcome in step.outcomes),
    )


class EvaluationRuns:
    """The evaluations of one RAGQA_HOME: at most one running, any number on disk. Sessions share it."""

    def __init__(self, paths: Paths, benchmarks: Mapping[str, Benchmark]) -> None:
        self.folder = paths.home / "evaluations"
        self._paths, self._benchmarks = paths, benchmarks
        self._lock = threading.Lock()
        self._latest: BackgroundRun | None = None

    @property
    def current(self) -> BackgroundRun | None:
        """The running evaluation, or None."""
        latest = self._latest
        return latest if latest and latest.view.running else None

    def start(self, name: str, settings: Settings, *, restart: bool = False) -> BackgroundRun:
        """Starts or continues the run of this benchmark with these settings; ``restart`` deletes what it has done.

        Raises ConfigError while another one is running, CorpusError where a file is gone, RecordError where it cannot
        be stored.
        """
        benchmark = self._benchmarks[name]
        plain: dict[str, Any] = json.loads(json.dumps(dict(settings), default=str))  # as it is read from the file
        run_id = benchmark.run_id(plain)
        with self._lock:
            if self.current:
                msg = (
                    f"{self.current.benchmark.title} is still running; wait until it has ended, or stop it first: "
                    "two at a time would only share the processor and spoil the times"
                )
                raise ConfigError(msg)
            folder = self.folder / run_id
            with translated(folder):
                folder.mkdir(parents=True, exist_ok=True)
            self._latest = BackgroundRun(run_id, benchmark, plain, folder, self._paths, restart=restart)
            return self._latest

    def live(self, run_id: str) -> BackgroundRun | None:
        """The run with this id if it is the latest of this process, ended or not."""
        return self._latest if self._latest and self._latest.run_id == run_id else None

    def view(self, run_id: str) -> EvaluationView:
        """The view of this run; a killed one has only its settings. Raises RecordError."""
        live = self.live(run_id)
        if live:
            return live.view
        if run_id not in {summary.run_id for summary in self.list()}:
            msg = f"no evaluation {run_id[:60]!r} on this machine; choose one of the list, or run it"
            raise RecordError(msg)
        folder = self.folder / run_id
        asked = self._asked(folder)
        if asked is not None and asked["state"] == "interrupted":
            words = "This run was interrupted. What was done is stored: continue it to see that and the rest."
            return EvaluationView(
                asked["benchmark"], asked["settings"], phase="Interrupted", running=False, error=words
            )
        with translated(folder):
            text = (folder / VIEW).read_text(encoding="utf-8")
        return view_from_json(text, VIEW)

    def list(self) -> tuple[RunSummary, ...]:
        """Every run, newest first; other folders are skipped."""
        found, titles = [], resources.corpus_titles(resources.index_names(self._paths), self._paths)
        for file in self.folder.glob(f"*/{REQUEST}"):
            asked = self._asked(file.parent)
            if asked is not None:
                found.append(self._summary(file.parent.name, asked, titles))
        return tuple(sorted(found, key=lambda one: one.started, reverse=True))

    def _summary(self, run_id: str, asked: Mapping[str, Any], titles: Mapping[str, str]) -> RunSummary:
        state, done, total, headline = (asked[key] for key in ("state", "done", "total", "headline"))
        live, benchmark = self.live(run_id), self._benchmarks[asked["benchmark"]]
        if live and live.view.running:
            state, done, total, headline = "running", live.view.done, live.view.total, _headline(live.view)
        words = benchmark.words(asked["settings"], titles)
        return RunSummary(run_id, benchmark.title, words, asked["started"], state, done, total, headline)

    def _asked(self, folder: Path) -> dict[str, Any] | None:
        """Reads what `_write_request` wrote; None for anything else."""
        try:
            found = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
            texts = [found[key] for key in ("benchmark", "started", "state", "headline")]
            counts = [found["done"], found["total"]]
            known = found["benchmark"] in self._benchmarks and isinstance(found["settings"], dict)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        plain = all(isinstance(text, str) for text in texts) and all(isinstance(count, int) for count in counts)
        return found if known and plain else None


def view_to_json(view: EvaluationView) -> str:
    """The view as the text of a file."""
    return json.dumps(asdict(view), ensure_ascii=False, allow_nan=False) + "\n"


def view_from_json(text: str, name: str) -> EvaluationView:
    """The view in this text of the file ``name``. Raises RecordError where it is invalid."""
    try:
        found: EvaluationView = adapter_of(EvaluationView).validate_json(text)
    except (ValueError, RecursionError) as error:  # pydantic's ValidationError is a ValueError
        msg = f"{name} is not what an evaluation wrote; run it again, what is done is stored beside it"
        raise RecordError(msg) from error
    return found


def _state(view: EvaluationView) -> str:
    return "failed" if view.error else "stopped" if view.stopped else "done"


def _headline(view: EvaluationView) -> str:
    return ", ".join(f"{figure.label} {figure.text}" for figure in view.report.figures[:2])


def _write_request(folder: Path, view: EvaluationView, started: str, state: str) -> None:
    entry = {
        "benchmark": view.benchmark,
        "settings": dict(view.settings),
        "started": started,
        "state": state,
        "done": view.done,
        "total": view.total,
        "headline": _headline(view),
    }
    with translated(folder):
        write_whole(folder / REQUEST, [json.dumps(entry, indent=2, ensure_ascii=False) + "\n"])
