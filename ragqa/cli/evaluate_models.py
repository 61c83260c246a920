"""`ragqa eval nli | agreement | obligations`: what the models behind RePASs are worth."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ragqa.cli.output import PrecisionChoice, progress_bar, stderr, stdout
from ragqa.config import ScoringConfig, scoring_from_env, scoring_with
from ragqa.errors import ConfigError
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.evaluation.agreement import CaseAgreement
    from ragqa.evaluation.nli import PairReport
    from ragqa.training.nli_data import LabelledPair

Model = Annotated[str, typer.Option(help="NLI model: embedded name, local folder or hub name.")]
Precision = Annotated[PrecisionChoice | None, typer.Option(help="Of the NLI arithmetic.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


def nli(
    pairs: Annotated[
        list[Path] | None, typer.Option(help="JSON lines of {premise, hypothesis, label}, may be gzipped; repeatable.")
    ] = None,
    contrasts: Annotated[
        bool, typer.Option("--contrasts", help="The built-in pairs that differ in a number, date, modal, …")
    ] = False,
    legal: Annotated[bool, typer.Option("--legal", help="The built-in pairs of legal clauses.")] = False,
    model: Model = "",
    precision: Precision = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N pairs of each file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Accuracy, recall per label and speed of the NLI model on labelled pairs."""
    from ragqa.evaluation.contrasts import contrast_pairs
    from ragqa.evaluation.legal_pairs import legal_pairs
    from ragqa.evaluation.nli import PairReport, pairs_evaluated
    from ragqa.loading import load_nli
    from ragqa.training.nli_data import read_pairs

    sets: dict[str, list[LabelledPair]] = {str(path): read_pairs(path)[:limit] for path in pairs or []}
    sets |= {"contrasts": contrast_pairs()} if contrasts else {}
    sets |= {"legal": legal_pairs()} if legal else {}
    if not sets:
        msg = "nothing to measure on: expected --pairs FILE, --contrasts or --legal, got none; add one of them"
        raise ConfigError(msg)
    with stderr().status("Loading the model"):
        entailment, _ = load_nli(_scoring(model, precision))
    reports: list[PairReport] = []
    with progress_bar() as bar:
        for name, of_set in sets.items():
            task = bar.add_task(plain(Path(name).name).plain, total=len(of_set))
            for step in pairs_evaluated(entailment, of_set, name):
                if isinstance(step, PairReport):
                    reports.append(step)
                else:
                    bar.update(task, completed=step)
    if as_json:
        typer.echo(json.dumps([_pair_figures(report) for report in reports], indent=2))
        return
    for report in reports:
        _print_pairs(report)


def agreement(
    cases: Annotated[Path, typer.Option(help="JSON of answers with the RePASs published for them.")],
    model: Model = "",
    coverage_model: Annotated[str, typer.Option(help="For obligation coverage; as the NLI model if not given.")] = "",
    precision: Precision = None,
    each: Annotated[bool, typer.Option("--each", help="Also every case.")] = False,
    as_json: AsJson = False,
) -> None:
    """How far our RePASs agrees with published figures, in script mode."""
    from ragqa.evaluation.agreement import agreement as agreement_of
    from ragqa.evaluation.agreement import read_published, score_published
    from ragqa.loading import load_scorer

    published = read_published(cases)
    scoring = _scoring(model, precision, coverage_model)
    with stderr().status("Loading the models"):
        scorer = load_scorer(scoring)
    rows: list[CaseAgreement] = []
    with progress_bar() as bar:
        task = bar.add_task("Scoring", total=len(published))
        for row in score_published(scorer, published, scoring.sentence_splitter):
            rows.append(row)
            bar.advance(task)
    parts = agreement_of(rows)
    if as_json:
        typer.echo(json.dumps({"parts": [asdict(p) for p in parts], "cases": [asdict(r) for r in rows]}, indent=2))
        return
    if each:
        _print_cases(rows)
    table = _table(f"{len(rows)} published cases, script mode, {scoring.entailment_model}", "part")
    for heading in ("Pearson r", "published", "ours", "difference", "distance"):
        table.add_column(heading, justify="right")
    for part in parts:
        r = "undefined" if part.pearson is None else f"{part.pearson:.3f}"
        numbers = (part.mean_published, part.mean_found)
        table.add_row(
            part.part.replace("_", " "),
            r,
            *(f"{number:.3f}" for number in numbers),
            f"{part.mean_difference:+.3f}",
            f"{part.mean_distance:.3f}",
        )
    stdout().print(table)
    stdout().print(
        "E and C are the firm comparison; OC and composite hang on a classifier nobody published.", style="dim"
    )


def obligations(
    data: Annotated[
        Path | None, typer.Option(help="JSON list of {Text, Obligation}: its test part (seed 42) is measured too.")
    ] = None,
    model: Annotated[str, typer.Option(help="Obligation classifier: embedded name, folder or hub name.")] = "",
    each: Annotated[bool, typer.Option("--each", help="Also the sentences it gets wrong.")] = False,
    as_json: AsJson = False,
) -> None:
    """Precision, recall and F1 of the obligation classifier on 50 labelled rulebook sentences."""
    from ragqa.evaluation.obligation_measures import measure_obligations, rulebook_sentences, split_sentences_of
    from ragqa.loading import load_obligations

    sets = {"rulebook sentences": rulebook_sentences()}
    if data is not None:
        sets["test part, seed 42"] = split_sentences_of(data)
    scoring = scoring_with(scoring_from_env(), obligation=model)
    classifier = load_obligations(scoring)
    found = [measure_obligations(classifier, sentences, name) for name, sentences in sets.items()]
    if as_json:
        figures = [asdict(m) | {"precision": m.precision, "recall": m.recall, "f1": m.f1} for m in found]
        typer.echo(json.dumps(figures, indent=2))
        return
    table = _table(scoring.obligation_model, "sentences")
    for heading in ("count", "F1", "precision", "recall"):
        table.add_column(heading, justify="right")
    for measured in found:
        numbers = (measured.f1, measured.precision, measured.recall)
        table.add_row(measured.name, f"{measured.n_sentences}", *(f"{number:.3f}" for number in numbers))
    stdout().print(table)
    for measured in found if each else []:
        for wrong, texts in (("missed", measured.missed), ("false alarm", measured.false_alarms)):
            for text in texts:
                stdout().print(plain(f"{wrong}: {' '.join(text.split())}"))


def _scoring(model: str, precision: PrecisionChoice | None, coverage_model: str = "") -> ScoringConfig:
    """The profile of the environment with these in its place."""
    scoring = scoring_with(scoring_from_env(), model, coverage_model)
    return replace(scoring, precision=precision.value) if precision else scoring


def _table(title: str, first: str) -> Table:
    table = Table(title=plain(title))
    table.add_column(first)
    return table


def _pair_figures(report: PairReport) -> dict[str, Any]:
    derived = ("n_pairs", "accuracy", "recall", "pairs_per_second")
    return asdict(report) | {name: getattr(report, name) for name in derived}


def _print_pairs(report: PairReport) -> None:
    from ragqa.training.nli_data import LABELS

    accuracy = "no pairs" if report.accuracy is None else f"accuracy {report.accuracy:.4f}"
    speed = f"{report.pairs_per_second:,.0f} pairs/s"
    name = f"{report.model.name} ({report.model.precision})"
    title = f"{report.name}: {accuracy}, {report.n_pairs:,} pairs, {speed}, {name}"
    table = _table(title, "label")
    for heading in ("recall", *(f"called {label}" for label in LABELS)):
        table.add_column(heading, justify="right")
    for label, row in zip(LABELS, report.confusion, strict=True):
        recall = report.recall[label]
        table.add_row(label, "-" if recall is None else f"{recall:.3f}", *(f"{count:,}" for count in row))
    stdout().print(table)
    if len(report.correct_of) > 1:
        kinds = (f"{kind or 'unnamed'} {correct} of {n}" for kind, (correct, n) in report.correct_of.items())
        stdout().print(plain("Correct: " + ", ".join(kinds)))


def _print_cases(rows: list[CaseAgreement]) -> None:
    table = _table("published / ours", "case")
    for heading in ("sentences", "E", "C", "OC", "composite"):
        table.add_column(heading, justify="right")
    for row in rows:
        numbers = zip(row.published.values, row.found.values, strict=True)
        cells = (f"{theirs:.3f} / {ours:.3f}" for theirs, ours in numbers)
        table.add_row(str(row.number), f"{row.n_source_sentences} x {row.n_answer_sentences}", *cells)
    stdout().print(table)
