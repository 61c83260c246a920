"""PandaChat-RAG's systems side by side: figures of a run or of a submission file, beside the published ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.pandachat import DocumentQuestion
from ragqa.evaluation.journal import write_whole
from ragqa.evaluation.pandachat import PandachatResult
from ragqa.evaluation.pandachat_results import PUBLISHED, PUBLISHED_SOURCE, PandachatRow, write_results
from ragqa.evaluation.pandachat_submission import Submission, annotated, evaluate_submission
from ragqa.evaluation.run_folder import translated

RUN: Final = "this run"
PUBLISHED_ONLY: Final = "published"
REPORT: Final = "report.json"
_RANKED_AT: Final = 2  # the k of the published rows


@dataclass(frozen=True, slots=True)
class PandachatFigures:
    """One system: its row at each k, the questions it has wrong there, and where they were counted.

    ``origin`` is `RUN` or the name of a submission file. The median milliseconds of a question are known of a run only.
    """

    system: str
    origin: str
    rows: tuple[PandachatRow, ...]
    wrong: dict[int, tuple[str, ...]]
    median_milliseconds: float | None = None


@dataclass(frozen=True, slots=True)
class PandachatLine:
    """A line of the comparison: counted here (``rows``, one a k), published, or both under one name.

    ``origin`` is as in `PandachatFigures`, or `PUBLISHED_ONLY`.
    """

    system: str
    origin: str
    rows: tuple[PandachatRow, ...]
    published: PandachatRow | None
    seconds: float | None


def figures_of_run(result: PandachatResult, system: str, ks: Sequence[int]) -> PandachatFigures:
    """The figures of a run that has ended, at each k."""
    wrong = {k: tuple(outcome.question.text for outcome in result.wrong_at(k)) for k in ks}
    rows = tuple(result.row(system, k) for k in ks)
    return PandachatFigures(system, RUN, rows, wrong, result.median_milliseconds)


def figures_of_file(
    submission: Submission, origin: str, ks: Sequence[int], questions: Sequence[DocumentQuestion]
) -> PandachatFigures:
    """The figures of a checked submission over these questions, at each k."""
    found = {k: evaluate_submission(submission, k, questions) for k in ks}
    rows = tuple(row for row, _ in found.values())
    return PandachatFigures(submission.system, origin, rows, {k: wrong for k, (_, wrong) in found.items()})


def compared(figures: Sequence[PandachatFigures]) -> tuple[PandachatLine, ...]:
    """These systems among the published ones, the best at 2 first, equal ones in order, those counted here before."""
    published = {row.system: row for row in PUBLISHED}
    lines = [
        PandachatLine(one.system, one.origin, one.rows, published.get(one.system), one.rows[0].seconds)
        for one in figures
    ]
    counted = {one.system for one in figures}
    lines += [
        PandachatLine(row.system, PUBLISHED_ONLY, (), row, row.seconds)
        for row in PUBLISHED
        if row.system not in counted
    ]
    return tuple(sorted(lines, key=_percent, reverse=True))


def _percent(line: PandachatLine) -> float:
    row = next((row for row in line.rows if row.top_k == _RANKED_AT), None) or line.published
    return (row or line.rows[-1]).percent


def report_of(figures: Sequence[PandachatFigures], data: Path, n_asked: int, n_all: int) -> dict[str, Any]:
    """Everything as one object for JSON; rows under the benchmark's own names."""
    return {
        "data": data.name,
        "n_questions": n_asked,
        "n_questions_of_data": n_all,
        "systems": [
            {
                "system": one.system,
                "origin": one.origin,
                "rows": [row.as_json() for row in one.rows],
                "wrong": {str(k): list(wrong) for k, wrong in one.wrong.items()},
                "median_milliseconds": one.median_milliseconds,
            }
            for one in figures
        ],
        "published": {"source": PUBLISHED_SOURCE, "rows": [row.as_json() for row in PUBLISHED]},
    }


def write_report(
    folder: Path,
    report: dict[str, Any],
    figures: Sequence[PandachatFigures],
    submissions: dict[str, Submission],
    ks: Sequence[int],
) -> None:
    """``report.json``, each submission (by its file's name) with what is right in it, and the benchmark's results.

    The results, list and table, take rows only where all questions were asked. Raises RecordError where the folder
    cannot be written, CorpusError where its ``results.json`` is something else.
    """
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, submission in submissions.items():
            write_whole(folder / f"{name}_results.json", [json.dumps(annotated(submission, ks), indent=2)])
        if report["n_questions"] == report["n_questions_of_data"]:
            write_results(folder, [row for one in figures for row in one.rows])
        write_whole(folder / REPORT, [json.dumps(report, indent=2, ensure_ascii=False) + "\n"])
