"""Questions with gold passages -> Recall, MAP and nDCG of each ranking, by `ir-measures`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from ragqa.config import Config
from ragqa.corpus.questions import GoldQuestion
from ragqa.fusion import fuse
from ragqa.protocols import Retriever
from ragqa.types import Ranking

__all__ = ["MEASURES", "RetrievalReport", "evaluate_retrieval"]

MEASURES = ("R@10", "AP@10", "nDCG@10")  # AP@10 averaged over questions is MAP@10


@dataclass(frozen=True, slots=True)
class RetrievalReport:
    """Mean of each measure over the questions, per ranking; and the median milliseconds a question took in all."""

    n_questions: int
    measures: dict[str, dict[str, float]]  # ranking name -> measure -> mean in [0, 1]
    median_milliseconds: float


def evaluate_retrieval(
    questions: Sequence[GoldQuestion], retrievers: Sequence[Retriever], config: Config
) -> Iterator[int | RetrievalReport]:
    """Yields the number of questions done, and last the report over all of them.

    Rankings are those of the pipeline: each retriever's top-k and their fusion. A gold passage that is not in the index
    counts as missed. Gold is keyed on (DocumentID, PassageID); of duplicates the first counts, as in the official
    relevance file.
    """
    runs: dict[str, dict[str, Ranking]] = {}
    milliseconds = []
    for number, gold in enumerate(questions, start=1):
        began = time.perf_counter()
        rankings = [r.retrieve(gold.question.text, config.retrieval.top_k) for r in retrievers]
        fused = fuse(rankings, config.fusion)
        milliseconds.append(1000 * (time.perf_counter() - began))
        for ranking in (*rankings, fused):
            runs.setdefault(ranking.retriever, {})[str(number)] = ranking
        yield number
    measures = {name: _measure(questions, run) for name, run in runs.items()}
    yield RetrievalReport(len(questions), measures, median(milliseconds) if milliseconds else 0.0)


def _measure(questions: Sequence[GoldQuestion], run: dict[str, Ranking]) -> dict[str, float]:
    import ir_measures

    qrels = [
        ir_measures.Qrel(str(number), passage_id, 1)
        for number, gold in enumerate(questions, start=1)
        for passage_id in sorted(gold.gold)
    ]
    scored = [
        ir_measures.ScoredDoc(number, hit.passage.passage_id, -float(rank))
        for number, ranking in run.items()
        for rank, hit in enumerate(ranking.hits[:100], start=1)
    ]
    parsed = [ir_measures.parse_measure(name) for name in MEASURES]
    means = ir_measures.calc_aggregate(parsed, qrels, scored)
    return {name: float(means[measure]) for name, measure in zip(MEASURES, parsed, strict=True)}
