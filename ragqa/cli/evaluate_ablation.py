"""`ragqa eval ablation`: the tables of AUEB's paper, made with what is configured here."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ragqa.cli.answer_tables import comparison_tables, means_table
from ragqa.cli.ask import with_preset
from ragqa.cli.evaluate_answers import (
    AsJson,
    IndexName,
    Limit,
    Parallel,
    PriceIn,
    PriceOut,
    Questions,
    Restart,
    RunOptions,
    prices_of,
    run_answers,
)
from ragqa.cli.output import stderr, stdout
from ragqa.config import Config, has_llm
from ragqa.errors import ConfigError
from ragqa.paths import Paths
from ragqa.registry import needs_language_model
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.evaluation.ablations import Variant
    from ragqa.evaluation.answer_comparison import LoadedRun


def ablation(
    study: Annotated[str, typer.Argument(help="filter (table 3), obligation-context (table 4) or steps (table 7).")],
    questions: Questions,
    out: Annotated[Path, typer.Option(help="Every run is kept in a folder below this one, and goes on after a stop.")],
    index: IndexName = "rulebook",
    generator: Annotated[str | None, typer.Option(help="Who writes; filter only, the others name their own.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="Named settings, or a file of them, for what is not varied.")
    ] = None,
    limit: Limit = None,
    parallel: Parallel = 1,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    restart: Restart = False,
    as_json: AsJson = False,
) -> None:
    """Make a table of Chasandras et al. 2025 with what is configured here, beside what they found.

    filter: five pairs of threshold and max drop. obligation-context: passages, obligations alone, obligations with
    their own prompt. steps: NOC, LOC, and VRR after each of its steps. The last two ask a language model.
    """
    from ragqa.evaluation.ablations import Study, published_beside, step_means, variants
    from ragqa.evaluation.answer_comparison import compare_runs

    if study not in set(Study):
        msg = f"the study must be one of {', '.join(Study)}, got {study!r}; correct it and try again"
        raise ConfigError(msg)
    config = replace(with_preset(Config.from_env(), preset), index=index)
    if generator:
        config = replace(config, generation=replace(config.generation, generator=generator))
    chosen = variants(Study(study), config)
    _check_server(chosen)
    options = RunOptions(limit, parallel, prices_of(price_in, price_out), restart)
    runs = _run_all(chosen, questions, out, options)
    means, comparisons = compare_runs(runs)
    steps = step_means(runs[-1].details) if study == Study.STEPS else ()
    beside = published_beside(Study(study))
    if as_json:
        found: dict[str, Any] = {
            "runs": {run.name: of_run for run, of_run in zip(runs, means, strict=True)},
            "comparisons": [asdict(comparison) for comparison in comparisons],
            "steps": [{"step": name, **asdict(r), "composite": r.composite, "n": n} for name, r, n in steps],
            "published": [asdict(row) for row in beside],
        }
        typer.echo(json.dumps(found, indent=2))
        return
    tables: list[Table] = comparison_tables(runs, means, comparisons, beside)
    if steps:
        names = [f"VRR, {name} ({n:,} questions took it)" for name, _, n in steps]
        rows = [{**asdict(r), "composite": r.composite} for _, r, _ in steps]
        tables.insert(-1, means_table("VRR step by step", names, rows))
    stdout().print(*tables)


def _check_server(chosen: tuple[Variant, ...]) -> None:
    """Raises ConfigError before anything is loaded where a run needs a language model and none is configured."""
    asking = [variant.name for variant in chosen if needs_language_model(variant.config.generation.generator)]
    if asking and not has_llm():
        msg = (
            f"{', '.join(asking)}: expected a language model, found neither OPENAI_API_KEY nor OPENAI_BASE_URL in the "
            "environment; set one of them and try again"
        )
        raise ConfigError(msg)


def _run_all(chosen: tuple[Variant, ...], questions: Path, out: Path, options: RunOptions) -> list[LoadedRun]:
    from ragqa.evaluation.answer_comparison import load_run
    from ragqa.pipeline import assemble, load_pipeline

    runs = []
    with stderr().status("Loading the models"):
        first = load_pipeline(chosen[0].config, Paths.from_env(), recording=False)
    for variant in chosen:
        pipeline = assemble(variant.config, first.index, first.models)
        if variant.change:
            pipeline = variant.change(pipeline)
        stderr().print(plain(variant.name))
        run_answers(pipeline, questions, out / variant.name, options, variant.name if variant.change else "")
        runs.append(load_run(out / variant.name))
    return runs
