"""`ragqa.score` as a metric in other evaluation tools; each module needs its tool installed. See README.md."""

from __future__ import annotations

from ragqa.evaluation.metric import AnswerResult
from ragqa.types.scores import Verdict


def reason(result: AnswerResult) -> str:
    """The answer's sentences that the passages do not support, with the reasons, one per line."""
    sentences = result.breakdown.sentences
    doubted = [one for one in result.breakdown.verdicts if one.verdict is not Verdict.SUPPORTED]
    lines = [f"{sentences[one.index].sentence.text} ({one.verdict}: {one.reason})" for one in doubted]
    return "\n".join(lines) or "Every sentence is supported by the passages."
