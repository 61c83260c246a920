"""Values of an evaluation -> HTML. Pure; every text of a benchmark, file or model is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ragqa.evaluation.benchmark import Benchmark, Settings
from ragqa.evaluation.report import CheckedSentence, Column, Comparison, Figure, Row
from ragqa.evaluation.two_runs import Pair
from ragqa.types import Passage
from ragqa.ui.html.render import VERDICT_CLASS
from ragqa.ui.html.template import Templates
from ragqa.ui.pages.evaluation.runs import RunSummary

_STATES = {"done": "good", "running": "plain", "stopped": "mixed", "interrupted": "mixed", "failed": "bad"}
_TEMPLATES: Final = Templates("evaluation.html")


def duration_words(seconds: float) -> str:
    """An estimated time in words, such as ``"about 3 min"``."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def figures_html(figures: Sequence[Figure]) -> str:
    """The run's numbers as tiles."""
    return _TEMPLATES.figures(figures)


def run_head_html(benchmark: Benchmark, settings: Settings, letter: str = "") -> str:
    """The title and settings of a run; ``letter`` marks one of two."""
    return _TEMPLATES.run_head(benchmark, benchmark.words(settings), letter)


def steps_html(row: Row) -> str:
    """The steps that led to the answer or ranking, one per line."""
    return _TEMPLATES.steps(row)


def latest_html(rows: Sequence[Row], columns: Sequence[Column], benchmark: Benchmark) -> str:
    """The latest completed questions, newest first, while others are running."""
    return _TEMPLATES.latest(list(rows), columns, benchmark)


def comparison_html(comparison: Comparison) -> str:
    """A table with marked lines of this run beside others; it scrolls on its own."""
    return _TEMPLATES.comparison(comparison, any(line.origin for line in comparison.lines))


def question_head_html(row: Row, columns: Sequence[Column], benchmark: Benchmark) -> str:
    """The question, whether its result is right and what that means, and its values."""
    return _TEMPLATES.question_head(row, columns, benchmark)


def hits_html(row: Row, passages: Mapping[str, Passage | None]) -> str:
    """The passages found, best first, with gold marked; each opens its text. Then the missed gold passages."""
    found = {name for hit in row.hits if hit.is_gold for name in (hit.passage_id, hit.document_id)}
    return _TEMPLATES.hits(row, passages, [name for name in row.gold if name not in found])


def answer_html(answer: str, sentences: Sequence[CheckedSentence]) -> str:
    """The answer's sentences with verdicts, E, C and citations; only its text where it was not scored."""
    return _TEMPLATES.answer(answer, sentences, VERDICT_CLASS)


def matches_html(row: Row) -> str:
    """The strings of the reference, and whether the answer contains each."""
    return _TEMPLATES.matches(row)


def turned_html(pairs: Sequence[Pair], benchmark: Benchmark) -> str:
    """Questions that are right in only one of two runs."""
    return _TEMPLATES.turned(pairs, benchmark)


def runs_html(runs: Sequence[RunSummary]) -> str:
    """Earlier runs as a table; each links to its results, and two ticked ones are compared."""
    return _TEMPLATES.runs(runs, _STATES)
