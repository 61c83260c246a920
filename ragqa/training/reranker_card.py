"""The model card that `ragqa train reranker` writes beside the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ragqa.training.loop import Progress
from ragqa.training.reranker import RerankerTraining
from ragqa.training.retriever_data import RetrieverData


def model_card(
    name: str,
    training: RerankerTraining,
    data: RetrieverData,
    last: Progress,
    *,
    base_sha256: str,
    command: str,
    files: Sequence[tuple[str, str]],
    figures: Sequence[tuple[str, Sequence[float]]] = (),
    measures: Sequence[str] = (),
    n_tested: int = 0,
) -> str:
    """The card as Markdown. ``files`` are (file of questions, sha256); ``last`` is the last report.

    ``figures`` are (ranking, its value in each of ``measures``), on ``n_tested`` questions that were not trained on.
    """
    heads = "".join(f" {measure} |" for measure in measures) or " |"
    rows = "\n".join(f"| {what} |" + "".join(f" {value:.4f} |" for value in values) for what, values in figures)
    used = "\n".join(f"| {file} | {sha256} |" for file, sha256 in files)
    settings = ", ".join(f"{key} {value}" for key, value in asdict(training).items() if key != "base")
    asked = len({question for question, _ in data.pairs})
    return f"""# {name}: which passage answers a question?

A cross-encoder of one output over (question, passage), weights in half precision as safetensors, made from
`{training.base}` (weights sha256 {base_sha256}).
Use it: `ragqa ask QUESTION --reranker FOLDER --rerank-weight WEIGHT`, FOLDER being this one.

## Figures

| ranking |{heads}
|---|{"---|" * max(1, len(measures))}
{rows or "| not measured | |"}

{f"Measured on {n_tested:,} questions" if n_tested else "To be measured on questions"} that share no gold passage with
those trained on. The number after "reranked" is WEIGHT, the reranker's share of the score; the rest is the fused one's.

## Trained on

{len(data.pairs):,} pairs of {asked:,} questions and their gold passages ({data.n_missing:,} gold ids not in the index),
each beside {training.negatives} passages that the fused ranking puts high and that are not gold; {last.step:,} of
{last.steps:,} steps; {last.seconds:.0f} seconds in the last run. Settings: {settings}.

| file | sha256 |
|---|---|
{used}

Made by:

    {command}
"""
