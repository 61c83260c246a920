"""Labelled sentence pairs -> accuracy, recall per label, confusion and speed of an NLI model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragqa.protocols import NliModel
from ragqa.training.nli_data import LABELS, LabelledPair
from ragqa.types import ModelInfo, NliProbabilities

PAIRS_PER_STEP = 512  # between two reports of progress: about a second


@dataclass(frozen=True, slots=True)
class PairReport:
    """What a model made of labelled pairs.

    ``confusion[gold][found]`` counts pairs, both in the order of `LABELS` (contradiction, entailment, neutral).
    ``correct_of`` holds (correct, pairs) for each set the pairs come from.
    """

    name: str
    model: ModelInfo
    confusion: tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
    correct_of: dict[str, tuple[int, int]]
    seconds: float

    @property
    def n_pairs(self) -> int:
        return sum(map(sum, self.confusion))

    @property
    def accuracy(self) -> float | None:
        """Share of pairs whose most probable label is the gold one; None without pairs."""
        return sum(self.confusion[n][n] for n in range(len(LABELS))) / self.n_pairs if self.n_pairs else None

    @property
    def recall(self) -> dict[str, float | None]:
        """Per gold label the share found; None where no pair has it."""
        rows = zip(LABELS, self.confusion, strict=True)
        return {label: row[LABELS.index(label)] / sum(row) if sum(row) else None for label, row in rows}

    @property
    def pairs_per_second(self) -> float:
        """Wall-clock; equal pairs are computed once, so a file that repeats itself looks faster."""
        return self.n_pairs / self.seconds if self.seconds > 0 else 0.0


def evaluate_pairs(model: NliModel, pairs: Sequence[LabelledPair], name: str = "") -> PairReport:
    """The report on these pairs at once. Raises ScoringError where the model gives numbers that are not finite."""
    report = PairReport(name, model.info, ((0, 0, 0), (0, 0, 0), (0, 0, 0)), {}, 0.0)
    for step in pairs_evaluated(model, pairs, name):
        if isinstance(step, PairReport):
            report = step
    return report


def pairs_evaluated(model: NliModel, pairs: Sequence[LabelledPair], name: str = "") -> Iterator[int | PairReport]:
    """Yields the number of pairs done, and last the report over all of them.

    The most probable label counts; at a tie the first of contradiction, entailment, neutral.
    """
    counts: Counter[tuple[int, int]] = Counter()
    correct: Counter[str] = Counter()
    began = time.perf_counter()
    for start in range(0, len(pairs), PAIRS_PER_STEP):
        step = pairs[start : start + PAIRS_PER_STEP]
        for pair, found in zip(step, model.predict([(p.premise, p.hypothesis) for p in step]), strict=True):
            label = _most_probable(found)
            counts[pair.label, label] += 1
            correct[pair.source] += label == pair.label
        yield start + len(step)
    seconds = time.perf_counter() - began
    rows = [(counts[gold, 0], counts[gold, 1], counts[gold, 2]) for gold in range(len(LABELS))]
    of_set = Counter(pair.source for pair in pairs)
    yield PairReport(
        name=name,
        model=model.info,
        confusion=(rows[0], rows[1], rows[2]),
        correct_of={source: (correct[source], of_set[source]) for source in of_set},
        seconds=seconds,
    )


def _most_probable(found: NliProbabilities) -> int:
    """An index into `LABELS`."""
    values = (found.contradiction, found.entailment, found.neutral)
    return values.index(max(values))
