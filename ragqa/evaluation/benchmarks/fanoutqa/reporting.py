"""Reports a run of FanOutQA: a question's row, the figures, the run beside the published ones, and the files.

``published.jsonl`` in this folder is other people's data; its first line says whose it is and when it was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from pydantic import TypeAdapter

from ragqa.evaluation.benchmark import Json, Outcome, Settings, Status, Task
from ragqa.evaluation.benchmarks.fanoutqa.metrics import (
    FanOutScores,
    Metrics,
    QuestionScore,
    reference_text,
    score_one,
    summarise,
)
from ragqa.evaluation.benchmarks.fanoutqa.questions import FanOutQuestion
from ragqa.evaluation.benchmarks.fanoutqa.settings import LeaderboardSetting, Solver, setting_of
from ragqa.evaluation.benchmarks.fanoutqa.submission import SHOWN_PROBLEMS, SubmissionCheck, generation_lines
from ragqa.evaluation.files import shipped_rows
from ragqa.evaluation.report import Column, Comparison, Figure, File, Line, Matched, Report, Row, shown
from ragqa.infra.files import write_whole
from ragqa.infra.journal import translated
from ragqa.settings.environment import has_llm

HEADINGS: Final = ("loose", "strict", "ROUGE-1", "ROUGE-2", "ROUGE-L", "BLEURT", "judge")
COLUMNS: Final = (Column("loose", "loose"), Column("strict", "strict", 0), Column("rouge1", "ROUGE-1"))
FILES: Final = (
    File("Generations (FanOutQA JSON lines)", "generations.jsonl", "application/jsonl"),
    File("Every question with what matched (JSON)", "details.json"),
    File("Report (JSON)", "report.json"),
)
NO_MODEL = (
    "FanOutQA asks a language model, and none is configured: set OPENAI_API_KEY or OPENAI_BASE_URL and start again. "
    "Without one, answers that are there already can be scored against dev, or checked for the leaderboard against "
    "test."
)
UNSOLVED: Final[Json] = {"answer": None, "steps": [], "usage": {}, "note": ""}
_SCORE: Final = TypeAdapter(QuestionScore)


@dataclass(frozen=True, slots=True)
class FanOutContext:
    """What a run uses: a ``solver`` that asks a model, or given ``answers``; without ``metrics`` nothing is scored.

    ``check`` is the check of a file of answers to the test set, which has ``n_questions``, by the leaderboard's rules.
    """

    setting: LeaderboardSetting
    solver: Solver | None = None
    answers: Mapping[str, str] | None = None
    metrics: Metrics | None = None
    check: SubmissionCheck | None = None
    n_questions: int = 0


def row(task: Task, outcome: Outcome) -> Row:
    """The question with its answer and which strings of the reference the answer contains."""
    solution, scores, is_failed = outcome.solution or UNSOLVED, outcome.scores, outcome.status is Status.FAILED
    steps = tuple(map(_step, solution["steps"]))
    plain = replace(outcome.row(), right=False if is_failed else None, answer=solution["answer"], steps=steps)
    if scores is None or "score" not in scores:
        return plain
    found = _SCORE.validate_python(scores["score"])
    judged = f"The judge said {found.judging.letter}." if found.judging and found.judging.letter else ""
    rouge = None if found.rouge is None else found.rouge["rouge1"].fscore
    return replace(
        plain,
        right=found.is_strict,
        values={"loose": found.accuracy, "strict": float(found.is_strict), "rouge1": rouge},
        matches=tuple(Matched(match.reference, match.found) for match in found.matches),
        note=" ".join(filter(None, (outcome.note, judged))),
    )


def _step(step: Json) -> str:
    name = str(step.get("step", ""))
    rest = "; ".join(f"{key} {value}" for key, value in step.items() if key != "step")
    return f"{name}: {rest}" if rest else name


def figures(task: Task, rows: Sequence[Row]) -> tuple[Figure, ...]:
    """Loose and strict accuracy so far, and how many answers there are."""
    loaded: FanOutContext = task.context
    if loaded.check:
        found = f"{loaded.check.n:,} of {loaded.n_questions:,}"
        return (Figure("Answers", found, "the test set's references are not public"),)
    answered = Figure("Answered", f"{sum(row.answer is not None for row in rows):,} of {len(rows):,}")
    if loaded.metrics is None or not rows:
        return (answered,)
    loose, strict = (fmean(row.values.get(name) or 0.0 for row in rows) for name in ("loose", "strict"))
    return (
        Figure("Loose", shown(loose), "mean share of the reference's strings that stand in the answer"),
        Figure("Strict", shown(strict), "share of questions whose whole reference does"),
        answered,
    )


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """This run beside the published rows of its setting; metrics that are missing and how to get them."""
    loaded: FanOutContext = task.context
    shown_figures = figures(task, [row(task, one) for one in outcomes if one.status is not Status.LEFT])
    if loaded.check:
        verdict = "The leaderboard's rules take" if loaded.check.is_valid else "The leaderboard would refuse"
        notes = (
            f"{verdict} this file. {loaded.check.n:,} answers to {loaded.n_questions:,} questions.",
            "The test set's answers are not public, so nothing is scored.",
            *loaded.check.problems[:SHOWN_PROBLEMS],
            *loaded.check.notes,
        )
        return Report(
            shown_figures, (), (beside_published(loaded.setting),), notes, data={"check": asdict(loaded.check)}
        )
    data = _data(task, outcomes)
    counts, scores = data["counts"], data["scores"]
    of = f"{counts['answered']:,} of {counts['questions']:,} questions"
    name, cells = data["run"].get("model", "answers given"), (None,) * len(HEADINGS)
    if scores is None:
        name += ": not scored, the test set's answers are not public"
    else:
        rouge = scores["rouge"] or {}
        parts = (rouge[kind]["fscore"] if rouge else None for kind in ("rouge1", "rouge2", "rougeL"))
        cells = (*scores["acc"].values(), *parts, scores["bleurt"], scores["gpt"])
    ours = (Line(name, tuple(map(shown, cells)), "this run", True),)
    compared = beside_published(loaded.setting, ours, f"This run: {of}.", f"FanOutQA, {loaded.setting}: {of} answered")
    return Report(shown_figures, task.columns, (compared,), tuple(_notes(counts, scores)), data=data)


def _data(task: Task, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The run's results: counts, tokens, means, missing metrics and the stamp that identifies the run."""
    metrics, solutions = task.context.metrics, [outcome.solution or UNSOLVED for outcome in outcomes]
    answers, steps = [one["answer"] for one in solutions], [step["step"] for one in solutions for step in one["steps"]]
    n_failed = sum(outcome.status is Status.FAILED for outcome in outcomes)
    kinds = ("prompt", "completion")
    return {
        "counts": {
            "questions": len(outcomes),
            "answered": sum(answer is not None for answer in answers),
            "empty": sum(answer is not None and not answer.strip() for answer in answers),
            "failed": n_failed,
            "left": answers.count(None) - n_failed,
            "searches": steps.count("search"),
            "pages_missing": steps.count("no page"),
        },
        "tokens": {kind: sum(one["usage"].get(f"{kind}_tokens", 0) for one in solutions) for kind in kinds},
        "scores": scores_as_dict(summarise([_score(metrics, one) for one in outcomes], metrics)) if metrics else None,
        "run": dict(task.stamp),
    }


def _score(metrics: Metrics, outcome: Outcome) -> QuestionScore:
    """The question's scores in this run; without an answer they are those of no answer."""
    if outcome.scores:
        return _SCORE.validate_python(outcome.scores["score"])
    answer = (outcome.solution or UNSOLVED)["answer"]
    if answer is None:
        return score_one(outcome.item.content, None, metrics)
    found = score_one(outcome.item.content, answer, replace(metrics, judge=None))  # the run was stopped before scoring
    return replace(found, note="not judged: the run was stopped" if metrics.judge else "")


def _notes(counts: Mapping[str, int], scores: Json | None) -> Iterator[str]:
    if counts["failed"]:
        yield f"{counts['failed']:,} questions got no answer; run it again to try them once more."
    if counts["pages_missing"]:
        yield f"Pages that the source does not have: {counts['pages_missing']:,}; see details.json"
    if scores is None:
        return
    yield f"lemmatised with: {scores['lemmatised_with']}; through {scores['normalised_through']}"
    for part in scores["missing"]:
        yield f"Not here: {part['metric']}, since {part['reason']}. To get it: {part['remedy']}"


def export(task: Task, outcomes: Sequence[Outcome], found: Report, folder: Path) -> Sequence[File]:
    """Writes ``generations.jsonl``, ``details.json`` and ``report.json``; nothing for a check. Raises RecordError."""
    if task.context.check:
        return ()
    answers = {one.item.question.question_id: (one.solution or UNSOLVED)["answer"] or "" for one in outcomes}
    details = [_details(task, outcome) for outcome in outcomes]
    with translated(folder):
        write_whole(folder / "generations.jsonl", generation_lines(answers, list(answers)))
        for name, value in (("details.json", details), ("report.json", found.data)):
            write_whole(folder / name, [json.dumps(value, indent=2, ensure_ascii=False), "\n"])
    return FILES


def _details(task: Task, outcome: Outcome) -> dict[str, Any]:
    """A question's answer, the steps to it, and which strings of the reference it matched."""
    metrics, question, solution = task.context.metrics, outcome.item.content, outcome.solution or UNSOLVED
    return {
        "id": question.question_id,
        "question": question.question.text,
        "answer": solution["answer"],
        "steps": list(solution["steps"]),
        "note": solution["note"] or (outcome.note if outcome.status is Status.FAILED else ""),
        **(score_as_dict(question, _score(metrics, outcome)) if metrics else {}),
    }


def published_report(settings: Settings) -> Report:
    """The leaderboard of the setting, and whether a model can be asked here."""
    notes = () if has_llm() else (NO_MODEL,)
    return Report(comparisons=(beside_published(setting_of(settings["setting"])),), notes=notes)


def scores_as_dict(scores: FanOutScores) -> dict[str, Any]:
    """The means in the form of the `fanoutqa` package's result, with the lemmatiser and the missing metrics."""
    return {
        "acc": {"loose": scores.loose, "strict": scores.strict},
        "rouge": None if scores.rouge is None else {kind: asdict(part) for kind, part in scores.rouge.items()},
        "bleurt": scores.bleurt,
        "gpt": scores.judge,
        "questions": scores.n_questions,
        "answered": scores.n_answered,
        "lemmatised_with": scores.lemmatiser,
        "normalised_through": scores.through,
        "missing": [asdict(part) for part in scores.missing],
    }


def score_as_dict(question: FanOutQuestion, score: QuestionScore) -> dict[str, Any]:
    """One question's scores, with the reference's strings that were found and not found."""
    return {
        "reference": "" if question.answer is None else reference_text(question.answer),
        "acc": score.accuracy,
        "strict": score.is_strict,
        "matched": [found.reference for found in score.matches if found.found],
        "not_matched": [found.reference for found in score.matches if not found.found],
        "rouge": None if score.rouge is None else {kind: asdict(part) for kind, part in score.rouge.items()},
        "bleurt": score.bleurt,
        "judge": None if score.judging is None else asdict(score.judging),
        "score_note": score.note,
    }


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """A system in one setting. Every figure is in [0, 1]; ROUGE is F1, and ``judge`` is by GPT-4."""

    name: str
    citation: str
    context: int
    setting: LeaderboardSetting
    loose: float
    strict: float
    rouge1: float
    rouge2: float
    rougeL: float  # noqa: N815 - the metric's name
    bleurt: float
    judge: float

    @property
    def figures(self) -> tuple[float, ...]:
        """In the order of `HEADINGS`."""
        return (self.loose, self.strict, self.rouge1, self.rouge2, self.rougeL, self.bleurt, self.judge)


@cache
def published() -> tuple[str, tuple[LeaderboardRow, ...]]:
    """The source of the published figures with the day when they were read; and the rows in the file's order."""
    origin, *rows = shipped_rows(Path(__file__).with_name("published.jsonl"))
    made = tuple(LeaderboardRow(**row | {"setting": LeaderboardSetting(row["setting"])}) for row in rows)
    return f"{origin['source']}, as read on {origin['read_on']}", made


def leaderboard(setting: LeaderboardSetting) -> tuple[LeaderboardRow, ...]:
    """The rows of one setting, best loose accuracy first, as the website sorts them."""
    rows = [row for row in published()[1] if row.setting is setting]
    return tuple(sorted(rows, key=lambda row: (-row.loose, row.name)))


def beside_published(
    setting: LeaderboardSetting, ours: Sequence[Line] = (), words: str = "", title: str = ""
) -> Comparison:
    """Our lines, then the published ones of this setting; ``words`` come before the caption."""
    lines = (
        Line(f"{row.name} ({row.citation})", tuple(map(shown, row.figures)), "published")
        for row in leaderboard(setting)
    )
    caption = f"Published: {setting}, 724 test questions, other people's figures from {published()[0]}."
    return Comparison(HEADINGS, (*ours, *lines), f"{words} {caption}".strip(), title)
