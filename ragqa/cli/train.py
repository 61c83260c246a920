"""`ragqa train obligations`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import stderr, stdout
from ragqa.tables import plain

__all__ = ["app"]

app = typer.Typer(help="Make the embedded weights.", no_args_is_help=True)


@app.callback()
def _train() -> None:
    """Make the embedded weights."""


@app.command()
def obligations(
    data: Annotated[Path, typer.Option(help="JSON list of {Text, Obligation}.")],
    out: Annotated[Path, typer.Option(help="Folder for weights and model card.")],
    seed: Annotated[int, typer.Option(help="Of the 80/20 split.")] = 42,
) -> None:
    """Train the obligation classifier and write its weights and model card."""
    from ragqa.training.obligations import train_obligations

    with stderr().status("Training"):
        report = train_obligations(data, out, seed)
    stdout().print(plain(str(report)))
