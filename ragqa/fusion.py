"""Fuses the rankings of several retrievers, and a reranker's scores, into one ranking. Pure functions.

Sources: RIRAG A.7 and equation 5 (convex combination of min-max normalised scores), AUEB equation 1 (any number of
rankings), AUEB 3 (reranking the best 50), Cormack et al. 2009 (reciprocal rank fusion, k = 60).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragqa.errors import IndexingError, ModelError
from ragqa.settings.config import FusionConfig, RerankingConfig
from ragqa.types import BY_NUMBER, Passage, Ranking, ScoredPassage, ScorePart, Selection, min_max_norm

RRF_K = 60
_STEP = 1e-6  # score difference between hits that the question names by number


def fuse(rankings: Sequence[Ranking], config: FusionConfig) -> Ranking:
    """One ranking named ``"fused"``; each hit has the contribution of each retriever.

    ``wsum``: ``sum_i w_i * s_i(p)``, ``s_i`` min-max normalised over retriever i's own hits (or its ranking's bounds),
    0 if it did not return p. ``rrf``: ``sum_i 1 / (60 + rank_i(p))``, ranks from 1, over the retrievers with a weight
    above 0, which all count the same. A passage that only retrievers of weight 0 returned is left out. So is a passage
    that was only rescored (``Ranking.finds``), unless only such rankings have a weight. Ties are ordered by passage_id.
    Scores lie in [0, 1] under ``wsum``.
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


def rerank(fused: Ranking, scores: Mapping[str, float], config: RerankingConfig) -> Ranking:
    """One ranking named ``"reranked"``; each hit has the contributions of fusion and of the reranker.

    ``scores`` are the reranker's raw scores by passage_id. Let ``w`` be the weight, ``f`` the fused score min-max
    normalised over all hits (the relevance of filtering) and ``r`` the reranker's score min-max normalised over the
    scored hits among the best ``depth``. Such a hit gets ``w * r + (1 - w) * f``. Every other hit gets ``(1 - w) * f``,
    so the hits beyond ``depth`` keep their order. At a tie, scored hits come first, then the order before reranking
    holds. Scores lie in [0, 1].

    Raises ModelError if a score is not finite.
    """
    read = [hit for hit in fused.hits[: config.depth] if hit.passage.passage_id in scores]
    raw = [scores[hit.passage.passage_id] for hit in read]
    wrong = next((score for score in raw if not math.isfinite(score)), None)
    if wrong is not None:
        raise ModelError(
            f"expected finite scores from the reranker {config.model!r}, found {wrong}; check its files, or leave the "
            "reranker out"
        )
    ids = [hit.passage.passage_id for hit in read]
    normalised = dict(zip(ids, min_max_norm(raw), strict=True))
    by_itself = sorted(range(len(ids)), key=lambda n: -raw[n])  # stable
    rank_of = {ids[n]: rank for rank, n in enumerate(by_itself, start=1)}
    relevances = min_max_norm([hit.score for hit in fused.hits])
    hits = []
    for rank, (hit, relevance) in enumerate(zip(fused.hits, relevances, strict=True), start=1):
        name, rest = hit.passage.passage_id, 1 - config.weight
        norm = normalised.get(name, 0.0)
        own = scores[name] if name in normalised else None
        parts = (
            ScorePart("fused", hit.score, rank, relevance, rest, rest * relevance),
            ScorePart("reranker", own, rank_of.get(name), norm, config.weight, config.weight * norm),
        )
        hits.append(replace(hit, score=math.fsum(part.contribution for part in parts), reranking=parts))
    hits.sort(key=lambda hit: (-hit.score, hit.passage.passage_id not in normalised))  # stable
    return Ranking("reranked", tuple(hits))


def by_number(selection: Selection) -> tuple[Passage, ...]:
    """The candidates that the question names by their number, best first."""
    ranked = sorted((*selection.kept, *selection.dropped), key=lambda candidate: candidate.rank)
    return tuple(candidate.passage for candidate in ranked if candidate.hit.note == BY_NUMBER)


def led_by(ranking: Ranking, passages: Sequence[Passage]) -> Ranking:
    """The ranking with these passages first, in the given order, each with the note `BY_NUMBER`."""
    hits = {hit.passage.passage_id: hit for hit in ranking.hits}
    highest = ranking.hits[0].score if ranking.hits else 1.0
    for place, passage in enumerate(passages):
        hit = hits.get(passage.passage_id, ScoredPassage(passage, 0.0))
        hits[passage.passage_id] = replace(hit, score=highest + _STEP * (len(passages) - place), note=BY_NUMBER)
    ordered = tuple(sorted(hits.values(), key=lambda hit: -hit.score))  # stable: ties of the ranking keep their order
    return Ranking(ranking.retriever, ordered, ranking.finds, ranking.bounds)


def reranker_scores(reranked: Ranking) -> dict[str, float]:
    """The reranker's raw scores that `rerank` used, by passage_id, in the order of the fused ranking."""
    by_rank_before = sorted((hit for hit in reranked.hits if hit.reranking), key=lambda hit: hit.reranking[0].rank or 0)
    raw = {hit.passage.passage_id: hit.reranking[1].raw for hit in by_rank_before}
    return {name: score for name, score in raw.items() if score is not None}


def _members(rankings: Sequence[Ranking], config: FusionConfig) -> dict[str, Passage]:
    """The passages that may be in the fused ranking, by id."""
    weighted = [ranking for ranking in rankings if _weight(ranking, config) > 0]
    finding = [ranking for ranking in weighted if ranking.finds] or weighted
    return {hit.passage.passage_id: hit.passage for ranking in finding for hit in ranking.hits}


def _parts(ranking: Ranking, config: FusionConfig) -> Mapping[str, ScorePart]:
    """The contribution of this retriever by passage_id. Raises IndexingError if a score is not finite."""
    for hit in ranking.hits:
        if not math.isfinite(hit.score):
            raise IndexingError(
                f"expected finite scores from retriever {ranking.retriever!r}, found {hit.score} for passage "
                f"{hit.passage.passage_id!r}; check the index with `ragqa index verify`"
            )
    weight = _weight(ranking, config)
    normalised = min_max_norm([hit.score for hit in ranking.hits], ranking.bounds)
    parts = {}
    for rank, (hit, norm) in enumerate(zip(ranking.hits, normalised, strict=True), start=1):
        contribution = weight / (RRF_K + rank) if config.method == "rrf" else weight * norm
        parts[hit.passage.passage_id] = ScorePart(
            ranking.retriever, hit.score, rank, norm, weight, contribution, hit.note, hit.via
        )
    return parts


def _weight(ranking: Ranking, config: FusionConfig) -> float:
    weight = config.weights.get(ranking.retriever, 0.0)
    return float(weight > 0) if config.method == "rrf" else weight
