"""Metrics of this process in Prometheus' text format: counts, seconds, and gauges read on request.

They hold no texts and no names of people: labels are words of the code, such as stages and kinds of errors.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from threading import Lock
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # seconds
MOST_SERIES: Final = 500  # beyond it new labels are not counted, so that a mistake in a label cannot fill the memory

COUNTS: Final = {
    "ragqa_questions_total": "Questions and checks on the page, by outcome.",
    "ragqa_errors_total": "Failures on the page by kind; internal ones have a trace in the log.",
    "ragqa_refusals_total": "Denied actions, by action.",
    "ragqa_pair_cache_total": "Sentence pairs looked up in the score cache, by hit or miss.",
    "ragqa_pairs_scored_total": "Sentence pairs computed; divided by ragqa_pairs_seconds_total: pairs a second.",
    "ragqa_pairs_seconds_total": "Seconds spent computing sentence pairs.",
}
SECONDS: Final = {"ragqa_stage_seconds": "Seconds of a question by stage of the pipeline."}

Labels = tuple[tuple[str, str], ...]


class MetricRegistry:
    """The metrics of one process. Safe between threads; an update takes a microsecond."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[tuple[str, Labels], float] = {}
        self._seconds: dict[tuple[str, Labels], list[float]] = {}  # a count for each bound and one beyond, then the sum
        self._read: dict[str, tuple[str, Callable[[], float]]] = {}

    def count(self, name: str, by: float = 1.0, **labels: str) -> None:
        """Adds to one of `COUNTS`."""
        key = name, tuple(sorted(labels.items()))
        with self._lock:
            if key in self._counts or len(self._counts) < MOST_SERIES:
                self._counts[key] = self._counts.get(key, 0.0) + by

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Adds to one of `SECONDS`."""
        key = name, tuple(sorted(labels.items()))
        with self._lock:
            if key in self._seconds or len(self._seconds) < MOST_SERIES:
                row = self._seconds.setdefault(key, [0.0] * (len(BOUNDS) + 2))
                row[bisect_left(BOUNDS, seconds)] += 1
                row[-1] += seconds

    def watch(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Adds a gauge, which is read whenever the metrics are requested."""
        self._read[name] = meaning, read

    def text(self) -> str:
        """All metrics in Prometheus' text format."""
        with self._lock:
            counts, seconds = dict(self._counts), {key: list(row) for key, row in self._seconds.items()}
        lines = []
        for name, meaning in COUNTS.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} counter"]
            found = [(labels, value) for (one, labels), value in sorted(counts.items()) if one == name]
            lines += [f"{name}{_labels(labels)} {value:.15g}" for labels, value in found]
        for name, meaning in SECONDS.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} histogram"]
            for (one, labels), row in sorted(seconds.items()):
                lines += _histogram(name, labels, row) if one == name else []
        for name, (meaning, read) in self._read.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {read():.15g}"]
        return "\n".join(lines) + "\n"


def _histogram(name: str, labels: Labels, row: list[float]) -> list[str]:
    lines, so_far = [], 0.0
    for bound, n in zip((*map(str, BOUNDS), "+Inf"), row, strict=False):
        so_far += n
        lines.append(f"{name}_bucket{_labels((*labels, ('le', bound)))} {so_far:.0f}")
    return [*lines, f"{name}_sum{_labels(labels)} {row[-1]:.6f}", f"{name}_count{_labels(labels)} {so_far:.0f}"]


def _labels(labels: Labels) -> str:
    escaped = [(name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for name, value in labels]
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}" if labels else ""


METRICS: Final = MetricRegistry()  # of this process
