"""A cross-encoder that reads a question and a passage as one text and says in one number how well they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ragqa.config import Precision
from ragqa.errors import ModelError
from ragqa.inference.classifier import SequenceClassifier
from ragqa.models import check_model, resolve_model, shown_name
from ragqa.protocols import Corpus, HitRanker, Reranker
from ragqa.retrieval.analysis import IndexedText, indexed_text
from ragqa.types import ModelInfo, Ranking

KIND: Final = "reranker"


class CrossEncoderReranker(Reranker):
    """Any sequence-classification model of one output, read as (question, passage). Share it between threads."""

    def __init__(self, model: str, precision: Precision = "auto") -> None:
        """The model of this hub name, or in this folder, checked and loaded. Raises ModelError."""
        folder = resolve_model(model, KIND)
        fingerprint = check_model(folder, KIND)
        self._classifier = SequenceClassifier(folder, precision)
        if self._classifier.n_labels != 1:
            msg = (
                f"The model in {folder} has {self._classifier.n_labels} outputs; expected one, as rerankers have. "
                "Choose another, make one with `ragqa train reranker`, or leave the reranker out."
            )
            raise ModelError(msg)
        self._info = ModelInfo(shown_name(model, folder), fingerprint, self._classifier.arithmetic)

    @property
    def info(self) -> ModelInfo:
        """``precision`` names the arithmetic and the library that did it: "bf16, OpenVINO 2026.4.1"."""
        return self._info

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """The model's logit per text, in the order given; equal texts are computed once.

        Question and text beyond the model's window (at most 512 tokens) are cut, the longer one first.
        """
        distinct = list(dict.fromkeys(texts))
        logits = self._classifier.logits([(question, text) for text in distinct])[:, 0].tolist()
        found = dict(zip(distinct, map(float, logits), strict=True))
        return [found[text] for text in texts]


def read_again(
    reranker: Reranker | HitRanker,
    question: str,
    fused: Ranking,
    depth: int,
    corpus: Corpus,
    kind: IndexedText = "text",
) -> dict[str, float]:
    """The raw scores of the best ``depth`` passages, by passage_id in their order.

    ``corpus`` and ``kind`` are the index's: a reranker reads of a passage what the index's encoder reads.
    """
    best = fused.hits[:depth]
    if isinstance(reranker, HitRanker):
        scores = reranker.score_hits(question, fused.hits, depth, corpus)
    else:
        scores = reranker.score(question, [indexed_text(hit.passage, kind) for hit in best])
    return {hit.passage.passage_id: score for hit, score in zip(best, scores, strict=True)}
