"""Rankings of several retrievers -> one ranking. Pure functions, in the literature's terms.

Sources: RIRAG A.7 and equation 5 (convex combination of min-max normalised scores), AUEB equation 1 (any number of
rankings), Cormack et al. 2009 (reciprocal rank fusion, k = 60).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ragqa.config import FusionConfig
from ragqa.errors import IndexingError
from ragqa.normalisation import min_max_norm
from ragqa.types import Passage, Ranking, ScoredPassage, ScorePart

__all__ = ["RRF_K", "fuse"]

RRF_K = 60


def fuse(rankings: Sequence[Ranking], config: FusionConfig) -> Ranking:
    """One ranking named ``"fused"`` whose hits carry what each retriever contributed.

    ``wsum``: ``sum_i w_i * s_i(p)``, ``s_i`` min-max normalised over retriever i's own hits, 0 where it did not return
    p. ``rrf``: ``sum_i 1 / (60 + rank_i(p))``, ranks from 1, over the retrievers of a weight above 0, all alike. A
    passage that only retrievers of weight 0 returned is left out. Ties are ordered by
    passage_id. Scores lie in [0, 1] under ``wsum``.
    """
    columns = [_parts(ranking, config) for ranking in rankings]
    passages = _members(rankings, config)
    hits = []
    for passage_id, passage in passages.items():
        parts = tuple(
            column.get(passage_id, ScorePart(ranking.retriever, None, None, 0.0, _weight(ranking, config), 0.0))
            for ranking, column in zip(rankings, columns, strict=True)
        )
        hits.append(ScoredPassage(passage, math.fsum(part.contribution for part in parts), parts))
    return Ranking.of("fused", hits)


def _members(rankings: Sequence[Ranking], config: FusionConfig) -> dict[str, Passage]:
    """The passages that may be in the fused ranking, by id."""
    return {
        hit.passage.passage_id: hit.passage
        for ranking in rankings
        if _weight(ranking, config) > 0
        for hit in ranking.hits
    }


def _parts(ranking: Ranking, config: FusionConfig) -> Mapping[str, ScorePart]:
    """What this retriever contributes to each of its hits, by passage id."""
    for hit in ranking.hits:
        if not math.isfinite(hit.score):
            msg = (
                f"expected finite scores from retriever {ranking.retriever!r}, found {hit.score} for passage "
                f"{hit.passage.passage_id!r}; check the index with `ragqa index verify`"
            )
            raise IndexingError(msg)
    weight = _weight(ranking, config)
    normalised = min_max_norm([hit.score for hit in ranking.hits])
    parts = {}
    for rank, (hit, norm) in enumerate(zip(ranking.hits, normalised, strict=True), start=1):
        contribution = weight / (RRF_K + rank) if config.method == "rrf" else weight * norm
        parts[hit.passage.passage_id] = ScorePart(ranking.retriever, hit.score, rank, norm, weight, contribution)
    return parts


def _weight(ranking: Ranking, config: FusionConfig) -> float:
    weight = config.weights.get(ranking.retriever, 0.0)
    return float(weight > 0) if config.method == "rrf" else weight
