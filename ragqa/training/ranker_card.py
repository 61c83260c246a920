"""The model card that `ragqa train ranker` writes beside the trees, and the lines the command prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import lightgbm

from ragqa.training.ranker import RankerTraining

SHOWN_FEATURES = 12


@dataclass(frozen=True, slots=True)
class Figure:
    """A ranking's means out of fold, one per measure, and the p values of the differences from the fused one's."""

    name: str
    measures: tuple[str, ...]
    means: tuple[float, ...]
    p_values: tuple[float, ...] = ()

    def __str__(self) -> str:
        parts = [f"{measure} {mean:.4f}" for measure, mean in zip(self.measures, self.means, strict=True)]
        if self.p_values:
            parts = [f"{part} (p = {p:.4f})" for part, p in zip(parts, self.p_values, strict=True)]
        return f"{self.name}: {', '.join(parts)}"


def model_card(
    name: str,
    training: RankerTraining,
    booster: lightgbm.Booster,
    figures: Sequence[Figure],
    n_questions: int,
    n_folds: int,
    command: str,
    files: Sequence[tuple[str, str]],
) -> str:
    """The card as Markdown. ``files`` are (file of questions, sha256)."""
    measures = figures[0].measures
    heads = "".join(f" {measure} | p |" for measure in measures)
    rows = "\n".join(f"| {figure.name} |{_cells(figure)}" for figure in figures)
    gains = sorted(zip(booster.feature_importance("gain"), booster.feature_name(), strict=True), reverse=True)
    best = ", ".join(feature.replace("_", " ") for _, feature in gains[:SHOWN_FEATURES])
    used = "\n".join(f"| {file} | {sha256} |" for file, sha256 in files)
    settings = ", ".join(f"{key} {value}" for key, value in asdict(training).items())
    return f"""# {name}: the best fused passages, in a learned order

LambdaMART (LightGBM {lightgbm.__version__}) over {booster.num_feature()} features that need no further model:
a passage's scores in the rankings bm25, context and dense, those of its document and neighbours, and the words that it
shares with the question, weighted by how rare they are. It holds no text of what it was trained on.
Use it: `ragqa ask QUESTION --reranker FOLDER --rerank-depth {training.depth} --rerank-weight 1`, FOLDER being this one.

## Figures

| ranking |{heads}
|---|{"---|---|" * len(measures)}
{rows}

{n_questions:,} questions, each ranked by trees that learnt from none of its gold passages ({n_folds} folds by gold
passage, equal texts counted as one); p by a paired permutation test against "fused". The weight is the learned order's
share of the score, the rest is the fused one's. The trees in this folder have learnt from all questions.

## Trained on

Settings: {settings}. One thread, so that the same data give the same trees.

| file | sha256 |
|---|---|
{used}

What the trees use most, by gain: {best}.

Made by:

    {command}

## Weak points

It learns what gold passages of these questions look like, their length and the part of the corpus they come from
included: on another corpus measure it before use (`ragqa eval retrieval --reranker FOLDER --rerank-weight 1`), or train
one there.
"""


def _cells(figure: Figure) -> str:
    p_values = figure.p_values or ("",) * len(figure.means)
    shown = [f"{p:.4f}" if isinstance(p, float) else "" for p in p_values]
    return "".join(f" {mean:.4f} | {p} |" for mean, p in zip(figure.means, shown, strict=True))
