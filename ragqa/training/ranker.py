"""Learns an order of the best fused passages from questions with gold: LambdaMART by LightGBM, in seconds.

Burges 2010, https://www.microsoft.com/en-us/research/publication/from-ranknet-to-lambdarank-to-lambdamart-an-overview/.
One thread and one seed: the same data give the same trees on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import lightgbm
import numpy as np
import numpy.typing as npt

from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import CorpusError
from ragqa.protocols import Corpus, FloatMatrix
from ragqa.retrieval.learned_ranker import KIND, RANKER_FILE, column_names, ranking_features
from ragqa.training.model_folder import write_manifest
from ragqa.types import Ranking


@dataclass(frozen=True, slots=True)
class RankerTraining:
    """How to train. The defaults are the plateau of a dozen settings tried on ObliQA dev, out of fold."""

    depth: int = 50  # fused passages put in order, >= 2
    trees: int = 200
    leaves: int = 15  # of a tree, >= 2
    learning_rate: float = 0.05
    min_rows: int = 60  # in a leaf
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best passages of one question. Rows are hits in their order; ``labels`` is 1 where the passage is gold.

    ``taught`` is False for a passage that has the text of a gold one and is not gold itself: nothing is learnt of it.
    """

    names: tuple[str, ...]
    features: FloatMatrix  # (n_hits, n_features)
    labels: npt.NDArray[np.int8]
    taught: npt.NDArray[np.bool_]


def gather(
    gold: Sequence[GoldQuestion], fused: Sequence[Ranking], depth: int, corpus: Corpus, text_of: Sequence[int]
) -> Iterator[Candidates]:
    """The candidates of each question, in order; ``text_of`` numbers the texts of passages, by position."""
    for question, ranking in zip(gold, fused, strict=True):
        names = tuple(hit.passage.passage_id for hit in ranking.hits[:depth])
        texts = {text_of[corpus.position_of[name]] for name in question.gold if name in corpus.position_of}
        labels = np.array([name in question.gold for name in names], np.int8)
        copies = np.array([text_of[corpus.position_of[name]] in texts for name in names], np.bool_)
        features = ranking_features(question.question.text, ranking.hits, depth, corpus)
        yield Candidates(names, features, labels, ~copies | (labels > 0))


def train(candidates: Sequence[Candidates], training: RankerTraining) -> lightgbm.Booster:
    """The trees. Questions without a gold passage among their candidates teach nothing; CorpusError where none has."""
    useful = [one for one in candidates if one.labels.any() and not one.labels.all()]
    if not useful:
        msg = (
            "expected questions with a gold passage among the best fused ones, and others beside it, found none; give "
            "more questions, or the index that they were asked of"
        )
        raise CorpusError(msg)
    data = lightgbm.Dataset(
        np.concatenate([one.features[one.taught] for one in useful]),
        np.concatenate([one.labels[one.taught] for one in useful]),
        group=[int(one.taught.sum()) for one in useful],
        feature_name=list(column_names()),
    )
    return lightgbm.train(_parameters(training), data, num_boost_round=training.trees)


def scored(booster: lightgbm.Booster, candidates: Candidates) -> dict[str, float]:
    """The trees' score of each candidate, by passage id."""
    if not candidates.names:
        return {}
    scores = np.asarray(booster.predict(candidates.features, num_threads=1))
    return dict(zip(candidates.names, scores.tolist(), strict=True))


def write_ranker(booster: lightgbm.Booster, folder: Path) -> None:
    """The trees as text, with the names of their features, and MODEL.json, which is written last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RANKER_FILE).write_text(booster.model_to_string(importance_type="gain"), encoding="utf-8")
    write_manifest(folder, KIND, RANKER_FILE)


def _parameters(training: RankerTraining) -> dict[str, object]:
    return {
        "objective": "lambdarank",
        "lambdarank_truncation_level": 15,  # 5 more than the ranks that are measured, as LightGBM advises
        "num_leaves": training.leaves,
        "learning_rate": training.learning_rate,
        "min_data_in_leaf": training.min_rows,
        "lambda_l2": 1.0,
        "feature_fraction": 0.5,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "seed": training.seed,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
