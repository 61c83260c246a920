"""`ragqa train verdicts`: what makes verdicts of the verifier's word, fitted again."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import plain, print_table, stderr, stdout, tracked
from ragqa.infra.files import write_whole
from ragqa.lab.claims import FOLDS, fold_of, read_claims
from ragqa.lab.training.verdicts import LINES, cases_of, chosen, fitted, most_probable, out_of_fold, shares, written
from ragqa.loading import load_scorer
from ragqa.scoring.verdicts.belief import calibration_of
from ragqa.settings.config import scoring_from_env, scoring_with
from ragqa.settings.paths import Paths


def verdicts(
    claims: Annotated[Path, typer.Option(help="claims.jsonl of RAGQA_DATA/claims, or one like it.")],
    verdict_model: Annotated[str, typer.Option(help="Verifier: embedded name, local folder or hub name.")] = "",
    fold: Annotated[
        int | None, typer.Option(min=0, max=FOLDS - 1, help="Only this fold: the one that the verifier has not seen.")
    ] = None,
    parts: Annotated[int, typer.Option(min=2, help="That are tested in turn; a document is in one.")] = 5,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write: ragqa/scoring/verdicts/belief.json, or calibration.json in the verifier's folder."
        ),
    ] = None,
) -> None:
    """Fit the weights and lines by which verdicts believe the verifier, from claims that it has not seen."""
    with stderr().status("Loading the models"):
        scorer = load_scorer(scoring_with(scoring_from_env(), verdict=verdict_model), Paths.from_env())
    passages = [passage for passage in read_claims(claims) if fold in (None, fold_of(passage.id))]
    cases = list(chain.from_iterable(tracked(cases_of(passages, scorer), len(passages))))
    now, apart = calibration_of(scorer.config.verdict_model), out_of_fold(cases, parts)
    best = chosen(cases, apart)
    rows = [("present", shares(cases, [now] * len(cases), now.supported, now.contradicted))]
    lines = [line for line in LINES if round(line * 100) % 10 == 0]
    rows += [(f"out of {parts} parts", shares(cases, apart, line, best.contradicted)) for line in lines]
    cells = []
    for name, found in (*rows, ("few false ones supported", best)):
        numbers = (found.balanced, *(row[0] for row in found.called), found.called[0][1])
        at = f"{found.supported:.2f} {found.contradicted:.2f}"
        cells.append((name, at, *(f"{number:.3f}" for number in numbers)))
    print_table(
        f"{len(cases):,} claims, {scorer.verdicts.info.name}; share called supported, by label",
        ("weights", "lines", "balanced", "supported", "contradicted", "unsupported", "denied"),
        cells,
    )
    stdout().print(
        plain(
            f"Denied: supported ones called contradicted. Most probable label, out of {parts} parts: balanced accuracy "
            f"{most_probable(cases, apart):.3f}; by the present weights {most_probable(cases, [now] * len(cases)):.3f}."
        )
    )
    if out:
        known = replace(fitted(cases), supported=best.supported, contradicted=best.contradicted)
        which = f", fold {fold}" if fold is not None else ""
        write_whole(out, [written(known, f"{len(cases)} claims{which}, read by {scorer.verdicts.info.name}")])
        stderr().print(plain(f"wrote {out}"))
