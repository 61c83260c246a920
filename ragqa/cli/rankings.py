"""Rankings for tuning and training, made or read back under a bar: those that `ragqa eval retrieval` measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ragqa import loading
from ragqa.cli.output import progress_bar, stderr
from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.retrieval.comparing import Result, measured
from ragqa.evaluation.benchmarks.retrieval.rankings import Rankings, open_ranker, rank_all, reread_all
from ragqa.fusion import fuse, rerank
from ragqa.index import Index
from ragqa.lab.questions import Fold
from ragqa.retrieval.ranking import adding_command, fitting_fusion
from ragqa.settings.config import Config, FusionConfig, RerankingConfig
from ragqa.settings.paths import Paths
from ragqa.types import Ranking
from ragqa.types.streams import returned


def rankings_of(
    gold: Sequence[GoldQuestion], index: Index, config: Config
) -> tuple[list[Rankings], dict[str, float | None]]:
    """Each retriever's rankings, ``columns[r][q]``, and its median milliseconds per question where it had to rank."""
    with stderr().status("Loading the encoder"):
        ranker = open_ranker(replace(config, index=index.name), Paths.from_env())
    with progress_bar() as bar:
        task = bar.add_task("Retrieving", total=len(gold))
        return returned(rank_all(ranker, gold), lambda done: bar.update(task, completed=done))


class Stacking(NamedTuple):
    """A further ranking, the rankings of the index that stand for it in each fold, if any, and the fusion of all."""

    further: str = ""
    stacked: Sequence[str] = ()
    fusion: FusionConfig | None = None  # None: the default

    def check(self, index: Index, n_folds: int) -> None:
        """Raises ConfigError where this index lacks one of the rankings, or not every fold has one."""
        if self.stacked and not (self.further and len(set(self.stacked)) == len(self.stacked) == n_folds):
            raise ConfigError(
                f"--stacked names one ranking of the index for each of the {n_folds} folds, in their order, and "
                f"--further what they stand for; got {len(self.stacked)}, and --further {self.further!r}"
            )
        has = index.manifest.retrievers
        lacking = [name for name in self.stacked or filter(None, [self.further]) if name not in has]
        if lacking:
            raise ConfigError(
                f"the index has no ranking {lacking[0]!r}, only {', '.join(has)}; build it with "
                f"`{adding_command(lacking, index.name)}`"
            )


def fused_rankings(
    gold: Sequence[GoldQuestion], index: Index, reading: Stacking | None = None, folds: Sequence[Fold] = ()
) -> list[Ranking]:
    """The fused ranking of each question; those made are stored as `ragqa eval retrieval` stores rankings.

    Where ``reading`` is stacked, each of its rankings stands for the further one in the questions that its fold tests.
    Raises ConfigError where the index lacks one of them.
    """
    reading, manifest = reading or Stacking(), index.manifest
    reading.check(index, len(folds))
    own = [name for name in manifest.retrievers if name not in reading.stacked]
    rankings = [*own, reading.further] if reading.stacked else own
    fusion = fitting_fusion(reading.fusion or FusionConfig(), rankings, manifest.encoder, index.name)
    with stderr().status("Loading the encoder"):
        ranker = open_ranker(Config(index.name), Paths.from_env())
    tested = zip((fold.test for fold in folds), reading.stacked, strict=True) if reading.stacked else [(None, "")]
    found: dict[int, Ranking] = {}
    with progress_bar() as bar:
        task = bar.add_task("Retrieving", total=len(gold))
        for places, read in tested:
            of_fold = ranker.without({*reading.stacked} - {read})
            for n in range(len(gold)) if places is None else places:
                rows = of_fold.rank(gold[n].question.text).rankings
                found[n] = fuse(
                    [replace(one, retriever=reading.further) if one.retriever == read else one for one in rows], fusion
                )
                bar.update(task, completed=len(found))
    return [found[n] for n in range(len(gold))]


def reranked_results(
    questions: Sequence[GoldQuestion],
    index: Index,
    rankings: Rankings,
    reranking: RerankingConfig,
    weights: Sequence[float],
    unit: GoldUnit = "passage",
) -> tuple[list[Result], float | None]:
    """A result per weight, and the median milliseconds of a question, None where every score was cached.

    Raises ModelError where there is no such reranker or it gives no good answer, and ConfigError for a weight that is
    none or a server's key that is missing.
    """
    chosen = [replace(reranking, weight=weight) for weight in dict.fromkeys(weights)]
    with stderr().status("Loading the reranker"):
        loaded = loading.load_reranker(reranking.model)
        ranker = open_ranker(Config(index.name), Paths.from_env())
    with progress_bar() as bar:
        task = bar.add_task("Reranking", total=len(questions))
        steps = reread_all(ranker, loaded, questions, rankings, reranking.depth)
        scores, milliseconds = returned(steps, lambda done: bar.update(task, completed=done))
    results = []
    for config in chosen:
        reranked = tuple(rerank(ranking, found, config) for ranking, found in zip(rankings, scores, strict=True))
        results.append(measured(f"fused, reranked {config.weight:g}", questions, reranked, unit))
    return results, milliseconds
