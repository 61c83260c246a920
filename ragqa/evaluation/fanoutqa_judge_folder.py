"""The metrics of a run, and the judge's replies kept on disk: no answer is judged and paid for twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ragqa.corpus.fanoutqa import FanOutQuestion
from ragqa.evaluation.answer_folder import AnswerFolder
from ragqa.evaluation.fanoutqa_judge import JudgeSettings, LlmJudge
from ragqa.evaluation.fanoutqa_metrics import Metrics
from ragqa.evaluation.fanoutqa_run import items_of
from ragqa.evaluation.fanoutqa_text import Normaliser
from ragqa.evaluation.fanoutqa_tools import load_metrics
from ragqa.evaluation.run_folder import begun, digest, held


@contextmanager
def measuring(questions: Sequence[FanOutQuestion], normaliser: Normaliser, folder: Path) -> Iterator[Metrics | None]:
    """What can be measured here; None for the test set, which has no answers. A judge keeps its replies in ``folder``.

    Raises as `load_metrics` and `kept_judge`.
    """
    if any(question.answer is None for question in questions):
        yield None
        return
    settings = JudgeSettings.from_env()
    with ExitStack() as stack:
        judge = stack.enter_context(kept_judge(settings, questions, folder)) if settings else None
        yield load_metrics(normaliser, judge)


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
