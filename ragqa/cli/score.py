"""`ragqa score`: the benchmark of answers written elsewhere; it can also print every sentence."""

from __future__ import annotations

import json

import typer

from ragqa.cli.benchmarks import command_of, draw
from ragqa.cli.output import plain, stdout
from ragqa.cli.tables import scores_group
from ragqa.evaluation.benchmark import Outcome, Settings
from ragqa.evaluation.benchmarks.external_answers.benchmark import BENCHMARK
from ragqa.evaluation.benchmarks.external_answers.results import breakdowns, figures_in
from ragqa.evaluation.run import RunProgress
from ragqa.types.scores import Breakdown


def _show(last: RunProgress, settings: Settings, as_json: bool) -> None:
    if as_json:
        rows = (json.dumps(_json_row(outcome), indent=2) for outcome in last.outcomes)
        typer.echo("[\n" + ",\n".join(rows) + "\n]")
        return
    if settings["details"]:
        _print_details(last)
    draw(last.report)


def _json_row(outcome: Outcome) -> dict[str, object]:
    question = outcome.item.question
    row: dict[str, object] = {"QuestionID": question.question_id, "Question": question.text}
    return {**row, **(breakdowns(outcome) if figures_in(outcome) else {outcome.status: outcome.note})}


def _print_details(last: RunProgress) -> None:
    from pydantic import TypeAdapter

    adapter, mode = TypeAdapter(Breakdown), last.report.data["settings"]["mode"]
    for outcome in last.outcomes:
        if figures_in(outcome):
            question = outcome.item.question
            shown = scores_group(adapter.validate_python(breakdowns(outcome)[mode]))
            stdout().print(plain(question.text or question.question_id, style="bold"), shown)


score = command_of(BENCHMARK, _show)
