"""`ragqa train`: obligations, nli, retriever."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.config import Paths
from ragqa.errors import ConfigError, CorpusError
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion
    from ragqa.evaluation.folds import Fold
    from ragqa.indexing import Index
    from ragqa.protocols import Encoder, FloatMatrix

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
    training = NliTraining(base, epochs, batch_size, learning_rate, seed=seed, stop_after=stop_after)
    with progress_bar() as bar:
        task = bar.add_task("Training", total=None)
        for now in train_nli(training, train, held_out, out):
            shown = f"loss {now.loss:.3f}, {now.pairs_per_second:.0f} pairs/s"
            bar.update(task, completed=now.step, total=now.steps, description=shown)
            if now.held_out is not None:
                stderr().print(f"step {now.step:,} of {now.steps:,}: {shown}, held-out accuracy {now.held_out:.4f}")
    card = model_card(out.name, training, fingerprint(resolve_model(base)), train, now)
    (out / "README.md").write_text(card, encoding="utf-8")
    stdout().print(plain(f"Weights and card are in {out}; measure: ragqa eval nli --model {out} --pairs FILE"))


@app.command()
def retriever(
    index: Annotated[str, typer.Option(help="Which corpus; its encoder is where training starts.")],
    questions: Annotated[list[Path], typer.Option(help="Questions with gold passages: ObliQA's schema.")],
    out: Annotated[
        Path, typer.Option(help="Folder for adapter and checkpoint; an interrupted training goes on there.")
    ],
    epochs: Annotated[int, typer.Option(min=1)] = 2,
    rank: Annotated[int, typer.Option(min=1, help="Of the adapter's factors.")] = 16,
    layers: Annotated[int, typer.Option(min=1, help="The last so many layers are adapted.")] = 3,
    lr: Annotated[float, typer.Option(min=0.0, help="Peak learning rate.")] = 5e-4,
    batch: Annotated[int, typer.Option(min=1, help="Pairs per step.")] = 96,
    seed: Annotated[int, typer.Option(min=0, help="Of the factors, the data's order and --limit.")] = 1,
    fold: Annotated[str, typer.Option(help="K/N: train on fold K of N, measure on its test questions.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Train on a random choice of so many pairs.")] = None,
    stop_after: Annotated[int | None, typer.Option(min=1, help="Write the adapter after so many steps.")] = None,
) -> None:
    """Adapt an index's encoder to questions. Killed, it goes on from its last checkpoint when run again."""
    from ragqa.processor import wait_passively

    wait_passively()
    from ragqa.indexing import open_index
    from ragqa.models import fingerprint
    from ragqa.retrieval.analysis import indexed_text
    from ragqa.training.retriever import RetrieverTraining, model_card, train_retriever
    from ragqa.training.retriever_data import gather_pairs, text_numbers, with_equal_gold

    if "+" in str(out):
        msg = f"--out must be a folder without + in its path (it parts model and adapter), got {str(out)!r}; rename it"
        raise ConfigError(msg)
    opened = open_index(index, Paths.from_env().indexes)
    with stderr().status("Reading questions and looking for hard negatives"):
        gold = _with_gold(questions, opened)
        texts = [indexed_text(passage, opened.manifest.indexed_text) for passage in opened.passages]
        part = _fold(fold, with_equal_gold(gold, opened.position_of, text_numbers(texts)))
        learnt = gold if part is None else [gold[n] for n in part.train]
        data = gather_pairs(learnt, texts, opened.position_of, opened.bm25s, limit=limit, seed=seed)
    stderr().print(f"{len(data.pairs):,} pairs; {data.n_missing:,} gold ids are not in the index")
    training = RetrieverTraining(
        opened.manifest.encoder, epochs, rank, layers, lr, batch, seed=seed, stop_after=stop_after
    )
    with progress_bar() as bar:
        task = bar.add_task("Reading", total=None)
        for now in train_retriever(training, data, out):
            shown = "Reading" if now.stage == "reading" else f"loss {now.loss:.3f}"
            bar.update(task, completed=now.done, total=now.total, description=shown)
    figures = []
    if part is not None:
        tested = [gold[n] for n in part.test]
        figures = _before_and_after(tested, opened, texts, f"{training.base}+{out}")
        for measure, before, after in figures:
            stdout().print(plain(f"{measure}: {before} before, {after} after"))
    given = [f"--index={index}", *(f"--questions={file}" for file in questions), f"--out={out}", f"--epochs={epochs}"]
    given += [f"--rank={rank}", f"--layers={layers}", f"--lr={lr:g}", f"--batch={batch}", f"--seed={seed}"]
    given += [f"--fold={fold}"] * bool(fold) + [f"--limit={limit}"] * bool(limit)
    given += [f"--stop-after={stop_after}"] * bool(stop_after)
    card = model_card(
        out.resolve().name,
        training,
        data,
        now,
        base_sha256=opened.manifest.encoder_fingerprint,
        command=shlex.join(["ragqa", "train", "retriever", *given]),
        files=[(file.name, fingerprint(file)) for file in questions],
        figures=figures,
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    stdout().print(plain(f"Adapter and card are in {out}; use: ragqa index build --encoder {training.base}+{out}"))


def _with_gold(files: Sequence[Path], index: Index) -> list[GoldQuestion]:
    """The questions of all files that name a gold passage, in their order."""
    from ragqa.corpus.gold import load_gold

    found: list[GoldQuestion] = []
    for file in files:
        gold, unit = load_gold(file, index.passages)
        if unit != "passage":
            msg = (
                f"expected questions with gold passages in {file}, found gold documents; name a file in ObliQA's schema"
            )
            raise CorpusError(msg)
        found += [question for question in gold if question.gold]
    if not found:
        msg = f"expected questions with gold passages in {', '.join(map(str, files))}, found none; name another file"
        raise CorpusError(msg)
    return found


def _fold(text: str, questions: Sequence[GoldQuestion]) -> Fold | None:
    """The fold that ``"K/N"`` names, K from 1; None for no text."""
    from ragqa.evaluation.folds import folds_by_gold

    if not text:
        return None
    number, _, total = text.partition("/")
    if not (number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total) and int(total) > 1):
        msg = f"--fold must be K/N with K from 1 to N and N at least 2, got {text!r}; give for example 1/5"
        raise ConfigError(msg)
    return folds_by_gold(questions, int(total))[int(number) - 1]


def _before_and_after(
    questions: Sequence[GoldQuestion], index: Index, texts: Sequence[str], adapted: str
) -> list[tuple[str, str, str]]:
    """(measure, before, after) of the dense ranking: by the index's vectors, by those of the adapted encoder."""
    import numpy as np

    from ragqa.pipeline import load_encoder

    base = load_encoder(index.manifest.encoder)
    index.check_encoder(base.info)
    before = _dense_measures(questions, index, base, index.vectors.reconstruct_n(0, index.vectors.ntotal))
    encoder = load_encoder(adapted)
    starts = range(0, len(texts), 256)
    with progress_bar() as bar:
        parts = [encoder.encode(texts[n : n + 256]) for n in bar.track(starts, description="256 passages each")]
    after = _dense_measures(questions, index, encoder, np.concatenate(parts))
    size = f"{len(questions):,} questions"
    return [(f"{name}, {size}", f"{before[name]:.4f}", f"{after[name]:.4f}") for name in before]


def _dense_measures(
    questions: Sequence[GoldQuestion], index: Index, encoder: Encoder, vectors: FloatMatrix
) -> dict[str, float]:
    """Recall and MAP at 10, in [0, 1]; gold that is not in the index counts as missed."""
    import numpy as np

    from ragqa.evaluation.measures import display_name, means, measure_run
    from ragqa.training.retriever_data import nearest

    asked = np.concatenate([encoder.encode_query(question.question.text) for question in questions])
    found = nearest(asked, vectors, index.hidden, index.order)
    run = [[index.passages[n].passage_id for n in ranking] for ranking in found]
    values = means(measure_run([question.gold for question in questions], run, ("R@10", "AP@10")))
    return {display_name(name): value for name, value in values.items()}
