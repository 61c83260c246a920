"""What `ragqa eval answers` writes at the end, from the journal: RIRAG A.6, a TREC run, details, the report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragqa.evaluation.answer_folder import OUTPUTS, AnswerFolder
from ragqa.evaluation.answer_measures import means
from ragqa.evaluation.answer_run import Outcome, Status
from ragqa.evaluation.journal import write_whole
from ragqa.evaluation.run_files import write_run
from ragqa.evaluation.run_folder import translated
from ragqa.types import Passage, Ranking, ScoredPassage

PRICE_UNIT = 1_000_000  # tokens that a price is for


def report_of(
    folder: AnswerFolder, outcomes: Sequence[Outcome], prices: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Means over the scored answers, counts, tokens, and money where ``prices`` (in, out, per million) are known.

    An answer without a sentence counts as ``empty`` and is in no mean, as the reference script passes over it.
    """
    prompt = sum(outcome.usage.prompt_tokens for outcome in outcomes)
    completion = sum(outcome.usage.completion_tokens for outcome in outcomes)
    return {
        "run": dict(folder.stamp),
        "n_questions": len(outcomes),
        "counts": {status: sum(outcome.status is status for outcome in outcomes) for status in Status},
        "asked_again": sum(max(0, outcome.n_begun - 1) for outcome in outcomes),
        "means": means(outcome.values for outcome in outcomes if outcome.status is Status.SCORED and outcome.values),
        "tokens": {"prompt": prompt, "completion": completion},
        "money": (prompt * prices[0] + completion * prices[1]) / PRICE_UNIT if prices else None,
    }


def write_outputs(
    folder: AnswerFolder, outcomes: Sequence[Outcome], report: dict[str, Any], docids: Mapping[str, str] | None = None
) -> None:
    """Puts the four files in place, each whole; ``docids`` as in `write_run`.

    Raises RecordError where the folder cannot be written, CorpusError where a passage has no docid.
    """
    answers, run, details, summary = (folder.folder / name for name in OUTPUTS)
    answered = [outcome for outcome in outcomes if folder.standing(outcome.item).answered_at is not None]
    with translated(folder.folder):
        write_whole(answers, _list(_a6(folder, outcome) for outcome in answered))
        write_whole(details, _list(_detail(folder, outcome) for outcome in outcomes))
        write_whole(summary, [json.dumps(report, indent=2, allow_nan=False) + "\n"])
    rankings = [_ranking(folder.answered(outcome.item).ranking) for outcome in answered]
    tag = f"ragqa-{folder.stamp['settings']['generation']['generator']}"
    write_run(run, tag, [outcome.item.question.question_id for outcome in answered], rankings, docids)


def _list(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield "["
    for number, row in enumerate(rows):
        yield (",\n" if number else "\n") + json.dumps(row, ensure_ascii=False, allow_nan=False)
    yield "\n]\n"


def _a6(folder: AnswerFolder, outcome: Outcome) -> dict[str, Any]:
    kept = folder.answered(outcome.item)
    return {
        "QuestionID": outcome.item.question.question_id,
        "Question": outcome.item.question.text,
        "RetrievedPassages": [passage.text for passage in kept.passages],
        "Answer": kept.answer.text,
        "RetrievedIDs": [passage.passage_id for passage in kept.passages],
    }


def _detail(folder: AnswerFolder, outcome: Outcome) -> dict[str, Any]:
    detail: dict[str, Any] = {
        "QuestionID": outcome.item.question.question_id,
        "Question": outcome.item.question.text,
        "status": outcome.status,
        "note": outcome.note,
        "n_begun": outcome.n_begun,
    }
    standing = folder.standing(outcome.item)
    if standing.answered_at is not None:
        kept = folder.answered(outcome.item)
        answer = kept.answer
        detail |= {
            "generator": answer.generator,
            "model": answer.model,
            "finish_reason": answer.finish_reason,
            "is_refusal": answer.is_refusal,
            "answer_note": answer.note,
            "as_written": answer.raw,
            "seconds": kept.seconds,
            "steps": list(kept.steps),
        }
    if standing.scored:
        detail |= {"values": standing.scored["values"], "sentences": standing.scored["scored_sentences"]}
    return detail


def _ranking(hits: Sequence[tuple[str, float]]) -> Ranking:
    return Ranking.of("ragqa", [ScoredPassage(Passage(name, "", ""), score) for name, score in hits])
