"""PandaChat-RAG's systems compared, ours and the published ones, and the benchmark's own list and table of results.

`published.jsonl` holds the rows that the benchmark published.

The benchmark's script only appends to ``results.json``, so that evaluating twice doubles a row; here a row replaces the
one with the same scenario, system and k.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.files import read_items
from ragqa.corpus.pandachat import DocumentQuestion
from ragqa.evaluation.benchmarks.pandachat.submissions import (
    N_RIGHT,
    PERCENT,
    RESULT_KEY,
    SCENARIO,
    SECONDS_EACH,
    PandachatRow,
    Submission,
    annotated,
    evaluate_submission,
    is_right,
)
from ragqa.evaluation.files import shipped_rows
from ragqa.evaluation.report import Comparison, Line
from ragqa.infra.files import write_whole
from ragqa.infra.journal import translated

PUBLISHED: Final = Path(__file__).with_name("published.jsonl")
RUN: Final = "this run"
PUBLISHED_ONLY: Final = "published"
REPORT: Final = "report.json"
RANKED_AT: Final = 2  # the k of the published rows
RESULTS, TABLE = "results.json", f"results-{SCENARIO}.md"


@dataclass(frozen=True, slots=True)
class DocumentHits:
    """What a run found for one question: the document of each chunk, best first.

    ``number`` counts from 1 in the file, ``document`` is the right one, and ``seconds`` include encoding.
    """

    number: int
    text: str
    document: str
    sources: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class System:
    """One system: its row at each k, the questions it has wrong at that k, and where they were counted.

    ``origin`` is `RUN` or the name of a submission file. Only a run has the median milliseconds of a question.
    """

    name: str
    origin: str
    rows: tuple[PandachatRow, ...]
    wrong: Mapping[int, tuple[str, ...]]
    median_milliseconds: float | None = None


@dataclass(frozen=True, slots=True)
class SystemLine:
    """A line of the comparison: counted here (``rows``, one for each k), published, or both under one name.

    ``origin`` is as in `System`, or `PUBLISHED_ONLY`.
    """

    name: str
    origin: str
    rows: tuple[PandachatRow, ...]
    published: PandachatRow | None
    seconds: float | None


def system_of_run(found: Sequence[DocumentHits], name: str, ks: Sequence[int]) -> System:
    """The figures of a run at each k; ``found`` must have at least one question."""
    wrong = {k: tuple(one.text for one in found if not is_right(one.document, one.sources, k)) for k in ks}
    seconds = mean_seconds(found)
    rows = tuple(PandachatRow(name, k, seconds, len(found) - len(wrong[k]), len(found)) for k in ks)
    return System(name, RUN, rows, wrong, statistics.median(1000 * one.seconds for one in found))


def mean_seconds(found: Sequence[DocumentHits]) -> float:
    """What the benchmark calls time per question."""
    return statistics.fmean(one.seconds for one in found)


def system_of_file(
    submission: Submission, origin: str, ks: Sequence[int], questions: Sequence[DocumentQuestion]
) -> System:
    """The figures of a checked submission over these questions, at each k."""
    found = {k: evaluate_submission(submission, k, questions) for k in ks}
    rows = tuple(row for row, _ in found.values())
    return System(submission.system, origin, rows, {k: wrong for k, (_, wrong) in found.items()})


def compared(systems: Sequence[System]) -> tuple[SystemLine, ...]:
    """These systems and the published ones, the best at k = 2 first; of equal ones those counted here come first."""
    by_name = {row.system: row for row in published()}
    lines = [SystemLine(one.name, one.origin, one.rows, by_name.get(one.name), one.rows[0].seconds) for one in systems]
    counted = {one.name for one in systems}
    lines += [
        SystemLine(row.system, PUBLISHED_ONLY, (), row, row.seconds) for row in published() if row.system not in counted
    ]
    return tuple(sorted(lines, key=_percent, reverse=True))


def _percent(line: SystemLine) -> float:
    row = next((row for row in line.rows if row.top_k == RANKED_AT), None) or line.published
    return (row or line.rows[-1]).percent


def comparison_of(systems: Sequence[System], ks: Sequence[int], n_asked: int, n_all: int) -> Comparison:
    """A table of these systems and the published ones."""
    lines = []
    for line in compared(systems):
        counted = (*(f"{_words(row)} ({row.percent:.1f}%)" for row in line.rows), *("" for _ in ks[len(line.rows) :]))
        seconds = "–" if line.seconds is None else f"{line.seconds:.4f}"
        origin = line.origin if line.origin in {RUN, PUBLISHED_ONLY} else "file"
        cells = (*counted, _words(line.published) if line.published else "", seconds)
        lines.append(Line(line.name, cells, origin, line.origin == RUN))
    few = "; figures of all questions are the ones to compare" if n_asked < n_all else ""
    caption = (
        f"Asked: {n_asked:,} of {n_all:,} questions{few}. Right at K: the question's document is among the first K "
        "sources, one a chunk, duplicates counted. Seconds: mean of a question; those of files and published ones are "
        f"of other machines. Published: {published_source()}."
    )
    headings = (*(f"top {k}" for k in ks), f"published at {RANKED_AT}", "seconds")
    return Comparison(headings, tuple(lines), caption, f"PandaChat-RAG-sl: right of {n_asked:,} questions")


def _words(row: PandachatRow) -> str:
    return f"{row.n_right:,} of {row.n_questions:,}"


def report_of(systems: Sequence[System], data: Path, n_asked: int, n_all: int) -> dict[str, Any]:
    """Everything as one object for JSON; rows under the benchmark's own names."""
    return {
        "data": data.name,
        "n_questions": n_asked,
        "n_questions_of_data": n_all,
        "systems": [
            {
                "system": one.name,
                "origin": one.origin,
                "rows": [row.as_json() for row in one.rows],
                "wrong": {str(k): list(wrong) for k, wrong in one.wrong.items()},
                "median_milliseconds": one.median_milliseconds,
            }
            for one in systems
        ],
        "published": {"source": published_source(), "rows": [row.as_json() for row in published()]},
    }


def write_report(
    folder: Path,
    report: Mapping[str, Any],
    systems: Sequence[System],
    submissions: Mapping[str, Submission],
    ks: Sequence[int],
) -> None:
    """Writes ``report.json``, each submission (by file name) marked with what is right, and the benchmark's results.

    The results, list and table, get rows only if all questions were asked. Raises RecordError if the folder cannot be
    written, CorpusError if its ``results.json`` is something else.
    """
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, submission in submissions.items():
            write_whole(folder / f"{name}_results.json", [json.dumps(annotated(submission, ks), indent=2)])
        if report["n_questions"] == report["n_questions_of_data"]:
            write_results(folder, [row for one in systems for row in one.rows])
        write_whole(folder / REPORT, [json.dumps(report, indent=2, ensure_ascii=False) + "\n"])


@cache
def published() -> tuple[PandachatRow, ...]:
    """The rows that the benchmark itself published, in the order of its file."""
    rows = shipped_rows(PUBLISHED)
    return tuple(PandachatRow(row["system"], row["top_k"], row["seconds"], row["n_right"]) for row in rows)


@cache
def published_source() -> str:
    """Where the published rows were read."""
    source: str = shipped_rows(PUBLISHED)[0]["source"]
    return source


def merge_rows(before: Iterable[Mapping[str, Any]], new: Iterable[PandachatRow]) -> list[dict[str, Any]]:
    """``before`` with each new row in place of the one with the same scenario, system and k, else at the end.

    Rows are as in ``results.json``. Of several in ``before`` that share these three, the last counts.
    """
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in (*before, *(one.as_json() for one in new)):
        found[tuple(row.get(key) for key in RESULT_KEY)] = dict(row)
    return list(found.values())


def write_results(folder: Path, new: Sequence[PandachatRow]) -> tuple[Path, Path]:
    """Puts the rows into the folder's ``results.json`` and rewrites its table; returns both files.

    An existing ``results.json``, the benchmark's own or of an earlier run, keeps its other rows; without one the
    published rows come first. Raises CorpusError if it is no list of rows.
    """
    file, table = folder / RESULTS, folder / TABLE
    theirs = [row.as_json() for row in published()]
    before = [item.values for item in read_items(file, file.name)] if file.exists() else theirs
    rows = merge_rows(before, new)
    write_whole(file, [json.dumps(rows, indent=2)])
    write_whole(table, [markdown_table([row for row in rows if row.get("eval_scenario") == SCENARIO])])
    return file, table


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table as the benchmark's script writes it, character for character: best first, equal ones in their order.

    That is pandas' ``to_markdown(index=False)``: six significant digits, decimal points under each other.
    """
    ordered = sorted(rows, key=lambda row: -_number(row.get(PERCENT)))
    columns = [
        (name, [_cell(row.get(name)) for row in ordered], name in RESULT_KEY[:2])
        for name in (*RESULT_KEY, SECONDS_EACH, N_RIGHT, PERCENT)
    ]
    lines: list[list[str]] = [[] for _ in range(len(ordered) + 2)]
    for name, cells, is_text in columns:
        aligned = cells if is_text else _aligned(cells)
        width = max(len(name) + 2, *map(len, aligned)) if aligned else len(name) + 2
        rule = f":{'-' * (width + 1)}" if is_text else f"{'-' * (width + 1)}:"
        padded = [cell.ljust(width) if is_text else cell.rjust(width) for cell in (name, *aligned)]
        for line, cell in zip(lines, (f" {padded[0]} ", rule, *(f" {cell} " for cell in padded[1:])), strict=True):
            line.append(cell)
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _cell(value: object) -> str:
    match value:
        case float():
            return f"{value:g}"
        case None:
            return "nan"
        case _:
            return str(value).replace("|", "\\|")


def _aligned(cells: Sequence[str]) -> list[str]:
    """The numbers with blanks behind them, so that their decimal points meet when they stand to the right."""
    behind = [len(cell) - (cell.rfind(".") if "." in cell else len(cell)) for cell in cells]
    return [cell + " " * (max(behind) - after) for cell, after in zip(cells, behind, strict=True)]
