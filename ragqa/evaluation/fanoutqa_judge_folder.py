"""The judge's replies kept on disk, so that no answer is judged and paid for twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragqa.corpus.fanoutqa import FanOutQuestion
from ragqa.evaluation.answer_folder import AnswerFolder
from ragqa.evaluation.fanoutqa_judge import JudgeSettings, LlmJudge
from ragqa.evaluation.fanoutqa_run import items_of
from ragqa.evaluation.run_folder import begun, digest, held

__all__ = ["kept_judge"]


@contextmanager
def kept_judge(settings: JudgeSettings, questions: Sequence[FanOutQuestion], folder: Path) -> Iterator[LlmJudge]:
    """A judge that keeps its replies in ``folder/judge-DIGEST``; another model, server or prompt has another digest.

    Raises ConfigError where the key cannot work or the folder is of other questions, RecordError where it is in use.
    """
    own = folder / f"judge-{settings.digest}"
    items = {item.question.question_id: item for item in items_of(questions)}
    asked = digest({"questions": [item.sha256 for item in items.values()]})
    stamp = {"judge": settings.model, "digest": settings.digest, "questions_sha256": asked}
    with held(own, "judging"):
        found, _ = begun(own, stamp, (), restart=False)
        kept = AnswerFolder(own, found)
        judge = LlmJudge(settings, lambda question: kept.replies(items[question.question_id]))
        try:
            yield judge
        finally:
            judge.close()
            kept.journal.close()
