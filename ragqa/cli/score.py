"""`ragqa score`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from rich.table import Table

from ragqa.cli.output import progress_bar, stdout
from ragqa.config import ScoringConfig
from ragqa.evaluation.answer_file import ScoredItem, load_items, score_items
from ragqa.tables import plain, scores_group
from ragqa.types import ScoringMode

__all__ = ["score"]


def score(
    file: Annotated[Path, typer.Argument(help="JSON list of {Question, RetrievedPassages, Answer}.")],
    mode: Annotated[ScoringMode, typer.Option(help="Which RePASs definition.")] = ScoringMode.PAPER,
    details: Annotated[bool, typer.Option(help="Also every sentence and obligation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every breakdown, both modes, as JSON.")] = False,
) -> None:
    """Score answers written elsewhere against the passages they were written from."""
    from ragqa.pipeline import load_scorer

    config = ScoringConfig(mode=mode)
    items = load_items(file)
    scorer = load_scorer(config)
    scored = []
    with progress_bar() as bar:
        task = bar.add_task("Scoring answers", total=len(items))
        for item in score_items(items, scorer):
            scored.append(item)
            bar.advance(task)
    if as_json:
        rows = [{"QuestionID": s.item.QuestionID, "Question": s.item.Question} | asdict(s.scored) for s in scored]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    if details:
        for item in scored:
            stdout().print(plain(item.item.Question, style="bold"), scores_group(item.scored.of(mode)))
    stdout().print(_summary(scored, mode))


def _summary(scored: list[ScoredItem], mode: ScoringMode) -> Table:
    table = Table(title=f"RePASs, {mode} mode, {len(scored)} answers")
    for heading in ("question", "E", "C", "OC", "RePASs"):
        table.add_column(heading, overflow="fold", justify="left" if heading == "question" else "right")
    columns = []
    for item in scored:
        repass = item.scored.of(mode).repass
        numbers = (repass.entailment, repass.contradiction, repass.obligation_coverage, repass.composite)
        columns.append(numbers)
        table.add_row(plain(item.item.Question or item.item.QuestionID, 80), *(f"{number:.3f}" for number in numbers))
    if columns:
        means = (f"{fmean(column):.3f}" for column in zip(*columns, strict=True))
        table.add_section()
        table.add_row("mean", *means)
    return table
