"""A judge over passages, and the verdict on a sentence with the probabilities that a verifier would have given."""

from __future__ import annotations

from collections.abc import Callable

from ragqa.scoring.repass.breakdown import source_premises
from ragqa.scoring.verdicts.judge import Judge
from ragqa.settings.config import ScoringConfig
from ragqa.types import AnswerSentence, Passage
from ragqa.types.scores import NliProbabilities, ObligationVerdict, Premise, ScoringMode, SentenceVerdict
from tests.support.fakes import passage

CLOSE = 0.8  # cosine of sentences that speak of the same thing
Said = Callable[[str], NliProbabilities]  # what the verifier says of a window, whatever the sentence

NOTHING = NliProbabilities(0.02, 0.02, 0.96)
YES = NliProbabilities(0.01, 0.97, 0.02)
NO = NliProbabilities(0.97, 0.01, 0.02)


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
    said: NliProbabilities | Said = NOTHING,
    raw: tuple[float, float] = (0.1, 0.1),
    cosine: float | None = CLOSE,
) -> SentenceVerdict:
    """The verdict on ``text``; ``said`` of every window, or of each by its text; ``raw`` E and C of all sentences."""
    judge = judge_of(*sources, cosine=cosine)
    pairs = judge.second_looks(sentence(text))
    table = {pair: said(pair[pair[0] == text]) if callable(said) else said for pair in pairs}
    n = len(judge.premises)
    return judge.sentence(0, sentence(text), [raw[0]] * n, [raw[1]] * n, table)


def cover_of(
    obligation: str, *answer: str, said: Callable[[str], NliProbabilities], cosine: float | None = CLOSE
) -> ObligationVerdict:
    """How an answer covers an obligation; ``said`` is what the verifier says of a part, by its text."""
    return covered_by(obligation, *answer, said=lambda _, part: said(part), cosine=cosine)


def covered_by(
    obligation: str, *answer: str, said: Callable[[str, str], NliProbabilities], cosine: float | None = CLOSE
) -> ObligationVerdict:
    """How an answer covers an obligation; ``said`` is what the verifier says of (premise, hypothesis)."""
    judge = judge_of(obligation, cosine=cosine)
    sentences = [(n, sentence(text)) for n, text in enumerate(answer)]
    premise = obligation_of(obligation)
    table = {pair: said(*pair) for pair in judge.obligation_looks(premise, sentences)}
    return judge.obligation(5, premise, sentences, table)


def obligation_of(text: str) -> Premise:
    return Premise(text, "p0", 0, 0, len(text))


def saying(words: str, yes: NliProbabilities, otherwise: NliProbabilities = NOTHING) -> Said:
    """``yes`` of texts with these words, ``otherwise`` of all others."""
    return lambda text: yes if words in text else otherwise
