"""The search behind `ragqa tune`: every way to rank and to filter measured, the best by cross-validation, with bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragqa.cli.command_line import command_line
from ragqa.cli.evaluate_retrieval import rankings_of
from ragqa.cli.output import progress_bar
from ragqa.config import Config, FilteringConfig, FusionConfig, RetrievalConfig
from ragqa.errors import ConfigError

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion, GoldUnit
    from ragqa.evaluation.filter_tuning import TunedFilter
    from ragqa.evaluation.folds import Floats, Fold
    from ragqa.evaluation.retrieval import Rankings
    from ragqa.evaluation.tuning import Setting, Tuned
    from ragqa.indexing import Index

BESIDE = "R@10"  # reported with the measure that decides


@dataclass(frozen=True, slots=True)
class Search:
    """Among what is chosen, and by what. Raises ConfigError for what is wrong, before anything is ranked."""

    indexes: tuple[str, ...]  # of one corpus
    measure: str  # decides the ranking
    beta: float  # of the F that decides the filter
    depths: tuple[int, ...]  # candidates per ranking
    folds: int
    step: float  # between two weights
    seed: int  # of the folds and of the test

    def __post_init__(self) -> None:
        from ragqa.evaluation import tuning
        from ragqa.evaluation.filter_tuning import check_beta

        tuning.check_measure(self.measure)
        check_beta(self.beta)
        tuning.candidates(("any",), self.step)
        for depth in self.depths:
            RetrievalConfig(top_k=depth)

    @property
    def measures(self) -> tuple[str, ...]:
        """The one that decides first."""
        return tuple(dict.fromkeys((self.measure, BESIDE)))

    def command(self, questions: Path, write: Path) -> str:
        """The command that finds the same again."""
        given = {"index": self.indexes, "questions": questions, "measure": self.measure, "beta": self.beta}
        given |= {"depth": self.depths, "folds": self.folds, "step": self.step, "seed": self.seed, "write": write}
        return command_line("tune", given)


@dataclass(frozen=True, slots=True)
class Found:
    """What was chosen. ``setting`` is the one that the final filter was tuned for."""

    ranked: Tuned
    filtered: TunedFilter
    setting: Setting
    n_rankings: int  # among which was chosen, the default too
    n_filters: int


def searched(
    search: Search,
    opened: dict[str, Index],
    gold: tuple[GoldQuestion, ...],
    unit: GoldUnit,
    parts: Sequence[Fold],
) -> Found:
    """The ranking, then the filter: for the tuned ranking, or the default one where tuning found none better."""
    from ragqa.evaluation.filter_tuning import filters, tune_filter
    from ragqa.evaluation.tuning import tune as tune_ranking

    columns, settings, values = _measured(search, opened, gold, unit)
    ranked = tune_ranking(values, settings, search.measures, parts, search.seed)
    by_fold = [*(fold.chosen for fold in ranked.folds), ranked.final]
    used = by_fold if ranked.test.is_better else [settings[-1]] * len(by_fold)
    candidates = filters(FilteringConfig())
    figures = _figures(used, columns, gold, search.beta, unit)
    filtered = tune_filter(figures, candidates, parts, search.beta, search.seed)
    return Found(ranked, filtered, used[-1], len(settings), len(candidates))


def _measured(
    search: Search, opened: dict[str, Index], gold: tuple[GoldQuestion, ...], unit: GoldUnit
) -> tuple[dict[str, list[Rankings]], list[Setting], Floats]:
    """Each index's rankings, every way to rank with the default last, and the value of each for each question."""
    import numpy as np

    from ragqa.evaluation.tuning import MOST_CANDIDATES, Setting, candidates, cut, measured

    config = Config.from_env()
    default = Setting(next(iter(opened)), config.retrieval.top_k, FusionConfig())
    deep = replace(config, retrieval=replace(config.retrieval, top_k=max(*search.depths, default.depth)))
    columns = {name: rankings_of(gold, index, deep)[0] for name, index in opened.items()}
    grids = {name: candidates([one[0].retriever for one in found], search.step) for name, found in columns.items()}
    n_all = len(search.depths) * sum(map(len, grids.values()))
    if n_all > MOST_CANDIDATES:
        wanted = f"at most {MOST_CANDIDATES:,} ways to rank, which fit in memory"
        msg = f"--step, --depth and --index must give {wanted}, got {n_all:,}; take a larger step or fewer depths"
        raise ConfigError(msg)
    settings, values = [], []
    with progress_bar() as bar:
        task = bar.add_task(f"{n_all:,} ways to rank", total=len(gold) * (len(search.depths) * len(opened) + 1))
        blocks = [(name, n, grids[name]) for name in opened for n in search.depths]
        for name, n, fusions in (*blocks, (default.index, default.depth, (default.fusion,))):
            rows = []
            for row in measured(gold, cut(columns[name], n), fusions, search.measures, unit):
                rows.append(row)
                bar.advance(task)
            settings += [Setting(name, n, fusion) for fusion in fusions]
            values.append(np.stack(rows))
    return columns, settings, np.concatenate(values, axis=2)


def _figures(
    wanted: list[Setting],
    columns: dict[str, list[Rankings]],
    gold: tuple[GoldQuestion, ...],
    beta: float,
    unit: GoldUnit,
) -> list[Floats]:
    """What every filter keeps under each of these settings: for `tune_filter`."""
    import numpy as np

    from ragqa.evaluation.filter_tuning import filters, kept_figures
    from ragqa.evaluation.tuning import cut
    from ragqa.fusion import fuse

    chosen = [setting for n, setting in enumerate(wanted) if setting not in wanted[:n]]
    figures = []
    with progress_bar() as bar:
        for setting in bar.track(chosen, description="filters"):
            rankings = zip(*cut(columns[setting.index], setting.depth), strict=True)
            fused = (fuse(found, setting.fusion) for found in rankings)
            figures.append(np.stack(list(kept_figures(gold, fused, filters(FilteringConfig()), beta, unit))))
    return [figures[chosen.index(setting)] for setting in wanted]
