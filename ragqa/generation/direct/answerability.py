"""Whether what was found answers a part of a question: a logistic function of five measured values. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ragqa.generation.direct.asking import Part
from ragqa.generation.direct.weighing import Evidence, Measured
from ragqa.verdicts.words import words_of

LINE: Final = 0.5  # below it a part counts as not answered
# Fitted on the open half of `ragqa.evaluation.answering` and its questions asked of the other corpus, then shifted so
# that about a thirtieth of the answerable questions lies below `LINE`.
COSINE, COVER, ABSENT, NAMES, LACKS, CONSTANT = 4.6, 1.0, -0.5, 1.8, -1.8, -3.0
_FAR: Final = 0.35  # a cosine below it is said to be far
_MANY: Final = 0.5  # a kind of answer that is missing this much is said to be missing


@dataclass(frozen=True, slots=True)
class Answerability:
    """How likely the sentence chosen for a part answers it, in [0, 1], and what speaks against it, in words."""

    value: float
    reasons: tuple[str, ...]

    @property
    def is_enough(self) -> bool:
        return self.value >= LINE


def answerability(part: Part, best: Measured, evidence: Evidence) -> Answerability:
    """That of a part whose best sentence was measured as ``best``."""
    weights = {one: evidence.rarity(one) for one in part.content}
    absent = {one for one in weights if evidence.is_absent(one)}
    share = sum(weights[one] for one in absent) / (sum(weights.values()) or 1.0)
    lacks = (1.0 - best.fit) if part.is_strict else 0.0
    total = COSINE * best.cosine + COVER * best.passage_cover + ABSENT * share + NAMES * best.names + LACKS * lacks
    reasons = []
    if absent:
        words = [word.lower for word in words_of(part.text) if word.stem in absent]
        reasons.append("no passage found has " + ", ".join(f'"{word}"' for word in dict.fromkeys(words)))
    if lacks >= _MANY:
        reasons.append(f"the nearest sentence does not have what is asked for ({part.kind})")
    if best.names < 1.0:
        reasons.append("the nearest sentence is not about every name in the question")
    if best.cosine < _FAR:
        reasons.append(f"the nearest sentence is far from the question (cosine {best.cosine:.2f})")
    return Answerability(1.0 / (1.0 + math.exp(-(total + CONSTANT))), tuple(reasons))
