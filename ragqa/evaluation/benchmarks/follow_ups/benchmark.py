"""`ragqa eval follow-ups`: is a follow-up rewritten rightly to stand alone? Nothing is retrieved or answered.

The threads are those of `ragqa.evaluation.benchmarks.expected_facts` (``follow_ups.jsonl``), as is the judgement, by
patterns that a right rewriting must or must not have. Questions are rewritten by rules or, with ``--generator llm``, by
the language model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import asdict, replace
from statistics import fmean
from typing import Any, Final

from ragqa.conversation import Turn, rewrite
from ragqa.evaluation.benchmark import (
    GENERATOR,
    LIMIT,
    PARALLEL,
    Benchmark,
    Item,
    Json,
    Outcome,
    Settings,
    Status,
    Task,
)
from ragqa.evaluation.benchmarks.expected_facts import facts
from ragqa.evaluation.benchmarks.expected_facts.benchmark import PART as PART_OF_ANSWERS
from ragqa.evaluation.loading import config_of
from ragqa.evaluation.report import Comparison, Figure, Line, Report, Row, shown
from ragqa.generation.prompts import load_prompt
from ragqa.infra.journal import digest
from ragqa.settings.environment import prompt_folder
from ragqa.settings.paths import Paths
from ragqa.types import Question

SCHEMA_VERSION: Final = 1
PART: Final = replace(
    PART_OF_ANSWERS,
    help="further: written later, open too; held: written with them, first looked at when the rules had been "
    "chosen. Sealed cases are held out: for reported figures only.",
    choices=(*PART_OF_ANSWERS.choices, "held"),
)


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Loads the threads of a part. Raises ConfigError."""
    yield "Reading the threads"
    config = config_of(settings, paths).generation
    known = [row for name in (facts.FOLLOW_UPS, facts.FURTHER_FOLLOW_UPS) for row in facts.rows(name)]
    rows = [row for row in known if row["part"] == settings["part"]]
    stamp = {
        "schema_version": SCHEMA_VERSION,
        "part": settings["part"],
        "generation": asdict(config.without_credentials()),
        "prompt": load_prompt("follow_up", prompt_folder()).version.version,
    }
    items = tuple(
        Item(number, Question(row["follow_up"], row["id"]), row, digest(row))
        for number, row in enumerate(rows, start=1)
    )
    return Task(items, stamp, config, scoring={"rows": digest({"rows": rows})}, parallel=settings["parallel"])


def solve(task: Task, item: Item) -> Json:
    """The rewriting, its author, and its note."""
    turn = Turn(item.content["question"], item.content["answer"])
    return asdict(rewrite(item.question.text, [turn], task.context))


def score(_: Task, item: Item, solution: Json) -> Json:
    """Whether the rewriting is right."""
    return {"status": Status.SCORED, "right": facts.is_right_rewriting(solution["rewritten"], item.content)}


def row(_: Task, outcome: Outcome) -> Row:
    """The earlier question, the follow-up, and its rewriting."""
    found, solution, scores = outcome.row(), outcome.solution, outcome.scores
    if solution is None or scores is None:
        return found
    before = (f"{outcome.item.content['kind']}, after: {outcome.item.content['question']}",)
    return replace(found, right=scores["right"], answer=solution["rewritten"], steps=before, note=solution["note"])


def figures(_: Task, rows: Sequence[Row]) -> tuple[Figure, ...]:
    """The number of right rewritings, and their share."""
    done = [float(one.right) for one in rows if one.right is not None]
    count = f"{sum(done):.0f} of {len(done)}" if done else "–"
    return (
        Figure("Right", count, "the rewriting has all that it must have and nothing that it must not"),
        Figure("Share", shown(fmean(done) if done else None)),
    )


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """The numbers of right rewritings by kind, and every wrong one."""
    done = [outcome for outcome in outcomes if outcome.scores]
    rows = [row(task, outcome) for outcome in done]
    kinds = [outcome.item.content["kind"] for outcome in done]
    asked, right = Counter(kinds), Counter(kind for kind, one in zip(kinds, rows, strict=True) if one.right)
    lines = [Line(kind, (str(right[kind]), str(asked[kind])), "this run") for kind in sorted(asked)]
    data: dict[str, Any] = {"run": dict(task.stamp), "n_done": len(done), "right": dict(right), "asked": dict(asked)}
    data["by"] = dict(Counter((outcome.solution or {}).get("by", "") for outcome in done))
    data["not_right"] = [
        {"id": one.question_id, "asked": one.question, "rewritten": one.answer, "steps": one.steps, "note": one.note}
        for one in rows
        if not one.right
    ]
    table = Comparison(("right", "asked"), tuple(lines), title="Follow-ups made to stand alone", first="kind")
    return Report(figures(task, rows), comparisons=(table,) if lines else (), data=data)


BENCHMARK: Final = Benchmark.of(
    globals(),
    name="follow-ups",
    title="Follow-up questions",
    description="Questions asked in the light of another and its answer: made to stand alone rightly, by rules or by a "
    "language model.",
    options=(PART, GENERATOR, LIMIT, PARALLEL),
    right="the rewriting has all that it must have and nothing that it must not",
    doing="Rewriting",
    outputs=("report.json",),
)
