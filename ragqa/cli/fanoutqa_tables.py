"""A FanOutQA report -> tables: our row beside the published ones, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.evaluation.fanoutqa_settings import Setting
    from ragqa.evaluation.fanoutqa_submission import Check


def result_table(report: Mapping[str, Any], setting: Setting) -> Table:
    """This run's row, then the leaderboard's of its setting, best loose accuracy first."""
    from ragqa.evaluation.fanoutqa_leaderboard import READ_ON, leaderboard

    counts, scores = report["counts"], report["scores"]
    title = f"FanOutQA, {setting}: {counts['answered']:,} of {counts['questions']:,} questions answered"
    table = Table(
        title=title,
        caption=f"Above the line: this run's questions; below: published, 724 test questions, as read on {READ_ON}",
    )
    table.add_column("system")
    for heading in ("loose", "strict", "ROUGE-1", "ROUGE-2", "ROUGE-L", "BLEURT", "judge"):
        table.add_column(heading, justify="right", no_wrap=True)
    model = report["run"].get("model", "answers given")
    if scores is None:
        table.add_row(plain(f"this run ({model}): not scored, the test set's answers are not public"), *("–",) * 7)
    else:
        rouge = scores["rouge"] or {}
        figures = (
            scores["acc"]["loose"],
            scores["acc"]["strict"],
            *(rouge[kind]["fscore"] if rouge else None for kind in ("rouge1", "rouge2", "rougeL")),
            scores["bleurt"],
            scores["gpt"],
        )
        table.add_row(plain(f"this run ({model})", style="bold"), *map(_figure, figures))
    table.add_section()
    for row in leaderboard(setting):
        figures = (row.loose, row.strict, row.rouge1, row.rouge2, row.rougeL, row.bleurt, row.judge)
        table.add_row(plain(f"{row.name} ({row.citation})"), *map(_figure, figures))
    return table


def missing_lines(report: Mapping[str, Any]) -> list[Text]:
    """Who lemmatised, and each figure that could not be had with how to get it."""
    scores, counts = report["scores"], report["counts"]
    lines = []
    if counts["pages_missing"]:
        lines.append(plain(f"Pages that the source does not have: {counts['pages_missing']:,}; see details.json"))
    if scores is None:
        return lines
    lines.append(plain(f"lemmatised with: {scores['lemmatised_with']}; through {scores['normalised_through']}"))
    lines += [
        plain(f"not here: {part['metric']}, since {part['reason']}. To get it: {part['remedy']}")
        for part in scores["missing"]
    ]
    return lines


def checks_table(checks: Sequence[Check]) -> Table:
    """Each file with every reason it is refused for, or what its sender should know."""
    table = Table(title="Submission")
    table.add_column("file")
    table.add_column("verdict", no_wrap=True)
    table.add_column("why", ratio=1, overflow="fold")
    for check in checks:
        verdict = Text("valid", style="green") if check.is_valid else Text("refused", style="red")
        table.add_row(plain(check.file), verdict, plain("\n".join((*check.problems[:50], *check.notes))))
    return table


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
