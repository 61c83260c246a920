"""`ragqa train ranker | cut`: learning to rank, and where the list of passages ends, from questions with gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ragqa.cli.options import built
from ragqa.cli.output import options_of, plain, progress_bar, stderr, stdout
from ragqa.cli.rankings import fused_rankings
from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import ConfigError
from ragqa.evaluation.measures import KEPT_FIGURES
from ragqa.index import Index
from ragqa.lab.questions import AskedIndex, Fold, folds_by_gold
from ragqa.lab.rankings import Stacking
from ragqa.lab.training import ranker as ranking
from ragqa.lab.training.model_folder import command_line, files_table, write_card
from ragqa.lab.training.retriever import text_numbers, with_equal_gold
from ragqa.lab.tuning import cut_off
from ragqa.lab.written import WRITTEN, written_gold
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import find_preset
from ragqa.types import Ranking

Questions = Annotated[list[Path], typer.Option(help="Questions with gold passages: ObliQA's schema.")]
Weights = Annotated[
    list[float] | None, typer.Option(help="Weight of the questions of each file, in the order of --questions.")
]
Folds = Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")]


def asked_index(name: str, files: Sequence[Path], fold: str = "", test: Path | None = None) -> AskedIndex:
    """See `AskedIndex.of`."""
    with stderr().status("Reading passages and questions"):
        return AskedIndex.of(name, files, fold, test)


@built(
    ranking.RankerTraining,
    depth=typer.Option(min=2, help="Fused passages that the ranker orders."),
    trees=typer.Option(min=1),
    leaves=typer.Option(min=2, max=131_072, help="Leaves of a tree."),
    learning_rate=typer.Option("--lr", min=0.0, help="Learning rate."),
    seed=typer.Option(min=0, help="Seed of the features and questions of each tree."),
    further=typer.Option(help="A further ranking that the ranker reads, such as dense:BASE+ADAPTER."),
)
def ranker(
    ctx: typer.Context,
    index: Annotated[str, typer.Option(help="Corpus with the rankings bm25, context and dense.")],
    questions: Questions,
    out: Annotated[Path, typer.Option(help="Folder for the ranker and its model card.")],
    training: ranking.RankerTraining,
    weight: Weights = None,
    folds: Folds = 5,
    preset: Annotated[str, typer.Option(help="Preset whose fusion chooses the passages.")] = "",
    written: Annotated[
        Path | None,
        typer.Option(help="Folder RAGQA_DATA: the ranker also learns from our own questions about its passages."),
    ] = None,
    written_index: Annotated[
        list[str] | None,
        typer.Option(help="A further index whose passages the questions of --written may be about; repeat for more."),
    ] = None,
    written_weight: Annotated[float, typer.Option(help="Weight of the questions of --written.")] = 0.3,
    stacked: Annotated[
        list[str] | None,
        typer.Option(
            help="If the model of --further was trained on these questions: the ranking by the model trained for fold "
            "1 of --folds (`ragqa train retriever --fold 1/5`, same --questions), then fold 2, and so on."
        ),
    ] = None,
) -> None:
    """Train learning to rank (LambdaMART) on questions with gold passages: takes minutes and needs no further model.

    It is first measured fold by fold, on questions none of whose gold passages it was trained on; the ranker written
    is trained on all of them. Use it with `ragqa ask --reranker OUT --rerank-weight 1`. With --stacked the same holds
    for the encoder under it: it reads, for each question, the ranking by a model not trained on its gold passages.
    """
    fusion = find_preset(preset, Paths.from_env().presets).fusion if preset else None
    reading = Stacking(training.further, tuple(stacked or ()), fusion)
    if written_index and not written:
        raise ConfigError("--written-index needs --written, the folder RAGQA_DATA; add it, or leave the indexes out")
    own = _Written(written, written_index or (), written_weight) if written else None
    asked, names, by_file, counts, texts, parts, fused = _ranked(index, questions, weight, folds, reading, own)
    gold = asked.learnt
    candidates = _candidates(gold, fused, training, asked.index, texts, counts)
    elsewhere = _elsewhere(own, reading, training) if own else []
    with progress_bar() as bar:
        steps = ranking.out_of_fold(candidates, parts, training, elsewhere)
        *_, scores = bar.track(steps, total=folds, description="Cross-validation")
    figures = []
    for name, places in zip(names, by_file, strict=True):
        first, end = places.start, places.stop
        of = name if len(by_file) > 1 else ""
        figures += ranking.figures_of(gold[first:end], fused[first:end], scores[first:end], training.depth, of)
    for figure in figures:
        stdout().print(plain(str(figure)))
    with stderr().status("Training on all questions"):
        booster = ranking.train([*candidates, *elsewhere], training)
    ranking.write_ranker(booster, out, training.further)
    card = ranking.ranker_card(
        out.resolve().name,
        training,
        booster,
        figures,
        n_questions=len(gold),
        n_elsewhere=len(elsewhere),
        n_folds=folds,
        command=command_line("train ranker", options_of(ctx)),
        sources=files_table([*questions, WRITTEN] if written else questions),
    )
    write_card(out, card)
    use = f"ragqa ask QUESTION --index {index} --reranker {out} --rerank-depth {training.depth} --rerank-weight 1"
    stdout().print(plain(f"Ranker and card are in {out}; use: {use}"))


def cut(
    index: Annotated[str, typer.Option(help="Corpus.")], questions: Questions, weight: Weights = None, folds: Folds = 5
) -> None:
    """Fit the dynamic cut-off of `--filter-method expected-f2`, beside threshold and max drop; writes nothing."""
    ranked = _ranked(index, questions, weight, folds, Stacking())
    given = (ranked.asked.learnt, ranked.fused, ranked.counts)
    figures = cut_off.out_of_fold(*given, ranked.parts)
    for file, places in zip(ranked.names, ranked.by_file, strict=True):
        for name, row in zip(("limits", "expected-f2"), figures[list(places)].mean(axis=0).T.tolist(), strict=True):
            cells = ", ".join(f"{figure} {value:.3f}" for figure, value in zip(KEPT_FIGURES, row, strict=True))
            stdout().print(plain(f"{file} ({len(places):,}), {name}, out of fold: {cells}"))
    weights = cut_off.fitted(*given)
    stdout().print(plain(f"Weights of all: {', '.join(f'{name} {value:.2f}' for name, value in weights.items())}"))


class _Written(NamedTuple):
    """Our own questions: the folder RAGQA_DATA, the further indexes that they are about, and their weight."""

    data: Path
    indexes: Sequence[str]
    weight: float


class _Ranked(NamedTuple):
    """Questions of several files with their fused rankings, how much each counts, and the folds over all of them."""

    asked: AskedIndex
    names: Sequence[str]  # of the files
    by_file: Sequence[range]
    counts: list[float]
    texts: Sequence[int]
    parts: Sequence[Fold]
    fused: list[Ranking]


def _candidates(
    gold: Sequence[GoldQuestion],
    fused: Sequence[Ranking],
    training: ranking.RankerTraining,
    index: Index,
    texts: Sequence[int],
    weights: Sequence[float],
) -> list[ranking.Candidates]:
    with progress_bar() as bar:
        rows = bar.track(ranking.gather(gold, fused, training, index, texts), total=len(gold), description="Features")
        return [replace(one, weight=weight) for one, weight in zip(rows, weights, strict=True)]


def _elsewhere(own: _Written, reading: Stacking, training: ranking.RankerTraining) -> list[ranking.Candidates]:
    """The candidates of our own questions about the passages of other indexes."""
    found = []
    for name in own.indexes:
        asked = asked_index(name, [])
        gold = written_gold(own.data, asked.index.passages)
        fused = fused_rankings(gold, asked.index, reading._replace(stacked=()))
        weights = [own.weight] * len(gold)
        found += _candidates(gold, fused, training, asked.index, text_numbers(asked.texts), weights)
    return found


def _ranked(
    index: str,
    questions: Sequence[Path],
    weight: Sequence[float] | None,
    folds: int,
    reading: Stacking,
    own: _Written | None = None,
) -> _Ranked:
    shares = weight or [1.0] * len(questions)
    if len(shares) != len(questions) or min(shares) <= 0:
        msg = f"--weight must be given once for each --questions, each above 0, got {len(shares)} for {len(questions)}"
        raise ConfigError(msg)
    asked = asked_index(index, questions)
    by_file = asked.places_by_file(questions)
    counts = [share for share, places in zip(shares, by_file, strict=True) for _ in places]
    names = [file.stem for file in questions]
    if own:
        if own.weight <= 0:
            raise ConfigError(f"--written-weight must be above 0, got {own.weight:g}")
        gold = written_gold(own.data, asked.index.passages)
        names.append("written")
        by_file.append(range(len(asked.learnt), len(asked.learnt) + len(gold)))
        asked.learnt.extend(gold)
        counts += [own.weight] * len(gold)
    texts = text_numbers(asked.texts)
    parts = folds_by_gold(with_equal_gold(asked.learnt, asked.index.position_of, texts), folds)
    return _Ranked(
        asked, names, by_file, counts, texts, parts, fused_rankings(asked.learnt, asked.index, reading, parts)
    )
