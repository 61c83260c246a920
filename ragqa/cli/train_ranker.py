"""`ragqa train ranker`: a learned order of the best fused passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragqa.cli.command_line import command_line
from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.cli.training import AskedIndex, fused_rankings, sources
from ragqa.config import RerankingConfig
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion
    from ragqa.evaluation.folds import Fold
    from ragqa.training.ranker import Candidates, RankerTraining
    from ragqa.training.ranker_card import Figure
    from ragqa.types import Ranking

WEIGHTS = (0.3, 0.5, 1.0)  # of the learned order against the fused one, measured out of fold
MEASURES = ("R@10", "AP@10")


def ranker(
    index: Annotated[str, typer.Option(help="Which corpus; it needs the rankings bm25, context and dense.")],
    questions: Annotated[list[Path], typer.Option(help="Questions with gold passages: ObliQA's schema.")],
    out: Annotated[Path, typer.Option(help="Folder for the ranker and its model card.")],
    depth: Annotated[int, typer.Option(min=2, help="Fused passages it puts in order.")] = 50,
    trees: Annotated[int, typer.Option(min=1)] = 200,
    leaves: Annotated[int, typer.Option(min=2, help="Of a tree.")] = 15,
    lr: Annotated[float, typer.Option(min=0.0, help="Learning rate.")] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Of the features and questions each tree sees.")] = 0,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 5,
) -> None:
    """Train a learned order (LambdaMART) on questions with gold passages: minutes, and no model but what retrieves.

    Measured first, fold by fold, on questions none of whose gold passages it learnt from; what is written has learnt
    from all of them. Use it with `ragqa ask --reranker OUT --rerank-weight 1`.
    """
    from ragqa.evaluation.folds import folds_by_gold
    from ragqa.training.ranker import RankerTraining, gather, train, write_ranker
    from ragqa.training.ranker_card import model_card
    from ragqa.training.retriever_data import text_numbers, with_equal_gold

    asked = AskedIndex.of(index, questions)
    gold, texts = asked.learnt, text_numbers(asked.texts)
    parts = folds_by_gold(with_equal_gold(gold, asked.index.position_of, texts), folds)
    by_question = fused_rankings(gold, asked.index)
    fused = [by_question[item.question.text] for item in gold]
    training = RankerTraining(depth=depth, trees=trees, leaves=leaves, learning_rate=lr, seed=seed)
    with progress_bar() as bar:
        task = bar.add_task("Features", total=len(gold))
        candidates = []
        for one in gather(gold, fused, depth, asked.index, texts):
            candidates.append(one)
            bar.advance(task)
    scores = _out_of_fold(candidates, parts, training)
    figures = _figures(gold, fused, scores, depth)
    for figure in figures:
        stdout().print(plain(str(figure)))
    with stderr().status("Training on all questions"):
        booster = train(candidates, training)
    write_ranker(booster, out)
    given = {"index": index, "questions": questions, "out": out, "depth": depth, "trees": trees, "leaves": leaves}
    command = command_line("train ranker", given | {"lr": lr, "seed": seed, "folds": folds})
    card = model_card(out.resolve().name, training, booster, figures, len(gold), folds, command, sources(questions))
    (out / "README.md").write_text(card, encoding="utf-8")
    use = f"ragqa ask QUESTION --index {index} --reranker {out} --rerank-depth {depth} --rerank-weight 1"
    stdout().print(plain(f"Ranker and card are in {out}; use: {use}"))


def _out_of_fold(
    candidates: Sequence[Candidates], folds: Sequence[Fold], training: RankerTraining
) -> list[Mapping[str, float]]:
    """Each question's scores by the trees that learnt from the other folds."""
    from ragqa.training.ranker import scored, train

    found: list[Mapping[str, float]] = [{} for _ in candidates]
    with progress_bar() as bar:
        task = bar.add_task("Cross-validation", total=len(folds))
        for fold in folds:
            booster = train([candidates[n] for n in fold.train], training)
            for n in fold.test:
                found[n] = scored(booster, candidates[n])
            bar.advance(task)
    return found


def _figures(
    gold: Sequence[GoldQuestion], fused: Sequence[Ranking], scores: Sequence[Mapping[str, float]], depth: int
) -> list[Figure]:
    """The fused ranking, then the learned order at each weight against it."""
    from ragqa.evaluation.measures import display_name
    from ragqa.evaluation.retrieval import measured
    from ragqa.evaluation.significance import paired_test
    from ragqa.fusion import rerank
    from ragqa.training.ranker_card import Figure

    before = measured("fused", gold, tuple(fused))
    names = tuple(map(display_name, MEASURES))
    figures = [Figure("fused", names, tuple(before.means[name] for name in MEASURES))]
    for weight in WEIGHTS:
        config = RerankingConfig("learned", depth, weight)
        ranked = tuple(rerank(ranking, found, config) for ranking, found in zip(fused, scores, strict=True))
        after = measured(f"learned, weight {weight:g}", gold, ranked)
        tests = [paired_test(after.values[name], before.values[name]).p_value for name in MEASURES]
        figures.append(Figure(after.name, names, tuple(after.means[name] for name in MEASURES), tuple(tests)))
    return figures
