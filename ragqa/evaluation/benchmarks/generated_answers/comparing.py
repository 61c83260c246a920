"""Compares runs of `ragqa eval answers`: means, paired differences on shared questions, published figures.

The published rows in ``published.jsonl`` are of other models and retrievers; none was computed here. RePASs depends on
the retriever, the language model and the scoring models; figures from the embedded ones are not on their scale.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from ragqa.errors import ConfigError, RecordError
from ragqa.evaluation.benchmarks.generated_answers.measures import MEASURES, Values, means
from ragqa.evaluation.files import shipped_rows
from ragqa.evaluation.report import Comparison, Line, shown
from ragqa.evaluation.significance import PairedTest, paired_tests
from ragqa.infra.journal import JOURNAL, RUN

TESTED: Final = ("composite", "entailment", "contradiction", "obligation_coverage", "lix")
LATER: Final = ("relevance",)  # measures that older runs do not have
DETAILS: Final = "details.json"
SCALE: Final = (
    "Published: figures of other people, by the reference script (2024 and 2025), other retrievers and other scoring "
    "models: RePASs from the embedded models is not on their scale."
)
_AGAIN = "run `ragqa eval answers --out {folder}` to its end first, or name another folder"


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A finished run: the values of scored answers by (question id, question), and the number of unscored ones."""

    name: str
    values: Mapping[tuple[str, str], Values]
    n_unscored: int
    details: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class AnswerComparison:
    """A run against the baseline in one measure over ``n`` questions; p adjusted for the whole table (Holm)."""

    name: str
    measure: str
    n: int
    test: PairedTest
    adjusted_p: float


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of a table: RePASs and its parts in [0, 1], None if the table does not give them."""

    source: str
    table: str
    name: str
    composite: float
    entailment: float | None = None
    contradiction: float | None = None
    obligation_coverage: float | None = None

    @property
    def origin(self) -> str:
        """``"Gokhan et al. 2024, table 5"``."""
        return f"{self.source.partition(',')[0]}, table {self.table}"


def load_run(folder: Path) -> LoadedRun:
    """The run in this folder, with the folder's name. Raises RecordError if it is unfinished, damaged or missing."""
    file = folder / DETAILS
    again = _AGAIN.format(folder=folder)
    if not file.is_file():
        found = "an unfinished run" if (folder / RUN).exists() or (folder / JOURNAL).exists() else "none"
        raise RecordError(f"{folder}: expected a finished run with {DETAILS}, found {found}; {again}")
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
    """The measures of one answer. Raises TypeError or KeyError if one is missing or not a number."""
    values = {**dict.fromkeys(LATER), **values}
    return {m.key: None if values[m.key] is None else float(values[m.key]) for m in MEASURES}


def shared_questions(runs: Sequence[LoadedRun]) -> tuple[tuple[str, str], ...]:
    """The questions that every run scored, in the order of the first. Raises ConfigError if there are none."""
    if not runs:
        raise ConfigError("expected at least one folder of a finished run, found none; name one or more")
    shared = [key for key in runs[0].values if all(key in run.values for run in runs[1:])]
    if not shared:
        counts = ", ".join(f"{run.name} {len(run.values):,}" for run in runs)
        msg = f"expected runs with scored questions in common, found none (scored: {counts}); name runs of one file"
        raise ConfigError(msg)
    return tuple(shared)


def compare_runs(
    runs: Sequence[LoadedRun],
) -> tuple[tuple[dict[str, float | None], ...], tuple[AnswerComparison, ...]]:
    """The means of each run over the shared questions, and every other run against the first.

    The measures in `TESTED` are tested, each over the shared questions for which both runs have it.
    """
    keys = shared_questions(runs)
    base, *others = runs
    found, values = [], []
    for run in others:
        for name in TESTED:
            pairs = [(run.values[key][name], base.values[key][name]) for key in keys]
            both = [(a, b) for a, b in pairs if a is not None and b is not None]
            if both:
                found.append((run.name, name, len(both)))
                values.append(([a for a, _ in both], [b for _, b in both]))
    tests = paired_tests(values)
    comparisons = tuple(AnswerComparison(*row, *test) for row, test in zip(found, tests, strict=True))
    return tuple(means(run.values[key] for key in keys) for run in runs), comparisons


def tables_of(
    runs: Sequence[LoadedRun], of_runs: Sequence[Values], comparisons: Sequence[AnswerComparison]
) -> tuple[Comparison, ...]:
    """The means of each run, and every difference from the first run."""
    n = next((comparison.n for comparison in comparisons), len(runs[0].values))
    unscored = ", ".join(f"{run.name} {run.n_unscored:,}" for run in runs if run.n_unscored)
    caption = f"Not scored and in no mean: {unscored}." if unscored else ""
    of_means = means_table(f"means over {n:,} questions", [run.name for run in runs], of_runs, caption)
    return (of_means, _differences(runs[0].name, comparisons)) if comparisons else (of_means,)


def means_table(title: str, names: Sequence[str], of_runs: Sequence[Values], caption: str = "") -> Comparison:
    """A line per run, a column per measure."""
    columns = [one for one in MEASURES if not one.key.startswith("script_") or "composite" in one.key]
    lines = tuple(
        Line(name, tuple(shown(of_run.get(one.key), one.decimals) for one in columns))
        for name, of_run in zip(names, of_runs, strict=True)
    )
    return Comparison(tuple(one.heading for one in columns), lines, caption, title, "run")


def _differences(baseline: str, comparisons: Sequence[AnswerComparison]) -> Comparison:
    called = {measure.key: measure.heading for measure in MEASURES}
    return Comparison(
        ("measure", "questions", "difference", "95 % interval", "p", "p adjusted"),
        tuple(
            Line(
                found.name,
                (
                    called[found.measure],
                    f"{found.n:,}",
                    f"{found.test.mean_difference:+.4f}",
                    f"[{found.test.low:+.4f}, {found.test.high:+.4f}]",
                    f"{found.test.p_value:.4f}",
                    f"{found.adjusted_p:.4f}",
                ),
            )
            for found in comparisons
        ),
        "Paired permutation test on the questions both runs scored; p adjusted for all rows (Holm).",
        f"differences from {baseline}",
        "run",
    )


def run_tables(report: Mapping[str, Any]) -> tuple[Comparison, ...]:
    """One run, from its ``report.json``: both modes compared with published figures, and every measure."""
    counts, tokens, money, of_run = (report[name] for name in ("counts", "tokens", "money", "means"))
    generator = report["run"]["settings"]["generation"]["generator"]
    ours = [
        Line(
            f"{generator}, mode {mode}",
            tuple(shown(of_run[f"{prefix}{column.key}"]) for column in MEASURES[:4]),
            "this run",
            is_ours=True,
        )
        for mode, prefix in (("paper", ""), ("script", "script_"))
    ]
    caption = f"This run: means over {counts['scored']:,} scored answers. {SCALE}"
    spent = f"{tokens['prompt']:,} tokens sent, {tokens['completion']:,} written in all"
    spent += f", {money:.2f} at the prices given" if money is not None else ""
    if report["asked_again"]:
        spent += f"; asked again after a stop or a failure: {report['asked_again']:,}"
    counted = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    return (
        published_comparison(published_rows("5"), ours, caption),
        Comparison(
            ("",),
            tuple(Line(one.heading, (shown(of_run[one.key], one.decimals),)) for one in MEASURES),
            spent,
            f"{generator}: {report['n_questions']:,} questions, {counted}",
            "mean over the scored answers",
        ),
    )


@cache
def published_rows(table: str = "", source: str = "") -> tuple[PublishedRow, ...]:
    """The published rows in their tables' order: all, or those of one table or with this prefix of the source."""
    rows = (PublishedRow(**row) for row in shipped_rows(Path(__file__).with_name("published.jsonl")))
    return tuple(row for row in rows if row.table == (table or row.table) and row.source.startswith(source))


def published_comparison(rows: Sequence[PublishedRow], ours: Sequence[Line] = (), caption: str = "") -> Comparison:
    """Published figures, below our own lines."""
    theirs = tuple(
        Line(
            row.name,
            tuple(
                "" if part is None else shown(part)
                for part in (row.composite, row.entailment, row.contradiction, row.obligation_coverage)
            ),
            row.origin,
        )
        for row in rows
    )
    sources = "; ".join(dict.fromkeys(line.origin for line in theirs))
    title = "published: figures of other models, none computed here"
    return Comparison(
        ("RePASs", "E", "C", "OC"),
        (*ours, *theirs),
        caption or f"From {sources}.",
        f"this run and {title}" if ours else title,
    )
