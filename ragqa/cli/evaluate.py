"""`ragqa eval retrieval | speed | nli | agreement | obligations`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ragqa.cli.evaluate_models import agreement, nli, obligations
from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.config import Config, Paths
from ragqa.tables import plain

__all__ = ["app"]

app = typer.Typer(help="Measure.", no_args_is_help=True)
app.command()(nli)
app.command()(agreement)
app.command()(obligations)
Questions = Annotated[Path, typer.Option(help="JSON list of questions with gold passages (ObliQA's schema).")]
IndexName = Annotated[str, typer.Option(help="Which corpus.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")]


@app.command()
def retrieval(
    questions: Questions,
    index: IndexName = "rulebook",
    limit: Limit = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Recall, MAP and nDCG at 10 of BM25, dense and fused rankings with the default settings."""
    from ragqa.corpus.questions import load_questions, resolve_gold
    from ragqa.evaluation.retrieval import MEASURES, RetrievalReport, evaluate_retrieval
    from ragqa.indexing import open_index
    from ragqa.pipeline import load_encoder
    from ragqa.retrieval import retrievers_for

    config = Config.from_env()
    opened = open_index(index, Paths.from_env().indexes)
    gold = resolve_gold(load_questions(questions)[:limit], opened.passages)
    with stderr().status("Loading the encoder"):
        encoder = load_encoder(opened.manifest.encoder)
    retrievers = retrievers_for(opened, encoder, config.retrieval)
    report = None
    with progress_bar() as bar:
        task = bar.add_task("Ranking", total=len(gold))
        for progress in evaluate_retrieval(gold, retrievers, config):
            if isinstance(progress, RetrievalReport):
                report = progress
            else:
                bar.update(task, completed=progress)
    if report is None:
        return
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
        return
    table = Table(title=plain(f"{index}: {report.n_questions:,} questions, {report.median_milliseconds:.1f} ms each"))
    table.add_column("ranking")
    for measure in MEASURES:
        table.add_column(measure.replace("AP@", "MAP@"), justify="right")
    for name, values in report.measures.items():
        table.add_row(name, *(f"{values[measure]:.3f}" for measure in MEASURES))
    stdout().print(table)


@app.command()
def speed(questions: Questions, index: IndexName = "rulebook", limit: Limit = 20) -> None:
    """Median seconds per stage over the questions, models loaded; the pipeline's own work, nothing drawn."""
    from ragqa.corpus.questions import load_questions
    from ragqa.evaluation.speed import measure_speed, summarise
    from ragqa.pipeline import load_pipeline

    gold = load_questions(questions)[:limit]
    with stderr().status("Loading the models"):
        pipeline = load_pipeline(replace(Config.from_env(), index=index), Paths.from_env(), recording=False)
    rows = []
    with progress_bar() as bar:
        task = bar.add_task("Answering", total=len(gold))
        for row in measure_speed(pipeline, [item.question for item in gold]):
            rows.append(row)
            bar.advance(task)
    table = Table(title=plain(f"{index}: median over {len(rows)} questions"))
    table.add_column("what")
    table.add_column("median", justify="right")
    table.add_column("maximum", justify="right")
    for name, median, maximum in summarise(rows):
        table.add_row(name, f"{median:,.3f}", f"{maximum:,.3f}")
    stdout().print(table)
