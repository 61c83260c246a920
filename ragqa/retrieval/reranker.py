"""Rerankers that read a question and a passage together and score how well they fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from hashlib import sha256
from statistics import fmean
from typing import Final

from ragqa.errors import ModelError
from ragqa.models import check_model, resolve_model, shown_name
from ragqa.models.inference.classifier import SequenceClassifier
from ragqa.plugins.protocols import Corpus, Reranker
from ragqa.settings.schema import Precision
from ragqa.types import ModelInfo, Ranking, ScoredPassage

KIND: Final = "reranker"


class TextReranker(Reranker):
    """A reranker that reads only the text of a hit, not the scores of the retrievers."""

    @abstractmethod
    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One finite score per text, in the order given; higher is better. Scores have no unit and no fixed range."""

    def score_hits(self, question: str, hits: Sequence[ScoredPassage], depth: int, corpus: Corpus) -> list[float]:
        """The scores of the best ``depth`` hits, by the text that the index's encoder reads of each."""
        return self.score(question, [corpus.text_of(hit.passage) for hit in hits[:depth]])


class CrossEncoderReranker(TextReranker):
    """A sequence-classification model with one output on (question, passage) pairs. Threads may share it."""

    def __init__(self, model: str, precision: Precision = "auto") -> None:
        """The model of this hub name or in this folder, checked and loaded. Raises ModelError."""
        folder = resolve_model(model, KIND)
        fingerprint = check_model(folder, KIND)
        self._classifier = SequenceClassifier(folder, precision, fingerprint=fingerprint)
        if self._classifier.n_labels != 1:
            raise ModelError(
                f"The model in {folder} has {self._classifier.n_labels} outputs; expected one, as rerankers have. "
                "Choose another, make one with `ragqa train reranker`, or leave the reranker out."
            )
        self._info = ModelInfo(shown_name(model, folder), fingerprint, self._classifier.arithmetic)

    @property
    def info(self) -> ModelInfo:
        """Its ``precision`` names the arithmetic and the library: "bf16, OpenVINO 2026.4.1"."""
        return self._info

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """The model's logit per text, in the order given; equal texts are computed once.

        A question and text that exceed the model's window (at most 512 tokens) are cut, the longer one first.
        """
        scores: list[float] = self._classifier.logits([(question, text) for text in texts])[:, 0].tolist()
        return scores


class MeanReranker(TextReranker):
    """The mean of several rerankers' scores, which must be on the same scale, plus ``offset``. Threads may share it."""

    def __init__(self, *rerankers: TextReranker, offset: float = 0.0) -> None:
        self._rerankers, self._offset = rerankers, offset

    @property
    def info(self) -> ModelInfo:
        """Their names and arithmetic, joined; the digest is that of their digests."""
        infos = [one.info for one in self._rerankers]
        digest = sha256("".join(info.fingerprint for info in infos).encode()).hexdigest()
        precision = "; ".join(dict.fromkeys(info.precision for info in infos))
        return ModelInfo(" + ".join(info.name for info in infos), digest, precision)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """The mean score per text plus the offset, in the order given."""
        scores = zip(*(one.score(question, texts) for one in self._rerankers), strict=True)
        return [fmean(of_text) + self._offset for of_text in scores]


def read_again(reranker: Reranker, question: str, fused: Ranking, depth: int, corpus: Corpus) -> dict[str, float]:
    """The reranker's raw scores of the best ``depth`` passages, by passage_id, in order."""
    scores = reranker.score_hits(question, fused.hits, depth, corpus)
    return {hit.passage.passage_id: score for hit, score in zip(fused.hits[:depth], scores, strict=True)}
