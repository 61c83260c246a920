"""BM25 by rank_bm25: the same tokens and the same formula as `ragqa.retrieval.bm25`, hundreds of times slower.

For whoever wants a second implementation; the contract test holds the two together.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Final

from rank_bm25 import BM25Okapi

from ragqa.analysers import Analyser
from ragqa.retrieval.analysis import analysed_text, tokenise
from ragqa.retrieval.ranking import Mask, Positions, ranking_of
from ragqa.types import Passage, Ranking


class _LuceneBM25(BM25Okapi):  # type: ignore[misc] # rank_bm25 has no types
    """BM25Okapi with Lucene's idf, which is never negative and so needs no floor."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {token: math.log(1 + (self.corpus_size - df + 0.5) / (df + 0.5)) for token, df in nd.items()}


class RankBm25Retriever:
    """Ranks by BM25 through rank_bm25. Built in memory at the first question, then shared between threads."""

    name: Final = "bm25"

    def __init__(
        self,
        analyser: Analyser,
        passages: Sequence[Passage],
        order: Positions,
        hidden: Mask,
        k1: float,
        b: float,
    ) -> None:
        """As `ragqa.retrieval.bm25.Bm25sRetriever`, with the parameters of the formula."""
        self._analyser = analyser
        self._hidden = hidden
        self._passages = passages
        self._order = order
        self._k1, self._b = k1, b
        self._model: BM25Okapi | None = None
        self._lock = threading.Lock()

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a token with the question; a word said twice counts twice."""
        model = self._loaded()
        tokens = [token for token in tokenise(question, self._analyser) if token in model.idf]
        if not tokens:
            return Ranking(self.name, ())
        # rank_bm25 multiplies by the constant k1 + 1, which Lucene leaves out.
        scores = model.get_scores(tokens) / (self._k1 + 1)
        scores[self._hidden] = 0.0
        return ranking_of(self.name, self._passages, scores, self._order, top_k)

    def _loaded(self) -> BM25Okapi:
        with self._lock:
            if self._model is None:
                tokens = [
                    tokenise(analysed_text(passage, self._analyser), self._analyser) for passage in self._passages
                ]
                self._model = _LuceneBM25(tokens, k1=self._k1, b=self._b)
            return self._model
