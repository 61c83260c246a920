"""Obligation classifiers: the embedded one (TF-IDF of 1- to 3-grams and logistic regression), and any transformer.

scikit-learn is needed only to train the embedded one (`ragqa.lab.training.obligations`): importing it takes more than a
second, and a decision is one dot product. Weights are stored as safetensors, never as pickle.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragqa.errors import ModelError, ScoringError
from ragqa.models import check_model, resolve_model, shown_name
from ragqa.models.inference.classifier import SequenceClassifier
from ragqa.plugins.protocols import ObligationClassifier
from ragqa.settings.schema import Precision
from ragqa.types import ModelInfo

KIND = "obligations"
WEIGHTS_FILE = "weights.safetensors"
LONGEST_NGRAM = 3
YES = {"obligation", "obligations", "true", "yes", "1"}  # labels of transformers that mean an obligation

_WORD = re.compile(r"\b\w\w+\b")  # scikit-learn's own token pattern


@dataclass(frozen=True, slots=True)
class NgramWeights:
    """The classifier as numbers: for each n-gram its inverse document frequency and its coefficient."""

    vocabulary: dict[str, tuple[float, float]]
    intercept: float


class TfidfObligationClassifier(ObligationClassifier):
    """Tells sentences that state an obligation from those that do not. Read-only: share it between threads."""

    def __init__(self, model: str = "obligations-tfidf") -> None:
        """The model of this name, or in this folder, checked. Raises ModelError."""
        folder = resolve_model(model, KIND)
        self._info = ModelInfo(folder.name, check_model(folder, KIND))
        self._weights = load_weights(folder / WEIGHTS_FILE)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def classify(self, sentences: Sequence[str]) -> list[bool]:
        """Whether each sentence states an obligation: probability above 0.5. Blank text and unknown words do not."""
        return [probability(self._weights, sentence) > 0.5 for sentence in sentences]


def probability(weights: NgramWeights, sentence: str) -> float:
    """P(obligation) of a sentence, in [0, 1]: ``1 / (1 + exp(-(w . x + b)))``.

    x is the vector of ``(1 + ln count) * idf`` over the known n-grams, scaled to length 1 (0 where none is known).
    """
    score, square = 0.0, 0.0
    for ngram, count in Counter(ngrams(sentence)).items():
        known = weights.vocabulary.get(ngram)
        if known is not None:
            idf, coefficient = known
            value = (1.0 + math.log(count)) * idf
            score += value * coefficient
            square += value * value
    if square:
        score /= math.sqrt(square)
    return 1.0 / (1.0 + math.exp(-(score + weights.intercept)))


def ngrams(text: str) -> Iterator[str]:
    """The lower-cased 1-, 2- and 3-grams of the words of two or more characters, as TfidfVectorizer makes them."""
    words: list[str] = _WORD.findall(text.lower())
    for length in range(1, LONGEST_NGRAM + 1):
        for start in range(len(words) - length + 1):
            yield " ".join(words[start : start + length])


def save_weights(weights: NgramWeights, file: Path) -> None:
    """Writes the weights as safetensors: n-grams as one UTF-8 text, one per line, and float32 numbers in that order."""
    from safetensors.numpy import save

    pairs = np.array(list(weights.vocabulary.values()), dtype=np.float32).reshape(-1, 2)
    tensors: dict[str, np.ndarray[tuple[int], np.dtype[np.generic]]] = {
        "ngrams": np.frombuffer("\n".join(weights.vocabulary).encode(), dtype=np.uint8),
        "idf": np.ascontiguousarray(pairs[:, 0]),
        "coefficients": np.ascontiguousarray(pairs[:, 1]),
        "intercept": np.array([weights.intercept], dtype=np.float32),
    }
    file.write_bytes(save(tensors))


def load_weights(file: Path) -> NgramWeights:
    """The weights of this file. Raises ModelError if `save_weights` did not write it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(file)
        words = tensors["ngrams"].tobytes().decode().split("\n")
        idf, coefficients = tensors["idf"].tolist(), tensors["coefficients"].tolist()
        vocabulary = dict(zip(words, zip(idf, coefficients, strict=True), strict=True))
        (intercept,) = tensors["intercept"].tolist()
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise ModelError(
            f"{file} cannot be read as n-gram weights ({type(error).__name__}: {error}); "
            "reinstall ragqa, or run `ragqa train obligations`."
        ) from error
    if not all(math.isfinite(number) for number in [*idf, *coefficients, intercept]):
        msg = f"{file} holds numbers that are not finite; reinstall ragqa, or run `ragqa train obligations`."
        raise ModelError(msg)
    return NgramWeights(vocabulary, intercept)


class TransformerObligationClassifier(ObligationClassifier):
    """Tells sentences that state an obligation from those that do not. Locks itself: share it between threads."""

    def __init__(self, model: str, folder: Path, precision: Precision = "auto") -> None:
        """The model in ``folder``, which was named ``model``, loaded. Raises ModelError."""
        fingerprint = check_model(folder, KIND)
        self._classifier = SequenceClassifier(folder, precision, "text", fingerprint)
        self._column = obligation_column(self._classifier.config, folder)
        self._info = ModelInfo(shown_name(model, folder), fingerprint, self._classifier.arithmetic)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def classify(self, sentences: Sequence[str]) -> list[bool]:
        """Whether the obligation label is the arg-max, as in the reference; a sentence is cut at 512 tokens.

        Raises ScoringError where a result is not a number.
        """
        logits = self._classifier.logits([(sentence, "") for sentence in sentences])
        if not np.isfinite(logits).all():
            msg = f"The obligation classifier {self._info.name} gave numbers that are not finite; check its files."
            raise ScoringError(msg)
        obliges: list[bool] = (logits.argmax(axis=1) == self._column).tolist()
        return obliges


def obligation_column(config: dict[str, Any], folder: Path) -> int:
    """The column of the label that means an obligation; column 1 if the labels are unnamed, as in the reference script.

    Raises ModelError unless there are two labels and exactly one is known to mean an obligation.
    """
    labels = {column: label.strip().lower() for column, label in config["id2label"].items()}
    if sorted(labels.items()) == [(0, "label_0"), (1, "label_1")]:
        return 1
    columns: list[int] = [column for column, label in labels.items() if label in YES]
    if len(labels) != 2 or len(columns) != 1:
        raise ModelError(
            f"The obligation classifier in {folder} has the labels {sorted(labels.values())}; expected two, one of "
            "them 'obligation'. Name them in id2label of its config.json, or choose the embedded obligations-tfidf."
        )
    return columns[0]
