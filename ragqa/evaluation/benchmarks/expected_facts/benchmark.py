"""`ragqa eval answering`: do answers state the expected facts, and are unanswerable questions refused?

Each case is asked of the corpus that it was written for (`both-as-fits`); one corpus may be chosen alone. Answers are
judged by expected facts (`facts`), so that no model decides; if the facts change, the same folder is judged again
without new answers. RePASs is not computed, because an answer may be faithful and still answer something else.
Relevance is computed, and how well it separates right answers from others (`separation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Final

from ragqa.corpus.demo import DEMOS
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmark import (
    GENERATOR,
    LIMIT,
    PARALLEL,
    PRESET,
    Benchmark,
    Item,
    Json,
    Option,
    Outcome,
    Settings,
    Status,
    Task,
)
from ragqa.evaluation.benchmarks.expected_facts import facts
from ragqa.evaluation.benchmarks.expected_facts.facts import Facts
from ragqa.evaluation.benchmarks.generated_answers.solving import ReceivedAnswer, answered
from ragqa.evaluation.loading import answer_stamp_of, config_of, pipeline_for
from ragqa.evaluation.report import Column, Comparison, Figure, Line, Matched, Report, Row, shown
from ragqa.infra.journal import digest
from ragqa.pipeline import Pipeline
from ragqa.settings.paths import Paths
from ragqa.types import Answer, Question

SCHEMA_VERSION: Final = 1
PARTS: Final = ("open", "further", "sealed")
CORPORA: Final = ("rulebook", "encyclopedia")
BOTH: Final = "both-as-fits"
OUTCOMES: Final = tuple(facts.FactOutcome)
ANSWERED: Final = "answered"  # an unanswerable question that should have been refused
COLUMNS: Final = (
    Column("full", "full", 0),
    Column("first", "first", 0),
    Column("relevance", "relevance"),
    Column("words", "words", 0),
    Column("seconds", "seconds", 1),
)
PART: Final = Option(
    "part",
    "further: written later, open too. Sealed cases are held out: for reported figures only.",
    "choice",
    PARTS[0],
    choices=PARTS,
    label="Part",
)
OPTIONS: Final = (
    Option(
        "index",
        "Demonstration corpus of the cases; default: both, each question asked of its own.",
        "choice",
        BOTH,
        choices=(*CORPORA, BOTH),
        label="Corpus",
        said={BOTH: "each case in its own corpus", **{name: DEMOS[name].title for name in CORPORA}},
    ),
    PART,
    GENERATOR,
    PRESET,
    LIMIT,
    PARALLEL,
)


@dataclass(frozen=True, slots=True)
class Case:
    """A question of a corpus; if ``facts`` is None, the corpus does not answer it, and a refusal is right."""

    corpus: str
    kind: str
    facts: Facts | None


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Loads a pipeline for each corpus, and the cases. Raises ConfigError if the generator writes no answers."""
    asked = CORPORA if settings["index"] == BOTH else (settings["index"],)
    pipelines: dict[str, Pipeline] = {}
    for name in asked:
        yield f"Loading the index {name} and its models"
        pipelines[name] = pipeline_for(config_of({**settings, "index": name}, paths), paths)
        if pipelines[name].generator is None:
            raise ConfigError("the generator must write answers, got 'none'; name another with --generator")
    rows = _rows(settings["part"], asked)
    stamps = {name: answer_stamp_of(facts.DATA / facts.QUESTIONS, one) for name, one in pipelines.items()}
    for one in stamps.values():
        del one["input"], one["input_sha256"]  # items identify the questions, and their facts may change
    stamp = {"schema_version": SCHEMA_VERSION, "part": settings["part"], "corpora": stamps}
    items = tuple(_item(number, row) for number, row in enumerate(rows, start=1))
    return Task(
        items,
        stamp,
        pipelines,
        COLUMNS,
        {"cases": digest({"rows": rows}), "relevance": 1, "beside": 1},
        parallel=settings["parallel"],
    )


def _rows(part: str, corpora: Sequence[str]) -> list[dict[str, Any]]:
    found = [row for name in (facts.QUESTIONS, facts.UNANSWERABLE, facts.NEAR) for row in facts.rows(name)]
    return [row for row in found if row["part"] == part and row["corpus"] in corpora]


def _item(number: int, row: Mapping[str, Any]) -> Item:
    case = Case(row["corpus"], row["kind"], Facts.of(row) if "facts" in row else None)
    question = Question(row["question"], row["id"])
    return Item(number, question, case, digest({"corpus": case.corpus, "id": row["id"], "text": question.text}))


def solve(task: Task, item: Item) -> Json:
    """The answer with the passages that it was written from."""
    return asdict(answered(task.context[item.content.corpus], item.question))


def score(task: Task, item: Item, solution: Json) -> Json:
    """The outcome, and which facts were found, missing and wrong."""
    found, case = ReceivedAnswer.of(solution), item.content
    judged: dict[str, Any]
    if case.facts is None:
        refused = found.answer.is_refusal
        judged = {"outcome": facts.FactOutcome.REFUSED if refused else ANSWERED, "right": refused}
    else:
        judged = asdict(facts.judge(found.answer, case.facts))
        judged["right"] = judged["outcome"] == facts.FactOutcome.FULL
        says = [
            bool(facts.judge(replace(found.answer, text=one), case.facts).found) for one in _sentences(found.answer)
        ]
        judged["first"] = says[0]
        judged["beside"] = None if found.answer.is_refusal else says.count(False) / len(says)
    answers = task.context[case.corpus].relevance(item.question, found.answer, found.passages)
    judged["relevance"] = answers.value if answers else None
    words, seconds = len(found.answer.text.split()), sum(found.seconds.values())
    return {"status": Status.SCORED, **judged, "words": words, "seconds": seconds}


def _sentences(answer: Answer) -> list[str]:
    """The answer's sentences, at least one; the first one should state an expected fact."""
    return [one.text for one in answer.sentences] or [answer.text]


def row(_: Task, outcome: Outcome) -> Row:
    """The question with its answer, passages and facts; right if all facts are stated, or if a refusal is right."""
    case, scores, found = outcome.item.content, outcome.scores, outcome.row()
    if outcome.solution is None or scores is None:
        return found
    kept = ReceivedAnswer.of(outcome.solution)
    facts_found = ((part, name == "found") for name in ("found", "missing") for part in scores.get(name, ()))
    return replace(
        found,
        right=scores["right"],
        values={
            "full": float(scores["right"]),
            "first": float(scores.get("first", False)),
            "beside": scores.get("beside"),
            "relevance": scores["relevance"],
            "words": scores["words"],
            "seconds": scores["seconds"],
        },
        hits=kept.hits(),
        answer=kept.answer.text,
        matches=tuple(Matched(part, is_said) for part, is_said in facts_found),
        steps=(
            f"{case.corpus}, {case.kind}: {scores['outcome']}",
            *(f"wrong: {one}" for one in scores.get("wrong", ())),
        ),
        note=kept.answer.note,
    )


def figures(task: Task, rows: Sequence[Row]) -> tuple[Figure, ...]:
    """The shares of questions answered in full and of unanswerable ones refused, and other shares."""
    cases = {item.question.question_id: item.content for item in task.items}
    done = [(cases[one.question_id], one) for one in rows if one.right is not None]
    answerable = [float(bool(one.right)) for case, one in done if case.facts is not None]
    first = [one.values["first"] or 0.0 for case, one in done if case.facts is not None]
    beside = [value for case, one in done if case.facts is not None and (value := one.values["beside"]) is not None]
    refused = [float(bool(one.right)) for case, one in done if case.facts is None]
    return (
        Figure("Full", shown(fmean(answerable) if answerable else None), "every expected fact is said, nothing wrong"),
        Figure("First", shown(fmean(first) if first else None), "the first sentence says an expected fact"),
        Figure("Off-target", shown(fmean(beside) if beside else None), "of an answer's sentences say no expected fact"),
        Figure("Relevance", shown(separation(*_by_right(done))), "AUC: how well it tells full answers from others"),
        Figure("Refused", shown(fmean(refused) if refused else None), "of the questions that the corpus cannot answer"),
    )


def _by_right(done: Sequence[tuple[Case, Row]]) -> tuple[list[float], list[float]]:
    """The relevance of full answers and of other answers to answerable questions; refusals have none."""
    found = [(one.right, one.values["relevance"]) for case, one in done if case.facts is not None]
    full = [value for right, value in found if right and value is not None]
    return full, [value for right, value in found if not right and value is not None]


def separation(above: Sequence[float], below: Sequence[float]) -> float | None:
    """AUC: how often a value of ``above`` exceeds one of ``below``, ties counting half; None if one side is empty."""
    wins = [(high > low) + 0.5 * (high == low) for high in above for low in below]
    return fmean(wins) if wins else None


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """Outcomes by corpus and kind of question, as tables and as JSON, and every answer that is not right."""
    done = [(outcome, scores) for outcome in outcomes if (scores := outcome.scores)]
    answerable, unanswerable = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for outcome, scores in done:
        case = outcome.item.content
        counts = unanswerable if case.facts is None else answerable
        for group in ((case.corpus, case.kind), (case.corpus, "all"), ("all", case.kind), ("all", "all")):
            counts[(*group, str(scores["outcome"]))] += 1
    rows = [row(task, outcome) for outcome, _ in done]
    data = {
        "run": dict(task.stamp),
        "n_done": len(done),
        "answerable": _data(answerable),
        "unanswerable": _data(unanswerable),
        "relevance": _relevance([scores for _, scores in done]),
        "words": fmean(scores["words"] for _, scores in done) if done else None,
        "not_right": [
            {
                "id": one.question_id,
                "steps": one.steps,
                "question": one.question,
                "answer": one.answer,
                "note": one.note,
            }
            for one in rows
            if not one.right
        ],
    }
    tables = (
        _table("Questions that the corpus answers", answerable, [str(one) for one in OUTCOMES]),
        _table("Questions that it does not answer", unanswerable, [str(facts.FactOutcome.REFUSED), ANSWERED]),
    )
    return Report(figures(task, rows), COLUMNS, tuple(one for one in tables if one.lines), data=data)


def _relevance(found: Sequence[Json]) -> dict[str, Any]:
    """Mean relevance by outcome, and its AUC for full answers against wrong ones and unanswerable questions."""
    by_outcome: dict[str, list[float]] = {}
    for scores in found:
        if scores["relevance"] is not None:
            by_outcome.setdefault(str(scores["outcome"]), []).append(scores["relevance"])
    full = by_outcome.get(facts.FactOutcome.FULL, [])
    wrong = [*by_outcome.get(facts.FactOutcome.WRONG, []), *by_outcome.get(facts.FactOutcome.NONE, [])]
    return {
        "auc_full_wrong": separation(full, wrong),
        "auc_full_unanswerable": separation(full, by_outcome.get(ANSWERED, [])),
        "means": {outcome: fmean(values) for outcome, values in sorted(by_outcome.items())},
        "counts": {outcome: len(values) for outcome, values in sorted(by_outcome.items())},
    }


def _data(counts: Counter[tuple[str, str, str]]) -> list[dict[str, Any]]:
    groups = dict.fromkeys((corpus, kind) for corpus, kind, _ in counts)
    return [
        {
            "corpus": corpus,
            "kind": kind,
            **{outcome: n for (a, b, outcome), n in counts.items() if (a, b) == (corpus, kind)},
        }
        for corpus, kind in sorted(groups)
    ]


def _table(title: str, counts: Counter[tuple[str, str, str]], outcomes: Sequence[str]) -> Comparison:
    lines = []
    for corpus, kind in sorted({(corpus, kind) for corpus, kind, _ in counts}):
        numbers = [counts[(corpus, kind, outcome)] for outcome in outcomes]
        name = "all questions" if corpus == kind else f"{corpus}, {kind}"
        lines.append(
            Line(name, (*(f"{n}" for n in numbers), f"{sum(numbers)}", shown(numbers[0] / sum(numbers))), "this run")
        )
    caption = f"How many of each outcome; the last column is the share of {outcomes[0]!r}."
    return Comparison((*outcomes, "asked", "share"), tuple(lines), caption, title, "corpus, kind")


BENCHMARK: Final = Benchmark.of(
    globals(),
    name="answering",
    title="Answers and refusals",
    description="Questions with the facts that a right answer says, and questions that the corpus does not answer, on "
    "the demonstration corpora: answered in full, in part, wrongly, or refused.",
    options=OPTIONS,
    right="the answer says every expected fact and nothing wrong, or what the corpus does not answer is refused",
    doing="Answering",
    outputs=("report.json",),
)
