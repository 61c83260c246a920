"""What a reranker makes of rankings, question by question: its scores, kept on disk, and its time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator as Stream
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from ragqa.config import RerankingConfig
from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.ranking_cache import RankingCache
from ragqa.evaluation.retrieval import Rankings, retrieve_all
from ragqa.fusion import rerank
from ragqa.indexing import Index
from ragqa.protocols import Reranker
from ragqa.retrieval.reranker import TextReranker, read_again
from ragqa.types import Ranking, ScoredPassage

Scores = tuple[Mapping[str, float], ...]
"""Per question the reranker's raw scores by passage_id."""


def read_all(
    questions: Sequence[GoldQuestion],
    index: Index,
    rankings: Rankings,
    reranker: Reranker,
    depth: int,
    cache: RankingCache | None = None,
) -> Stream[int, None, tuple[Scores, float | None]]:
    """Yields the number of questions done; returns the scores, and the median milliseconds of one question.

    The reranker reads the best ``depth`` of each ranking, one per question in their order. Scores come from ``cache``
    where they were kept for the same passages (the milliseconds are then None).
    """
    by_question = {gold.question.text: ranking for gold, ranking in zip(questions, rankings, strict=True)}
    reader = _Reader(reranker, index, by_question)
    digest = hashlib.sha256(json.dumps([_read(reranker, ranking, depth) for ranking in rankings]).encode("ascii"))
    identity = json.dumps(["reranker", asdict(reranker.info), digest.hexdigest()], sort_keys=True)
    found, milliseconds = yield from retrieve_all(questions, index, reader, identity, depth, cache)
    return tuple({hit.passage.passage_id: hit.score for hit in ranking.hits} for ranking in found), milliseconds


def _read(reranker: Reranker, ranking: Ranking, depth: int) -> list[list[str | float]]:
    """What the scores of the best ``depth`` depend on: which they are, or every hit's part of the ranking."""
    if isinstance(reranker, TextReranker):
        return [[hit.passage.passage_id] for hit in ranking.hits[:depth]]
    return [[hit.passage.passage_id, hit.score, *(part.raw or 0.0 for part in hit.parts)] for hit in ranking.hits]


def reranked(rankings: Rankings, scores: Scores, config: RerankingConfig) -> Rankings:
    """Each ranking under these settings."""
    return tuple(rerank(ranking, found, config) for ranking, found in zip(rankings, scores, strict=True))


class _Reader:
    """The reranker as a retriever of the passages that are best already."""

    name = "reranker"

    def __init__(self, reranker: Reranker, index: Index, by_question: Mapping[str, Ranking]) -> None:
        self._reranker, self._by_question = reranker, by_question
        self._index = index

    def retrieve(self, question: str, top_k: int) -> Ranking:
        hits = self._by_question[question].hits[:top_k]
        fused = self._by_question[question]
        scores = read_again(self._reranker, question, fused, top_k, self._index)
        return Ranking.of(self.name, [ScoredPassage(hit.passage, scores[hit.passage.passage_id]) for hit in hits])
