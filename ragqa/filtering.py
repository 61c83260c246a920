"""Splits a fused ranking into kept and dropped passages, with the reason for each. Pure.

A filter rule has several limits. Each limit alone would keep some number of passages; the smallest number applies.
The rule *limits* uses threshold, max drop and top-k (RIRAG 5.2, AUEB 4.1). The rule *expected F2* estimates from the
relevances how probable it is that each passage is relevant, and cuts the list where expected F2 is highest (the plug-in
rule of Ye et al. 2012, https://arxiv.org/abs/1206.4625). `RULES` maps ``FilteringConfig.method`` to a rule. A rule is
defined only here: the curve, the text beside the sliders, `ragqa tune` and records use its results.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final

from ragqa.english.reading import AskedDay, asked_day
from ragqa.settings.config import FilteringConfig
from ragqa.types import Candidate, Drop, Limit, Passage, Ranking, ScoredPassage, Selection, min_max_norm

PAIRED: Final = 0.2  # a passage that is read with a kept passage may lie this far below the threshold
CUT_WEIGHTS: Final = {"bias": -7.6, "relevance": 10.22, "others": -4.45, "lead": 2.83}  # `ragqa train cut`
BEST: Final = 10  # number of passages whose relevances expected F2 uses
_BETA: Final = 2


class Relevances(tuple[float, ...]):
    """Relevances in [0, 1], descending, with the values that limits look up, computed once for many filters."""

    @cached_property
    def negated(self) -> list[float]:
        """The negated relevances, ascending, for binary search."""
        return [-value for value in self]

    @cached_property
    def steepest(self) -> list[float]:
        """The largest fall up to the second passage, up to the third, and so on: ascending."""
        return list(accumulate((before - after for before, after in pairwise(self)), max))


class FilterRule(ABC):
    """A rule that cuts a descending list of relevances in [0, 1]. Ranks start at 1; the best passage is always kept.

    ``keeps`` maps each limit, by its setting in `FilteringConfig`, to the number of passages that it would keep alone:
    at least 1, unless the list is empty. ``end`` is the number of kept passages.
    """

    def __init__(self, relevances: Sequence[float], config: FilteringConfig, keeps: Mapping[str, int]) -> None:
        self.relevances, self.config, self.keeps = relevances, config, keeps
        self.end = min(keeps.values())

    @abstractmethod
    def kept(self, rank: int) -> str:
        """Why the passage of this rank is kept."""

    @abstractmethod
    def dropped(self, rank: int) -> tuple[Drop, str]:
        """Why the passage of this rank, beyond ``end``, is dropped."""

    def limit(self, setting: str) -> Limit:
        """The name of this limit and the reason why it keeps no more passages."""
        words = f"there are {len(self.relevances)} candidates"
        return Limit(setting, "top-k", f"top {self.config.top_k}", words)

    def limits(self) -> tuple[Limit, ...]:
        """Every limit with its effect on this list; () for an empty list."""
        total = len(self.relevances)
        return tuple(
            replace(self.limit(name), keeps=count, ends=count == self.end < total)
            for name, count in self.keeps.items()
            if total
        )

    def fall(self, rank: int) -> float:
        """How far this relevance lies below the previous one; for the first, below 1."""
        return (self.relevances[rank - 2] if rank > 1 else 1.0) - self.relevances[rank - 1]


class LimitRule(FilterRule):
    """Keeps passages while the relevance is at least the threshold, lies less than max drop below the previous one
    (max drop 1 turns this limit off), and fewer than top-k passages are kept.
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
            below = self.relevances[rank - 1] if rank <= total else 0.0
            found = f"of {below:.2f}" if round(below, 2) < config.threshold else f"just below {config.threshold:.2f}"
            why = f"rank {rank} has a relevance {found}" if rank <= total else ""
            return Limit(setting, "the threshold", f"threshold {config.threshold:.2f}", why, config.threshold)
        if config.max_drop >= 1:
            return Limit(setting, "max drop")
        label, fall = f"max drop {config.max_drop:.2f}", f"{self.fall(rank):.2f}" if rank <= total else ""
        if not fall:
            return Limit(setting, "max drop", label)
        return Limit(setting, "max drop", f"{label}: falls {fall}", f"rank {rank} falls {fall} below the one before")


class CutRule(FilterRule):
    """Keeps passages up to the rank where expected F2 is highest, at most top-k and at most ten."""

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
    """The kept passages, best first, the limits that ended the list, and the reason for each dropped passage.

    Scores are first re-normalised to [0, 1] over all hits. The best passage is always kept. An empty ranking gives an
    empty selection. Kept and dropped passages together are the ranking, in its order, except that passages not in force
    on the day of the question come last.

    Pairs stay together: a passage among the best top-k that is read with a kept passage (`ScorePart.via`) is also kept
    if its relevance is at least the threshold minus `PAIRED`.
    """
    if config.in_force and (gone := _not_in_force(ranking.hits, config.in_force)):
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


def as_asked(
    config: FilteringConfig, question: str, search: Callable[[], Iterable[Ranking]]
) -> tuple[FilteringConfig, AskedDay | None]:
    """The settings with the day that the question names, and that day, if a passage that is found has dates.

    ``search`` gives the rankings; it is called only if the question names a day.
    """
    asked = asked_day(question)
    if asked and any(hit.passage.days for ranking in search() for hit in ranking.hits):
        return replace(config, in_force=asked.day), asked
    return config, None


def standing(ranking: Ranking, day: str) -> Ranking:
    """The ranking without the passages that are not in force on this day; unchanged without a day."""
    return _without(ranking, _not_in_force(ranking.hits, day)) if day else ranking


def _without(ranking: Ranking, gone: Iterable[ScoredPassage]) -> Ranking:
    names = {hit.passage.passage_id for hit in gone}
    return replace(ranking, hits=tuple(hit for hit in ranking.hits if hit.passage.passage_id not in names))


def _not_in_force(hits: Sequence[ScoredPassage], day: str) -> list[ScoredPassage]:
    """The hits not in force on this day. A rule is in force until the next version of it among the hits is."""
    versions: dict[tuple[str, str], list[Passage]] = defaultdict(list)
    for passage in (hit.passage for hit in hits):
        if passage.number and passage.effective and passage.is_in_force(day):
            versions[passage.title, passage.number].append(passage)
    found = []
    for hit in hits:
        one = hit.passage
        later = [other.effective for other in versions[one.title, one.number] if _replaces(other, one)]
        dated = replace(hit, passage=replace(one, until=min(filter(None, (one.until, *later))))) if later else hit
        if not dated.passage.is_in_force(day):
            found.append(dated)
    return found


def _replaces(later: Passage, earlier: Passage) -> bool:
    """Whether a rule of the same title and number in another document is a later version: at least half of the words
    are the same.
    """
    if later.document_id == earlier.document_id or not "" < earlier.effective < later.effective:
        return False
    before, after = set(earlier.text.split()), set(later.text.split())
    return 2 * len(before & after) >= max(len(before), len(after))


def _in_force(ranking: Ranking, gone: Sequence[ScoredPassage], config: FilteringConfig) -> Selection:
    """The selection from the passages in force on the day of the question; the others are dropped and come last."""
    rest = _without(ranking, gone)
    selection = select(rest, config)
    dropped = (
        Candidate(hit, rank, 0.0, 0.0, Drop.NOT_IN_FORCE, f"dropped: {hit.passage.days}, not on {config.in_force}")
        for rank, hit in enumerate(gone, start=len(rest.hits) + 1)
    )
    return replace(selection, dropped=(*selection.dropped, *dropped))


def pairs(hits: Sequence[ScoredPassage]) -> dict[int, tuple[int, ...]]:
    """For each hit that is read with other hits: its place, from 0, and the places of those hits."""
    place = {hit.passage.passage_id: n for n, hit in enumerate(hits)}
    several = {n: tuple(place[part.via] for part in hit.parts if part.via in place) for n, hit in enumerate(hits)}
    return {n: others for n, others in several.items() if others}


def kept_places(rule: FilterRule, paired: Mapping[int, Collection[int]]) -> list[int]:
    """The places, from 0, of the passages kept under this rule and of those read with them (see `pairs`)."""
    lowest = rule.config.threshold - PAIRED
    joined = (
        n
        for n, others in paired.items()
        if rule.end <= n < rule.config.top_k and rule.relevances[n] >= lowest and min(others) < rule.end
    )
    return [*range(rule.end), *joined]


def features(relevances: Sequence[float]) -> list[dict[str, float]]:
    """The features that `CUT_WEIGHTS` weigh, for each of the best ten relevances, in [0, 1] and descending.

    They are the relevance itself, the mean of the second to the tenth relevance, and how far the first relevance lies
    above the second (1 if there is no second).
    """
    rest = relevances[1:BEST]
    others = math.fsum(rest) / len(rest) if rest else 0.0
    lead = relevances[0] - rest[0] if rest else 1.0
    return [{"relevance": relevance, "others": others, "lead": lead} for relevance in relevances[:BEST]]


def probabilities(relevances: Sequence[float], weights: Mapping[str, float] = CUT_WEIGHTS) -> list[float]:
    """The probability that each of the best ten passages is relevant, from descending relevances in [0, 1]."""
    rows = features(relevances)
    sums = (weights["bias"] + math.fsum(weights[name] * row[name] for name in row) for row in rows)
    return [1 / (1 + math.exp(-total)) for total in sums]


def expected_f2(likely: Sequence[float]) -> list[float]:
    """The expected F2 of keeping the first passage, the first two, and so on, if at least one passage is relevant."""
    wanted = max(1.0, math.fsum(likely))
    sums = (math.fsum(likely[:count]) for count in range(1, len(likely) + 1))
    return [(1 + _BETA**2) * right / (_BETA**2 * wanted + count) for count, right in enumerate(sums, start=1)]


def _highest(promised: Sequence[float]) -> int:
    """The number of passages with the highest expected F2, the smallest at a tie; 0 for an empty list."""
    return promised.index(max(promised)) + 1 if promised else 0


def with_added(selection: Selection, passage_ids: Collection[str]) -> Selection:
    """The selection with these dropped passages kept as well, in their places in the ranking."""
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
