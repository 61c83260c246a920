"""A judge over passages, and the verdict on a sentence with the probabilities that a model would have given."""

from __future__ import annotations

from collections.abc import Sequence

from ragqa.scoring.repass.breakdown import source_premises
from ragqa.scoring.verdicts.judge import Judge
from ragqa.settings.config import ScoringConfig
from ragqa.types import AnswerSentence, Passage
from ragqa.types.scores import NliProbabilities, Premise, ScoringMode, SentenceVerdict
from tests.support.fakes import passage

CLOSE = 0.8  # cosine of sentences that speak of the same thing


def judge_of(*sources: str | Passage, cosine: float | None = CLOSE) -> Judge:
    """A judge of these passages; all sentences have this cosine, None: no encoder."""
    passages = [source if isinstance(source, Passage) else passage(f"p{n}", source) for n, source in enumerate(sources)]
    similarity = None if cosine is None else lambda _, others: [cosine] * len(others)
    return Judge(source_premises(passages, ScoringMode.PAPER), passages, ScoringConfig(), similarity)


def sentence(text: str) -> AnswerSentence:
    return AnswerSentence(text, 0, len(text))


def verdict_of(
    text: str,
    *sources: str | Passage,
    entailment: float | Sequence[float] = 0.1,
    contradiction: float | Sequence[float] = 0.1,
    backwards: float = 0.1,
    cosine: float | None = CLOSE,
) -> SentenceVerdict:
    """The verdict on ``text``; probabilities of all source sentences, or one for each."""
    judge = judge_of(*sources, cosine=cosine)
    n = len(judge.premises)
    entailing, contradicting = (
        [value] * n if isinstance(value, float) else list(value) for value in (entailment, contradiction)
    )
    table = {(text, premise.text): NliProbabilities(0.0, backwards, 1.0 - backwards) for premise in judge.premises}
    return judge.sentence(0, sentence(text), entailing, contradicting, table)


def obligation_of(text: str) -> Premise:
    return Premise(text, "p0", 0, 0, len(text))
