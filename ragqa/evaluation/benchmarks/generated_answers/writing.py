"""What `ragqa eval answers` writes at the end, from the journal: RIRAG A.6, a TREC run, details, the report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ragqa.evaluation.benchmark import Outcome, Status, Task
from ragqa.evaluation.benchmarks.generated_answers.measures import means
from ragqa.evaluation.benchmarks.generated_answers.solving import ReceivedAnswer
from ragqa.evaluation.run_files import write_run
from ragqa.infra.files import write_whole
from ragqa.infra.journal import translated
from ragqa.types import Passage, Ranking, ScoredPassage

OUTPUTS: Final = ("answers.json", "ranking.run", "details.json", "report.json")
PRICE_UNIT: Final = 1_000_000  # tokens that a price is for


def report_of(task: Task, outcomes: Sequence[Outcome], prices: tuple[float, float] | None) -> dict[str, Any]:
    """Means over the scored answers, counts, tokens, and money where ``prices`` (in, out, per million) are known.

    An answer without a sentence counts as ``empty`` and is in no mean, as the reference script passes over it.
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
    """Puts the four files in place, each whole; ``docids`` as in `write_run`.

    Raises RecordError where the folder cannot be written, CorpusError where a passage has no docid.
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
