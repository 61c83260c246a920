"""Whether a sentence answers a question: a cross-encoder that reads both together. English.

What the model reads is the same here and in training (`ragqa.lab.training.answers`): the question, and what `shown`
makes of the sentence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ragqa.english.reading import read
from ragqa.errors import ModelError
from ragqa.infra.disk_cache import RecentResults
from ragqa.models import check_model, resolve_model, shown_name
from ragqa.models.inference.classifier import SequenceClassifier
from ragqa.plugins.protocols import FloatMatrix, Selector
from ragqa.settings.config import Precision
from ragqa.types import ModelInfo, Passage

KIND: Final = "answers"
EMBEDDED: Final = "answers-minilm-l6"
LABELS: Final = ("not", "partly", "fully")  # in the order of the model's columns
BREAK: Final = " | "
HEADINGS: Final = 2  # of the innermost ones above a sentence
LEAST: Final = 0.01  # of a probability: a model that is surer than that is believed no more
REMEMBERED: Final = 4_096  # pairs of question and sentence: what is quoted is read again for its relevance
_POINTS_BACK: Final = frozenset("it its they their this these that those such he his she her".split())


def above(passage: Passage) -> str:
    """Its title and innermost headings."""
    return " › ".join(filter(None, (passage.title, *passage.section.split(" › ")[-HEADINGS:])))


def points_back(sentence: str) -> bool:
    """Whether it begins with a word that stands for something before: "It may be outsourced."."""
    return not _POINTS_BACK.isdisjoint(read(sentence).plain[:1])


def worths(found: FloatMatrix) -> npt.NDArray[np.float64]:
    """Of each row of what a selector says: the probability that it answers, where an answer in part counts half."""
    return np.asarray(found[:, 1] / 2 + found[:, 2], np.float64)


def log_odds(found: FloatMatrix) -> list[float]:
    """The same as log odds, no surer than `LEAST`."""
    return [math.log(worth / (1.0 - worth)) for worth in np.clip(worths(found), LEAST, 1.0 - LEAST).tolist()]


def shown(sentence: str, above: str = "", before: str = "") -> str:
    """The sentence last; before it its title or headings and, where it needs it to be understood, what precedes it."""
    return BREAK.join(part for part in (above, before, sentence) if part)


class CrossEncoderSelector(Selector):
    """Reads question and sentence together. Locks itself: share it between threads."""

    def __init__(self, model: str = EMBEDDED, precision: Precision = "auto") -> None:
        """The model of this name, or in this folder, checked and loaded. Raises ModelError."""
        folder = resolve_model(model, KIND)
        fingerprint = check_model(folder, KIND)
        self._classifier = SequenceClassifier(folder, precision, fingerprint=fingerprint)
        if tuple(self._classifier.config["id2label"].values()) != LABELS:
            msg = f"expected a model with the labels {', '.join(LABELS)} in {folder}, found others; name another model"
            raise ModelError(msg)
        self._remembered: RecentResults[tuple[str, str], npt.NDArray[np.float32]] = RecentResults(REMEMBERED)
        self._info = ModelInfo(shown_name(model, folder), fingerprint, self._classifier.arithmetic)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def answering(self, question: str, texts: Sequence[str]) -> FloatMatrix:
        pairs = [(question, text) for text in texts]
        known = self._remembered.known(pairs)
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        if new:
            logits = self._classifier.logits(new)
            exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
            read = dict(zip(new, exponentials / exponentials.sum(axis=1, keepdims=True), strict=True))
            self._remembered.remember(read)
            known |= read
        return np.array([known[pair] for pair in pairs], np.float32).reshape(-1, len(LABELS))
