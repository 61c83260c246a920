"""`ragqa eval`: one command for each thing that is measured, and `speed`, which is here."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ragqa.cli.ask import with_preset
from ragqa.cli.benchmarks import command_of, further_command
from ragqa.cli.evaluate_answers import ablation, compare
from ragqa.cli.evaluate_models import agreement, citations, claims, nli, obligations
from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.cli.tables import plain
from ragqa.corpus.questions import load_questions
from ragqa.evaluation.catalogue import benchmarks
from ragqa.evaluation.documents import recovered
from ragqa.lab.measures import measure_speed, summarise
from ragqa.models.inference.precision import timings
from ragqa.pipeline import load_pipeline
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths

app = typer.Typer(help="Measure.", no_args_is_help=True)
OTHERS = (compare, ablation, citations, claims, nli, agreement, obligations)
for benchmark in benchmarks().values():
    if benchmark.name in {*(command.__name__ for command in OTHERS), "speed"}:
        words = "a benchmark is called %r, as a command of `ragqa eval` is: it is on the page alone; rename it"
        logging.getLogger(__name__).warning(words, benchmark.name)
        continue
    if not any(option.kind == "argument" for option in benchmark.options):  # `ragqa score FILE` is a command itself
        app.command(benchmark.name)(command_of(benchmark))
    for further in benchmark.commands:
        app.command(further.name)(further_command(further))
for command in OTHERS:
    app.command()(command)
Questions = Annotated[Path, typer.Option(help="JSON list of questions with gold passages (ObliQA's schema).")]
IndexName = Annotated[str, typer.Option(help="Corpus.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")]


@app.command()
def speed(
    questions: Questions,
    index: IndexName = "rulebook",
    limit: Limit = 20,
    preset: Annotated[str | None, typer.Option(help="Preset, by name or as a preset file.")] = None,
    selection: Annotated[
        bool, typer.Option("--selection", help="Retrieval to selection only, without an answer.")
    ] = False,
) -> None:
    """Median seconds per stage over the questions, with models loaded and nothing drawn.

    Then the precision of each model and, where two were timed on this machine, both times.
    """
    gold = load_questions(questions)[:limit]
    with stderr().status("Loading the models"):
        config = with_preset(replace(Config.from_env(), index=index), preset)
        if selection:  # the direct writer weighs sentences before it is told what is selected
            config = replace(config, generation=replace(config.generation, generator="none"))
        pipeline = load_pipeline(config, Paths.from_env(), recording=False)
    rows = []
    with progress_bar() as bar:
        task = bar.add_task("Answering", total=len(gold))
        for row in measure_speed(pipeline, [item.question for item in gold], selection_only=selection):
            rows.append(row)
            bar.advance(task)
    table = Table(title=plain(f"{config.index}{f', {preset}' if preset else ''}: {len(rows)} questions"))
    table.add_column("what")
    for heading in ("median", "99th percentile", "maximum"):
        table.add_column(heading, justify="right")
    for name, *values in summarise(rows):
        table.add_row(name, *(f"{value:,.3f}" for value in values))
    stdout().print(table)
    for role, info in pipeline.models.infos.items():
        timed = map(str, timings().of_weights(info.fingerprint))
        stdout().print(plain("; ".join((f"{role}: {info.name}, {info.precision}", *timed))))


@app.command()
def documents(
    folders: Annotated[list[Path], typer.Argument(help="Documents with gold.jsonl beside them.", file_okay=False)],
    chunk_max_tokens: Annotated[int, typer.Option(help="Most words in a passage without a number.")] = 128,
) -> None:
    """How many gold places of published documents come back from reading them: text, number, heading."""
    table = Table(title="Places recovered")
    for column in ("source", "kind", "places", "text", "number and text", "as passages", "heading"):
        table.add_column(column, justify="left" if column in {"source", "kind"} else "right")
    for folder in folders:
        rows, messages = recovered(folder, chunk_max_tokens)
        for row in rows:
            shares = [_share(part, row.numbered) for part in (row.both, row.alone)]
            shares = [_share(row.text, row.n), *shares, _share(row.heading, row.headed)]
            table.add_row(plain(row.source), plain(row.kind), f"{row.n:,}", *shares)
        for message in messages:
            stderr().print(plain(message))
    stdout().print(table)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "–"
