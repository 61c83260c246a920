"""`ragqa train reranker`: a cross-encoder that puts the best fused passages in a better order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragqa.cli.command_line import command_line
from ragqa.cli.output import stderr, stdout
from ragqa.cli.rerank_results import reranked_results
from ragqa.cli.training import AskedIndex, fused_rankings, shown, sources
from ragqa.config import RerankingConfig
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.types import Ranking

WEIGHTS = (0.2, 0.3, 0.5, 1.0)  # of the reranker, measured with --fold
MEASURES = ("R@10", "AP@10")


def reranker(
    index: Annotated[str, typer.Option(help="Which corpus.")],
    questions: Annotated[list[Path], typer.Option(help="Questions with gold passages: ObliQA's schema.")],
    out: Annotated[
        Path, typer.Option(help="Folder for weights and checkpoint; an interrupted training goes on there.")
    ],
    base: Annotated[
        str, typer.Option(help="Model to start from: a folder or nli-minilm-l6; the index's encoder where not given.")
    ] = "",
    epochs: Annotated[int, typer.Option(min=1)] = 1,
    negatives: Annotated[int, typer.Option(min=1, help="Wrong passages beside each gold one.")] = 4,
    lr: Annotated[float, typer.Option(min=0.0, help="Peak learning rate.")] = 1e-4,
    batch: Annotated[int, typer.Option(min=1, help="Gold passages per step.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Of the new layer, the data's order and --limit.")] = 1,
    fold: Annotated[str, typer.Option(help="K/N: train on fold K of N, measure on its test questions.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Train on a random choice of so many pairs.")] = None,
    stop_after: Annotated[int | None, typer.Option(min=1, help="Write the weights after so many steps.")] = None,
) -> None:
    """Train a reranker on questions with gold passages. Killed, it goes on from its last checkpoint when run again.

    The wrong passages are those that the fused ranking puts high. Use what it writes with `ragqa ask --reranker OUT`.
    """
    from ragqa.processor import wait_passively

    wait_passively()
    from ragqa.training.reranker import RerankerTraining, base_folder, train_reranker
    from ragqa.training.reranker_card import model_card
    from ragqa.training.reranker_data import KnownRankings

    asked = AskedIndex.of(index, questions, fold)
    start = base or asked.index.manifest.encoder
    _, base_sha256 = base_folder(start)
    fused = fused_rankings([*asked.learnt, *asked.tested], asked.index)
    data = asked.gathered(KnownRankings("fused", fused), limit=limit, seed=seed)
    training = RerankerTraining(
        base=start,
        epochs=epochs,
        negatives=negatives,
        batch_size=batch,
        learning_rate=lr,
        seed=seed,
        stop_after=stop_after,
    )
    last = shown(train_reranker(training, data, out))
    figures = _before_and_after(asked, fused, out) if asked.tested else []
    for what, values in figures:
        found = ", ".join(f"{_shown(measure)} {value:.4f}" for measure, value in zip(MEASURES, values, strict=True))
        stdout().print(plain(f"{what}: {found}"))
    given = {"index": index, "questions": questions, "out": out, "base": start, "epochs": epochs}
    given |= {"negatives": negatives, "lr": lr, "batch": batch, "seed": seed, "fold": fold, "limit": limit}
    card = model_card(
        out.resolve().name,
        training,
        data,
        last,
        base_sha256=base_sha256,
        command=command_line("train reranker", given | {"stop-after": stop_after}),
        files=sources(questions),
        figures=figures,
        measures=[_shown(measure) for measure in MEASURES],
        n_tested=len(asked.tested),
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    weight = f" --rerank-weight {_best_weight(figures):g}" if figures else ""
    use = f"ragqa ask QUESTION --index {index} --reranker {out}{weight}"
    stdout().print(plain(f"Weights and card are in {out}; use: {use}"))


def _best_weight(figures: Sequence[tuple[str, list[float]]]) -> float:
    """The weight of the highest MAP@10; the first of equals."""
    return max(zip(WEIGHTS, figures[1:], strict=True), key=lambda pair: pair[1][1][MEASURES.index("AP@10")])[0]


def _shown(measure: str) -> str:
    from ragqa.evaluation.measures import display_name

    return display_name(measure)


def _before_and_after(asked: AskedIndex, fused: Mapping[str, Ranking], model: Path) -> list[tuple[str, list[float]]]:
    """(ranking, its measures): fused, then reranked with each weight."""
    from ragqa.evaluation.retrieval import measured

    before = tuple(fused[item.question.text] for item in asked.tested)
    reranking = RerankingConfig(str(model))
    after, milliseconds = reranked_results(asked.tested, asked.index, before, reranking, WEIGHTS)
    if milliseconds is not None:
        stderr().print(f"{milliseconds:.0f} ms a question to rerank {reranking.depth} passages")
    results = [measured("fused", asked.tested, before), *after]
    return [(result.name, [result.means[measure] for measure in MEASURES]) for result in results]
