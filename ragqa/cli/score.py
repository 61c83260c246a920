"""`ragqa score`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import TextColumn
from rich.table import Table

from ragqa.cli.output import PrecisionChoice, progress_bar, stderr, stdout
from ragqa.config import ScoringConfig, scoring_from_env, scoring_with
from ragqa.errors import ConfigError
from ragqa.evaluation.answer_file import AnswerFile, read_answers
from ragqa.evaluation.reference_files import averages
from ragqa.evaluation.scoring_folder import DETAILS, OUTPUTS, ScoringFolder, open_folder
from ragqa.evaluation.scoring_run import MemoryStore, Outcome, Plan, Status, Store, make_plan, score_pending
from ragqa.paths import Paths
from ragqa.tables import plain, scores_group
from ragqa.types import Breakdown, ScoringMode

NOT_ALL_SCORED, INTERRUPTED = 5, 130  # exit codes; 130 is what shells say of a process ended by Ctrl-C
NAMED_AT_MOST = 10  # items listed one by one on standard error; all are in details.json


class ProfileChoice(StrEnum):
    """Which RePASs models and settings to begin with."""

    EMBEDDED = "embedded"
    REFERENCE = "reference"


class SplitterChoice(StrEnum):
    """What finds the sentences."""

    NUPUNKT = "nupunkt"
    PUNKT = "punkt"


def score(
    file: Annotated[
        Path, typer.Argument(help="JSON list, or JSON lines, of {QuestionID, Question, RetrievedPassages, Answer}.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep every item here as it is scored, go on from there after a break, and write results.csv, "
            "results.txt and details.json. Only printed where not given.",
        ),
    ] = None,
    mode: Annotated[
        ScoringMode | None, typer.Option(help="Which RePASs definition; embedded: paper, reference: script.")
    ] = None,
    profile: Annotated[
        ProfileChoice | None, typer.Option(help="Which models and settings; RAGQA_SCORING_PROFILE, else embedded.")
    ] = None,
    entailment_model: Annotated[
        str, typer.Option(metavar="MODEL", help="For E and C: embedded name, local folder or hub name.")
    ] = "",
    coverage_model: Annotated[str, typer.Option(metavar="MODEL", help="For OC, likewise.")] = "",
    obligation_model: Annotated[
        str, typer.Option(metavar="MODEL", help="Tells obligations from other sentences, likewise.")
    ] = "",
    splitter: Annotated[SplitterChoice | None, typer.Option(help="What finds the sentences.")] = None,
    precision: Annotated[PrecisionChoice | None, typer.Option(help="Of the NLI arithmetic.")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Throw away what DIR holds and begin anew.")] = False,
    details: Annotated[bool, typer.Option("--details", help="Also print every sentence and obligation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every breakdown, both modes, as JSON.")] = False,
) -> None:
    """Score answers written elsewhere against the passages they were written from.

    An item without an answer is skipped, as the reference script does. Exit codes beyond the common ones: 5 where an
    item could not be scored (the same command tries it again), 130 after Ctrl-C.
    """
    environ = {**os.environ, "RAGQA_SCORING_PROFILE": profile} if profile else os.environ
    config = scoring_with(scoring_from_env(environ), entailment_model, coverage_model, obligation_model)
    config = replace(
        config,
        mode=mode or config.mode,
        sentence_splitter=splitter.value if splitter else config.sentence_splitter,
        precision=precision.value if precision else config.precision,
    )
    if restart and out is None:
        msg = "--restart throws away what --out DIR holds, and no DIR was given; add --out, or leave --restart out"
        raise ConfigError(msg)
    answers = read_answers(file)
    try:
        with _store(out, answers, config, restart=restart) as store:
            outcomes = _scored(answers, store, config)
            if isinstance(store, ScoringFolder):
                store.write(outcomes)
            _report(outcomes, store, config.mode, details=details, as_json=as_json)
    except KeyboardInterrupt:
        _interrupted(out)
    if any(outcome.status is Status.FAILED for outcome in outcomes):
        raise typer.Exit(NOT_ALL_SCORED)


@contextmanager
def _store(out: Path | None, answers: AnswerFile, config: ScoringConfig, *, restart: bool) -> Iterator[Store]:
    if out is None:
        yield MemoryStore()
        return
    with open_folder(out, answers, config, restart=restart) as folder:
        if folder.journal.dropped_torn_line:
            _say(f"{out}: dropped an item that was only half written; it is scored again")
        yield folder


def _scored(answers: AnswerFile, store: Store, config: ScoringConfig) -> list[Outcome]:
    """The outcome of every item, in the file's order."""
    from ragqa.loading import load_scorer

    plan = make_plan(answers.items, store)
    _announce(plan)
    outcomes = [*plan.skipped, *plan.known]
    if plan.pending:
        with stderr().status("Loading the models"):
            scorer = load_scorer(config, Paths.from_env())
        with progress_bar() as bar:
            bar.columns = (*bar.columns, TextColumn("{task.fields[rate]}"))
            n_known, n_pending = len(plan.known), len(plan.pending)
            task = bar.add_task("Scoring answers", total=n_known + n_pending, completed=n_known, rate="")
            began = time.perf_counter()
            scoring = score_pending(plan.pending, scorer, store, config.mode, config.sentence_splitter)
            for done, outcome in enumerate(scoring, start=1):
                outcomes.append(outcome)
                seconds = (time.perf_counter() - began) / done
                bar.update(task, advance=1, rate=f"{seconds:.2f} s each")
                if outcome.status is Status.FAILED:
                    _say(f"{_named(outcome)} could not be scored: {outcome.note}", bar.console)
    return sorted(outcomes, key=lambda outcome: outcome.number)


def _announce(plan: Plan) -> None:
    if plan.known or plan.n_failed_before:
        again = f"; {plan.n_failed_before:,} that failed are tried again" if plan.n_failed_before else ""
        _say(f"going on: {len(plan.known):,} answers are scored already, {len(plan.pending):,} are left{again}")
    if plan.skipped:
        named = "; ".join(f"{_named(outcome)} ({outcome.note})" for outcome in plan.skipped[:NAMED_AT_MOST])
        more = f"; and {len(plan.skipped) - NAMED_AT_MOST:,} more" if len(plan.skipped) > NAMED_AT_MOST else ""
        _say(f"skipping {len(plan.skipped):,} items as the reference script does: {named}{more}")


def _report(outcomes: Sequence[Outcome], store: Store, mode: ScoringMode, *, details: bool, as_json: bool) -> None:
    if as_json:
        rows = (json.dumps(_json_row(outcome, store), indent=2) for outcome in outcomes)
        typer.echo("[\n" + ",\n".join(rows) + "\n]")
    else:
        if details:
            _print_details(outcomes, store, mode)
        stdout().print(_summary(outcomes, mode))
    if isinstance(store, ScoringFolder):
        _say(f"{store.folder}: {', '.join(OUTPUTS)} written; {DETAILS} holds every pair and every item passed over")


def _json_row(outcome: Outcome, store: Store) -> dict[str, object]:
    row: dict[str, object] = {"QuestionID": outcome.question_id, "Question": outcome.question}
    if outcome.status is not Status.SCORED:
        return {**row, outcome.status: outcome.note}
    return {**row, **store.entry(outcome.number)["scored"]}


def _print_details(outcomes: Sequence[Outcome], store: Store, mode: ScoringMode) -> None:
    from pydantic import TypeAdapter

    adapter = TypeAdapter(Breakdown)
    for outcome in outcomes:
        if outcome.status is Status.SCORED:
            breakdown = adapter.validate_python(store.entry(outcome.number)["scored"][mode])
            stdout().print(plain(outcome.question or outcome.question_id, style="bold"), scores_group(breakdown))


def _summary(outcomes: Sequence[Outcome], mode: ScoringMode) -> Table:
    rows = [outcome.figures for outcome in outcomes if outcome.figures is not None]
    counts = "".join(
        f", {sum(outcome.status is status for outcome in outcomes):,} {status}"
        for status in (Status.SKIPPED, Status.FAILED)
        if any(outcome.status is status for outcome in outcomes)
    )
    table = Table(title=f"RePASs, {mode} mode, {len(rows):,} answers{counts}")
    for heading in ("question", "E", "C", "OC", "RePASs"):
        table.add_column(heading, overflow="fold", justify="left" if heading == "question" else "right")
    for outcome in outcomes:
        figures = outcome.figures.values if outcome.figures else ()
        numbers = [f"{figure:.3f}" for figure in figures] or ["–", "–", "–", outcome.status]
        table.add_row(plain(outcome.question or outcome.question_id, 80), *numbers)
    if rows:
        table.add_section()
        table.add_row("mean", *(f"{figure:.3f}" for figure in averages(rows).values))
    return table


def _interrupted(out: Path | None) -> NoReturn:
    if out is None:
        _say(
            "stopped; nothing was kept. With --out DIR every scored answer is, and the same command goes on from there"
        )
    else:
        _say(f"stopped; what was scored is kept in {out}. The same command, without --restart, goes on from there")
    raise typer.Exit(INTERRUPTED)


def _named(outcome: Outcome) -> str:
    return f"item {outcome.number}" + (f" ({outcome.question_id})" if outcome.question_id else "")


def _say(message: str, console: Console | None = None) -> None:
    (console or stderr()).print(plain(message), soft_wrap=True)
