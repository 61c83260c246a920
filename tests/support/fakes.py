"""Small real implementations of the seams. They record what they were asked and need no model."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Generator as Stream
from collections.abc import Sequence

import numpy as np

from ragqa.loading import Models
from ragqa.plugins.protocols import NliModel
from ragqa.retrieval.reranker import TextReranker
from ragqa.types import Answer, AnswerSentence, ModelInfo, Passage, Question, Ranking, ScoredPassage
from ragqa.types.events.generation import Token
from ragqa.types.scores import NliProbabilities


def passage(passage_id: str, text: str = "", **fields: str) -> Passage:
    document_id = fields.pop("document_id", passage_id.partition(":")[0])
    return Passage(passage_id=passage_id, document_id=document_id, text=text or f"Text of {passage_id}.", **fields)


def ranking(retriever: str, scores: dict[str, float]) -> Ranking:
    return Ranking.of(retriever, [ScoredPassage(passage(name), score) for name, score in scores.items()])


def answer(text: str, citations: Sequence[tuple[int, ...]] = (), **fields: object) -> Answer:
    """An answer whose sentences are the lines of ``text``."""
    sentences, position = [], 0
    for number, line in enumerate(text.split("\n") if text else []):
        cited = citations[number] if number < len(citations) else ()
        sentences.append(AnswerSentence(line, position, position + len(line), cited))
        position += len(line) + 1
    return Answer(text, tuple(sentences), "fake", "", raw=text, **fields)


class FakeRetriever:
    def __init__(self, result: Ranking, error: Exception | None = None) -> None:
        self.name, self.result, self.error = result.retriever, result, error
        self.calls: list[tuple[str, int]] = []

    def retrieve(self, question: str, top_k: int) -> Ranking:
        self.calls.append((question, top_k))
        if self.error:
            raise self.error
        return Ranking(self.result.retriever, self.result.hits[:top_k])


class FakeGenerator:
    name, model = "fake", ""

    def __init__(self, result: Answer, error: Exception | None = None, error_after: int = 0) -> None:
        self.result, self.error, self.error_after = result, error, error_after
        self.calls: list[tuple[Question, tuple[Passage, ...]]] = []

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[Token, None, Answer]:
        self.calls.append((question, tuple(passages)))
        for number, word in enumerate(self.result.raw.split()):
            if self.error and number == self.error_after:
                raise self.error
            yield Token(word + " ")
        if self.error:
            raise self.error
        return self.result


class FakeEncoder:
    """Vectors from the words' hashes: texts that share words are near each other."""

    info = ModelInfo("fake-encoder", "0" * 64)
    dimension = 64

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, hashlib.sha256(word.encode("utf-8", "replace")).digest()[0] % self.dimension] += 1.0
            vectors[row, 0] += 1e-3
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def encode_query(self, text: str) -> np.ndarray:
        return self.encode([text])


class FakeNli:
    """Probabilities from a table; entailment .9 where premise and hypothesis are equal, otherwise neutral .8."""

    info = ModelInfo("fake-nli", "1" * 64)

    def __init__(self, table: dict[tuple[str, str], NliProbabilities] | None = None) -> None:
        self.table = table or {}
        self.pairs: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[NliProbabilities]:
        with self._lock:
            self.pairs.extend(pairs)
        return [self.table.get(pair) or self._default(*pair) for pair in pairs]

    def known(self, pairs):
        return {}

    def _default(self, premise: str, hypothesis: str) -> NliProbabilities:
        return NliProbabilities(0.05, 0.9, 0.05) if premise == hypothesis else NliProbabilities(0.1, 0.1, 0.8)


class FakeObligations:
    info = ModelInfo("fake-obligations", "2" * 64)

    def classify(self, sentences: Sequence[str]) -> list[bool]:
        return [" must " in f" {sentence} " for sentence in sentences]


def fake_models(nli: NliModel | None = None, **more: object) -> Models:
    """The models of a pipeline, each a fake but for what is given."""
    nli = nli or FakeNli()
    return Models(FakeEncoder(), nli, nli, FakeObligations(), **more)


class FakeReranker(TextReranker):
    """Scores from a table by text, 0 for others."""

    info = ModelInfo("fake-reranker", "3" * 64)

    def __init__(self, table: dict[str, float]) -> None:
        self.table = table
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.calls.append((question, tuple(texts)))
        return [self.table.get(text, 0.0) for text in texts]


class FakeSelector:
    """Says of a sentence what it is told, and of others that they do not answer; keeps what it was asked."""

    info = ModelInfo("told", "0" * 64)

    def __init__(self, **logits):
        self.logits, self.read = logits, []

    def score(self, question, texts):
        self.read += [(question, text) for text in texts]
        return [next((value for words, value in self.logits.items() if words in text), -16.0) for text in texts]
