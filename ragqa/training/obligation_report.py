"""What a trained obligation classifier is worth: F1 on the split, without leaks, and on the own-written probe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragqa.training.obligation_sentences import PROBE_OBLIGATIONS, PROBE_STATEMENTS

Classify = Callable[[Sequence[str]], list[bool]]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one classifier. ``fresh`` is the test part without texts that the train part or itself repeats."""

    f1: float
    f1_fresh: float
    n_fresh: int
    f1_cross_validated: float
    probe_obligations_found: int
    probe_statements_kept_out: int


@dataclass(frozen=True, slots=True)
class ObligationReport:
    """How the training went; its text is what the command prints."""

    seed: int
    n_train: int
    n_test: int
    n_duplicates: int
    n_added: int
    n_contrast: int
    contrast_weight: float
    n_ngrams: int
    shipped: Figures
    plain: Figures
    seconds: float

    def __str__(self) -> str:
        return "\n".join(
            [
                f"Trained on {self.n_train:,} sentences of the data set (seed {self.seed}), {self.n_added} own ones, "
                f"{self.n_contrast} without their duty word: {self.n_ngrams:,} n-grams in {self.seconds:.1f} s.",
                f"F1 on the {self.n_test} test sentences: {self.shipped.f1:.4f} (data set alone: {self.plain.f1:.4f}).",
                f"F1 on the {self.shipped.n_fresh} of them that repeat no other text: {self.shipped.f1_fresh:.4f} "
                f"(data set alone: {self.plain.f1_fresh:.4f}).",
                f"F1 by cross-validation within the train part: {self.shipped.f1_cross_validated:.4f} "
                f"(data set alone: {self.plain.f1_cross_validated:.4f}).",
                f"Own probe: {self.shipped.probe_obligations_found} of {len(PROBE_OBLIGATIONS)} obligations found, "
                f"{self.shipped.probe_statements_kept_out} of {len(PROBE_STATEMENTS)} other sentences kept out "
                f"(data set alone: {self.plain.probe_obligations_found} and {self.plain.probe_statements_kept_out}).",
            ]
        )


def measure(
    classify: Classify,
    test: Sequence[tuple[str, bool]],
    fresh: Sequence[tuple[str, bool]],
    f1_cross_validated: float,
) -> Figures:
    """The figures of this classifier on (text, is an obligation) pairs and on the probe."""
    return Figures(
        f1=f1_of(classify, test),
        f1_fresh=f1_of(classify, fresh),
        n_fresh=len(fresh),
        f1_cross_validated=f1_cross_validated,
        probe_obligations_found=sum(classify(PROBE_OBLIGATIONS)),
        probe_statements_kept_out=len(PROBE_STATEMENTS) - sum(classify(PROBE_STATEMENTS)),
    )


def f1_of(classify: Classify, labelled: Sequence[tuple[str, bool]]) -> float:
    """F1 of this classifier on (text, is an obligation) pairs."""
    return f1_score([label for _, label in labelled], classify([text for text, _ in labelled]))


def f1_score(labels: Sequence[bool], found: Sequence[bool]) -> float:
    """``2 TP / (2 TP + FP + FN)`` for the obligations, in [0, 1]; 0 where there is nothing to find or found."""
    true = sum(label and guess for label, guess in zip(labels, found, strict=True))
    wrong = sum(label != guess for label, guess in zip(labels, found, strict=True))
    return 2 * true / (2 * true + wrong) if true or wrong else 0.0
