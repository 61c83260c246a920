"""How strongly a sentence binds: a duty, a prohibition, a permission that restricts, advice, a permission, or nothing.

A small transformer that was fine-tuned on labelled sentences (`ragqa.lab.training.strength`) decides, without a list of
duty words. It is loaded at its first use, and results are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Final

import numpy as np

from ragqa.errors import ModelError
from ragqa.models import check_model, resolve_model
from ragqa.models.inference.classifier import SequenceClassifier
from ragqa.models.inference.precision import wait_passively
from ragqa.types.scores import Strength

KIND: Final = "strength"
MODEL: Final = "strength-minilm-l6"
BINDING: Final = (Strength.MUST, Strength.MUST_NOT, Strength.MAY_ONLY)
COLUMNS: Final = (*BINDING, Strength.SHOULD, Strength.MAY, Strength.NONE)  # of the model
LINE: Final = -0.6  # log odds from which a text binds: a duty missed costs more than one listed too many (see the card)
REMEMBERED: Final = 50_000  # texts
LONGEST: Final = 4_000  # characters of a text that are read; a longer one is a table

_LOADING: Final = Lock()


class StrengthClassifier:
    """Tells how strongly sentences bind. It locks itself: share it between threads."""

    def __init__(self, model: str = MODEL) -> None:
        """The model of this name, or in this folder, loaded and checked. Raises ModelError."""
        wait_passively()
        folder = resolve_model(model, KIND)
        self._classifier = SequenceClassifier(folder, "fp32", "text", check_model(folder, KIND))
        found = [self._classifier.config["id2label"][n] for n in range(self._classifier.n_labels)]
        if found != list(COLUMNS):
            msg = f"expected the labels {', '.join(COLUMNS)} in {folder}, found {', '.join(found)}; reinstall ragqa"
            raise ModelError(msg)
        self._known: dict[str, Strength] = {}  # the oldest first
        self._lock = Lock()  # of what is known

    def strengths(self, texts: Sequence[str]) -> list[Strength]:
        """The strength of each text, which does not depend on its white space; blank text binds nobody."""
        read = [" ".join(text[:LONGEST].split()) for text in texts]
        known = {text: how for text in {*read} if (how := self._known.get(text))} | {"": Strength.NONE}
        new = [text for text in dict.fromkeys(read) if text not in known]
        if not new:
            return [known[text] for text in read]
        found = dict(zip(new, map(_strength, self._classifier.logits([(text, "") for text in new])), strict=True))
        with self._lock:
            self._known |= found
            while len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]
        return [(known | found)[text] for text in read]


def _strength(logits: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Strength:
    """First whether the text binds, then the most probable strength of those that do, or do not."""
    n = len(BINDING)
    binds = np.logaddexp.reduce(logits[:n]) - np.logaddexp.reduce(logits[n:]) >= LINE
    return COLUMNS[int(logits[:n].argmax()) if binds else n + int(logits[n:].argmax())]


@cache
def _load(model: str) -> StrengthClassifier:
    return StrengthClassifier(model)


def load_strength(model: str = MODEL) -> StrengthClassifier:
    """The model of this name, or in this folder, loaded once. Raises ModelError."""
    with _LOADING:
        return _load(model)


def strengths_of(texts: Sequence[str]) -> list[Strength]:
    """The strengths of sentences, or of list items after their lead-in; faster together. Raises ModelError."""
    return load_strength().strengths(texts) if texts else []


def strength_of(text: str) -> Strength:
    """The strength of a sentence or of a list item after its lead-in. Raises ModelError."""
    return load_strength().strengths([text])[0]
