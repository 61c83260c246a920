"""Runs of `ragqa eval answers` side by side: means, differences on the questions they share, and their significance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragqa.errors import ConfigError, RecordError
from ragqa.evaluation.answer_measures import MEASURES, Values, means
from ragqa.evaluation.run_folder import JOURNAL, RUN
from ragqa.evaluation.significance import PairedTest, holm, paired_test

TESTED = ("composite", "entailment", "contradiction", "obligation_coverage", "lix")
DETAILS = "details.json"
_AGAIN = "run `ragqa eval answers --out {folder}` to its end first, or name another folder"


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A finished run: its values by (question id, question) for what was scored, and how much was not."""

    name: str
    values: Mapping[tuple[str, str], Values]
    n_unscored: int
    details: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class AnswerComparison:
    """A run against the baseline in one measure over ``n`` questions; p adjusted for all of the table (Holm)."""

    name: str
    measure: str
    n: int
    test: PairedTest
    adjusted_p: float


def load_run(folder: Path) -> LoadedRun:
    """The run in this folder, named by it. Raises RecordError where it is unfinished, damaged, or none at all."""
    file = folder / DETAILS
    again = _AGAIN.format(folder=folder)
    if not file.is_file():
        found = "an unfinished run" if (folder / RUN).exists() or (folder / JOURNAL).exists() else "none"
        msg = f"{folder}: expected a finished run with {DETAILS}, found {found}; {again}"
        raise RecordError(msg)
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        values = {
            (row["QuestionID"], row["Question"]): _checked(row["values"]) for row in rows if row["status"] == "scored"
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"{file}: expected what `ragqa eval answers` wrote, found something else ({error!r}); {again}"
        raise RecordError(msg) from error
    return LoadedRun(folder.name or str(folder), values, len(rows) - len(values), tuple(rows))


def _checked(values: Mapping[str, Any]) -> Values:
    """The measures of one answer. Raises TypeError or KeyError where one is missing or no number."""
    return {m.key: None if values[m.key] is None else float(values[m.key]) for m in MEASURES}


def shared_questions(runs: Sequence[LoadedRun]) -> tuple[tuple[str, str], ...]:
    """The questions that every run scored, in the order of the first. Raises ConfigError where there is none."""
    if not runs:
        msg = "expected at least one folder of a finished run, found none; name one or more"
        raise ConfigError(msg)
    shared = [key for key in runs[0].values if all(key in run.values for run in runs[1:])]
    if not shared:
        counts = ", ".join(f"{run.name} {len(run.values):,}" for run in runs)
        msg = f"expected runs with scored questions in common, found none (scored: {counts}); name runs of one file"
        raise ConfigError(msg)
    return tuple(shared)


def compare_runs(
    runs: Sequence[LoadedRun], baseline: int = 0, seed: int = 0
) -> tuple[tuple[dict[str, float | None], ...], tuple[AnswerComparison, ...]]:
    """The means of each run over the questions all of them scored, and every other run against ``runs[baseline]``.

    Tested are the measures of `TESTED`, each over the shared questions where both runs have it.
    """
    keys = shared_questions(runs)
    base = runs[baseline]
    found = []
    for run in (run for number, run in enumerate(runs) if number != baseline):
        for name in TESTED:
            pairs = [(run.values[key][name], base.values[key][name]) for key in keys]
            both = [(a, b) for a, b in pairs if a is not None and b is not None]
            if both:
                test = paired_test([a for a, _ in both], [b for _, b in both], seed)
                found.append((run.name, name, len(both), test))
    adjusted = holm([test.p_value for _, _, _, test in found])
    comparisons = tuple(AnswerComparison(*row, p) for row, p in zip(found, adjusted, strict=True))
    return tuple(means(run.values[key] for key in keys) for run in runs), comparisons
