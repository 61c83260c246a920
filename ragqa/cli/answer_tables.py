"""Reports and comparisons of answers -> rich tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.evaluation.answer_comparison import AnswerComparison, LoadedRun
    from ragqa.evaluation.answer_measures import Values
    from ragqa.evaluation.published import PublishedRow


def report_table(report: Mapping[str, Any]) -> Table:
    """The means of one run, a measure a line, with its counts and cost."""
    from ragqa.evaluation.answer_measures import MEASURES

    counts = ", ".join(f"{count:,} {status}" for status, count in report["counts"].items() if count)
    generator = report["run"]["settings"]["generation"]["generator"]
    table = Table(title=plain(f"{generator}: {report['n_questions']:,} questions, {counts}"))
    table.add_column("mean over the scored answers")
    table.add_column("", justify="right")
    for measure in MEASURES:
        table.add_row(measure.heading, _shown(report["means"][measure.key], measure.decimals))
    tokens, money = report["tokens"], report["money"]
    caption = f"{tokens['prompt']:,} tokens sent, {tokens['completion']:,} written in all"
    caption += f", {money:.2f} at the prices given" if money is not None else ""
    if report["asked_again"]:
        caption += f"; asked again after a stop or a failure: {report['asked_again']:,}"
    table.caption = plain(caption)
    return table


def comparison_tables(
    runs: Sequence[LoadedRun],
    means: Sequence[Values],
    comparisons: Sequence[AnswerComparison],
    published: Sequence[PublishedRow],
) -> list[Table]:
    """The means of each run, every difference from the first run, and the published rows in a table of their own."""
    n = next((comparison.n for comparison in comparisons), len(runs[0].values))
    tables = [means_table(f"means over {n:,} questions", [run.name for run in runs], means)]
    unscored = ", ".join(f"{run.name} {run.n_unscored:,}" for run in runs if run.n_unscored)
    if unscored:
        tables[0].caption = plain(f"Not scored and in no mean: {unscored}.")
    if comparisons:
        tables.append(_differences(runs[0].name, comparisons))
    return [*tables, published_table(published)]


def means_table(title: str, names: Sequence[str], means: Sequence[Values]) -> Table:
    """A row per run, a column per measure."""
    from ragqa.evaluation.answer_measures import MEASURES

    table = Table(title=plain(title))
    table.add_column("run", overflow="fold")
    shown = [measure for measure in MEASURES if not measure.key.startswith("script_") or "composite" in measure.key]
    for measure in shown:
        table.add_column(plain(measure.heading), justify="right", overflow="fold")
    for name, of_run in zip(names, means, strict=True):
        table.add_row(plain(name), *(_shown(of_run.get(measure.key), measure.decimals) for measure in shown))
    return table


def published_table(rows: Sequence[PublishedRow]) -> Table:
    """What others published, marked as theirs."""
    table = Table(title="published: figures of other models, none computed here", style="dim")
    for heading in ("where", "what", "RePASs", "E", "C", "OC"):
        table.add_column(heading, justify="left" if heading in ("where", "what") else "right")
    for row in rows:
        parts = (row.composite, row.entailment, row.contradiction, row.obligation_coverage)
        where = f"{row.source.partition(',')[0]}, table {row.table}"
        table.add_row(plain(where), plain(row.name), *(_shown(part, 3, absent="") for part in parts))
    return table


def _differences(baseline: str, comparisons: Sequence[AnswerComparison]) -> Table:
    from ragqa.evaluation.answer_measures import MEASURES

    headings = {measure.key: measure.heading for measure in MEASURES}
    table = Table(title=plain(f"differences from {baseline}"))
    for heading in ("run", "measure", "questions", "difference", "95 % interval", "p", "p adjusted"):
        table.add_column(heading, justify="left" if heading in ("run", "measure") else "right")
    for found in comparisons:
        test = found.test
        table.add_row(
            plain(found.name),
            headings[found.measure],
            f"{found.n:,}",
            f"{test.mean_difference:+.4f}",
            f"[{test.low:+.4f}, {test.high:+.4f}]",
            f"{test.p_value:.4f}",
            f"{found.adjusted_p:.4f}",
        )
    table.caption = "Paired permutation test on the questions both runs scored; p adjusted for all rows (Holm)."
    return table


def _shown(value: float | None, decimals: int, absent: str = "–") -> str:
    return absent if value is None else f"{value:,.{decimals}f}"
