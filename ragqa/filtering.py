"""A fused ranking -> what is kept, what ended the list, and for everything else the reason it fell. Pure.

A rule says how many passages each of its limits keeps by itself; the list ends with the first of them. *Limits*:
threshold, max drop and top-k (RIRAG 5.2, AUEB 4.1). *Expected F2*: from how relevance falls off each passage gets a
probability of being relevant, and the list is cut where the F2 that these probabilities promise is highest (the plug-in
rule of Ye et al. 2012, https://arxiv.org/abs/1206.4625). `RULES` has both by ``FilteringConfig.method``. A rule is
changed here alone: the curve, the words beside the sliders, `ragqa tune` and records read what it gives.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final

from ragqa.settings.config import FilteringConfig
from ragqa.types import Candidate, Drop, Limit, Ranking, ScoredPassage, Selection, min_max_norm

PAIRED: Final = 0.2  # how far below the threshold a passage may lie that is read with a kept one
CUT_WEIGHTS: Final = {"bias": -7.6, "relevance": 10.22, "others": -4.45, "lead": 2.83}  # `ragqa train cut`
BEST: Final = 10  # passages whose relevances say how many of them answer
_BETA: Final = 2


class Relevances(tuple[float, ...]):
    """Relevances, descending and in [0, 1], with what limits look up in them, computed once for many filters."""

    @cached_property
    def negated(self) -> list[float]:
        """Ascending."""
        return [-value for value in self]

    @cached_property
    def steepest(self) -> list[float]:
        """The largest fall to the second, to the second or third, ...: ascending."""
        return list(accumulate((before - after for before, after in pairwise(self)), max))


class FilterRule(ABC):
    """What ends a list of relevances, descending and in [0, 1]. Ranks count from 1; the best passage is always kept.

    ``keeps`` says how many each limit would keep by itself, at least 1 of any, by the setting of `FilteringConfig` that
    it is; ``end`` is how many are kept.
    """

    def __init__(self, relevances: Sequence[float], config: FilteringConfig, keeps: Mapping[str, int]) -> None:
        self.relevances, self.config, self.keeps = relevances, config, keeps
        self.end = min(keeps.values())

    @abstractmethod
    def kept(self, rank: int) -> str:
        """Why this one is kept."""

    @abstractmethod
    def dropped(self, rank: int) -> tuple[Drop, str]:
        """Why this one, behind the end, is not."""

    def limit(self, setting: str) -> Limit:
        """What this limit is called and why it keeps no more."""
        words = f"there are {len(self.relevances)} candidates"
        return Limit(setting, "top-k", f"top {self.config.top_k}", words)

    def limits(self) -> tuple[Limit, ...]:
        """Every limit, with what it does to this list; () of an empty one."""
        total = len(self.relevances)
        return tuple(
            replace(self.limit(name), keeps=count, ends=count == self.end < total)
            for name, count in self.keeps.items()
            if total
        )

    def fall(self, rank: int) -> float:
        """How far this one lies below the one before it; the first below 1."""
        return (self.relevances[rank - 2] if rank > 1 else 1.0) - self.relevances[rank - 1]


class LimitRule(FilterRule):
    """A passage is kept while its relevance is at least the threshold, it lies less than max drop below the one before
    (max drop 1: no such limit), and fewer than top-k are kept.
    """

    def __init__(self, relevances: Sequence[float], config: FilteringConfig) -> None:
        curve = relevances if isinstance(relevances, Relevances) else Relevances(relevances)
        total = len(curve)
        least = max(1, bisect_right(curve.negated, -config.threshold))
        fallen = 1 + bisect_left(curve.steepest, config.max_drop) if config.max_drop < 1 else total
        keeps = {"threshold": min(least, total), "max_drop": min(fallen, total), "top_k": min(config.top_k, total)}
        super().__init__(curve, config, keeps)

    def kept(self, rank: int) -> str:
        if rank == 1:
            return "the best passage always is"
        relevance = self.relevances[rank - 1]
        return f"relevance {relevance:.3f} ≥ {self.config.threshold:.2f}, fall {self.fall(rank):.3f}"

    def dropped(self, rank: int) -> tuple[Drop, str]:
        config, fallen = self.config, self.keeps["max_drop"] + 1
        if rank > self.keeps["threshold"]:
            relevance = self.relevances[rank - 1]
            words = f"relevance {relevance:.3f} is below the threshold {config.threshold:.2f}"
            return Drop.BELOW_THRESHOLD, words
        if rank == fallen:
            words = f"falls {self.fall(rank):.3f} below the passage before, max drop is {config.max_drop:.2f}"
            return Drop.AFTER_MAX_DROP, words
        if rank > fallen:
            return Drop.AFTER_MAX_DROP, f"comes after the fall at rank {fallen} (max drop {config.max_drop:.2f})"
        return Drop.BEYOND_TOP_K, f"rank {rank} is beyond the top {config.top_k}"

    def limit(self, setting: str) -> Limit:
        config, total, rank = self.config, len(self.relevances), self.keeps[setting] + 1
        if setting == "top_k":
            return super().limit(setting)
        if setting == "threshold":
            why = f"rank {rank} has a relevance of {self.relevances[rank - 1]:.2f}" if rank <= total else ""
            return Limit(setting, "the threshold", f"threshold {config.threshold:.2f}", why, config.threshold)
        if config.max_drop >= 1:
            return Limit(setting, "max drop")
        label, fall = f"max drop {config.max_drop:.2f}", f"{self.fall(rank):.2f}" if rank <= total else ""
        if not fall:
            return Limit(setting, "max drop", label)
        return Limit(setting, "max drop", f"{label}: falls {fall}", f"rank {rank} falls {fall} below the one before")


class CutRule(FilterRule):
    """The passages up to where expected F2 is highest are kept, at most top-k and at most ten."""

    def __init__(
        self, relevances: Sequence[float], config: FilteringConfig, weights: Mapping[str, float] = CUT_WEIGHTS
    ) -> None:
        self._likely = probabilities(relevances, weights)
        self._promised = expected_f2(self._likely)
        keeps = {"filter_method": _highest(self._promised), "top_k": min(config.top_k, len(relevances))}
        super().__init__(relevances, config, keeps)

    def kept(self, rank: int) -> str:
        return ("the best passage always is, " if rank == 1 else "") + self._chance(rank)

    def dropped(self, rank: int) -> tuple[Drop, str]:
        most = min(self.config.top_k, BEST)
        if rank > most:
            return Drop.BEYOND_TOP_K, f"rank {rank} is beyond the top {most}"
        promised = self._promised
        highest = f"expected F2 is highest after {self.end} ({promised[self.end - 1]:.2f})"
        return Drop.AFTER_CUT, f"{self._chance(rank)}; {highest}, with this one {promised[rank - 1]:.2f}"

    def limit(self, setting: str) -> Limit:
        if setting == "top_k":
            return super().limit(setting)
        rank = self.keeps[setting] + 1
        why = f"dropped: {self.dropped(rank)[1]}" if rank <= len(self.relevances) else ""
        return Limit(setting, "expected F2", "expected F2", why)

    def _chance(self, rank: int) -> str:
        known = rank <= len(self._likely)
        return f"{self._likely[rank - 1]:.2f} likely to be relevant" if known else f"rank {rank}"


RULES: Final[dict[str, Callable[[Sequence[float], FilteringConfig], FilterRule]]] = {
    "limits": LimitRule,
    "expected-f2": CutRule,
}


def select(ranking: Ranking, config: FilteringConfig) -> Selection:
    """The passages an answer may be written from, best first, what ended the list, and why every other hit fell.

    Scores are first re-normalised to [0, 1] over all hits. The best passage is always kept. An empty ranking gives an
    empty selection. Kept and dropped together are the ranking, in its order, but for what is not in force on the day
    that is asked about: it stands last.

    Pairs stay together: a passage among the best top-k that is to be read with a kept one (`ScorePart.via`) is kept as
    well where its relevance is at least the threshold less `PAIRED`.
    """
    if gone := [hit for hit in ranking.hits if config.in_force and not hit.passage.is_in_force(config.in_force)]:
        return _in_force(ranking, gone, config)
    relevances = min_max_norm([hit.score for hit in ranking.hits])
    rule = RULES[config.method](relevances, config)
    names = {hit.passage.passage_id for hit in ranking.hits[: rule.end]}
    places = kept_places(rule, pairs(ranking.hits))
    candidates = []
    for rank, (hit, relevance) in enumerate(zip(ranking.hits, relevances, strict=True), start=1):
        drop, words = (None, f"kept: {rule.kept(rank)}") if rank <= rule.end else rule.dropped(rank)
        words = words if drop is None else f"dropped: {words}"
        if drop and rank - 1 in places:
            (*_, note) = (part.note for part in hit.parts if part.via in names)
            drop, words = None, f"kept: {note} and read with it; by the filter {words}"
        candidates.append(Candidate(hit, rank, relevance, rule.fall(rank), drop, words))
    kept = tuple(candidate for candidate in candidates if candidate.drop is None)
    return Selection(kept, tuple(candidate for candidate in candidates if candidate.drop is not None), rule.limits())


def _in_force(ranking: Ranking, gone: Sequence[ScoredPassage], config: FilteringConfig) -> Selection:
    """The selection from what is in force on the day asked about; what is not stands behind all else, as dropped."""
    standing = tuple(hit for hit in ranking.hits if hit not in gone)
    selection = select(replace(ranking, hits=standing), config)
    dropped = (
        Candidate(hit, rank, 0.0, 0.0, Drop.NOT_IN_FORCE, f"dropped: {hit.passage.days}, not on {config.in_force}")
        for rank, hit in enumerate(gone, start=len(standing) + 1)
    )
    return replace(selection, dropped=(*selection.dropped, *dropped))


def pairs(hits: Sequence[ScoredPassage]) -> dict[int, tuple[int, ...]]:
    """For those of the hits that are to be read with others, by place from 0, the places of these."""
    place = {hit.passage.passage_id: n for n, hit in enumerate(hits)}
    several = {n: tuple(place[part.via] for part in hit.parts if part.via in place) for n, hit in enumerate(hits)}
    return {n: others for n, others in several.items() if others}


def kept_places(rule: FilterRule, paired: Mapping[int, Collection[int]]) -> list[int]:
    """The places, from 0, of all that is kept under this rule, what is read with it (see `pairs`) included."""
    lowest = rule.config.threshold - PAIRED
    joined = (
        n
        for n, others in paired.items()
        if rule.end <= n < rule.config.top_k and rule.relevances[n] >= lowest and min(others) < rule.end
    )
    return [*range(rule.end), *joined]


def features(relevances: Sequence[float]) -> list[dict[str, float]]:
    """What `CUT_WEIGHTS` weigh of each of the best ten relevances, in [0, 1] and descending.

    Its own, the mean of those of the second to the tenth, and how far the first lies above the second (1: there is no
    second).
    """
    rest = relevances[1:BEST]
    others = math.fsum(rest) / len(rest) if rest else 0.0
    lead = relevances[0] - rest[0] if rest else 1.0
    return [{"relevance": relevance, "others": others, "lead": lead} for relevance in relevances[:BEST]]


def probabilities(relevances: Sequence[float], weights: Mapping[str, float] = CUT_WEIGHTS) -> list[float]:
    """How likely each of the best ten passages is to be relevant, by their descending relevances in [0, 1]."""
    rows = features(relevances)
    sums = (weights["bias"] + math.fsum(weights[name] * row[name] for name in row) for row in rows)
    return [1 / (1 + math.exp(-total)) for total in sums]


def expected_f2(likely: Sequence[float]) -> list[float]:
    """The F2 that keeping the first, the first two, ... promises, where at least one passage is relevant."""
    wanted = max(1.0, math.fsum(likely))
    sums = (math.fsum(likely[:count]) for count in range(1, len(likely) + 1))
    return [(1 + _BETA**2) * right / (_BETA**2 * wanted + count) for count, right in enumerate(sums, start=1)]


def _highest(promised: Sequence[float]) -> int:
    """After how many this is highest, the first of equals; 0 of none."""
    return promised.index(max(promised)) + 1 if promised else 0


def with_added(selection: Selection, passage_ids: Collection[str]) -> Selection:
    """The selection with these of the dropped passages kept as well, in their places in the ranking."""
    added = [
        replace(
            other, drop=None, explanation=f"kept: it holds a sentence of the answer; by the filter {other.explanation}"
        )
        for other in selection.dropped
        if other.passage.passage_id in passage_ids
    ]
    kept = sorted((*selection.kept, *added), key=lambda candidate: candidate.rank)
    dropped = tuple(other for other in selection.dropped if other.passage.passage_id not in passage_ids)
    return replace(selection, kept=tuple(kept), dropped=dropped) if added else selection
