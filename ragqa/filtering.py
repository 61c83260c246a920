"""A fused ranking -> what is kept, and for everything else the reason it fell. Pure.

Two methods. *Limits*: threshold, max drop and top-k (RIRAG 5.2, AUEB 4.1). *Expected F2*: from how relevance falls off
each passage gets a probability of being relevant, and the list is cut where the F2 that these probabilities promise is
highest (the plug-in rule of Ye et al. 2012, https://arxiv.org/abs/1206.4625). What both keep for many filters at once
is counted by `ragqa.evaluation.filter_measures.kept_figures`: change it too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ragqa.settings.config import FilteringConfig
from ragqa.types import Candidate, Drop, Ranking, ScoredPassage, Selection
from ragqa.types.normalisation import min_max_norm

PAIRED: Final = 0.2  # how far below the threshold a passage may lie that is read with a kept one
CUT_WEIGHTS: Final = {"bias": -7.6, "relevance": 10.22, "others": -4.45, "lead": 2.83}  # `ragqa train cut`
BEST: Final = 10  # passages whose relevances say how many of them answer
_BETA: Final = 2


def select(ranking: Ranking, config: FilteringConfig) -> Selection:
    """The passages an answer may be written from, best first, and every other hit with the reason it fell.

    Scores are first re-normalised to [0, 1] over all hits. Going down the ranking, a passage is kept while its
    relevance is at least the threshold, it lies less than max drop below the previous one (max drop 1: no such rule),
    and fewer than top-k are kept; the first that fails ends the list. By the method ``expected-f2`` the first `cut`
    passages are kept. The best passage is always kept. An empty ranking gives an empty selection. Kept and dropped
    together are the ranking, in its order.

    Pairs stay together: a passage among the best top-k that is to be read with a kept one (`ScorePart.via`) is kept as
    well where its relevance is at least the threshold less `PAIRED`.
    """
    relevances = min_max_norm([hit.score for hit in ranking.hits])
    judged = _by_expected_f2 if config.method == "expected-f2" else _by_limits
    candidates = judged(ranking.hits, relevances, config)
    kept = tuple(one for one in candidates if one.drop is None)
    return _with_pairs(Selection(kept, tuple(one for one in candidates if one.drop is not None)), config)


def features(relevances: Sequence[float]) -> list[dict[str, float]]:
    """What `CUT_WEIGHTS` weigh of each of the best ten relevances, in [0, 1] and descending.

    Its own, the mean of those of the second to the tenth, and how far the first lies above the second (1: there is no
    second).
    """
    rest = relevances[1:BEST]
    others = math.fsum(rest) / len(rest) if rest else 0.0
    lead = relevances[0] - rest[0] if rest else 1.0
    return [{"relevance": one, "others": others, "lead": lead} for one in relevances[:BEST]]


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


def cut(relevances: Sequence[float], top_k: int, weights: Mapping[str, float] = CUT_WEIGHTS) -> int:
    """How many passages expected F2 keeps of these descending relevances: 1 to top-k, at most 10; 0 of none."""
    promised = expected_f2(probabilities(relevances, weights))[:top_k]
    return promised.index(max(promised)) + 1 if promised else 0


def _by_expected_f2(
    hits: Sequence[ScoredPassage], relevances: Sequence[float], config: FilteringConfig
) -> list[Candidate]:
    likely = probabilities(relevances)
    promised = expected_f2(likely)
    count = cut(relevances, config.top_k)
    found = []
    for rank, (hit, relevance) in enumerate(zip(hits, relevances, strict=True), start=1):
        fall = (relevances[rank - 2] if rank > 1 else 1.0) - relevance
        chance = f"{likely[rank - 1]:.2f} likely to be relevant" if rank <= len(likely) else f"rank {rank}"
        if rank <= count:
            words = "the best passage always is, " if rank == 1 else ""
            found.append(Candidate(hit, rank, relevance, fall, None, f"kept: {words}{chance}"))
        elif rank > config.top_k or rank > BEST:
            why = f"dropped: rank {rank} is beyond the top {min(config.top_k, BEST)}"
            found.append(Candidate(hit, rank, relevance, fall, Drop.BEYOND_TOP_K, why))
        else:
            why = f"dropped: {chance}; expected F2 is highest after {count} ({promised[count - 1]:.2f}), "
            why += f"with this one {promised[rank - 1]:.2f}"
            found.append(Candidate(hit, rank, relevance, fall, Drop.AFTER_CUT, why))
    return found


def _by_limits(hits: Sequence[ScoredPassage], relevances: Sequence[float], config: FilteringConfig) -> list[Candidate]:
    found: list[Candidate] = []
    fell_at: int | None = None  # rank of the first fall of max drop or more
    previous = 1.0
    for rank, (hit, relevance) in enumerate(zip(hits, relevances, strict=True), start=1):
        fall = previous - relevance
        if fell_at is None and rank > 1 and config.max_drop < 1 and fall >= config.max_drop:
            fell_at = rank
        found.append(_judge(hit, rank, relevance, fall, fell_at, config))
        previous = relevance
    return found


def _with_pairs(selection: Selection, config: FilteringConfig) -> Selection:
    """The selection with what is to be read with a passage that it keeps, in their places."""
    names = {one.passage.passage_id for one in selection.kept}
    added = {
        one.rank: f"kept: {part.note} and read with it; by the filter {one.explanation}"
        for one in selection.dropped
        for part in one.hit.parts
        if part.via in names and one.rank <= config.top_k and one.relevance >= config.threshold - PAIRED
    }
    if not added:
        return selection
    joined = [replace(one, drop=None, explanation=added[one.rank]) for one in selection.dropped if one.rank in added]
    kept = sorted((*selection.kept, *joined), key=lambda candidate: candidate.rank)
    return Selection(tuple(kept), tuple(one for one in selection.dropped if one.rank not in added))


def with_added(selection: Selection, passage_ids: Collection[str]) -> Selection:
    """The selection with these of the dropped passages kept as well, in their places in the ranking."""
    added = [
        replace(one, drop=None, explanation=f"kept: it holds a sentence of the answer; by the filter {one.explanation}")
        for one in selection.dropped
        if one.passage.passage_id in passage_ids
    ]
    kept = sorted((*selection.kept, *added), key=lambda candidate: candidate.rank)
    dropped = tuple(one for one in selection.dropped if one.passage.passage_id not in passage_ids)
    return Selection(tuple(kept), dropped) if added else selection


def _judge(
    hit: ScoredPassage, rank: int, relevance: float, fall: float, fell_at: int | None, config: FilteringConfig
) -> Candidate:
    """The candidate with its verdict; the rules are tried in the order threshold, max drop, top-k."""
    drop: Drop | None = None
    if rank == 1:
        explanation = "kept: the best passage always is"
    elif relevance < config.threshold:
        drop = Drop.BELOW_THRESHOLD
        explanation = f"dropped: relevance {relevance:.3f} is below the threshold {config.threshold:.2f}"
    elif fell_at == rank:
        drop = Drop.AFTER_MAX_DROP
        explanation = f"dropped: falls {fall:.3f} below the passage before, max drop is {config.max_drop:.2f}"
    elif fell_at is not None:
        drop = Drop.AFTER_MAX_DROP
        explanation = f"dropped: comes after the fall at rank {fell_at} (max drop {config.max_drop:.2f})"
    elif rank > config.top_k:
        drop = Drop.BEYOND_TOP_K
        explanation = f"dropped: rank {rank} is beyond the top {config.top_k}"
    else:
        explanation = f"kept: relevance {relevance:.3f} ≥ {config.threshold:.2f}, fall {fall:.3f}"
    return Candidate(hit, rank, relevance, fall, drop, explanation)
