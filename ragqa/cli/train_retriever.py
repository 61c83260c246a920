"""`ragqa train retriever`: an encoder adapted to questions with gold passages, or to a corpus nobody has asked yet."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
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
    from ragqa.training.pseudo_queries import PseudoQuery
    from ragqa.training.retriever import RetrieverProgress, RetrieverTraining
    from ragqa.training.retriever_data import RetrieverData

__all__ = ["fold_named", "questions_with_gold", "retriever"]


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
    from ragqa.indexing import open_index
    from ragqa.models import fingerprint
    from ragqa.retrieval.analysis import indexed_text
    from ragqa.training.pseudo_queries import counts_of
    from ragqa.training.retriever import RetrieverTraining
    from ragqa.training.retriever_card import model_card
    from ragqa.training.retriever_data import gather_pairs, text_numbers, with_equal_gold

    files = questions or []
    _check_options(out, files, test, fold)
    opened = open_index(index, Paths.from_env().indexes)
    with stderr().status("Reading questions and looking for hard negatives"):
        texts = [indexed_text(passage, opened.manifest.indexed_text) for passage in opened.passages]
        gold = questions_with_gold(files, opened) if files else []
        part = fold_named(fold, with_equal_gold(gold, opened.position_of, text_numbers(texts)))
        tested = [gold[n] for n in part.test] if part else questions_with_gold([test], opened) if test else []
        learnt = [gold[n] for n in part.train] if part else gold
        made = _made(opened, pseudo, seed) if pseudo or not files else ()
        spared = {n: query.spared for n, query in enumerate(made, start=len(learnt))}
        everything = [*learnt, *(query.question for query in made)]
        data = gather_pairs(everything, texts, opened.position_of, opened.bm25s, limit=limit, seed=seed, spared=spared)
    stderr().print(f"{len(data.pairs):,} pairs; {data.n_missing:,} gold ids are not in the index")
    if made:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in counts_of(made).items())
        stderr().print(f"pseudo-queries made of the corpus: {counts}")
    passes = epochs or (2 if files else 1)
    training = RetrieverTraining(
        opened.manifest.encoder, passes, rank, layers, lr, batch, seed=seed, stop_after=stop_after
    )
    last = _trained(training, data, out)
    figures = _before_and_after(tested, opened, texts, f"{training.base}+{out}") if tested else []
    for measure, before, after in figures:
        stdout().print(plain(f"{measure}: {before} before, {after} after"))
    given: dict[str, object] = {"pseudo": pseudo, "test": test, "fold": fold, "limit": limit, "stop-after": stop_after}
    sources = [(file.name, fingerprint(file)) for file in (*files, *([test] if test else []))]
    card = model_card(
        out.resolve().name,
        training,
        data,
        last,
        base_sha256=opened.manifest.encoder_fingerprint,
        command=_command(index, files, out, training, given),
        files=[*sources, *([(opened.manifest.source, opened.manifest.corpus_sha256)] if made else [])],
        n_asked=len(learnt),
        figures=figures,
        made=counts_of(made) if made else {},
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    stdout().print(plain(f"Adapter and card are in {out}; use: ragqa index build --encoder {training.base}+{out}"))


def _trained(training: RetrieverTraining, data: RetrieverData, out: Path) -> RetrieverProgress:
    """The last report of the training, all of them shown."""
    from ragqa.training.retriever import train_retriever

    with progress_bar() as bar:
        task = bar.add_task("Reading", total=None)
        for now in train_retriever(training, data, out):
            shown = "Reading" if now.stage == "reading" else f"loss {now.loss:.3f}"
            bar.update(task, completed=now.done, total=now.total, description=shown)
    return now


def _command(
    index: str, files: Sequence[Path], out: Path, training: RetrieverTraining, options: Mapping[str, object]
) -> str:
    """The command that makes the same adapter again, the options among ``options`` that were given included."""
    given = [f"--index={index}", *(f"--questions={file}" for file in files), f"--out={out}"]
    given += [f"--epochs={training.epochs}", f"--rank={training.rank}", f"--layers={training.layers}"]
    given += [f"--lr={training.learning_rate:g}", f"--batch={training.batch_size}", f"--seed={training.seed}"]
    return shlex.join(["ragqa", "train", "retriever", *given, *(f"--{k}={v}" for k, v in options.items() if v)])


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
    from ragqa.training.pseudo_queries import draw, pseudo_queries

    found = pseudo_queries(index.passages, seed)
    return found if limit is None else draw(found, limit, seed)


def questions_with_gold(files: Sequence[Path], index: Index) -> list[GoldQuestion]:
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


def fold_named(text: str, questions: Sequence[GoldQuestion]) -> Fold | None:
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

    from ragqa.loading import load_encoder

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
