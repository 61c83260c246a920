"""`ragqa train`: obligations and nli; retriever, reranker and ranker have modules of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import stderr, stdout
from ragqa.cli.train_ranker import ranker
from ragqa.cli.train_reranker import reranker
from ragqa.cli.train_retriever import retriever
from ragqa.cli.training import shown
from ragqa.tables import plain

app = typer.Typer(help="Make the embedded weights.", no_args_is_help=True)
app.command("retriever")(retriever)
app.command("reranker")(reranker)
app.command("ranker")(ranker)


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


@app.command()
def nli(
    pairs: Annotated[list[Path], typer.Option(help="JSON lines of {premise, hypothesis, label, set}, may be gzipped.")],
    out: Annotated[
        Path, typer.Option(help="Folder for weights and checkpoint; an interrupted training goes on there.")
    ],
    documents: Annotated[
        list[Path] | None, typer.Option(help="Folder or file of passages to make further pairs from.")
    ] = None,
    answers: Annotated[Path | None, typer.Option(help="JSON list of {Answer, Passages}.")] = None,
    base: Annotated[str, typer.Option(help="Model to start from: an embedded name or a folder.")] = "nli-minilm-l6",
    epochs: Annotated[int, typer.Option(min=1)] = 1,
    batch_size: Annotated[int, typer.Option(min=1)] = 48,
    learning_rate: Annotated[float, typer.Option(min=0.0)] = 1e-4,
    made: Annotated[int, typer.Option(min=0, help="Pairs made from the documents.")] = 40_000,
    limit: Annotated[int | None, typer.Option(min=1, help="Train on a random choice of so many pairs.")] = None,
    stop_after: Annotated[int | None, typer.Option(min=1, help="Write the weights after so many steps.")] = None,
    seed: Annotated[int, typer.Option(help="Of the data's order and of what is made.")] = 1,
) -> None:
    """Train the NLI model. Killed, it goes on from its last checkpoint when run again."""
    from ragqa.processor import wait_passively

    wait_passively()
    from ragqa.models import fingerprint, resolve_model
    from ragqa.training.nli import NliTraining, train_nli
    from ragqa.training.nli_card import model_card
    from ragqa.training.nli_sources import NliSources, gather

    with stderr().status("Reading pairs and making further ones"):
        sources = NliSources(tuple(pairs), tuple(documents or ()), answers, n_made=made, limit=limit, seed=seed)
        train, held_out = gather(sources)
    stderr().print(f"{len(train):,} pairs to train on, {len(held_out):,} held out")
    training = NliTraining(
        base=base, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, seed=seed, stop_after=stop_after
    )
    last = shown(train_nli(training, train, held_out, out))
    card = model_card(out.name, training, fingerprint(resolve_model(base)), train, last)
    (out / "README.md").write_text(card, encoding="utf-8")
    stdout().print(plain(f"Weights and card are in {out}; measure: ragqa eval nli --model {out} --pairs FILE"))
