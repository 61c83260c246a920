"""A cross-encoder that reads a question and a passage as one text and says in one number how well they fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ragqa.errors import ModelError
from ragqa.models import check_model, resolve_model, shown_name
from ragqa.protocols import Reranker
from ragqa.retrieval.analysis import IndexedText, indexed_text
from ragqa.types import ModelInfo, Ranking

__all__ = ["KIND", "CrossEncoderReranker", "PairClassifier", "read_again"]

KIND: Final = "reranker"


class PairClassifier(Protocol):
    """What computes a cross-encoder: `ragqa.repass.classifier.SequenceClassifier`, by OpenVINO or PyTorch."""

    arithmetic: str

    @property
    def n_labels(self) -> int: ...

    def logits(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Shape (n_pairs, n_labels), in the order given."""
        ...


class CrossEncoderReranker(Reranker):
    """Any sequence-classification model of one output, read as (question, passage). Share it between threads."""

    def __init__(self, model: str, load: Callable[[Path], PairClassifier]) -> None:
        """The model of this hub name, or in this folder, checked and loaded by ``load``. Raises ModelError."""
        folder = resolve_model(model, KIND)
        fingerprint = check_model(folder, KIND)
        self._classifier = load(folder)
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
    reranker: Reranker, question: str, fused: Ranking, depth: int, kind: IndexedText = "text"
) -> dict[str, float]:
    """The raw scores of the best ``depth`` passages, by passage_id in their order.

    ``kind`` is the index's: a reranker reads of a passage what the index's encoder reads.
    """
    best = fused.hits[:depth]
    scores = reranker.score(question, [indexed_text(hit.passage, kind) for hit in best])
    return {hit.passage.passage_id: score for hit, score in zip(best, scores, strict=True)}
