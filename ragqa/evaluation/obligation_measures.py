"""Precision, recall and F1 of an obligation classifier: on labelled rulebook sentences, on the script's split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragqa.errors import CorpusError
from ragqa.evaluation.rulebook_obligations import RULEBOOK_SENTENCES
from ragqa.protocols import ObligationClassifier
from ragqa.training.obligations import TEST_FRACTION, read_labelled_sentences

SPLIT_SEED = 42  # of the reference script
Sentence = tuple[str, bool]  # its text, and whether it is an obligation


@dataclass(frozen=True, slots=True)
class ObligationMeasures:
    """Counts over labelled sentences; ``missed`` and ``false_alarms`` are the sentences themselves."""

    name: str
    n_sentences: int
    n_found: int  # obligations that were found
    missed: tuple[str, ...]
    false_alarms: tuple[str, ...]

    @property
    def precision(self) -> float:
        """Share of what was called an obligation that is one; 0 where nothing was called one."""
        called = self.n_found + len(self.false_alarms)
        return self.n_found / called if called else 0.0

    @property
    def recall(self) -> float:
        """Share of the obligations that was found; 0 where there is none."""
        obligations = self.n_found + len(self.missed)
        return self.n_found / obligations if obligations else 0.0

    @property
    def f1(self) -> float:
        """``2 TP / (2 TP + FP + FN)``; 0 where there is nothing to find or found."""
        wrong = len(self.missed) + len(self.false_alarms)
        return 2 * self.n_found / (2 * self.n_found + wrong) if self.n_found or wrong else 0.0


def measure_obligations(
    classifier: ObligationClassifier, sentences: Sequence[Sentence], name: str = ""
) -> ObligationMeasures:
    """What the classifier makes of these sentences."""
    calls = classifier.classify([text for text, _ in sentences]) if sentences else []
    judged = [(text, label, call) for (text, label), call in zip(sentences, calls, strict=True)]
    return ObligationMeasures(
        name=name,
        n_sentences=len(sentences),
        n_found=sum(label and call for _, label, call in judged),
        missed=tuple(text for text, label, call in judged if label and not call),
        false_alarms=tuple(text for text, label, call in judged if call and not label),
    )


def rulebook_sentences() -> list[Sentence]:
    """The fifty sentences of the demonstration rulebook."""
    return [(text, label) for _, text, label in RULEBOOK_SENTENCES]


def split_sentences_of(data: Path, seed: int = SPLIT_SEED) -> list[Sentence]:
    """The test fifth of a JSON list of {Text, Obligation}, split as the reference does. Raises CorpusError."""
    from sklearn.model_selection import train_test_split

    sentences = read_labelled_sentences(data)
    try:
        _, test = train_test_split(sentences, test_size=TEST_FRACTION, random_state=seed)
    except ValueError as error:
        msg = f"{data} cannot be split ({error}); expected at least five sentences. Give a larger file with --data."
        raise CorpusError(msg) from error
    return [(sentence.text, sentence.obligation) for sentence in test]
