"""Varies settings over questions: each question is retrieved once, and every point of the grid is arithmetic.

The figures are those of `ragqa eval retrieval` (R@10 of the ranking) and of `ragqa tune` (kept passages) with the
settings of the point; without gold, only the number of kept passages.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.retrieval.comparing import ids_of
from ragqa.evaluation.benchmarks.retrieval.rankings import FILE, Ranker, Rankings, ranking_cache
from ragqa.evaluation.measures import KEPT_FIGURES, Floats, kept_figures, measure_run
from ragqa.fusion import fuse, rerank
from ragqa.pipeline import Pipeline
from ragqa.plugins import registry
from ragqa.settings.config import SETTINGS, Config, FilteringConfig, FusionConfig, with_values
from ragqa.settings.paths import Paths
from ragqa.types import Ranking

WEIGHT: Final = "weight_"  # prefix of a ranking's name
FILTERS: Final = {one.key: one for one in SETTINGS if one.part == "filtering" and one.low is not None}
NAMES: Final = {name: one.label for name, one in FILTERS.items()}
MOST_POINTS: Final = 400
WEIGHTS: Final = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
VALUES: Final = {  # that a setting takes; weights take `WEIGHTS`
    "threshold": (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "max_drop": (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 1.0),
    "top_k": tuple(map(float, range(1, 31))),
}
_Key = tuple[str, tuple[tuple[str, float], ...]]  # of a fusion, whose weights are a dict
_NO_GOLD: Final = frozenset({"\0"})  # no passage has this id: everything but `kept` is 0 and left out


def name_of(setting: str) -> str:
    """The label of a setting."""
    return NAMES.get(setting, f"Weight of {registry.label(setting.removeprefix(WEIGHT))}")


@dataclass(frozen=True, slots=True)
class Axis:
    """A numeric setting of the filter, or weight_RANKING as on a slider, and its values."""

    name: str
    values: tuple[float, ...]


def axes_of(names: Sequence[str], config: Config) -> tuple[Axis, ...]:
    """An axis for each of these settings, with its present value among the others."""
    return tuple(Axis(name, around(VALUES.get(name, WEIGHTS), present_value(config, name))) for name in names)


@dataclass(frozen=True, slots=True)
class Point:
    """The values of a point by setting, and its means over the questions.

    ``recall_at_10`` is R@10 of the ranking before the filter; ``recall``, ``precision`` and ``f2`` are of the kept
    passages, all in [0, 1] and None without gold; ``kept`` is in passages.
    """

    values: dict[str, float]
    kept: float
    recall_at_10: float | None = None
    recall: float | None = None
    precision: float | None = None
    f2: float | None = None

    @property
    def words(self) -> str:
        """Its values with the labels of their settings."""
        return ", ".join(f"{name_of(name).lower()} {value:g}" for name, value in self.values.items())


@dataclass(frozen=True, slots=True)
class Sweep:
    """Every point of the grid, the first axis varying slowest, and the point of the current settings."""

    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    present: Point
    n_questions: int
    has_gold: bool

    def best(self, measure: str = "f2") -> Point:
        """The point with the highest value of this measure; at a tie the one that keeps fewest, then the first."""
        return max(self.points, key=lambda one: (getattr(one, measure) or 0.0, -one.kept))


def swept(
    pipeline: Pipeline,
    config: Config,
    axes: Sequence[Axis],
    questions: Sequence[GoldQuestion],
    unit: GoldUnit = "passage",
    paths: Paths | None = None,
) -> Generator[tuple[int, int], None, Sweep]:
    """Yields steps done and in total; returns the sweep. Rankings are cached in ``paths``.

    ``config`` has the settings that are not varied; ``pipeline`` has its index, retrievers and reranker. If weights are
    varied, there is no reranking. Either all or no questions have gold. Raises ConfigError for unknown settings or too
    many points, and what ranking raises.
    """
    grid = _grid(config, axes)
    has_gold = all(one.gold for one in questions)
    gold = [one if has_gold else replace(one, gold=_NO_GOLD) for one in questions]
    cache = ranking_cache(paths.home / FILE) if paths else None
    ranker = Ranker(pipeline.index, pipeline.retrievers, config, cache)
    fusions = list(dict.fromkeys(_key(one.fusion) for one in grid))
    total = len(gold) * (1 + len(fusions))
    rows: list[Rankings] = []
    for done, one in enumerate(gold, start=1):
        rows.append(ranker.rank(one.question.text).rankings)
        yield done, total
    by_fusion: dict[_Key, tuple[list[float], Floats]] = {}
    varies_weights = len(fusions) > 1
    for number, key in enumerate(fusions):
        members = [one for one in grid if _key(one.fusion) == key]
        rankings = []
        for done, (one, row) in enumerate(zip(gold, rows, strict=True), start=1):
            ranking = fuse(row, members[0].fusion)
            rankings.append(ranking if varies_weights else _reranked(pipeline, ranker, one, ranking, config))
            yield len(gold) * (1 + number) + done, total
        by_fusion[key] = _figures(gold, rankings, [one.filtering for one in members], unit)
    columns = {key: iter(figures.T) for key, (_, figures) in by_fusion.items()}
    found = []
    for point in grid:
        key = _key(point.fusion)
        found.append(_point(point.values, by_fusion[key][0], next(columns[key]), has_gold=has_gold))
    return Sweep(tuple(axes), tuple(found[:-1]), found[-1], len(gold), has_gold)


@dataclass(frozen=True, slots=True)
class _Setting:
    values: dict[str, float]
    fusion: FusionConfig
    filtering: FilteringConfig


def _key(fusion: FusionConfig) -> _Key:
    return fusion.method, tuple(sorted(fusion.weights.items()))


def _grid(config: Config, axes: Sequence[Axis]) -> list[_Setting]:
    """Every point, with the current settings last."""
    for axis in axes:
        if axis.name not in FILTERS and not axis.name.startswith(WEIGHT):
            msg = f"expected {', '.join(FILTERS)} or {WEIGHT}RANKING, got {axis.name!r}; choose one of them"
            raise ConfigError(msg)
    count = int(np.prod([len(axis.values) for axis in axes]))
    if not 0 < count <= MOST_POINTS:
        msg = f"expected 1 to {MOST_POINTS} points, got {count:,}; vary one setting less, or in larger steps"
        raise ConfigError(msg)
    points: list[dict[str, float]] = [{}]
    for axis in axes:
        points = [{**point, axis.name: value} for point in points for value in axis.values]
    present = {axis.name: present_value(config, axis.name) for axis in axes}
    return [*(_setting(config, point) for point in points), _Setting(present, config.fusion, config.filtering)]


def effective(values: Mapping[str, Any]) -> dict[str, Any]:
    """These values, with the values of other settings that they need to take effect."""
    under = {one.under: one for name in values if (one := FILTERS.get(name)) and one.under}
    choices = {one.key: one.choices for one in SETTINGS}
    return {name: next(filter(one.when, choices[name])) for name, one in under.items()} | dict(values)


def present_value(config: Config, name: str) -> float:
    """The current value of a setting that can be varied; weights have four decimals."""
    if name in FILTERS:
        return float(getattr(config.filtering, name))
    return round(config.fusion.weights.get(name.removeprefix(WEIGHT), 0.0), 4)


def _setting(config: Config, values: dict[str, float]) -> _Setting:
    weights = {name.removeprefix(WEIGHT): value for name, value in values.items() if name.startswith(WEIGHT)}
    own = {name: value for name, value in values.items() if name in FILTERS}
    return _Setting(values, with_weights(config.fusion, weights), with_values(config, effective(own)).filtering)


def with_weights(fusion: FusionConfig, weights: dict[str, float]) -> FusionConfig:
    """The fusion with these weights, normalised to sum to 1; if all are 0, they count equally."""
    if not weights:
        return fusion
    shares = {**fusion.weights, **weights}
    return FusionConfig.of(fusion.method, **(shares if any(shares.values()) else dict.fromkeys(shares, 1.0)))


def _reranked(pipeline: Pipeline, ranker: Ranker, one: GoldQuestion, ranking: Ranking, config: Config) -> Ranking:
    if not pipeline.models.reranker or not config.reranking.model:
        return ranking
    scores, _ = ranker.read_again(pipeline.models.reranker, one.question.text, ranking, config.reranking.depth)
    return rerank(ranking, scores, config.reranking)


def _figures(
    gold: Sequence[GoldQuestion], rankings: Sequence[Ranking], filters: Sequence[FilteringConfig], unit: GoldUnit
) -> tuple[list[float], Floats]:
    """R@10 of each question, and `KEPT_FIGURES` of each filter averaged over them: (n_figures, n_filters)."""
    ids = [ids_of(ranking, unit) for ranking in rankings]
    recall = measure_run([one.gold for one in gold], ids, ("R@10",))["R@10"]
    figures = list(kept_figures(gold, rankings, filters, 2.0, unit))
    return recall, np.mean(figures, axis=0)


def _point(values: dict[str, float], recall_at_10: Sequence[float], figures: Floats, *, has_gold: bool) -> Point:
    by_name = dict(zip(KEPT_FIGURES, figures.tolist(), strict=True))
    if not has_gold:
        return Point(values, by_name["kept"])
    return Point(
        values, by_name["kept"], float(np.mean(recall_at_10)), by_name["recall"], by_name["precision"], by_name["F"]
    )


def around(values: Sequence[float], present: float) -> tuple[float, ...]:
    """These values with the nearest one replaced by the current one, so that the current settings are on the grid."""
    nearest = min(range(len(values)), key=lambda n: abs(values[n] - present))
    return tuple(sorted({*values[:nearest], present, *values[nearest + 1 :]}))
