"""BM25 in sparse fields of a collection: bm25s's own scores, whatever was added and removed since rows were written.

How rare a word is and how long passages are on average changes with every document, and with it every score. So a row
holds what its passage scored when the collection was new (or a word of it was), ``idf0 * tf / (tf + norm0)``; a
question weighs each word by how much rarer it is now, ``idf / idf0``, and what that finds is scored again from ``tf``,
which the row's weight and the passage's length give. Between the two lies at most the factor that the average length
has moved by, so that enough rows can be asked for to miss none.
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
    """What turns the words of a passage into weights, and weights into scores. Arrays may be memory-mapped."""

    vocabulary: Keys  # (n_tokens,), rising
    numbers: Numbers  # (n_tokens,), each token's place in the sparse field, from 1: it stays when others come and go
    idf0: Floats  # (n_tokens,), when its number was given
    idf: Floats  # (n_tokens,), in this index
    lengths: npt.NDArray[np.int32]  # (n_passages,), in tokens
    length0: float  # of a passage on average, when the collection was new
    length: float  # likewise in this index
    next_number: int  # no token has had it
    k1: float
    b: float

    @property
    def slack(self) -> float:
        """A passage's score is at most this often what the engine gives it."""
        return max(1.0, self.length / self.length0) * (1 + ROUNDING)

    def weights(self, tokens: Sequence[str], length: int) -> dict[int, float]:
        """The row of a passage of these tokens."""
        counts = Counter(tokens)
        places = places_of(keys_of(counts), self.vocabulary)
        times = np.fromiter(counts.values(), np.int64, len(counts))
        scores = (self.idf0[places] * (times / (self._norm(length, self.length0) + times))).astype(np.float32)
        return dict(zip(self.numbers[places].tolist(), scores.tolist(), strict=True))

    def asked(self, places: Sequence[int]) -> dict[int, float]:
        """The weights of a question's words, given as places in the vocabulary."""
        return {int(self.numbers[n]): times * float(self.idf[n] / self.idf0[n]) for n, times in Counter(places).items()}

    def scores(self, places: Sequence[int], positions: Positions, rows: Sequence[Mapping[int, float]]) -> Floats:
        """What bm25s gives the passages at these positions, shape (n,); ``rows`` are their weights."""
        total = np.zeros(len(rows), dtype=np.float32)
        lengths = self.lengths[positions].astype(np.int64)
        norms0, norms = self._norm(lengths, self.length0), self._norm(lengths, self.length)
        for place in places:  # one after another in 32 bits, as bm25s adds them
            number, idf0, idf = int(self.numbers[place]), float(self.idf0[place]), self.idf[place]
            share = np.array([row.get(number, 0.0) for row in rows]) / idf0
            times = np.rint(share * norms0 / (1 - share))
            total += (idf * (times / (norms + times))).astype(np.float32)
        return total

    def _norm(self, length: Any, mean: float) -> Any:  # noqa: ANN401 - a number or an array
        return self.k1 * ((1 - self.b) + self.b * length / mean)


def idf_of(indptr: npt.NDArray[np.int64], n_texts: int) -> Floats:
    """Lucene's, as `ragqa.retrieval.bm25` has it, shape (n_tokens,); ``indptr`` as of bm25s's matrix."""
    frequency = np.diff(indptr)
    rarity: Floats = np.log(1 + (n_texts - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
    return rarity


class SparseModel(Bm25Model):
    """A BM25 model whose matrix is in the collection: it knows how rare words are, and the collection's numbers."""

    def __init__(self, words: SparseWords, indptr: npt.NDArray[np.int64], n_texts: int) -> None:
        nothing = {"data": np.empty(0, np.float32), "indices": np.empty(0, np.int32)}
        super().__init__(words.vocabulary, nothing | {"indptr": indptr, "num_docs": n_texts}, words.k1, words.b)
        self.words = words


class MilvusBm25(Bm25sRetriever):
    """BM25 as bm25s scores it, its matrix in the collection; the vocabulary, and how rare words are, here."""

    model: SparseModel

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` passages that share a token with the question; a word said twice counts twice."""
        words = self.model.words
        places = places_of(keys_of(tokenise(question, self.analyser)), words.vocabulary).tolist()
        if not places or top_k < 1:
            return Ranking(self.name, ())
        passages: Any = self._passages
        asked, slack = words.asked(places), words.slack
        wanted = min(top_k + 1 + int(10 * top_k * (slack - 1)), MOST)
        while True:  # until whatever comes next scores less than the last one, so that all ties are there
            found = passages.search(self.name, asked, wanted, also=self.name)
            scores = words.scores(places, found.positions, found.values)
            enough = len(scores) >= top_k and np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
            if found.is_all or enough > found.last * slack:
                return self._best(found.positions[scores > 0], scores[scores > 0], top_k)
            wanted = min(2 * wanted, MOST)
