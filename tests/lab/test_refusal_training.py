"""The weights of choice and refusal, fitted on questions whose right sentences are known."""

import pytest

from ragqa.errors import CorpusError
from ragqa.generation.direct.weighing import ANSWERED, CHOICE, Measured
from ragqa.lab.training.refusal import ReadQuestion, fitted, out_of_fold


def question(n, kind):
    """Ten sentences, of which the selector likes the first best where it is the right one."""
    is_answered = kind == "answered"
    measured = [
        Measured(3.0 if is_answered and not place else -2.0 + n % 3, 0.4, 0.5, 0.5, 0.5, 0.5) for place in range(10)
    ]
    return ReadQuestion(str(n), kind, tuple(measured), tuple(is_answered and not place for place in range(10)), 0.0, 10)


QUESTIONS = [question(n, kind) for n in range(20) for kind in ("answered", "near", "removed")]


def test_what_tells_right_sentences_gets_weight_and_answered_questions_stand_above_the_line():
    choice, refusal = fitted(QUESTIONS)
    assert set(choice) == set(CHOICE)
    assert set(refusal) == set(ANSWERED)
    assert choice["log_odds"] > abs(choice["cosine"])
    report = out_of_fold(QUESTIONS)
    assert (report.first, report.refused) == (1.0, {"answered": 0.0, "near": 1.0, "removed": 1.0})
    assert report.counts == {"answered": 20, "near": 20, "removed": 20}


def test_without_near_misses_nothing_is_fitted():
    with pytest.raises(CorpusError, match="expected questions that are answered"):
        fitted([one for one in QUESTIONS if one.kind == "answered"])
