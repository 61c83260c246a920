"""`ragqa train verdicts`: the weights of what supports a sentence, fitted again; printed, never written."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table

from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.cli.tables import plain
from ragqa.lab.training.verdicts import Case, cases_of, fitted, out_of_fold, probes_of, rates
from ragqa.pipeline import load_pipeline
from ragqa.scoring.verdicts.belief import SUPPORT
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths


def verdicts(
    index: Annotated[list[str], typer.Option(help="Index of labelled probes; repeatable.")],
    n: Annotated[
        int, typer.Option(min=1, help="Number of sentences without their source, and of other documents.")
    ] = 60,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation, by document.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sentences drawn.")] = 1,
) -> None:
    """Fit the weights by which verdicts take a sentence as supported, from probes; print them, write nothing.

    Learnt from the open labelled re-wordings and from sentences of the indexes whose source is taken away. The table
    has the rates of the present weights and of fitted ones, each case under weights that never saw its document.
    """
    cases: list[Case] = []
    config = Config.from_env()
    config = replace(config, generation=replace(config.generation, generator="none"))
    for name in dict.fromkeys(index):
        with stderr().status(f"Loading {name}"):
            pipeline = load_pipeline(replace(config, index=name), Paths.from_env(), recording=False)
            probes = probes_of(pipeline, n, seed)
        with progress_bar() as bar:
            cases += bar.track(cases_of(pipeline, probes), total=len(probes), description=name)
    present, found = rates(cases, [case.verdict(SUPPORT) for case in cases]), rates(cases, out_of_fold(cases, folds))
    table = Table(
        title=f"{len(cases)} cases of {len({case.document for case in cases})} documents, out of {folds} folds"
    )
    for column in ("cases", "n", "supported", "fitted", "contradicted", "fitted"):
        table.add_column(column, justify="left" if column == "cases" else "right")
    for now, then in zip(present, found, strict=True):
        shares = (now.supported, then.supported, now.contradicted, then.contradicted)
        table.add_row(plain(now.kind), str(now.n), *(f"{share:.3f}" for share in shares))
    stdout().print(table)
    weights = fitted(cases)
    stdout().print(plain("Fitted on all: " + ", ".join(f"{key} {value:.2f}" for key, value in weights.items())))
    stdout().print(plain("Present: " + ", ".join(f"{key} {value:g}" for key, value in SUPPORT.items())))
