"""`ragqa eval`: the commands that measure; `speed` and `documents` are defined here."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ragqa.cli.ask import with_preset
from ragqa.cli.benchmarks import CARRIED_OUT, command_of, draw, further_command, plain_values, shaped, watched
from ragqa.cli.evaluate_models import agreement, citations, claims, nli, obligations
from ragqa.cli.output import plain, print_json, print_table, stderr, stdout, tracked
from ragqa.corpus.questions import load_questions
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmark import Option, Settings
from ragqa.evaluation.benchmarks.generated_answers.ablations import (
    Study,
    Variant,
    published_beside,
    step_means,
    variants,
)
from ragqa.evaluation.benchmarks.generated_answers.benchmark import BENCHMARK, prices_of, task_of
from ragqa.evaluation.benchmarks.generated_answers.comparing import (
    LoadedRun,
    compare_runs,
    load_run,
    means_table,
    published_comparison,
    published_rows,
    tables_of,
)
from ragqa.evaluation.catalogue import benchmarks
from ragqa.evaluation.documents import recovered
from ragqa.evaluation.loading import config_of, pipeline_for
from ragqa.evaluation.report import Report
from ragqa.evaluation.speed import measure_speed, summarise
from ragqa.models.inference.precision import timings
from ragqa.pipeline import assemble, load_pipeline
from ragqa.settings.config import Config
from ragqa.settings.environment import has_llm
from ragqa.settings.paths import Paths

AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


def compare(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of `ragqa eval answers`, finished; the first is the baseline.")
    ],
    as_json: AsJson = False,
) -> None:
    """Compare runs on the questions they share: means, paired differences, and published figures."""
    runs = [load_run(folder) for folder in folders]
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        runs = [replace(run, name=str(folder)) for run, folder in zip(runs, folders, strict=True)]
    means, comparisons = compare_runs(runs)
    beside = published_rows("5")
    if as_json:
        both = zip(runs, means, strict=True)
        found = {"runs": {run.name: {"means": of_run, "unscored": run.n_unscored} for run, of_run in both}}
        print_json(found | _dicts(comparisons=comparisons, published=beside))
    else:
        draw(Report(comparisons=(*tables_of(runs, means, comparisons), published_comparison(beside))))


def ablation(**given: Any) -> None:  # noqa: ANN401 - typer passes what the options say
    """Reproduce a table of Chasandras et al. 2025 with the models configured here, beside the published figures.

    filter: five pairs of threshold and max drop. obligation-context: passages, obligations alone, obligations with
    their own prompt. steps: NOC, LOC, and VRR after each of its steps. The last two ask a language model.
    """
    study, out, restart, as_json = (given.pop(name) for name in ("study", "out", "restart", "json"))
    if study not in set(Study):
        raise ConfigError(f"the study must be one of {', '.join(Study)}, got {study!r}; correct it and try again")
    settings = BENCHMARK.settings(**plain_values(given))
    chosen = variants(Study(study), config_of(settings, Paths.from_env()))
    _check_server(chosen)
    prices_of(settings)
    runs = _run_all(chosen, settings, out, restart=restart)
    means, comparisons = compare_runs(runs)
    steps = step_means(runs[-1].details) if study == Study.STEPS else ()
    beside = published_beside(Study(study))
    if as_json:
        found: dict[str, Any] = {"runs": {run.name: of_run for run, of_run in zip(runs, means, strict=True)}}
        found |= _dicts(comparisons=comparisons)
        found["steps"] = [{"step": name, **asdict(r), "composite": r.composite, "n": n} for name, r, n in steps]
        print_json(found | _dicts(published=beside))
        return
    tables = tables_of(runs, means, comparisons)
    if steps:
        names = [f"VRR, {name} ({n:,} questions took it)" for name, _, n in steps]
        rows = [{**asdict(r), "composite": r.composite} for _, r, _ in steps]
        tables = (*tables, means_table("VRR step by step", names, rows))
    draw(Report(comparisons=(*tables, published_comparison(beside))))


shaped(
    ablation,
    "ablation",
    ablation.__doc__ or "",
    (
        Option("study", "filter (table 3), obligation-context (table 4) or steps (table 7).", positional=True),
        *(option for option in BENCHMARK.options if option.name != "docids"),
        Option("out", "Parent folder of the runs; stopped runs continue.", "file"),
        *CARRIED_OUT[1:],
    ),
)


def _check_server(chosen: Sequence[Variant]) -> None:
    """Raises ConfigError, before anything is loaded, if a run needs a language model and none is configured."""
    asking = [variant.name for variant in chosen if variant.config.generation.asks_model]
    if asking and not has_llm():
        raise ConfigError(
            f"{', '.join(asking)}: expected a language model, found neither OPENAI_API_KEY nor OPENAI_BASE_URL in the "
            "environment; set one of them and try again"
        )


def _run_all(chosen: Sequence[Variant], settings: Settings, out: Path, *, restart: bool) -> list[LoadedRun]:
    """Every variant in a folder of its own; the index and the models are loaded once."""
    runs = []
    with stderr().status("Loading the models"):
        first = pipeline_for(chosen[0].config, Paths.from_env())
    for variant in chosen:
        pipeline = assemble(variant.config, first.index, first.models)
        if variant.change:
            pipeline = variant.change(pipeline)
        stderr().print(plain(variant.name))
        task = task_of(pipeline, settings, variant.name if variant.change else "")
        watched(BENCHMARK, settings, out / variant.name, restart=restart, task=task)
        runs.append(load_run(out / variant.name))
    return runs


def _dicts(**rows: Sequence[Any]) -> dict[str, Any]:
    return {name: [asdict(row) for row in of_name] for name, of_name in rows.items()}


app = typer.Typer(help="Measure retrieval, answers, verdicts and models.", no_args_is_help=True)
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

    Then the precision of each model and, if two were timed on this machine, both timings.
    """
    gold = load_questions(questions)[:limit]
    with stderr().status("Loading the models"):
        config = with_preset(replace(Config.from_env(), index=index), preset)
        if selection:  # the direct generator weighs sentences before it reports the selection
            config = replace(config, generation=replace(config.generation, generator="none"))
        pipeline = load_pipeline(config, Paths.from_env(), recording=False)
    steps = measure_speed(pipeline, [item.question for item in gold], selection_only=selection)
    rows = tracked(steps, len(gold), "Answering")
    print_table(
        f"{config.index}{f', {preset}' if preset else ''}: {len(rows)} questions",
        ("what", "median", "99th percentile", "maximum"),
        ((name, *(f"{value:,.3f}" for value in values)) for name, *values in summarise(rows)),
    )
    for role, info in pipeline.models.infos.items():
        timed = map(str, timings().of_weights(info.fingerprint))
        stdout().print(plain("; ".join((f"{role}: {info.name}, {info.precision}", *timed))))


@app.command()
def documents(
    folders: Annotated[list[Path], typer.Argument(help="Documents with gold.jsonl beside them.", file_okay=False)],
    chunk_max_tokens: Annotated[int, typer.Option(help="Maximum words in a passage without a number.")] = 128,
) -> None:
    """Read published documents and count the gold places that are found again: text, number, heading."""
    cells = []
    for folder in folders:
        rows, messages = recovered(folder, chunk_max_tokens)
        for row in rows:
            shares = [_share(part, row.numbered) for part in (row.both, row.alone)]
            shares = [_share(row.text, row.n), *shares, _share(row.heading, row.headed)]
            cells.append((row.source, row.kind, f"{row.n:,}", *shares))
        for message in messages:
            stderr().print(plain(message))
    headings = ("source", "kind", "places", "text", "number and text", "as passages", "heading")
    print_table("Places recovered", headings, cells, texts=2)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "–"
