"""Named configurations side by side on questions with gold passages: measures, significance, time."""

from __future__ import annotations

import time
from collections.abc import Generator as Stream
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ragqa.config import Config, FusionConfig
from ragqa.corpus.gold import GoldUnit
from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.measures import MEASURES, means, measure_run
from ragqa.evaluation.ranking_cache import Hits, RankingCache, ranking_key
from ragqa.evaluation.significance import PairedTest, holm, paired_test
from ragqa.fusion import fuse
from ragqa.indexing import Index
from ragqa.protocols import Rescorer, Retriever
from ragqa.retrieval import candidates_of
from ragqa.types import Ranking, ScoredPassage

TESTED = ("R@10", "AP@10")  # whose differences are tested

Rankings = tuple[Ranking, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One configuration: its rankings and the value of each measure, one per question in their order."""

    name: str
    rankings: Rankings
    values: dict[str, list[float]]

    @property
    def means(self) -> dict[str, float]:
        """Each measure over all questions, in [0, 1]."""
        return means(self.values)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One configuration against the baseline in one measure; p adjusted for all comparisons of the table (Holm)."""

    name: str
    measure: str
    test: PairedTest
    adjusted_p: float


def retrieve_all(
    questions: Sequence[GoldQuestion],
    index: Index,
    retriever: Retriever,
    identity: str,
    top_k: int,
    cache: RankingCache | None = None,
) -> Stream[int, None, tuple[Rankings, float | None]]:
    """Yields the number of questions done; returns one ranking per question, and the median milliseconds of one.

    Rankings come from ``cache`` where they were kept (the milliseconds are then None); ``identity`` names the retriever
    with all that decides its ranking. Scores are in single precision either way, so that both ways measure the same.
    """
    texts = [gold.question.text for gold in questions]
    key = ranking_key(_fingerprint(index), identity, top_k, texts)
    hits = cache.load(key) if cache else None
    milliseconds = None
    if hits is None:
        hits, spent = [], []
        for done, text in enumerate(texts, start=1):
            began = time.perf_counter()
            ranking = retriever.retrieve(text, top_k)
            spent.append(1000 * (time.perf_counter() - began))
            hits.append(_packed(ranking, index))
            yield done
        milliseconds = float(np.median(spent)) if spent else None
        if cache:
            cache.save(key, hits)
    yield len(texts)
    return tuple(_unpacked(retriever.name, pair, index) for pair in hits), milliseconds


def rescore_all(
    questions: Sequence[GoldQuestion], rescorer: Rescorer, columns: Sequence[Rankings]
) -> Stream[int, None, tuple[Rankings, float]]:
    """As `retrieve_all` for one that scores what the rankings of ``columns`` found; nothing is kept."""
    rankings, spent = [], []
    for done, (gold, *found) in enumerate(zip(questions, *columns, strict=True), start=1):
        candidates = candidates_of(found)
        began = time.perf_counter()
        rankings.append(rescorer.rescore(gold.question.text, candidates))
        spent.append(1000 * (time.perf_counter() - began))
        yield done
    return tuple(rankings), float(np.median(spent))


def evaluate(
    questions: Sequence[GoldQuestion],
    columns: Sequence[Rankings],
    fusions: dict[str, FusionConfig],
    unit: GoldUnit = "passage",
) -> tuple[Result, ...]:
    """A result per retriever alone, then one per fusion of all of them. ``columns[r][q]``: retriever r, question q.

    Gold is keyed on (DocumentID, PassageID); of duplicates the first counts, as in the official relevance file. A gold
    passage that is not in the index counts as missed. Where ``unit`` is ``"document"`` gold are documents, and a
    ranking of passages counts as one of documents, each where its first passage stands. Raises CorpusError for a
    question without gold.
    """
    results = [measured(column[0].retriever, questions, column, unit) for column in columns if column]
    for name, config in fusions.items():
        fused = tuple(fuse(rankings, config) for rankings in zip(*columns, strict=True))
        results.append(measured(name, questions, fused, unit))
    return tuple(results)


def compare(results: Sequence[Result], baseline: str, seed: int = 0) -> tuple[Comparison, ...]:
    """Every other configuration against the one called ``baseline``, in the measures of `TESTED`."""
    base = next(result for result in results if result.name == baseline)
    pairs = [(result, measure) for result in results if result.name != baseline for measure in TESTED]
    tests = [paired_test(result.values[measure], base.values[measure], seed) for result, measure in pairs]
    adjusted = holm([test.p_value for test in tests])
    return tuple(
        Comparison(result.name, measure, test, p)
        for (result, measure), test, p in zip(pairs, tests, adjusted, strict=True)
    )


def identity_of(retriever: Retriever, index: Index, config: Config) -> str:
    """The retriever's name with the library that ranks, or the model that encodes: for `retrieve_all`."""
    if retriever.name == "bm25":
        return f"bm25, {config.retrieval.bm25_backend}"
    further = {ranking.name: ranking.fingerprint for ranking in index.manifest.rankings}
    return f"{retriever.name}, {further.get(retriever.name, index.manifest.encoder_fingerprint)}"


def measured(name: str, questions: Sequence[GoldQuestion], rankings: Rankings, unit: GoldUnit = "passage") -> Result:
    """These rankings, one per question in their order, as a configuration of this name; as in `evaluate`."""
    found = [
        [hit.passage.passage_id if unit == "passage" else hit.passage.document_id for hit in ranking.hits]
        for ranking in rankings
    ]
    return Result(name, rankings, measure_run([gold.gold for gold in questions], found, MEASURES))


def _fingerprint(index: Index) -> str:
    return "\n".join(entry.sha256 for entry in index.manifest.files)


def _packed(ranking: Ranking, index: Index) -> Hits:
    positions = [index.position_of[hit.passage.passage_id] for hit in ranking.hits]
    return np.array(positions, np.int32), np.array([hit.score for hit in ranking.hits], np.float32)


def _unpacked(name: str, hits: Hits, index: Index) -> Ranking:
    positions, scores = hits
    pairs = zip(positions.tolist(), scores.tolist(), strict=True)
    return Ranking.of(name, [ScoredPassage(index.passages[position], score) for position, score in pairs])


def cut(columns: Sequence[Rankings], depth: int) -> list[Rankings]:
    """The rankings as retrievers asked for ``depth`` passages would give them, out of longer ones.

    Of a ranking that finds nothing by itself, what the others still find is left.
    """
    rows = []
    for rankings in zip(*columns, strict=True):
        short = [replace(one, hits=one.hits[:depth]) if one.finds else one for one in rankings]
        found = {hit.passage.passage_id for one in short if one.finds for hit in one.hits}
        rows.append([one if one.finds else _among(one, found) for one in short])
    return [tuple(column) for column in zip(*rows, strict=True)] if rows else [() for _ in columns]


def _among(ranking: Ranking, passage_ids: set[str]) -> Ranking:
    return replace(ranking, hits=tuple(hit for hit in ranking.hits if hit.passage.passage_id in passage_ids))
