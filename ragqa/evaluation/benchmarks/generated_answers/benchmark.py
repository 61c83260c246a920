"""Answers many questions with the page's pipeline and scores them with RePASs; each step is stored.

::

    DIR/
    ├── run.json       the questions, index, settings and models of this folder
    ├── journal.jsonl  every step as soon as it is done
    ├── answers.json   RIRAG A.6, for the shared task and `ragqa score`
    ├── ranking.run    the passages found, as a TREC run
    ├── details.json   every answer with its values, its sentences and their citation checks
    └── report.json    means, counts, tokens and seconds

An answer is on disk before it is scored, as is every completion that it was made from.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.obliqa import load_item_ids
from ragqa.corpus.questions import load_asked, load_gold
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.benchmark import (
    GENERATOR,
    INDEX,
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
from ragqa.evaluation.benchmarks.generated_answers.comparing import (
    SCALE,
    published_comparison,
    published_rows,
    run_tables,
)
from ragqa.evaluation.benchmarks.generated_answers.measures import means
from ragqa.evaluation.benchmarks.generated_answers.solving import ReceivedAnswer, answered, scores_of
from ragqa.evaluation.files import has_questions, holds_gold
from ragqa.evaluation.loading import answer_stamp_of, config_of, pipeline_for
from ragqa.evaluation.report import CheckedSentence, Column, Figure, File, Report, Row, shown
from ragqa.evaluation.run_files import write_run
from ragqa.infra.files import write_whole
from ragqa.infra.journal import translated
from ragqa.pipeline import Pipeline
from ragqa.settings.paths import Paths
from ragqa.types import Passage, Question, Ranking, ScoredPassage
from ragqa.types.scores import Verdict

OUTPUTS: Final = ("answers.json", "ranking.run", "details.json", "report.json")
PRICE_UNIT: Final = 1_000_000  # tokens per price


def report_of(task: Task, outcomes: Sequence[Outcome], prices: tuple[float, float] | None) -> dict[str, Any]:
    """Means over the scored answers, counts, tokens, and the cost if ``prices`` (in, out, per million) are known.

    An answer without a sentence counts as ``empty`` and is in no mean, as in the reference script.
    """
    usages = [solution["answer"]["usage"] for outcome in outcomes if (solution := outcome.solution) is not None]
    prompt, completion = (sum(usage[f"{kind}_tokens"] for usage in usages) for kind in ("prompt", "completion"))
    scored = (outcome.scores for outcome in outcomes if outcome.status is Status.SCORED)
    return {
        "run": dict(task.stamp),
        "n_questions": len(outcomes),
        "counts": {
            status.value: sum(outcome.status is status for outcome in outcomes)
            for status in (Status.SCORED, Status.EMPTY, Status.FAILED, Status.LEFT)
        },
        "asked_again": sum(max(0, outcome.n_begun - 1) for outcome in outcomes),
        "means": means(scores["values"] for scores in scored if scores),
        "tokens": {"prompt": prompt, "completion": completion},
        "money": (prompt * prices[0] + completion * prices[1]) / PRICE_UNIT if prices else None,
    }


def write_outputs(
    folder: Path,
    task: Task,
    outcomes: Sequence[Outcome],
    report: Mapping[str, Any],
    docids: Mapping[str, str] | None = None,
) -> None:
    """Writes the four files, each completely or not at all; ``docids`` is as in `write_run`.

    Raises RecordError if the folder cannot be written, CorpusError if a passage has no docid.
    """
    answers, run, details, summary = (folder / name for name in OUTPUTS)
    with translated(folder):
        write_whole(answers, _list(_a6(outcome, found) for outcome, found in _answered(outcomes)))
        write_whole(details, _list(_detail(outcome) for outcome in outcomes))
        write_whole(summary, [json.dumps(report, indent=2, allow_nan=False) + "\n"])
    tag = f"ragqa-{task.stamp['settings']['generation']['generator']}"
    ranked = [(outcome.item.question.question_id, _ranking(found.ranking)) for outcome, found in _answered(outcomes)]
    write_run(run, tag, [name for name, _ in ranked], [ranking for _, ranking in ranked], docids)


def _answered(outcomes: Sequence[Outcome]) -> Iterator[tuple[Outcome, ReceivedAnswer]]:
    for outcome in outcomes:
        solution = outcome.solution
        if solution is not None:
            yield outcome, ReceivedAnswer.of(solution)


def _list(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield "["
    for number, row in enumerate(rows):
        yield (",\n" if number else "\n") + json.dumps(row, ensure_ascii=False, allow_nan=False)
    yield "\n]\n"


def _a6(outcome: Outcome, found: ReceivedAnswer) -> dict[str, Any]:
    return {
        "QuestionID": outcome.item.question.question_id,
        "Question": outcome.item.question.text,
        "RetrievedPassages": [passage.text for passage in found.passages],
        "Answer": found.answer.text,
        "RetrievedIDs": [passage.passage_id for passage in found.passages],
    }


def _detail(outcome: Outcome) -> dict[str, Any]:
    detail: dict[str, Any] = {
        "QuestionID": outcome.item.question.question_id,
        "Question": outcome.item.question.text,
        "status": outcome.status,
        "note": outcome.note,
        "n_begun": outcome.n_begun,
    }
    solution, scores = outcome.solution, outcome.scores
    if solution is not None:
        found = ReceivedAnswer.of(solution)
        answer = found.answer
        detail |= {
            "generator": answer.generator,
            "model": answer.model,
            "finish_reason": answer.finish_reason,
            "is_refusal": answer.is_refusal,
            "answer_note": answer.note,
            "as_written": answer.raw,
            "seconds": found.seconds,
            "steps": list(found.steps),
        }
    if scores is not None:
        detail |= {"values": scores["values"], "sentences": scores["sentences"]}
    return detail


def _ranking(hits: Sequence[tuple[str, float]]) -> Ranking:
    return Ranking.of("ragqa", [ScoredPassage(Passage(name, "", ""), score) for name, score in hits])


SCHEMA_VERSION: Final = 1
COLUMNS: Final = (
    Column("composite", "RePASs"),
    Column("entailment", "E"),
    Column("contradiction", "C"),
    Column("obligation_coverage", "OC"),
    Column("relevance", "relevance"),
    Column("copied", "copied"),
    Column("seconds", "seconds", 1),
)
TOKENS: Final = (Column("prompt_tokens", "tokens in", 0), Column("completion_tokens", "tokens out", 0))
_FIGURES: Final = (
    ("composite", "RePASs", "(E − C + OC + 1) / 3, the paper's definition"),
    ("entailment", "E", "mean entailment of an answer's sentences"),
    ("contradiction", "C", "mean contradiction; low is good"),
    ("obligation_coverage", "OC", "share of the passages' obligations covered"),
    ("relevance", "Relevance", "how far the answers answer what was asked; beside RePASs, never part of it"),
    ("copied", "Copied", "share of words in verbatim runs: copying is rewarded, so read it beside RePASs"),
)
PRICE_IN = Option("price_in", "Price of a million prompt tokens.", "float", least=0, decides=False)
PRICE_OUT = Option("price_out", "Price of a million completion tokens.", "float", least=0, decides=False)
QUESTIONS = Option(
    "questions",
    "JSON list of {QuestionID, Question}, or JSON lines of {question}; gold is not needed.",
    "file",
    label="Questions",
    accepts="a JSON list of {QuestionID, Question}, or JSON lines of {question}; gold passages may stand beside",
    counts=lambda path: len(load_asked(path)),
    suits=has_questions,
)
OPTIONS: Final = (
    QUESTIONS,
    INDEX,
    replace(GENERATOR, help="Generator, as for `ragqa ask`; default: by the environment."),
    PRESET,
    LIMIT,
    PARALLEL,
    PRICE_IN,
    PRICE_OUT,
    Option(
        "docids", "ObliQA's documents: the run names their item IDs, as the shared task asks.", "path", decides=False
    ),
)


@dataclass(frozen=True, slots=True)
class AnswersContext:
    """The context of a run. ``prices`` are of a million tokens sent and written; ``docids`` are by passage id."""

    pipeline: Pipeline
    gold: Mapping[str, frozenset[str]]
    prices: tuple[float, float] | None
    docids: Mapping[str, str] | None


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Loads the pipeline and the questions. Raises ConfigError if a setting is wrong or no generator is set."""
    prices_of(settings)
    config = config_of(settings, paths)
    yield "Loading the index and its models"
    return task_of(pipeline_for(config, paths), settings)


def prices_of(settings: Settings) -> tuple[float, float] | None:
    """Both prices, or None if neither is given. Raises ConfigError if only one is given."""
    price_in, price_out = settings["price_in"], settings["price_out"]
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        msg = f"--price-in and --price-out go together, got {price_in} and {price_out}; give both or neither"
        raise ConfigError(msg)
    return price_in, price_out


def task_of(pipeline: Pipeline, settings: Settings, variant: str = "") -> Task:
    """The task of this pipeline; ``variant`` names changes that are not in its settings.

    Raises ConfigError if the generator writes no answers, CorpusError if a file cannot be read.
    """
    if pipeline.generator is None:
        raise ConfigError("the generator must write answers, got 'none'; name another with --generator")
    questions = Path(settings["questions"])
    items = tuple(
        Item(number, question if question.question_id else Question(question.text, str(number)))
        for number, question in enumerate(load_asked(questions), start=1)
    )
    stamp = {**answer_stamp_of(questions, pipeline), "schema_version": SCHEMA_VERSION, "variant": variant}
    docids = load_item_ids(Path(settings["docids"])) if settings.get("docids") else None
    loaded = AnswersContext(pipeline, _gold(questions, pipeline), prices_of(settings), docids)
    columns = (*COLUMNS, *TOKENS) if pipeline.config.generation.asks_model else COLUMNS
    return Task(items, stamp, loaded, columns, parallel=settings["parallel"])


def _gold(questions: Path, pipeline: Pipeline) -> Mapping[str, frozenset[str]]:
    """The ids of gold passages or documents by question; empty if the file has no gold."""
    try:
        found, _ = load_gold(questions, pipeline.index.passages)
    except CorpusError:
        return {}
    return {one.question.question_id: one.gold for one in found}


def solve(task: Task, item: Item) -> Json:
    """The answer with the passages that it was written from."""
    return asdict(answered(task.context.pipeline, item.question))


def score(task: Task, item: Item, solution: Json) -> Json:
    """Every measure of the answer and of its sentences; status ``empty`` if it has no sentence."""
    return scores_of(task.context.pipeline, item.question, ReceivedAnswer.of(solution))


def row(task: Task, outcome: Outcome) -> Row:
    """The question with its answer, passages and values; right if RePASs finds no problem."""
    question = outcome.item.question
    wanted = task.context.gold.get(question.question_id, frozenset())
    found = replace(outcome.row(), right=False, gold=tuple(sorted(wanted)))
    if outcome.solution is None:
        return found
    kept, scores = ReceivedAnswer.of(outcome.solution), outcome.scores or {"values": {}, "sentences": ()}
    usage = kept.answer.usage
    values = {column.key: scores["values"].get(column.key) for column in task.columns}
    if TOKENS[0] in task.columns:
        values |= {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    sentences = tuple(map(_sentence, scores["sentences"]))
    is_supported = all(sentence.verdict == Verdict.SUPPORTED for sentence in sentences)
    has_duties = scores.get("n_obligations") != 0  # RePASs gives passages without obligations a coverage of 0
    return replace(
        found,
        right=bool(sentences) and is_supported and (not has_duties or (values["obligation_coverage"] or 0.0) >= 1),
        values=values,
        hits=kept.hits(wanted),
        answer=kept.answer.text,
        sentences=sentences,
        steps=tuple(f"{stage}: {seconds:.2f} s" for stage, seconds in kept.seconds.items()),
        note=outcome.note or kept.answer.note,
    )


def _sentence(entry: Mapping[str, Any]) -> CheckedSentence:
    checked = entry["citations"]
    written, verified = (", ".join(map(str, checked[key])) or "none" for key in ("written", "verified"))
    words = f"cites {written}" if written == verified else f"cited {written}, entailed by {verified}"
    return CheckedSentence(entry["text"], entry["verdict"], entry["entailment"], entry["contradiction"], words)


def figures(task: Task, rows: Sequence[Row]) -> tuple[Figure, ...]:
    """The means over the scored answers; if a server was used, tokens and their cost come second."""
    of_all = means(one.values for one in rows if one.sentences)
    found = [Figure(label, shown(of_all[key]), words) for key, label, words in _FIGURES]
    sent, written = (sum(one.values.get(column.key) or 0 for one in rows) for column in TOKENS)
    if sent + written:
        cost, prices = "", task.context.prices
        if prices:
            money = (sent * prices[0] + written * prices[1]) / PRICE_UNIT
            cost = f", {money:.2f} of about {money * len(task.items) / len(rows):.2f}"
        found.insert(1, Figure("Tokens", f"{sent:,.0f} + {written:,.0f}{cost}", "sent and written, and their cost"))
    return tuple(found)


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """The run compared with published figures, every measure of it, and the data of ``report.json``."""
    data = report_of(task, outcomes, task.context.prices)
    failed = data["counts"]["failed"]
    notes = (f"{failed:,} questions got no answer or no score; run it again to try them once more.",) if failed else ()
    rows = [row(task, outcome) for outcome in outcomes if outcome.status is not Status.LEFT]
    return Report(figures(task, rows), task.columns, run_tables(data), notes, data=data)


def export(task: Task, outcomes: Sequence[Outcome], made: Report, folder: Path) -> Sequence[File]:
    """Writes the four files. Raises RecordError, and CorpusError if a passage has no docid."""
    write_outputs(folder, task, outcomes, made.data, task.context.docids)
    return (
        File("Answers (RIRAG A.6 JSON)", OUTPUTS[0]),
        File("Ranking (TREC run)", OUTPUTS[1], "text/plain"),
        File("Every answer with its sentences (JSON)", OUTPUTS[2]),
        File("Report (JSON)", OUTPUTS[3]),
    )


def published(_: Settings) -> Report:
    """Published figures of other systems, shown before any run."""
    return Report(comparisons=(published_comparison(published_rows("5"), caption=SCALE),))


BENCHMARK: Final = Benchmark.of(
    globals(),
    name="answers",
    title="Answers and RePASs (RIRAG)",
    description="Answers each question through the pipeline of the page Ask, scores every answer with RePASs, and "
    "writes the shared task's file.",
    options=OPTIONS,
    right="every sentence is supported by a passage, none is contradicted, and every obligation is covered",
    verdicts=("no problem", "with problems"),
    doing="Answering and scoring",
    outputs=OUTPUTS,
    fits=partial(holds_gold, without=True),
)
