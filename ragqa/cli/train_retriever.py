"""`ragqa train retriever`: an encoder adapted to questions with gold passages, or to a corpus nobody has asked yet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragqa.cli.command_line import command_line
from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.cli.training import AskedIndex, shown, sources
from ragqa.errors import ConfigError
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion
    from ragqa.indexing import Index
    from ragqa.protocols import Encoder, FloatMatrix
    from ragqa.training.pseudo_queries import PseudoQuery
    from ragqa.training.retriever_data import RetrieverData


def retriever(
    index: Annotated[str, typer.Option(help="Which corpus; its encoder is where training starts.")],
    out: Annotated[
        Path, typer.Option(help="Folder for adapter and checkpoint; an interrupted training goes on there.")
    ],
    questions: Annotated[
        list[Path] | None,
        typer.Option(help="Questions with gold passages, ObliQA's schema. None: pseudo-queries made of the corpus."),
    ] = None,
    pseudo: Annotated[
        int | None, typer.Option(min=1, help="At most so many pseudo-queries, beside --questions or alone (then all).")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Questions to measure on, where none are trained on; else take --fold.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="2 with questions, 1 without.")] = None,
    rank: Annotated[int, typer.Option(min=1, help="Of the adapter's factors.")] = 16,
    layers: Annotated[int, typer.Option(min=1, help="The last so many layers are adapted.")] = 3,
    lr: Annotated[float, typer.Option(min=0.0, help="Peak learning rate.")] = 5e-4,
    batch: Annotated[int, typer.Option(min=1, help="Pairs per step.")] = 96,
    seed: Annotated[int, typer.Option(min=0, help="Of the factors, the data's order, pseudo-queries, --limit.")] = 1,
    fold: Annotated[str, typer.Option(help="K/N: train on fold K of N, measure on its test questions.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Train on a random choice of so many pairs.")] = None,
    stop_after: Annotated[int | None, typer.Option(min=1, help="Write the adapter after so many steps.")] = None,
) -> None:
    """Adapt an index's encoder to questions, or to the corpus alone. Killed, it goes on from its last checkpoint.

    Without --questions it learns from pseudo-queries: headings, definitions, references and duties of the corpus.
    """
    from ragqa.processor import wait_passively

    wait_passively()
    from ragqa.training.pseudo_queries import counts_of
    from ragqa.training.retriever import RetrieverTraining, train_retriever
    from ragqa.training.retriever_card import model_card

    files = questions or []
    _check_options(out, files, test, fold)
    asked = AskedIndex.of(index, files, fold, test)
    made = _made(asked.index, pseudo, seed) if pseudo or not files else ()
    data = _gathered(asked, made, limit, seed)
    manifest = asked.index.manifest
    training = RetrieverTraining(
        base=manifest.encoder,
        epochs=epochs or (2 if files else 1),
        rank=rank,
        layers=layers,
        learning_rate=lr,
        batch_size=batch,
        seed=seed,
        stop_after=stop_after,
    )
    last = shown(train_retriever(training, data, out))
    figures = _before_and_after(asked, f"{training.base}+{out}") if asked.tested else []
    for measure, before, after in figures:
        stdout().print(plain(f"{measure}: {before} before, {after} after"))
    corpus = (manifest.source, manifest.corpus_sha256)
    given = {"index": index, "questions": files, "out": out, "epochs": training.epochs, "rank": rank, "layers": layers}
    given |= {"lr": lr, "batch": batch, "seed": seed, "pseudo": pseudo, "test": test, "fold": fold, "limit": limit}
    card = model_card(
        out.resolve().name,
        training,
        data,
        last,
        base_sha256=manifest.encoder_fingerprint,
        command=command_line("train retriever", given | {"stop-after": stop_after}),
        files=sources([*files, *([test] if test else [])]) + ([corpus] if made else []),
        n_asked=len(asked.learnt),
        figures=figures,
        made=counts_of(made) if made else {},
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    stdout().print(plain(f"Adapter and card are in {out}; use: ragqa index build --encoder {training.base}+{out}"))


def _check_options(out: Path, questions: Sequence[Path], test: Path | None, fold: str) -> None:
    if "+" in str(out):
        msg = f"--out must be a folder without + in its path (it parts model and adapter), got {str(out)!r}; rename it"
        raise ConfigError(msg)
    if fold and not questions:
        msg = f"--fold {fold} measures on a part of --questions, got none; add --questions FILE, or take --test FILE"
        raise ConfigError(msg)
    if test and questions:
        msg = "--test measures what pseudo-queries alone bring, got --questions too; leave them out, or take --fold 1/5"
        raise ConfigError(msg)


def _made(index: Index, limit: int | None, seed: int) -> tuple[PseudoQuery, ...]:
    from ragqa.training.pseudo_queries import counts_of, draw, pseudo_queries

    with stderr().status("Making pseudo-queries of the corpus"):
        found = pseudo_queries(index.passages, seed)
        made = found if limit is None else draw(found, limit, seed)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in counts_of(made).items())
    stderr().print(f"pseudo-queries made of the corpus: {counts}")
    return made


def _gathered(asked: AskedIndex, made: Sequence[PseudoQuery], limit: int | None, seed: int) -> RetrieverData:
    """The questions learnt from, then those made; what is too near to a made one's passage counts as neither."""
    spared = {n: query.spared for n, query in enumerate(made, start=len(asked.learnt))}
    further = [query.question for query in made]
    return asked.gathered(asked.index.bm25s, limit=limit, seed=seed, further=further, spared=spared)


def _before_and_after(asked: AskedIndex, adapted: str) -> list[tuple[str, str, str]]:
    """(measure, before, after) of the dense ranking: by the index's vectors, by those of the adapted encoder."""
    import numpy as np

    from ragqa.loading import load_encoder

    questions, index, texts = asked.tested, asked.index, asked.texts
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
