"""`ragqa eval hotpotqa`: the share of two-document questions with both documents among the first k.

Ranking and measuring are those of `ragqa.evaluation.benchmarks.retrieval`; this folder adds the stricter count, which
HotpotQA's papers call "both" or "paragraph exact match" (Yang et al. 2018; Asai et al. 2020), for every configuration.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Final

from ragqa.corpus.questions import load_paragraph_questions
from ragqa.evaluation.benchmark import Benchmark, Item, Json, Outcome, Settings, Task
from ragqa.evaluation.benchmarks.retrieval.benchmark import BENCHMARK as RETRIEVAL
from ragqa.evaluation.files import has_gold
from ragqa.evaluation.report import Column, Comparison, Figure, Line, Report, Row, shown
from ragqa.settings.paths import Paths

CUTOFFS: Final = (2, 5, 10)
COLUMNS: Final = tuple(Column(f"both@{k}", f"both@{k}", 0) for k in CUTOFFS)


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Loads as the retrieval benchmark does, with the columns of this one."""
    task = yield from RETRIEVAL.load(settings, paths)
    return replace(task, columns=COLUMNS)


def score(task: Task, item: Item, solution: Json) -> Json:
    """The retrieval benchmark's scores, and for each configuration whether both documents are among the first k."""
    scores = RETRIEVAL.score(task, item, solution)
    both = {
        name: {f"both@{k}": float(values[f"R@{k}"] == 1) for k in CUTOFFS} for name, values in scores["values"].items()
    }
    return {**scores, "both": both}


def row(task: Task, outcome: Outcome) -> Row:
    """The question; right if both documents are among the first ten."""
    found, scores = RETRIEVAL.row(task, outcome), outcome.scores
    return replace(found, values=scores["both"][task.context.shown] if scores else {})


def figures(task: Task, rows: Sequence[Row]) -> tuple[Figure, ...]:
    """The shares of questions with both documents found."""
    scored = [one.values for one in rows if one.values]
    return tuple(
        Figure(
            f"Both@{k}",
            shown(fmean(values[f"both@{k}"] or 0.0 for values in scored) if scored else None),
            f"share of questions with both documents among the first {k}",
        )
        for k in CUTOFFS
    )


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """The table of "both", followed by the retrieval benchmark's report."""
    found = RETRIEVAL.report(task, outcomes)
    done = [outcome.scores["both"] for outcome in outcomes if outcome.scores]
    means = {
        setup.name: {column.key: fmean(of_one[setup.name][column.key] for of_one in done) for column in COLUMNS}
        for setup in task.context.setups
        if done
    }
    lines = [
        Line(name, tuple(shown(value) for value in values.values()), "this run", name == task.context.shown)
        for name, values in means.items()
    ]
    table = Comparison(
        tuple(column.heading for column in COLUMNS),
        tuple(lines),
        "The share of questions with both gold documents among the first k.",
        f"{task.context.index.manifest.name}: both documents of {len(done):,} questions",
        "ranking",
    )
    rows = [row(task, outcome) for outcome in outcomes if outcome.scores]
    data = {**found.data, "both": means}
    return replace(found, figures=figures(task, rows), comparisons=(table, *found.comparisons), data=data)


def n_questions(path: Path) -> int:
    """The number of questions with gold documents in the file. Raises CorpusError."""
    return len(load_paragraph_questions(path))


BENCHMARK: Final[Benchmark] = replace(
    RETRIEVAL,
    name="hotpotqa",
    title="HotpotQA, two documents",
    description="Questions of two hops over Wikipedia paragraphs: the share with both gold documents found.",
    options=tuple(
        replace(
            option,
            help="JSON lines of {question, gold_passage_ids}: HotpotQA's, two gold documents each.",
            accepts="JSON lines of {question, gold_passage_ids}",
            counts=n_questions,
            suits=lambda path: path.suffix == ".jsonl" and has_gold(path),
        )
        if option.name == "questions"
        else option
        for option in RETRIEVAL.options
        if option.name != "docids"  # ObliQA's
    ),
    load=load,
    score=score,
    row=row,
    figures=figures,
    report=report,
    right="both documents are among the first ten",
)
