"""An obligation classifier that is a transformer, such as the LegalBERT one the reference script loads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragqa.config import Precision
from ragqa.errors import ModelError, ScoringError
from ragqa.inference.classifier import SequenceClassifier
from ragqa.models import check_model, shown_name
from ragqa.protocols import ObligationClassifier
from ragqa.types import ModelInfo

KIND = "obligations"
YES = {"obligation", "obligations", "true", "yes", "1"}


class TransformerObligationClassifier(ObligationClassifier):
    """Tells sentences that oblige somebody from those that do not. Locks itself: share it between threads."""

    def __init__(self, model: str, folder: Path, precision: Precision = "auto") -> None:
        """The model in ``folder``, which was named ``model``, loaded. Raises ModelError."""
        self._classifier = SequenceClassifier(folder, precision, "text")
        self._column = obligation_column(self._classifier.config, folder)
        self._info = ModelInfo(shown_name(model, folder), check_model(folder, KIND), self._classifier.arithmetic)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def classify(self, sentences: Sequence[str]) -> list[bool]:
        """Whether the obligation label is the arg-max, as in the reference; a sentence is cut at 512 tokens.

        Raises ScoringError where a result is not a number.
        """
        distinct = list(dict.fromkeys(sentences))
        logits = self._classifier.logits([(sentence, "") for sentence in distinct])
        if not np.isfinite(logits).all():
            msg = f"The obligation classifier {self._info.name} gave numbers that are not finite; check its files."
            raise ScoringError(msg)
        obliges = dict(zip(distinct, (logits.argmax(axis=1) == self._column).tolist(), strict=True))
        return [obliges[sentence] for sentence in sentences]


def obligation_column(config: dict[str, Any], folder: Path) -> int:
    """The column of the label that means an obligation; column 1 of two unnamed ones, as in the reference script.

    Raises ModelError where there are not two labels or neither is known to mean it.
    """
    labels = {column: label.strip().lower() for column, label in config["id2label"].items()}
    if sorted(labels.items()) == [(0, "label_0"), (1, "label_1")]:
        return 1
    found: list[int] = [column for column, label in labels.items() if label in YES]
    if len(labels) != 2 or len(found) != 1:
        msg = (
            f"The obligation classifier in {folder} has the labels {sorted(labels.values())}; expected two, one of "
            "them 'obligation'. Name them in id2label of its config.json, or choose the embedded obligations-tfidf."
        )
        raise ModelError(msg)
    return found[0]
