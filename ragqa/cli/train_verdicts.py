"""`ragqa train verdicts`: what makes verdicts of the verifier's word, fitted again; printed, never written."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ragqa.cli.output import plain, progress_bar, stderr, stdout
from ragqa.lab.claims import FOLDS, fold_of, read_claims
from ragqa.lab.training.verdicts import cases_of, chosen, fitted, out_of_fold, shares
from ragqa.loading import load_scorer
from ragqa.scoring.verdicts.belief import SUPPORT_LINE, WEIGHTS
from ragqa.settings.config import scoring_from_env, scoring_with
from ragqa.settings.paths import Paths


def verdicts(
    claims: Annotated[Path, typer.Option(help="claims.jsonl of RAGQA_DATA/claims, or one like it.")],
    verdict_model: Annotated[str, typer.Option(help="Verifier: embedded name, local folder or hub name.")] = "",
    fold: Annotated[
        int | None, typer.Option(min=0, max=FOLDS - 1, help="Only this fold: the one that the verifier has not seen.")
    ] = None,
    parts: Annotated[int, typer.Option(min=2, help="That are tested in turn; a document is in one.")] = 5,
) -> None:
    """Fit the weights and the line by which verdicts believe the verifier, from claims; print them, write nothing."""
    with stderr().status("Loading the models"):
        scorer = load_scorer(scoring_with(scoring_from_env(), verdict=verdict_model), Paths.from_env())
    passages = [passage for passage in read_claims(claims) if fold in (None, fold_of(passage.id))]
    with progress_bar() as bar:
        cases = list(chain.from_iterable(bar.track(cases_of(passages, scorer), total=len(passages))))
    now = shares(cases, [WEIGHTS] * len(cases), [SUPPORT_LINE])[0]
    curve = shares(cases, out_of_fold(cases, parts))
    table = Table(title=f"{len(cases):,} claims, {scorer.verdicts.info.name}; share called supported, by label")
    for column in ("weights", "line", "balanced", "supported", "contradicted", "unsupported"):
        table.add_column(column, justify="left" if column == "weights" else "right")
    fitted_rows = [(f"fitted, out of {parts} parts", found) for found in curve[:: len(curve) // 12]]
    for name, found in (("present", now), *fitted_rows, ("few false ones supported", chosen(curve))):
        numbers = (found.line, found.balanced, found.supported, found.contradicted, found.unsupported)
        table.add_row(name, *(f"{number:.3f}" for number in numbers))
    stdout().print(table)
    for verdict, weights in fitted(cases).items():
        stdout().print(plain(f"{verdict}: " + ", ".join(f"{name} {value:.2f}" for name, value in weights.items())))
