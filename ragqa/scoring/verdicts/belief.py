"""When what was found of one pair of sentences is believed: the weights of a support, the thresholds of all else.

The weights are fitted and the thresholds chosen on labelled cases (`ragqa/scoring/verdicts/README.md` says how).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ragqa.scoring.verdicts.clashes import Clash


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one source sentence and one answer sentence; probabilities and shares in [0, 1]."""

    entailment: float  # P(entailment | source, answer)
    contradiction: float  # P(contradiction | source, answer)
    backwards: float  # P(entailment | answer, source): high where the two say the same
    cosine: float  # of the two sentences' vectors, in [-1, 1]
    cover: float  # share of the answer's content words in the source sentence, rare ones counting more
    unknown_names: int  # names of the answer that the source sentence and its headings lack
    lacks_numbers: bool  # the answer has a number or date that the source sentence lacks
    is_elsewhere: bool  # the source sentence is about another subject
    knows_subject: bool  # the first name of the answer stands in the source sentence or its headings
    differs_in_strength: bool  # another modal verb, negation or frequency
    is_opposed: bool  # the one forbids what the other permits, or the like


# Fitted: logistic, negatives weighing as much as positives; then the bias lowered until 19 of 20 sentences whose source
# was taken away were not supported.
SUPPORT = {
    "bias": -0.7,
    "entailment": 0.24,
    "cosine": 3.1,
    "backwards": 0.8,
    "names": -1.8,
    "numbers": -1.2,
}
MIN_COSINE, MIN_COVER = 0.6, 0.45  # below, two sentences are not taken to speak of the same thing
SAME_WORDS = 0.85  # cover from which a sentence is taken for an edited copy
# P(contradiction) that is believed: of an edited copy, or where strengths are opposed; where they differ; else.
NEEDED_OF_COPY, NEEDED, NEEDED_OF_EQUAL_STRENGTH = 0.4, 0.85, 0.95
DOUBT, DOUBT_OF_EQUAL_STRENGTH = 0.5, 0.7  # P(contradiction) that takes a support away
CLEAR_ENTAILMENT, CLEAR_COSINE = 0.8, 0.55  # from which the model's word is enough, where no name or number is new

# Of clashes: how close two sentences must be, those with another name closer; P(contradiction) a name wants beside it.
CLASH_COSINE, CLASH_COVER = 0.6, 0.4
NAME_COSINE, NAME_COVER, NAME_CONTRADICTION = 0.7, 0.4, 0.1


def support(evidence: Evidence, weights: Mapping[str, float] = SUPPORT) -> float:
    """How far the source sentence supports the answer sentence; above 0 it does."""
    return weights["bias"] + sum(weights[name] * value for name, value in features(evidence).items())


def features(evidence: Evidence) -> dict[str, float]:
    """What the weights of `support` weigh; `ragqa train verdicts` fits them."""
    return {
        "entailment": log_odds(evidence.entailment),
        "cosine": evidence.cosine,
        "backwards": log_odds(evidence.backwards),
        "names": float(min(evidence.unknown_names, 1)),
        "numbers": float(evidence.lacks_numbers),
    }


def is_clear(evidence: Evidence) -> bool:
    """Whether the model's word alone is enough to support: it is sure, and nothing in the answer is new."""
    is_new = evidence.unknown_names or evidence.lacks_numbers
    return evidence.entailment >= CLEAR_ENTAILMENT and evidence.cosine >= CLEAR_COSINE and not is_new


def log_odds(probability: float) -> float:
    """``ln(p / (1 - p))``, kept within 5.3 of 0."""
    return math.log((probability + 0.005) / (1 - probability + 0.005))


def is_on_subject(evidence: Evidence) -> bool:
    """Whether both speak of the same thing: only then can the one contradict the other."""
    return (
        not evidence.is_elsewhere
        and evidence.knows_subject
        and evidence.cosine >= MIN_COSINE
        and evidence.cover >= MIN_COVER
    )


def is_doubtful(evidence: Evidence) -> bool:
    """Whether too much speaks against a support: the model sees a contradiction, if not one that is believed."""
    if evidence.is_opposed and evidence.cover >= MIN_COVER:
        return True
    return evidence.contradiction >= (DOUBT if evidence.differs_in_strength else DOUBT_OF_EQUAL_STRENGTH)


def contradicts(evidence: Evidence) -> bool:
    """Whether the model's word that they contradict each other is believed."""
    needed = NEEDED_OF_EQUAL_STRENGTH
    if evidence.differs_in_strength:
        needed = NEEDED_OF_COPY if evidence.cover >= SAME_WORDS or evidence.is_opposed else NEEDED
    believed = evidence.contradiction >= needed and evidence.contradiction > evidence.entailment
    return believed and is_on_subject(evidence)


def clashes_on_subject(clash: Clash, evidence: Evidence) -> bool:
    """Whether a clash is of the same thing: names clash only in sentences that are closer to each other."""
    if evidence.is_elsewhere:
        return False
    if clash.kind in {"entity", "party"}:
        is_close = evidence.cosine >= NAME_COSINE and evidence.cover >= NAME_COVER
        return is_close and (clash.is_certain or evidence.contradiction >= NAME_CONTRADICTION)
    return evidence.knows_subject and evidence.cosine >= CLASH_COSINE and evidence.cover >= CLASH_COVER
