"""FanOutQA's metrics: loose and strict accuracy, ROUGE, BLEURT and a judge; and which strings each answer matched.

Accuracy is the share of the reference's strings that the answer contains between word borders, after a `Normaliser`
made both comparable. The strings of an object are its names and values, those of a list its values; true and false are
"yes" and "no". Loose accuracy is the mean over all questions, strict accuracy the share of questions that reached 1; a
question without an answer counts 0 in every metric but BLEURT. All as in the `fanoutqa` package, with which tests
compare. `ragqa.evaluation.benchmarks.fanoutqa.instruments` loads what the metrics need.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ragqa.errors import ConfigError, GenerationError
from ragqa.evaluation.benchmarks.fanoutqa.questions import FanOutQuestion, Primitive, Reference

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Makes texts comparable; a text that comes again is normalised once. Safe for several threads.

    ``lemmatiser`` and ``through`` say in a result who lemmatised and whose code ran. ``is_official``: figures may be
    compared with published ones.
    """

    lemmatiser: str
    through: str
    is_official: bool
    _normalise: Callable[[str], str] = field(repr=False)
    _known: dict[str, str] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __call__(self, text: object, *, keep: bool = True) -> str:
        """The comparable text; with ``keep`` it is kept for the next call with this text."""
        plain = str(text)
        with self._lock:  # spaCy's pipelines are not safe for several threads
            found = self._known.get(plain)
            if found is None:
                found = self._normalise(plain)
                if keep:
                    self._known[plain] = found
        return found


@dataclass(frozen=True, slots=True)
class Match:
    """One string of the reference. ``start`` and ``end`` are offsets in the comparable answer; None if not found."""

    reference: str
    compared: str
    start: int | None = None
    end: int | None = None

    @property
    def found(self) -> bool:
        return self.start is not None


@dataclass(frozen=True, slots=True)
class Rouge:
    """The figures of one kind of ROUGE, each in [0, 1]."""

    precision: float = 0.0
    recall: float = 0.0
    fscore: float = 0.0


@dataclass(frozen=True, slots=True)
class Judging:
    """A judge's letter (A to F, or empty), its score (1 for B, C and E, else 0) and the whole reply."""

    letter: str
    score: int
    reply: str = ""


@dataclass(frozen=True, slots=True)
class Missing:
    """A metric that is not available here, the reason, and how to get it."""

    metric: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """One question's scores, each in [0, 1] except BLEURT, which can lie outside; None: not measured.

    ``compared`` is the comparable answer that was searched. ``note`` says why a judge's score is missing.
    """

    question_id: str
    answered: bool
    accuracy: float
    matches: tuple[Match, ...]
    compared: str = ""
    rouge: Mapping[str, Rouge] | None = None
    bleurt: float | None = None
    judging: Judging | None = None
    note: str = ""

    @property
    def is_strict(self) -> bool:
        """Whether every string of the reference was found."""
        return all(match.found for match in self.matches)


@dataclass(frozen=True, slots=True)
class FanOutScores:
    """Means over all questions. ``lemmatiser`` and ``through`` are as in `Normaliser`."""

    n_questions: int
    n_answered: int
    loose: float
    strict: float
    rouge: Mapping[str, Rouge] | None
    bleurt: float | None
    judge: float | None
    lemmatiser: str
    through: str
    missing: tuple[Missing, ...] = ()


class AnswerJudge(Protocol):
    """A judge, which compares an answer with the reference."""

    @property
    def name(self) -> str: ...

    def judge(self, question: FanOutQuestion, reference: str, answer: str) -> Judging: ...


@dataclass(frozen=True, slots=True)
class Metrics:
    """The loaded metrics. One that is None has an entry in ``missing``."""

    normaliser: Normaliser
    rouge: Callable[[str, str], Mapping[str, Rouge]] | None = None
    bleurt: Callable[[str, str], float] | None = None
    judge: AnswerJudge | None = None
    missing: tuple[Missing, ...] = field(default=())


def match(reference: Reference, compared: str, normaliser: Normaliser) -> tuple[Match, ...]:
    """Every string of the reference, names before values, with its first place in the comparable answer."""
    return tuple(_match(value, compared, normaliser) for value in _strings(reference))


def reference_text(reference: Reference) -> str:
    """The reference as one text, a line for each value, with which ROUGE, BLEURT and the judge compare."""
    if isinstance(reference, Mapping):
        return "\n".join(f"{name} - {_spelled(value)}" for name, value in reference.items())
    if isinstance(reference, tuple):
        return "\n".join(map(_spelled, reference))
    return _spelled(reference)


def score_one(question: FanOutQuestion, answer: str | None, metrics: Metrics) -> QuestionScore:
    """The scores of this answer (None: there is none). Raises ConfigError if the question has no reference."""
    if question.answer is None:
        raise ConfigError(
            f"question {question.question_id} has no reference answer (the test set has none); score dev questions, or "
            "send the generations to the leaderboard"
        )
    reference = reference_text(question.answer)
    bleurt = None if metrics.bleurt is None else metrics.bleurt(reference, answer or "")
    if answer is None:
        matches = tuple(Match(value, metrics.normaliser(value)) for value in _strings(question.answer))
        rouge = None if metrics.rouge is None else {kind: Rouge() for kind in ROUGE_TYPES}
        judging = None if metrics.judge is None else Judging("", 0)
        return QuestionScore(question.question_id, False, 0.0, matches, "", rouge, bleurt, judging)
    compared = metrics.normaliser(answer, keep=False)
    matches = match(question.answer, compared, metrics.normaliser)
    score = QuestionScore(
        question_id=question.question_id,
        answered=True,
        accuracy=sum(found.found for found in matches) / len(matches),
        matches=matches,
        compared=compared,
        rouge=None if metrics.rouge is None else metrics.rouge(reference, answer),
        bleurt=bleurt,
    )
    if metrics.judge is None:
        return score
    try:
        return replace(score, judging=metrics.judge.judge(question, reference, answer))
    except GenerationError as error:
        return replace(score, note=f"not judged: {error}")


def summarise(scores: Sequence[QuestionScore], metrics: Metrics) -> FanOutScores:
    """The means, all 0 if there is no question. If an answer could not be judged, there is no judge's figure."""
    n = len(scores)
    missing = list(metrics.missing)
    unjudged = [score for score in scores if score.judging is None]
    judge = None
    if metrics.judge is not None and unjudged:
        reason = f"{len(unjudged):,} of {n:,} answers could not be judged, the first because {unjudged[0].note}"
        missing.append(Missing("judge", reason, "run the same command again: the judgements received are cached"))
    elif metrics.judge is not None:
        judge = _mean([score.judging.score for score in scores if score.judging])
    return FanOutScores(
        n_questions=n,
        n_answered=sum(score.answered for score in scores),
        loose=_mean([score.accuracy for score in scores]),
        strict=_mean([score.is_strict for score in scores]),
        rouge=None if metrics.rouge is None else {kind: _mean_rouge(scores, kind) for kind in ROUGE_TYPES},
        bleurt=None if metrics.bleurt is None else _mean([score.bleurt or 0.0 for score in scores]),
        judge=judge,
        lemmatiser=metrics.normaliser.lemmatiser,
        through=metrics.normaliser.through,
        missing=tuple(missing),
    )


def _strings(reference: Reference) -> tuple[str, ...]:
    if isinstance(reference, Mapping):
        return tuple(map(_spelled, (*reference.keys(), *reference.values())))
    if isinstance(reference, tuple):
        return tuple(map(_spelled, reference))
    return (_spelled(reference),)


def _spelled(value: Primitive) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _match(value: str, compared: str, normaliser: Normaliser) -> Match:
    wanted = normaliser(value)
    found = re.search(rf"\b{re.escape(wanted)}\b", compared)
    return Match(value, wanted, found.start(), found.end()) if found else Match(value, wanted)


def _mean(values: Sequence[Any]) -> float:
    return sum(values) / len(values) if values else 0.0


def _mean_rouge(scores: Sequence[QuestionScore], kind: str) -> Rouge:
    parts = [score.rouge[kind] for score in scores if score.rouge]
    return Rouge(
        _mean([part.precision for part in parts]),
        _mean([part.recall for part in parts]),
        _mean([part.fscore for part in parts]),
    )
