"""Trains a learned ranker of the best fused passages from questions with gold: LambdaMART by LightGBM, in seconds.

Burges 2010, https://www.microsoft.com/en-us/research/publication/from-ranknet-to-lambdarank-to-lambdamart-an-overview/.
With one thread and one seed, the same data give the same trees on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import CorpusError
from ragqa.evaluation.benchmarks.retrieval.comparing import Result, measured
from ragqa.evaluation.measures import display_name
from ragqa.evaluation.significance import paired_test
from ragqa.fusion import rerank
from ragqa.lab.questions import MEASURES, Fold
from ragqa.lab.training.model_folder import ModelCard, settings_of
from ragqa.models import write_manifest
from ragqa.plugins.protocols import Corpus, FloatMatrix
from ragqa.retrieval.learned_ranker import KIND, RANKER_FILE, column_names, ranking_features
from ragqa.settings.config import RerankingConfig
from ragqa.types import Ranking

if TYPE_CHECKING:
    import lightgbm

WEIGHTS = (0.3, 0.5, 1.0)  # of the learned ranker against the fused ranking, measured out of fold
SHOWN_FEATURES = 12


@dataclass(frozen=True, slots=True)
class RankerTraining:
    """Training settings. The defaults are the plateau of a dozen settings tried on ObliQA dev, out of fold."""

    depth: int = 50  # fused passages that are ranked, >= 2
    trees: int = 200
    leaves: int = 15  # of a tree, >= 2
    learning_rate: float = 0.05
    min_rows: int = 60  # in a leaf
    seed: int = 0
    further: str = ""  # one more ranking that is read; see `ragqa.retrieval.learned_ranker.ranking_features`


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best passages of one question. Rows are hits in order; ``labels`` is 1 for a gold passage.

    ``taught`` is False for a passage that has the text of a gold one and is not gold itself; it is not trained on.
    ``weight`` is the weight of the question.
    """

    names: tuple[str, ...]
    features: FloatMatrix  # (n_hits, n_features)
    labels: npt.NDArray[np.int8]
    taught: npt.NDArray[np.bool_]
    weight: float = 1.0


def gather(
    gold: Sequence[GoldQuestion],
    fused: Sequence[Ranking],
    training: RankerTraining,
    corpus: Corpus,
    text_of: Sequence[int],
) -> Iterator[Candidates]:
    """The candidates of each question, in order; ``text_of`` numbers the texts of passages, by position."""
    for question, ranking in zip(gold, fused, strict=True):
        names = tuple(hit.passage.passage_id for hit in ranking.hits[: training.depth])
        texts = {text_of[corpus.position_of[name]] for name in question.gold if name in corpus.position_of}
        labels = np.array([name in question.gold for name in names], np.int8)
        copies = np.array([text_of[corpus.position_of[name]] in texts for name in names], np.bool_)
        features = ranking_features(question.question.text, ranking.hits, training.depth, corpus, training.further)
        yield Candidates(names, features, labels, ~copies | (labels > 0))


def train(candidates: Sequence[Candidates], training: RankerTraining) -> lightgbm.Booster:
    """The trees. Questions without a gold passage among their candidates are skipped; CorpusError if none has one."""
    import lightgbm

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
        weight=np.concatenate([np.full(int(one.taught.sum()), one.weight, np.float32) for one in useful]),
        feature_name=list(column_names(further=bool(training.further))),
    )
    return lightgbm.train(_parameters(training), data, num_boost_round=training.trees)


def scored(booster: lightgbm.Booster, candidates: Candidates) -> dict[str, float]:
    """The trees' score of each candidate, by passage id."""
    if not candidates.names:
        return {}
    scores = np.asarray(booster.predict(candidates.features, num_threads=1))
    return dict(zip(candidates.names, scores.tolist(), strict=True))


def write_ranker(booster: lightgbm.Booster, folder: Path, further: str = "") -> None:
    """Writes the trees as text, with the names of their features, and then MODEL.json.

    ``further`` names a ranking that they read in addition to bm25, context and dense.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RANKER_FILE).write_text(booster.model_to_string(importance_type="gain"), encoding="utf-8")
    write_manifest(folder, KIND, RANKER_FILE, further=further)


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


def out_of_fold(
    candidates: Sequence[Candidates],
    folds: Sequence[Fold],
    training: RankerTraining,
    elsewhere: Sequence[Candidates] = (),
) -> Iterator[list[Mapping[str, float]]]:
    """Each question's scores by trees trained on the other folds; complete after the last fold.

    The trees also learn from the candidates of other indexes, ``elsewhere``.
    """
    found: list[Mapping[str, float]] = [{} for _ in candidates]
    for fold in folds:
        booster = train([*(candidates[n] for n in fold.train), *elsewhere], training)
        for n in fold.test:
            found[n] = scored(booster, candidates[n])
        yield found


@dataclass(frozen=True, slots=True)
class RankingMeans:
    """A ranking's means out of fold, one per measure, and the p values of the differences from the fused one's."""

    name: str
    measures: tuple[str, ...]
    means: tuple[float, ...]
    p_values: tuple[float, ...] = ()

    @classmethod
    def of(cls, result: Result, before: Result | None = None) -> Self:
        """The means of ``result``, tested against ``before`` if that is given."""
        tests = (paired_test(result.values[name], before.values[name]) for name in MEASURES) if before else ()
        means = (result.means[name] for name in MEASURES)
        return cls(result.name, tuple(map(display_name, MEASURES)), tuple(means), tuple(one.p_value for one in tests))

    def __str__(self) -> str:
        parts = [f"{measure} {mean:.4f}" for measure, mean in zip(self.measures, self.means, strict=True)]
        if self.p_values:
            parts = [f"{part} (p = {p:.4f})" for part, p in zip(parts, self.p_values, strict=True)]
        return f"{self.name}: {', '.join(parts)}"


def figures_of(
    gold: Sequence[GoldQuestion],
    fused: Sequence[Ranking],
    scores: Sequence[Mapping[str, float]],
    depth: int,
    of: str = "",
) -> list[RankingMeans]:
    """The fused ranking, then the learned ranker at each weight against it; ``of`` names the questions."""
    lead = f"{of} ({len(gold):,}), " if of else ""
    before = measured(f"{lead}fused", gold, tuple(fused))
    figures = [RankingMeans.of(before)]
    for weight in WEIGHTS:
        config = RerankingConfig("learned", depth, weight)
        ranked = tuple(rerank(ranking, found, config) for ranking, found in zip(fused, scores, strict=True))
        figures.append(RankingMeans.of(measured(f"{lead}learned, weight {weight:g}", gold, ranked), before))
    return figures


def ranker_card(
    name: str,
    training: RankerTraining,
    booster: lightgbm.Booster,
    figures: Sequence[RankingMeans],
    *,
    n_questions: int,
    n_elsewhere: int,
    n_folds: int,
    command: str,
    sources: Sequence[Sequence[str]],
) -> ModelCard:
    """The card; ``sources`` is a table of the files of questions."""
    import lightgbm

    gains = sorted(zip(booster.feature_importance("gain"), booster.feature_name(), strict=True), reverse=True)
    best = ", ".join(feature.replace("_", " ") for _, feature in gains[:SHOWN_FEATURES])
    rankings = f"bm25, context, dense and {training.further}" if training.further else "bm25, context and dense"
    also = (
        f" The index needs that ranking: `ragqa index build … --also {training.further}`." if training.further else ""
    )
    elsewhere = f" and {n_elsewhere:,} about passages of other indexes" if n_elsewhere else ""
    heads = [cell for measure in figures[0].measures for cell in (measure, "p")]
    return ModelCard(
        title=f"{name}: learning to rank the best fused passages",
        use=f"LambdaMART (LightGBM {lightgbm.__version__}) over {booster.num_feature()} features that need no further "
        f"model: a passage's scores in the rankings {rankings}, those of its document and neighbours, and "
        "the words that it shares with the question, weighted by how rare they are. It holds no text of what it was "
        f"trained on. Use it: `ragqa ask QUESTION --reranker FOLDER --rerank-depth {training.depth} --rerank-weight "
        f"1`, FOLDER being this one.{also}",
        figures=[("ranking", *heads), *((figure.name, *_cells(figure)) for figure in figures)],
        figures_note=f"{n_questions:,} questions, each ranked by trees that learnt from none of its gold passages "
        f"({n_folds} folds by gold passage, equal texts counted as one); p by a paired permutation test against "
        '"fused". The weight is the share of the score that learning to rank has, the rest is the fused one\'s. The '
        f"trees in this folder have learnt from all questions{elsewhere}.",
        data=f"Settings: {settings_of(training)}. One thread, so that the same data give the same trees.",
        sources=sources,
        further=f"What the trees use most, by gain: {best}.",
        command=command,
        seed=training.seed,
        limits="It learns what gold passages of these questions look like, their length and the part of the corpus "
        "they come from included: on another corpus measure it before use (`ragqa eval retrieval --reranker FOLDER "
        "--rerank-weight 1`), or train one there.",
    )


def _cells(figure: RankingMeans) -> list[str]:
    """Each mean with its p value, which is blank for the baseline ranking."""
    p_values = [f"{p:.4f}" for p in figure.p_values] or [""] * len(figure.means)
    return [cell for mean, p in zip(figure.means, p_values, strict=True) for cell in (f"{mean:.4f}", p)]
