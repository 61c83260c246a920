"""`ragqa eval citations`: how well the check of citations corrects labelled ones."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.config import scoring_from_env, scoring_with
from ragqa.paths import Paths
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.evaluation.citation_measures import CheckedSentence, CitationReport, Counts


def citations(
    model: Annotated[str, typer.Option(help="NLI model: embedded name, local folder or hub name.")] = "",
    each: Annotated[bool, typer.Option("--each", help="Also print every sentence that does not end up right.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every sentence and the figures as JSON.")] = False,
) -> None:
    """Check the citations of 60 labelled sentences about the demonstration rulebook."""
    from ragqa.corpus import load_corpus
    from ragqa.corpus.demo import DEMOS
    from ragqa.evaluation.citation_measures import check_groups, report
    from ragqa.evaluation.rulebook_citations import RULEBOOK_CITATIONS
    from ragqa.loading import load_scorer

    demo = DEMOS["rulebook"]
    passages = load_corpus(demo.source, demo.format).passages
    scoring = scoring_with(scoring_from_env(), model)
    with stderr().status("Loading the models"):
        scorer = load_scorer(scoring, Paths.from_env())
    checked = []
    with progress_bar() as bar:
        task = bar.add_task("Checking", total=sum(len(group.sentences) for group in RULEBOOK_CITATIONS))
        for one in check_groups(RULEBOOK_CITATIONS, passages, scorer):
            checked.append(one)
            bar.advance(task)
    found = report(checked)
    if as_json:
        typer.echo(json.dumps(_json(found, checked), indent=2, ensure_ascii=False))
        return
    title = f"citations of {len(checked)} sentences, {scoring.entailment_model}, threshold {scoring.verdict_threshold}"
    stdout().print(_table(title, found), _kinds(found))
    for one in checked if each else []:
        if set(one.check.verified) != set(one.labelled.right):
            words = f"{one.labelled.written} → {one.check.verified}, right is {one.labelled.right}: {one.labelled.text}"
            stdout().print(plain(words))


def _table(title: str, found: CitationReport) -> Table:
    table = Table(title=plain(title))
    for heading in ("", "precision", "recall"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, counts in (
        ("changes made by the check", found.changes),
        ("citations as written", found.before),
        ("citations after the check", found.after),
    ):
        table.add_row(
            name,
            _share(counts.precision, counts.n_right, counts.n_found),
            _share(counts.recall, counts.n_right, counts.n_expected),
        )
    return table


def _kinds(found: CitationReport) -> Table:
    table = Table(title="sentences whose citations are just right after the check")
    table.add_column("as written")
    table.add_column("right after", justify="right")
    for kind, (good, total) in found.exact.items():
        table.add_row(kind, f"{good} of {total}")
    return table


def _share(value: float | None, count: int, total: int) -> str:
    return "–" if value is None else f"{value:.3f} ({count} of {total})"


def _json(found: CitationReport, checked: list[CheckedSentence]) -> dict[str, Any]:
    def figures(counts: Counts) -> dict[str, Any]:
        return {**asdict(counts), "precision": counts.precision, "recall": counts.recall}

    return {
        "changes": figures(found.changes),
        "before": figures(found.before),
        "after": figures(found.after),
        "exact": {kind: {"right": good, "n": total} for kind, (good, total) in found.exact.items()},
        "sentences": [asdict(one) for one in checked],
    }
