"""Measures time per stage: how long a loaded pipeline takes to a question's selection and scores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from ragqa.pipeline import Pipeline
from ragqa.types import Question
from ragqa.types.events.pipeline import Selected
from ragqa.types.events.scoring import Scored, SentenceScored


@dataclass(frozen=True, slots=True)
class SpeedRow:
    """One question: milliseconds to the selection, seconds from there, and the amount to score."""

    milliseconds_to_selection: float
    seconds_to_first_sentence_score: float  # from the selection; equal to the next if no sentence was scored
    seconds_to_final_scores: float  # from the selection; 0 if nothing was scored
    n_kept: int
    n_sentences: int
    n_pairs: int


def measure_speed(
    pipeline: Pipeline, questions: Sequence[Question], *, selection_only: bool = False
) -> Iterator[SpeedRow]:
    """A row per question, in order, each as soon as it is measured. The first question also warms up, so it runs twice.

    With ``selection_only`` no answer is written, and all figures beyond the selection are 0.
    """
    if questions:
        _row(pipeline, questions[0], selection_only)
    for question in questions:
        yield _row(pipeline, question, selection_only)


def _row(pipeline: Pipeline, question: Question, selection_only: bool) -> SpeedRow:
    began = selected = final = time.perf_counter()
    first: float | None = None
    n_kept = n_sentences = n_pairs = 0
    for event in pipeline.run(question):
        now = time.perf_counter()
        match event:
            case Selected(selection):
                selected, final, n_kept = now, now, len(selection.kept)  # nothing may be scored
                if selection_only:
                    return SpeedRow(1000 * (selected - began), 0.0, 0.0, n_kept, 0, 0)
            case SentenceScored() if first is None:
                first = now
            case Scored(paper):
                final, n_pairs, n_sentences = now, paper.n_pairs, len(paper.sentences)
    return SpeedRow(
        1000 * (selected - began), (first or final) - selected, final - selected, n_kept, n_sentences, n_pairs
    )


def summarise(rows: Sequence[SpeedRow]) -> list[tuple[str, float, float, float]]:
    """(name, median, 99th percentile, maximum) of every column with a value other than 0; empty without rows."""
    columns = {name: [float(getattr(row, name)) for row in rows] for name in SpeedRow.__dataclass_fields__}
    return [
        (name.replace("_", " "), median(values), float(np.percentile(values, 99)), max(values))
        for name, values in columns.items()
        if any(values)
    ]
