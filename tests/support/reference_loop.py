"""RePASs the slow and plain way, as the reference script goes about it: what the product must equal and outrun.

The steps are those of RegNLP/RePASs ``scripts/evaluate_model.py`` (DESIGN.md, "Formulas"), written anew: the passages
joined with one space and then split; one source sentence after the other against the answer's sentences in batches of
16, padded to the longest of the batch; each obligation against one answer sentence at a time until one covers it. Only
the sentence splitter and the obligation classifier are ragqa's: no batches, no memory, no arithmetic of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from ragqa.english.sentences import split_sentences
from ragqa.plugins.protocols import ObligationClassifier

MODEL = Path(__file__).resolve().parents[2] / "ragqa" / "models" / "nli-minilm-l6"
BATCH_SIZE = 16
COVERED_ABOVE = 0.7


@dataclass(frozen=True, slots=True)
class LoopScore:
    """What the loop found for one answer.

    The matrices are float64 of shape (n_source_sentences, n_answer_sentences). ``coverage`` holds P(entailment) of the
    (answer sentence, obligation) pairs that were looked at before the search for that obligation stopped; ``n_pairs``
    counts every pair computed, equal ones too.
    """

    source_sentences: tuple[str, ...]
    answer_sentences: tuple[str, ...]
    entailment_matrix: np.ndarray
    contradiction_matrix: np.ndarray
    obligations: tuple[str, ...]
    covered: tuple[bool, ...]
    coverage: dict[tuple[str, str], float]
    n_pairs: int

    @property
    def entailment(self) -> float:
        return _rounded_mean_of_maxima(self.entailment_matrix)

    @property
    def contradiction(self) -> float:
        return _rounded_mean_of_maxima(self.contradiction_matrix)

    @property
    def obligation_coverage(self) -> float:
        return sum(self.covered) / len(self.covered) if self.covered else 0.0

    @property
    def composite(self) -> float:
        """Of the rounded E and C; the script writes it to a file with 5 decimals."""
        return (self.obligation_coverage + self.entailment - self.contradiction + 1) / 3


class ReferenceLoop:
    """The script's two NLI models, both from one folder, in fp32."""

    def __init__(
        self,
        obligations: ObligationClassifier,
        folder: Path = MODEL,
        coverage_input: Literal["pair", "joined"] = "pair",
    ) -> None:
        """``joined`` feeds the coverage model one text, ``answer sentence [SEP] obligation``, as the script does."""
        self.obligations = obligations
        self.coverage_input = coverage_input
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model = AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32
        ).eval()
        self.label_of = {int(column): str(label).lower() for column, label in self.model.config.id2label.items()}
        column_of = {label: column for column, label in self.label_of.items()}
        self.contradiction, self.entailment = column_of["contradiction"], column_of["entailment"]

    def score(self, passages: Sequence[str], answer: str) -> LoopScore:
        """RePASs of one answer against the texts of its passages."""
        source = [span.text for span in split_sentences(" ".join(passages))]
        said = [span.text for span in split_sentences(answer)]
        entailment_matrix = np.zeros((len(source), len(said)))
        contradiction_matrix = np.zeros((len(source), len(said)))
        for row, premise in enumerate(source):
            for first in range(0, len(said), BATCH_SIZE):
                hypotheses = said[first : first + BATCH_SIZE]
                probabilities = self.probabilities([premise] * len(hypotheses), hypotheses)
                entailment_matrix[row, first : first + BATCH_SIZE] = probabilities[:, self.entailment]
                contradiction_matrix[row, first : first + BATCH_SIZE] = probabilities[:, self.contradiction]
        source_obligations, said_obligations = self._obliging(source), self._obliging(said)
        covered, coverage, n_looked_at = [], {}, 0
        for obligation in source_obligations:
            found = False
            for sentence in said_obligations:
                label, score, entailment = self._cover(sentence, obligation)
                coverage[sentence, obligation] = entailment
                n_looked_at += 1
                if label == "entailment" and score > COVERED_ABOVE:
                    found = True
                    break
            covered.append(found)
        return LoopScore(
            source_sentences=tuple(source),
            answer_sentences=tuple(said),
            entailment_matrix=entailment_matrix,
            contradiction_matrix=contradiction_matrix,
            obligations=tuple(source_obligations),
            covered=tuple(covered),
            coverage=coverage,
            n_pairs=len(source) * len(said) + n_looked_at,
        )

    def probabilities(self, first: list[str], second: list[str] | None = None) -> np.ndarray:
        """Float32 array of shape (n_texts, 3), columns as the model has them; ``second`` None for one text each."""
        inputs = self.tokenizer(first, second, padding=True, truncation=True, max_length=512, return_tensors="pt")
        with torch.no_grad():
            logits = self.model(**inputs).logits.numpy()
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    def _obliging(self, sentences: list[str]) -> list[str]:
        flags = self.obligations.classify(sentences) if sentences else []
        return [sentence for sentence, obliges in zip(sentences, flags, strict=True) if obliges]

    def _cover(self, sentence: str, obligation: str) -> tuple[str, float, float]:
        """The winning label, its probability, and P(entailment)."""
        if self.coverage_input == "joined":
            row = self.probabilities([f"{sentence} [SEP] {obligation}"])[0]
        else:
            row = self.probabilities([sentence], [obligation])[0]
        winner = int(row.argmax())
        return self.label_of[winner], float(row[winner]), float(row[self.entailment])


def _rounded_mean_of_maxima(matrix: np.ndarray) -> float:
    return float(np.round(matrix.max(axis=0).mean(), 5)) if matrix.size else 0.0
