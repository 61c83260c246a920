"""`ragqa dataset make | labels`: a benchmark and training set of one's own corpus, and the labels of experts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.benchmarks import command_of
from ragqa.cli.output import plain, stdout
from ragqa.corpus.files import read_utf8
from ragqa.lab.dataset.benchmark import MAKE
from ragqa.lab.dataset.review import agreement, decision, labels_in, pairs_of, read_given

app = typer.Typer(help="Make a benchmark and training set of a corpus.", no_args_is_help=True)
app.command("make")(command_of(MAKE))


@app.command()
def labels(
    folder: Annotated[Path, typer.Argument(help="The folder of a finished data set.")],
    add: Annotated[Path | None, typer.Option("--import", help="Import labels exported elsewhere.")] = None,
) -> None:
    """Progress and agreement of the experts' labels, which are made on the page Data set.

    `ragqa dataset make`, run again for the folder, removes the pairs that they labelled irrelevant or null.
    """
    if add is not None:
        n = read_given(folder, read_utf8(add, add.name), add.name)
        stdout().print(plain(f"{n:,} labels imported from {add.name}"))
    pairs, found = pairs_of(folder), labels_in(folder)
    of_pairs = [found.get(pair.key, {}) for pair in pairs]
    decided = sum(bool(decision(of)) for of in of_pairs)
    disputed = sum(len(of) > 1 and not decision(of) for of in of_pairs)
    stdout().print(plain(f"{len(pairs):,} pairs: {decided:,} decided, {disputed:,} disputed"))
    of_all = agreement(found)
    if of_all.n:
        cohen, alpha = ("–" if value is None else f"{value:.2f}" for value in (of_all.cohen, of_all.krippendorff))
        who = " and ".join(of_all.reviewers)
        words = f"{who}: {of_all.same:,} of {of_all.n:,} the same, Cohen's kappa {cohen}; Krippendorff's alpha {alpha}"
        stdout().print(plain(words))
