"""BM25 in sparse fields of a collection, with the same scores as bm25s after any documents were added or removed.

Every added or removed document changes the rarity of words and the average length of passages, and so every score. A
row therefore stores the score of its passage when the collection (or a word of it) was new, ``idf0 * tf / (tf +
norm0)``. A question weights each word by its change in rarity, ``idf / idf0``. The passages found are then scored
exactly from ``tf``, which follows from the weight in the row and the length of the passage. The two scores differ at
most by the factor by which the average length has changed, so a large enough search misses no passage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.retrieval.analysis import Keys, keys_of, places_of, tokenise
from ragqa.retrieval.bm25 import Bm25Model, Bm25sRetriever
from ragqa.retrieval.milvus.client import MOST
from ragqa.retrieval.ranking import Positions
from ragqa.types import Ranking

ROUNDING: Final = 1e-5  # of an inner product in 32 bits

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SparseWords:
    """Turns the words of a passage into weights, and weights into scores. Arrays may be memory-mapped."""

    vocabulary: Keys  # (n_tokens,), ascending
    numbers: Numbers  # (n_tokens,), the fixed place of each token in the sparse field, from 1
    idf0: Floats  # (n_tokens,), at the time when the token got its number
    idf: Floats  # (n_tokens,), in this index
    lengths: npt.NDArray[np.int32]  # (n_passages,), in tokens
    length0: float  # average length of a passage when the collection was new
    length: float  # average length of a passage in this index
    next_number: int  # the first number that no token has ever had
    k1: float
    b: float

    @property
    def slack(self) -> float:
        """The largest possible ratio of a passage's score to the score that the engine gives it."""
        return max(1.0, self.length / self.length0) * (1 + ROUNDING)

    def weights(self, tokens: Sequence[str], length: int) -> dict[int, float]:
        """The sparse field of a passage with these tokens: weights by token number."""
        counts = Counter(tokens)
        places = places_of(keys_of(counts), self.vocabulary)
        times = np.fromiter(counts.values(), np.int64, len(counts))
        scores = (self.idf0[places] * (times / (self._norm(length, self.length0) + times))).astype(np.float32)
        return dict(zip(self.numbers[places].tolist(), scores.tolist(), strict=True))

    def asked(self, places: Sequence[int]) -> dict[int, float]:
        """The weights of a question's words by token number; ``places`` are the words' places in the vocabulary."""
        return {int(self.numbers[n]): times * float(self.idf[n] / self.idf0[n]) for n, times in Counter(places).items()}

    def scores(self, places: Sequence[int], positions: Positions, rows: Sequence[Mapping[int, float]]) -> Floats:
        """The bm25s scores of the passages at these positions, shape (n,); ``rows`` are their weights."""
        total = np.zeros(len(rows), dtype=np.float32)
        lengths = self.lengths[positions].astype(np.int64)
        norms0, norms = self._norm(lengths, self.length0), self._norm(lengths, self.length)
        for place in places:  # added one by one in 32 bits, as in bm25s
            number, idf0, idf = int(self.numbers[place]), float(self.idf0[place]), self.idf[place]
            share = np.array([row.get(number, 0.0) for row in rows]) / idf0
            times = np.rint(share * norms0 / (1 - share))
            total += (idf * (times / (norms + times))).astype(np.float32)
        return total

    def _norm(self, length: Any, mean: float) -> Any:  # noqa: ANN401 - a number or an array
        return self.k1 * ((1 - self.b) + self.b * length / mean)


def idf_of(indptr: npt.NDArray[np.int64], n_texts: int) -> Floats:
    """Lucene's idf as in `ragqa.retrieval.bm25`, shape (n_tokens,); ``indptr`` is that of bm25s's matrix."""
    frequency = np.diff(indptr)
    rarity: Floats = np.log(1 + (n_texts - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
    return rarity


class SparseModel(Bm25Model):
    """A BM25 model whose matrix is in the collection; it has the rarity of words and their numbers there."""

    def __init__(self, words: SparseWords, indptr: npt.NDArray[np.int64], n_texts: int) -> None:
        nothing = {"data": np.empty(0, np.float32), "indices": np.empty(0, np.int32)}
        super().__init__(words.vocabulary, nothing | {"indptr": indptr, "num_docs": n_texts}, words.k1, words.b)
        self.words = words


class MilvusBm25(Bm25sRetriever):
    """BM25 with the scores of bm25s; the matrix is in the collection, vocabulary and rarity of words are local."""

    model: SparseModel

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a token with the question; repeated words count repeatedly."""
        words = self.model.words
        places = places_of(keys_of(tokenise(question, self.analyser)), words.vocabulary).tolist()
        if not places or top_k < 1:
            return Ranking(self.name, ())
        passages: Any = self._passages
        asked, slack = words.asked(places), words.slack
        wanted = min(top_k + 1 + int(10 * top_k * (slack - 1)), MOST)
        while True:  # until any further row must score less than the last hit, so that all ties are found
            hits = passages.search(self.name, asked, wanted, also=self.name)
            scores = words.scores(places, hits.positions, hits.values)
            enough = len(scores) >= top_k and np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
            if hits.is_all or enough > hits.last * slack:
                return self._best(hits.positions[scores > 0], scores[scores > 0], top_k)
            wanted = min(2 * wanted, MOST)
