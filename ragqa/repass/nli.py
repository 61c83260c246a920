"""A three-way NLI cross-encoder: what a premise says about a hypothesis, as three probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragqa.config import Precision
from ragqa.errors import ModelError, ScoringError
from ragqa.inference.classifier import SequenceClassifier
from ragqa.models import check_model, resolve_model, shown_name
from ragqa.protocols import NliModel
from ragqa.types import ModelInfo, NliProbabilities

Pair = tuple[str, str]

KIND = "nli"
ROLES = ("contradiction", "entailment", "neutral")


class CrossEncoderNli(NliModel):
    """P(contradiction), P(entailment), P(neutral) of sentence pairs. Locks itself: share it between threads."""

    def __init__(self, model: str = "nli-minilm-l6", precision: Precision = "auto", *, joined: bool = False) -> None:
        """The model of this name, or in this folder, checked and loaded. Raises ModelError.

        ``precision`` is that of the arithmetic; ``"auto"`` takes bf16 where the processor has instructions for it,
        which shifts a probability by up to 0.02 and is about twice as fast. ``joined`` feeds premise and hypothesis as
        the one text "premise [SEP] hypothesis", as the reference script does for obligation coverage.
        """
        folder = resolve_model(model, KIND)
        fingerprint = check_model(folder, KIND)
        self._classifier = SequenceClassifier(folder, precision, "joined" if joined else "pair")
        self._columns = label_columns(self._classifier.config, folder)
        self._info = ModelInfo(shown_name(model, folder), fingerprint, self._classifier.arithmetic)

    @property
    def info(self) -> ModelInfo:
        """``precision`` names the arithmetic and the library that did it: "bf16, OpenVINO 2026.4.1"."""
        return self._info

    def predict(self, pairs: Sequence[Pair]) -> list[NliProbabilities]:
        """One result per (premise, hypothesis), in the order given; equal pairs are computed once.

        Premise and hypothesis beyond 512 tokens together are cut, the longer one first, and neither is read beyond its
        4,000th character. With OpenVINO a pair has the same bits whatever pairs are beside it; with PyTorch results
        depend on them by less than 1e-5 (bf16: 0.005). Raises ScoringError where a result is not a number.
        """
        distinct = list(dict.fromkeys(pairs))
        logits = self._classifier.logits(distinct).astype(np.float64)[:, self._columns]
        if not np.isfinite(logits).all():
            msg = (
                f"The NLI model {self._info.name} gave numbers that are not finite in {self._info.precision}; "
                "the answer is kept. Check the model's files, or reinstall ragqa."
            )
            raise ScoringError(msg)
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
        found = dict(zip(distinct, (NliProbabilities(*row) for row in probabilities.tolist()), strict=True))
        return [found[pair] for pair in pairs]


def label_columns(config: dict[str, Any], folder: Path) -> list[int]:
    """The model's columns of contradiction, entailment and neutral, in that order; case does not matter.

    Raises ModelError unless ``id2label`` names exactly these three and ``label2id``, where there is one, agrees: a
    guess would swap support and contradiction.
    """
    labels = {int(column): str(label).strip().lower() for column, label in config.get("id2label", {}).items()}
    column_of = {label: column for column, label in labels.items()}
    inverse = {str(label).strip().lower(): int(column) for label, column in (config.get("label2id") or {}).items()}
    if len(labels) != len(ROLES) or set(column_of) != set(ROLES):
        msg = (
            f"The NLI model in {folder} has the labels {sorted(labels.values())}; expected contradiction, entailment "
            "and neutral. Name them in id2label of its config.json, or choose the embedded nli-minilm-l6."
        )
        raise ModelError(msg)
    if inverse and inverse != column_of:
        msg = (
            f"The NLI model in {folder} numbers its labels in two ways: id2label says {column_of}, label2id says "
            f"{inverse}. Make them agree in its config.json, or choose the embedded nli-minilm-l6."
        )
        raise ModelError(msg)
    return [column_of[role] for role in ROLES]
