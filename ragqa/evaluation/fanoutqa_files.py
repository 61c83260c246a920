"""A run of FanOutQA as files: generations for the leaderboard, every question's details, the report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragqa.corpus.fanoutqa import FanOutQuestion
from ragqa.evaluation.fanoutqa_metrics import QuestionScore, Scores, reference_text
from ragqa.evaluation.fanoutqa_run import RunResult
from ragqa.evaluation.fanoutqa_submission import generation_lines
from ragqa.evaluation.journal import write_whole
from ragqa.evaluation.run_folder import translated


def report_of(result: RunResult, stamp: Mapping[str, Any]) -> dict[str, Any]:
    """What the run came to: counts, tokens, means, what is missing and what the run is known by."""
    outcomes = result.outcomes
    return {
        "counts": {
            "questions": len(outcomes),
            "answered": sum(outcome.answer is not None for outcome in outcomes),
            "empty": sum(outcome.answer is not None and not outcome.answer.strip() for outcome in outcomes),
            "failed": sum(outcome.failed for outcome in outcomes),
            "left": sum(outcome.answer is None and not outcome.failed for outcome in outcomes),
            "searches": sum(step["step"] == "search" for outcome in outcomes for step in outcome.steps),
            "pages_missing": sum(step["step"] == "no page" for outcome in outcomes for step in outcome.steps),
        },
        "tokens": {
            "prompt": sum(outcome.usage.prompt_tokens for outcome in outcomes),
            "completion": sum(outcome.usage.completion_tokens for outcome in outcomes),
        },
        "scores": scores_as_dict(result.scores),
        "run": dict(stamp),
    }


def scores_as_dict(scores: Scores | None) -> dict[str, Any] | None:
    """The means in the shape of the `fanoutqa` package's result, with who lemmatised and what is missing."""
    if scores is None:
        return None
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


def details_of(result: RunResult) -> list[dict[str, Any]]:
    """A question's answer, how it came about, and what of the reference it matched."""
    scores = {score.question_id: score for score in result.question_scores}
    return [
        {
            "id": outcome.question.question_id,
            "question": outcome.question.question.text,
            "answer": outcome.answer,
            "steps": list(outcome.steps),
            "note": outcome.note,
            **score_as_dict(outcome.question, scores.get(outcome.question.question_id)),
        }
        for outcome in result.outcomes
    ]


def score_as_dict(question: FanOutQuestion, score: QuestionScore | None) -> dict[str, Any]:
    """One question's scores; nothing where it was not scored."""
    if score is None or question.answer is None:
        return {}
    return {
        "reference": reference_text(question.answer),
        "acc": score.accuracy,
        "strict": score.is_strict,
        "matched": [found.reference for found in score.matches if found.found],
        "not_matched": [found.reference for found in score.matches if not found.found],
        "rouge": None if score.rouge is None else {kind: asdict(part) for kind, part in score.rouge.items()},
        "bleurt": score.bleurt,
        "judge": None if score.judging is None else asdict(score.judging),
        "score_note": score.note,
    }


def write_outputs(folder: Path, result: RunResult, report: Mapping[str, Any]) -> None:
    """``generations.jsonl``, ``details.json`` and ``report.json``. Raises RecordError where they cannot be written."""
    answers = {o.question.question_id: o.answer for o in result.outcomes if o.answer is not None}
    order = [outcome.question.question_id for outcome in result.outcomes]
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "generations.jsonl", generation_lines(answers, order))
        write_whole(folder / "details.json", _json(details_of(result)))
        write_whole(folder / "report.json", _json(report))


def _json(value: object) -> Iterator[str]:
    yield json.dumps(value, indent=2, ensure_ascii=False)
    yield "\n"
