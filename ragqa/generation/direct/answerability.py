"""Whether what was found answers a part of a question: a logistic function of measured values.

Pure but for the encoder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ragqa.english.reading import read
from ragqa.english.words import STOP_WORDS, words_of
from ragqa.generation.direct.asking import Asked, Part
from ragqa.generation.direct.aspects import LONGEST, NEAR, head_of
from ragqa.generation.direct.weighing import Evidence, Measured, Source, above, not_said
from ragqa.plugins.protocols import Encoder

LINE: Final = 0.5  # below it a part counts as not answered
# The first were fitted on the open half of the benchmark `expected_facts` and its questions asked of the
# other corpus, the second line chosen on its near misses and those of `near.jsonl` (`--part further`).
COSINE, COVER, ABSENT, NAMES, LACKS, CONSTANT = 4.6, 1.0, -0.5, 1.8, -1.8, -3.0
UNSAID, UNNAMED, ELSEWHERE, NO_NUMBER = -3.5, -2.0, -2.5, -1.0
_FAR: Final = 0.35  # a cosine below it is said to be far
_MANY: Final = 0.5  # a kind of answer that is missing this much is said to be missing
_NO_FIT: Final = 0.2  # of a number: there is none, or none of the dimension asked for


@dataclass(frozen=True, slots=True)
class Answerability:
    """How likely the sentence chosen for a part answers it, in [0, 1], and what speaks against it, in words.

    ``missing`` are words of the question that name what the sentence does not say, with their neighbours.
    """

    value: float
    reasons: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def is_enough(self) -> bool:
        return self.value >= LINE


def answerability(part: Part, source: Source, best: Measured, evidence: Evidence, encoder: Encoder) -> Answerability:
    """That of a part whose best sentence is ``source``, measured as ``best``.

    A rule that is asked for by its number answers in any case.
    """
    passage = evidence.passages[source.rank]
    weights = {one: evidence.rarity(one) for one in part.content}
    absent = {one for one in weights if evidence.is_absent(one)}
    share = sum(weights[one] for one in absent) / (sum(weights.values()) or 1.0)
    lacks = (1.0 - best.fit) if part.is_strict else 0.0
    said, unnamed = not_said(part, source, passage), _unnamed(part, f"{above(passage)} {source.text}", encoder)
    total = COSINE * best.cosine + COVER * best.passage_cover + ABSENT * share + NAMES * best.names + LACKS * lacks
    total += UNSAID * bool(said) + UNNAMED * bool(unnamed) + ELSEWHERE * best.elsewhere
    total += NO_NUMBER * (part.kind is Asked.QUANTITY and best.fit <= _NO_FIT and len(part.text.split()) <= LONGEST)
    reasons = []
    if absent:
        words = [word.lower for word in words_of(part.text) if word.stem in absent]
        reasons.append("no passage found has " + _quoted(words))
    if said.otherwise:
        reasons.append("the nearest sentence speaks of something else than " + _quoted(said.otherwise))
    if said.lacking:
        reasons.append("the nearest sentence does not say " + _quoted(said.lacking))
    if unnamed:
        reasons.append(f"the nearest sentence names no {unnamed}")
    if best.elsewhere >= _MANY:
        reasons.append("the nearest sentence is of a passage about something else")
    if lacks >= _MANY:
        reasons.append(f"the nearest sentence does not have what is asked for ({part.kind})")
    if best.names < 1.0:
        reasons.append("the nearest sentence is not about every name in the question")
    if best.cosine < _FAR:
        reasons.append(f"the nearest sentence is far from the question (cosine {best.cosine:.2f})")
    missing = (*said.otherwise, *said.lacking, *filter(None, (unnamed,)))
    value = 1.0 if evidence.n_named else 1.0 / (1.0 + math.exp(-(total + CONSTANT)))
    return Answerability(value, tuple(reasons), tuple(dict.fromkeys(missing)))


def _unnamed(part: Part, text: str, encoder: Encoder) -> str:
    """The thing that the part asks for by its name ("captain"), where the text has no word near to it; else empty."""
    head = head_of(part.text)
    if not head or not read(text).stems.isdisjoint(word.stem for word in head):
        return ""
    others = list(dict.fromkeys(word.lower for word in words_of(text) if word.lower not in STOP_WORDS))
    near = encoder.encode([word.lower for word in head]) @ encoder.encode(others).T if others else None
    is_near = near is not None and float(near.max()) >= NEAR
    return "" if is_near else " ".join(word.lower for word in head)


def _quoted(words: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f'"{word}"' for word in dict.fromkeys(words))
