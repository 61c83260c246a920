"""A fused ranking -> what is kept, and for everything else the reason it fell. Pure.

Source: RIRAG 5.2 (threshold 0.7, drop 0.2, ten passages), AUEB 4.1. The same rule over many filters at once is
`ragqa.evaluation.kept.kept_figures`: change both.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from ragqa.config import FilteringConfig
from ragqa.normalisation import min_max_norm
from ragqa.types import Candidate, Drop, Ranking, ScoredPassage, Selection

PAIRED: Final = 0.2  # how far below the threshold a passage may lie that is read with a kept one


def select(ranking: Ranking, config: FilteringConfig) -> Selection:
    """The passages an answer may be written from, best first, and every other hit with the reason it fell.

    Scores are first re-normalised to [0, 1] over all hits. Going down the ranking, a passage is kept while its
    relevance is at least the threshold, it lies less than max drop below the previous one (max drop 1: no such rule),
    and fewer than top-k are kept; the first that fails ends the list. The best passage is always kept. An empty ranking
    gives an empty selection. Kept and dropped together are the ranking, in its order.

    Pairs stay together: a passage among the best top-k that is to be read with a kept one (`ScorePart.via`) is kept as
    well where its relevance is at least the threshold less `PAIRED`.
    """
    relevances = min_max_norm([hit.score for hit in ranking.hits])
    kept: list[Candidate] = []
    dropped: list[Candidate] = []
    fell_at: int | None = None  # rank of the first fall of max drop or more
    previous = 1.0
    for rank, (hit, relevance) in enumerate(zip(ranking.hits, relevances, strict=True), start=1):
        fall = previous - relevance
        if fell_at is None and rank > 1 and config.max_drop < 1 and fall >= config.max_drop:
            fell_at = rank
        candidate = _judge(hit, rank, relevance, fall, fell_at, config)
        (kept if candidate.drop is None else dropped).append(candidate)
        previous = relevance
    return _with_pairs(Selection(tuple(kept), tuple(dropped)), config)


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
