"""A file of answers as a benchmark: every answer is scored against the passages given with it.

::

    DIR/
    ├── run.json        the input, settings and models of this folder
    ├── journal.jsonl   every item as soon as it is scored
    ├── results.csv     in the reference's format (`ragqa.evaluation.benchmarks.external_answers.results`)
    ├── results.txt     the averages, likewise
    └── details.json    every item with both breakdowns and every pair's probabilities
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from ragqa.corpus.answers import AnswerItem, read_answers
from ragqa.english.sentences import splitter_name
from ragqa.evaluation.answer_file import figures_of, score_item
from ragqa.evaluation.benchmark import Benchmark, Item, Json, Option, Outcome, Settings, Status, Task
from ragqa.evaluation.benchmarks.external_answers.results import CSV, DETAILS, TEXT, averages, figures_in, write_results
from ragqa.evaluation.report import Column, Comparison, Figure, File, Line, Report, Row, shown
from ragqa.loading import load_scorer
from ragqa.plugins.protocols import Scorer
from ragqa.settings.config import ScoringConfig
from ragqa.settings.paths import Paths
from ragqa.settings.scoring import scoring_from_env, scoring_with
from ragqa.types import Question
from ragqa.types.scores import ScoringMode

SCHEMA_VERSION: Final = 1
LONGEST_NAME: Final = 80  # characters of a question in the table
COLUMNS: Final = (
    Column("entailment", "E"),
    Column("contradiction", "C"),
    Column("obligation_coverage", "OC"),
    Column("composite", "RePASs"),
)
_IN_DETAILS: Final = ("schema_version", "ragqa_version", "input", "input_sha256", "n_items", "settings", "models")
OPTIONS: Final = (
    Option("file", "JSON list, or JSON lines, of {QuestionID, Question, RetrievedPassages, Answer}.", "argument"),
    Option(
        "mode",
        "RePASs definition; default: paper (embedded), script (reference).",
        "choice",
        choices=tuple(ScoringMode),
    ),
    Option(
        "profile",
        "Profile of models and settings; default: RAGQA_SCORING_PROFILE, else embedded.",
        "choice",
        choices=("embedded", "reference"),
        environment="RAGQA_SCORING_PROFILE",
    ),
    Option(
        "entailment_model",
        "MODEL for E and C: embedded name, local folder or hub name.",
        environment="RAGQA_ENTAILMENT_MODEL",
    ),
    Option("coverage_model", "MODEL for OC, likewise.", environment="RAGQA_COVERAGE_MODEL"),
    Option("verdict_model", "MODEL for verdicts, likewise.", environment="RAGQA_VERDICT_MODEL"),
    Option("obligation_model", "MODEL that classifies obligations, likewise.", environment="RAGQA_OBLIGATION_MODEL"),
    Option("splitter", "Sentence splitter.", "choice", choices=("nupunkt", "punkt")),
    Option("precision", "Precision of the NLI model.", "choice", choices=("auto", "fp32", "bf16")),
    Option("details", "Print every sentence and obligation too.", "flag", default=False, decides=False),
)


@dataclass(frozen=True, slots=True)
class _Loaded:
    config: ScoringConfig
    scorer: Scorer | None  # None: no item has an answer


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Loads the items of the file, and the models if any item has an answer. Raises CorpusError, ModelError."""
    config = _config(settings)
    answers = read_answers(Path(settings["file"]))
    scorer, models = None, None
    if not all(item.skipped for item in answers.items):
        yield "Loading the models"
        scorer = load_scorer(config, paths)
        models = {
            "entailment_model": asdict(scorer.entailment.info),
            "coverage_model": asdict(scorer.coverage.info),
            "verdict_model": asdict(scorer.verdicts.info),
            "obligation_model": asdict(scorer.obligations.info),
            "sentence_splitter": splitter_name(config.sentence_splitter),
        }
    stamp = {
        "schema_version": SCHEMA_VERSION,
        "input": answers.name,
        "input_sha256": answers.sha256,
        "n_items": len(answers.items),
        "settings": asdict(config),
        "models": models,
    }
    items = tuple(
        Item(item.number, Question(item.question, item.question_id), item, item.sha256) for item in answers.items
    )
    return Task(items, stamp, _Loaded(config, scorer), COLUMNS)


def _config(settings: Settings) -> ScoringConfig:
    profile = scoring_from_env({"RAGQA_SCORING_PROFILE": settings["profile"] or ""})
    named = (settings[f"{role}_model"] or "" for role in ("entailment", "coverage", "obligation", "verdict"))
    config = scoring_with(profile, *named)
    return replace(
        config,
        mode=ScoringMode(settings["mode"] or config.mode),
        sentence_splitter=settings["splitter"] or config.sentence_splitter,
        precision=settings["precision"] or config.precision,
    )


def solve(task: Task, item: Item) -> Json:
    """RePASs in both modes: the large part of an item, read back only if every pair is needed."""
    loaded: _Loaded = task.context
    content: AnswerItem = item.content
    if content.skipped or loaded.scorer is None:
        return {}
    scored = score_item(content, loaded.scorer, loaded.config.sentence_splitter)
    return {"figures": asdict(figures_of(scored.of(loaded.config.mode))), "breakdowns": asdict(scored)}


def score(_: Task, item: Item, solution: Json) -> Json:
    """The figures of the mode that is shown; an item without an answer is skipped, as the reference script does."""
    if item.content.skipped:
        return {"status": Status.SKIPPED, "note": item.content.skipped}
    return {"figures": solution["figures"]}


def row(_: Task, outcome: Outcome) -> Row:
    """The item with its figures."""
    found = figures_in(outcome)
    return replace(outcome.row(), values=asdict(found) if found else {}, answer=outcome.item.content.answer)


def figures(_: Task, rows: Sequence[Row]) -> tuple[Figure, ...]:
    """The means over the scored items, RePASs first."""
    values = [one.values for one in rows if one.values]
    return tuple(
        Figure(column.heading, shown(fmean(of_one[column.key] or 0.0 for of_one in values) if values else None))
        for column in (COLUMNS[-1], *COLUMNS[:-1])
    )


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """A table with a line for each item, and the means; ``data`` is the head of ``details.json``."""
    found = [figures_in(outcome) for outcome in outcomes]
    rows = [one for one in found if one is not None]
    counts = {
        status.value: sum(outcome.status is status for outcome in outcomes)
        for status in (Status.SCORED, Status.SKIPPED, Status.FAILED)
    }
    lines = []
    for outcome, one in zip(outcomes, found, strict=True):
        name = outcome.item.question.text or outcome.item.question.question_id
        name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1].rstrip()}…"
        lines.append(Line(name, tuple(map(shown, one.values)) if one else ("–", "–", "–", outcome.status)))
    means = averages(rows)
    if rows:
        lines.append(Line("mean", tuple(map(shown, means.values))))
    passed_over = "".join(f", {counts[name]:,} {name}" for name in ("skipped", "failed") if counts[name])
    title = f"RePASs, {task.context.config.mode} mode, {len(rows):,} answers{passed_over}"
    table = Comparison(tuple(column.heading for column in COLUMNS), tuple(lines), title=title, first="question")
    data: dict[str, Any] = {name: task.stamp[name] for name in _IN_DETAILS}
    data |= {"averages": asdict(means), "counts": counts}
    return Report(figures(task, [row(task, outcome) for outcome in outcomes]), COLUMNS, (table,), data=data)


def export(_: Task, outcomes: Sequence[Outcome], made: Report, folder: Path) -> Sequence[File]:
    """Writes the reference's two files and the details."""
    write_results(folder, made.data, outcomes)
    return (
        File("Scores (CSV)", CSV, "text/csv"),
        File("Averages", TEXT, "text/plain"),
        File("Every pair and every item passed over (JSON)", DETAILS),
    )


BENCHMARK: Final = Benchmark.of(
    globals(),
    name="score",
    title="Answers written elsewhere",
    description="Scores answers written elsewhere against the passages they were written from. An item without an "
    "answer is skipped, as the reference script does. Without --out the run is kept in a folder of "
    "RAGQA_HOME/evaluations, from which the same command continues after a stop.",
    options=OPTIONS,
    doing="Scoring answers",
    on_page=False,
    outputs=(CSV, TEXT, DETAILS, "report.json"),
)
