"""Rankings by an index's retrievers, and reranker scores, computed once per question and cached under RAGQA_HOME.

The benchmark, tuning and training all use it. Scores are in single precision, from the cache or not, so that both
measure the same.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Generator as Stream
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.loading import retrievers_of
from ragqa.index import Index
from ragqa.infra.disk_cache import CacheFormat, DiskCache
from ragqa.plugins import registry
from ragqa.plugins.protocols import Follower, Reranker, Rescorer, Retriever
from ragqa.retrieval import candidates_of
from ragqa.retrieval.reranker import TextReranker, read_again
from ragqa.settings.config import Config, RetrievalConfig
from ragqa.settings.paths import Paths
from ragqa.types import Ranking, ScoredPassage

Rankings = tuple[Ranking, ...]
Packed = Mapping[str, Any]  # a ranking as JSON: positions in the index and scores

MAX_RANKINGS: Final = 200_000  # of 100 hits each: 160 MB
FILE: Final = "rankings.sqlite3"
FOLLOWED: Final = RetrievalConfig().top_k  # hits of each ranking that a follower sees, whatever the depth
_HIT: Final = np.dtype([("position", "<i4"), ("score", "<f4")])
Hits = Sequence[tuple[int, float]]  # position in the index and score, best first
RankingCache = DiskCache[Hits]


def _row_of(hits: Hits) -> tuple[bytes]:
    blob = np.array(list(hits), _HIT).tobytes()
    return (zlib.crc32(blob).to_bytes(4, "little") + blob,)


def _hits_of(row: tuple[object, ...]) -> Hits | None:
    """The hits in this row; None if it is damaged or was written by something else."""
    (stored,) = row
    if not isinstance(stored, bytes) or zlib.crc32(stored[4:]).to_bytes(4, "little") != stored[:4]:
        return None
    hits = np.frombuffer(stored[4:], _HIT)
    return list(zip(hits["position"].tolist(), hits["score"].tolist(), strict=True))


_FORMAT: Final[CacheFormat[Hits]] = CacheFormat(
    table="rankings",
    columns=("hits",),
    column_type="BLOB",
    version=1,
    patience_seconds=5.0,
    holds="rankings",
    user="retrieving",
    to_row=_row_of,
    from_row=_hits_of,
    renews=True,
)


def ranking_cache(file: Path, most: int = MAX_RANKINGS) -> RankingCache:
    """The cache of hits. Entries that cannot be read count as missing, and failed writes are ignored."""
    return DiskCache(file, _FORMAT, most)


@dataclass(frozen=True, slots=True)
class QuestionRankings:
    """The rankings of one question, one per retriever in order; seconds by retriever, None if cached."""

    rankings: Rankings
    seconds: Mapping[str, float | None]


class Ranker:
    """The retrievers of one index with a cache. Holds no state of a question; threads may share it."""

    def __init__(
        self, index: Index, retrievers: Sequence[Retriever], config: Config, cache: RankingCache | None = None
    ) -> None:
        """``config`` gives the depth of rankings and the BM25 library; nothing is loaded here."""
        self.index, self.retrievers, self.top_k, self._cache = index, tuple(retrievers), config.retrieval.top_k, cache
        self._identities = {one.name: identity_of(one, index, config) for one in retrievers}
        self._fingerprint = "\n".join(entry.sha256 for entry in index.manifest.files)
        self._positions: dict[str, int] = {}  # of passages found so far, because an index looks each up on disk

    def without(self, names: Collection[str]) -> Ranker:
        """A copy without the retrievers of these names, which followers and rescorers do not see either."""
        found = copy(self)
        found.retrievers = tuple(one for one in self.retrievers if one.name not in names)
        return found

    def rank(self, question: str) -> QuestionRankings:
        """One ranking per retriever; a `Rescorer` scores the others' candidates, if there are other retrievers."""
        found: dict[str, Ranking] = {}
        seconds: dict[str, float | None] = {}
        rescorers = [one for one in self.retrievers if isinstance(one, Rescorer)]
        followers = [one for one in self.retrievers if isinstance(one, Follower)]
        searching: list[Retriever] = [one for one in self.retrievers if not isinstance(one, Rescorer | Follower)]
        searching = searching or [*rescorers]
        for retriever in searching:
            found[retriever.name], seconds[retriever.name] = self._retrieved(retriever, question)
        first = tuple(found.values())
        for follower in followers:
            began = time.perf_counter()
            seen = [replace(one, hits=one.hits[:FOLLOWED]) for one in first]
            ranking = follower.follow(question, seen, self.top_k)
            seconds[follower.name] = time.perf_counter() - began
            found[follower.name] = rounded(ranking)
        searching = [*searching, *followers]
        for rescorer in rescorers:
            if rescorer.name not in found:
                candidates = candidates_of(found[one.name] for one in searching)
                began = time.perf_counter()
                ranking = rescorer.rescore(question, candidates)
                seconds[rescorer.name] = time.perf_counter() - began
                found[rescorer.name] = rounded(ranking)
        names = [one.name for one in self.retrievers]
        return QuestionRankings(tuple(found[name] for name in names), {name: seconds[name] for name in names})

    def read_again(
        self, reranker: Reranker, question: str, fused: Ranking, depth: int
    ) -> tuple[dict[str, float], float | None]:
        """The reranker's raw scores of the best ``depth`` by passage id, and its seconds, None if cached."""
        read: list[list[Any]] = [[hit.passage.passage_id] for hit in fused.hits[:depth]]
        if not isinstance(reranker, TextReranker):  # may read the parts of every hit's score
            parts = [[part.raw or 0.0 for part in hit.parts] for hit in fused.hits]
            read = [[hit.passage.passage_id, hit.score, *own] for hit, own in zip(fused.hits, parts, strict=True)]
        identity = json.dumps(["reranker", asdict(reranker.info), depth, read], sort_keys=True)
        key = self._key(identity, question)
        cached = self._cached(key)
        if cached is not None:
            return {self.index.passages[position].passage_id: score for position, score in cached}, None
        began = time.perf_counter()
        scores = read_again(reranker, question, fused, depth, self.index)
        seconds = time.perf_counter() - began
        single = {name: float(np.float32(score)) for name, score in scores.items()}
        if self._cache:
            self._cache.add({key: [(self._position(name), score) for name, score in single.items()]})
        return single, seconds

    def packed(self, ranking: Ranking) -> dict[str, Any]:
        """The ranking as JSON, with positions in the index for passages."""
        return {
            "retriever": ranking.retriever,
            "finds": ranking.finds,
            "bounds": ranking.bounds,
            "positions": [self._position(hit.passage.passage_id) for hit in ranking.hits],
            "scores": [hit.score for hit in ranking.hits],
        }

    def _position(self, passage_id: str) -> int:
        found = self._positions.get(passage_id)
        if found is None:
            found = self._positions[passage_id] = self.index.position_of[passage_id]
        return found

    def _retrieved(self, retriever: Retriever, question: str) -> tuple[Ranking, float | None]:
        key = self._key(self._identities[retriever.name], question)
        is_ours = retriever.name.partition(":")[0] in {part.key for part in registry.ours(registry.RETRIEVERS)}
        cached = self._cached(key) if is_ours else None  # the code of another package's may have changed meanwhile
        if cached is not None:
            hits = [ScoredPassage(self.index.passages[position], score) for position, score in cached]
            return Ranking.of(retriever.name, hits), None
        began = time.perf_counter()
        ranking = retriever.retrieve(question, self.top_k)
        seconds = time.perf_counter() - began
        ranking = rounded(ranking)
        is_plain = ranking.finds and ranking.bounds is None  # a cache row has no field for these two
        if self._cache and is_ours and is_plain:
            pairs = [(self._position(hit.passage.passage_id), hit.score) for hit in ranking.hits]
            self._cache.add({key: pairs})
        return ranking, seconds

    def _cached(self, key: bytes) -> Hits | None:
        return self._cache.known([key]).get(key) if self._cache else None

    def _key(self, identity: str, question: str) -> bytes:
        named = json.dumps([1, self._fingerprint, identity, self.top_k, question])
        return hashlib.sha256(named.encode("ascii")).digest()


def open_ranker(config: Config, paths: Paths) -> Ranker:
    """The retrievers of ``config.index`` with their models, loaded (seconds) or shared; cached on disk.

    Raises ConfigError, IndexingError, ModelError.
    """
    index, retrievers, _ = retrievers_of(config, paths, every=True)
    return Ranker(index, retrievers, config, ranking_cache(paths.home / FILE))


def rank_all(
    ranker: Ranker, questions: Sequence[GoldQuestion]
) -> Stream[int, None, tuple[list[Rankings], dict[str, float | None]]]:
    """Yields the number of questions done; returns ``columns[r][q]``, retriever r's ranking of question q.

    It also returns each retriever's median milliseconds over the questions that were not cached, None if all were.
    """
    rows = []
    for done, gold in enumerate(questions, start=1):
        rows.append(ranker.rank(gold.question.text))
        yield done
    columns = [tuple(row.rankings[n] for row in rows) for n in range(len(ranker.retrievers))]
    spent = {one.name: median_ms([row.seconds[one.name] for row in rows]) for one in ranker.retrievers}
    return columns, spent


def reread_all(
    ranker: Ranker, reranker: Reranker, questions: Sequence[GoldQuestion], rankings: Rankings, depth: int
) -> Stream[int, None, tuple[tuple[Mapping[str, float], ...], float | None]]:
    """As `rank_all`, but returns a reranker's scores of the best ``depth`` of each ranking, and its median."""
    rows = []
    for done, (gold, ranking) in enumerate(zip(questions, rankings, strict=True), start=1):
        rows.append(ranker.read_again(reranker, gold.question.text, ranking, depth))
        yield done
    return tuple(scores for scores, _ in rows), median_ms([seconds for _, seconds in rows])


def median_ms(seconds: Sequence[float | None]) -> float | None:
    """The median of the known values, in milliseconds; None if there are none."""
    known = [value for value in seconds if value is not None]
    return 1000 * median(known) if known else None


def identity_of(retriever: Retriever, index: Index, config: Config) -> str:
    """The retriever's name with its ranking library, or with its encoder's fingerprint."""
    if retriever.name == "bm25":
        return f"bm25, {config.retrieval.bm25_backend}"
    further = {ranking.name: ranking.fingerprint for ranking in index.manifest.rankings}
    return f"{retriever.name}, {further.get(retriever.name, index.manifest.encoder_fingerprint)}"


def cut(rankings: Rankings, depth: int) -> Rankings:
    """Cuts longer rankings to those that retrievers would return for ``depth`` passages.

    A ranking that finds nothing by itself keeps the passages that the others still find.
    """
    short = [replace(one, hits=one.hits[:depth]) if one.finds else one for one in rankings]
    found = {hit.passage.passage_id for one in short if one.finds for hit in one.hits}
    return tuple(
        one if one.finds else replace(one, hits=tuple(hit for hit in one.hits if hit.passage.passage_id in found))
        for one in short
    )


def cut_columns(columns: Sequence[Rankings], depth: int) -> list[Rankings]:
    """`cut` for every question: ``columns[r][q]`` is retriever r's ranking of question q, before and after."""
    rows = [cut(tuple(rankings), depth) for rankings in zip(*columns, strict=True)]
    return [tuple(column) for column in zip(*rows, strict=True)] if rows else [() for _ in columns]


def rounded(ranking: Ranking) -> Ranking:
    """The ranking with scores in single precision, which may change the order of nearly equal hits."""
    hits = [replace(hit, score=float(np.float32(hit.score))) for hit in ranking.hits]
    return Ranking.of(ranking.retriever, hits, finds=ranking.finds, bounds=ranking.bounds)


def unpacked(entry: Packed, index: Index) -> Ranking:
    """The ranking from the result of `Ranker.packed`."""
    pairs = zip(entry["positions"], entry["scores"], strict=True)
    hits = [ScoredPassage(index.passages[position], score) for position, score in pairs]
    bounds = None if entry["bounds"] is None else (entry["bounds"][0], entry["bounds"][1])
    return Ranking.of(entry["retriever"], hits, finds=entry["finds"], bounds=bounds)
