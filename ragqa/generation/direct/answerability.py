"""Answerability: whether the passages found answer a part of a question, by a logistic function. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ragqa.english.words import words_of
from ragqa.generation.direct.asking import Part
from ragqa.generation.direct.weighing import Evidence, Measured, logistic

LINE: Final = 0.5  # below it a part counts as not answered
# Weights of the selector's log odds, the passage's cover and the fit of the kind, fitted like
# `ragqa.generation.direct.weighing.WEIGHTS`; the constant is chosen for few false refusals.
ANSWERS, COVER, FIT, CONSTANT = 0.65, 1.2, 0.4, 0.3
TAUGHT: Final = 20  # words; one in a hundred of the selector's training questions is longer
# Weights without a selector (as in other languages), and for longer questions, where the higher result counts: fitted
# on the open half of the benchmark `expected_facts`.
COSINE, OWN_COVER, ABSENT, LACKS, OWN_CONSTANT = 4.6, 1.0, -0.5, -1.8, -1.2
_FAR: Final = 0.35  # a cosine below this is reported as far
_MANY: Final = 0.5  # a kind of answer that is missing by this much is reported as missing


@dataclass(frozen=True, slots=True)
class Answerability:
    """The probability that the sentence chosen for a part answers it, and the reasons against it in words.

    ``missing`` are words of the question that no passage found has.
    """

    value: float
    reasons: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def is_enough(self) -> bool:
        return self.value >= LINE


def answerability(part: Part, best: Measured, evidence: Evidence, n_words: int) -> Answerability:
    """The answerability of a part whose best sentence has the values ``best``, in a question of ``n_words``.

    It is 1 if the question asks for a rule by its number.
    """
    weights = {one: evidence.rarity(one) for one in part.content}
    absent = {one for one in weights if evidence.is_absent(one)}
    share = sum(weights[one] for one in absent) / (sum(weights.values()) or 1.0)
    lacks = (1.0 - best.fit) if part.is_strict else 0.0
    total = COSINE * best.cosine + OWN_COVER * best.passage_cover + ABSENT * share + LACKS * lacks + OWN_CONSTANT
    if best.answers is not None:
        told = ANSWERS * best.answers + COVER * best.passage_cover + FIT * best.fit + CONSTANT
        total = told if n_words <= TAUGHT else max(told, total)
    missing = tuple(dict.fromkeys(word.lower for word in words_of(part.text) if word.stem in absent))
    reasons = []
    if missing:
        reasons.append("no passage found has " + ", ".join(f'"{word}"' for word in missing))
    if best.answers is not None and best.answers < 0:
        reasons.append(f"the nearest sentence does not read as an answer (probability {logistic(best.answers):.2f})")
    if lacks >= _MANY:
        reasons.append(f"the nearest sentence does not have what is asked for ({part.kind})")
    if best.cosine < _FAR:
        reasons.append(f"the nearest sentence is far from the question (cosine {best.cosine:.2f})")
    return Answerability(1.0 if evidence.n_named else logistic(total), tuple(reasons), missing)
