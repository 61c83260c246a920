"""From what the verifier says of a few windows to one verdict with a calibrated probability.

The weights are fitted on claims that the shipped verifier has not seen (`ragqa train verdicts`), and so is the line
from which a sentence counts as supported. `ragqa/scoring/verdicts/README.md` has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragqa.types.scores import NliProbabilities, Verdict

ON_SUBJECT = 0.35  # of nearness below the nearest window: one further off contradicts nothing
MARGIN = 0.08  # of a verdict's probability above its line, or above the other verdicts': below, it is not sure

FEATURES = ("bias", "entailment", "contradiction", "wide_entailment", "wide_contradiction", "near")
WEIGHTS: dict[Verdict, dict[str, float]] = {
    Verdict.SUPPORTED: {"bias": -0.5, "entailment": 0.6, "wide_entailment": 0.4, "contradiction": -0.3, "near": 0.2},
    Verdict.CONTRADICTED: {"bias": -0.5, "contradiction": 0.5, "wide_contradiction": 0.4, "entailment": -0.2},
}
SUPPORT_LINE = 0.5  # P(supported) from which a sentence is supported


@dataclass(frozen=True, slots=True)
class Look:
    """What the verifier said of one window: ``near`` as `Window.near`, ``width`` how many sentences it has."""

    said: NliProbabilities
    near: float
    width: int


@dataclass(frozen=True, slots=True)
class Belief:
    """The verdict, its probability, whether it is near a line, and the looks that speak most for it, by position."""

    verdict: Verdict
    probability: float
    unsure: bool
    supporting: int
    contradicting: int


def features(looks: Sequence[Look]) -> dict[str, float]:
    """What the weights weigh; ``looks`` are one or more."""
    nearest = max(look.near for look in looks)
    on_subject = [look for look in looks if look.near >= nearest - ON_SUBJECT]
    wide = max(on_subject, key=lambda look: (look.near >= nearest, look.width))
    return {
        "bias": 1.0,
        "entailment": max(log_odds(look.said.entailment) for look in looks),
        "contradiction": max(log_odds(look.said.contradiction) for look in on_subject),
        "wide_entailment": log_odds(wide.said.entailment),
        "wide_contradiction": log_odds(wide.said.contradiction),
        "near": nearest,
    }


def probabilities(
    looks: Sequence[Look], weights: Mapping[Verdict, Mapping[str, float]] = WEIGHTS
) -> dict[Verdict, float]:
    """P(supported), P(contradicted) and P(unsupported), which sum to 1."""
    found = features(looks)
    scores = {verdict: sum(of[name] * found[name] for name in of) for verdict, of in weights.items()}
    powers = {verdict: math.exp(score) for verdict, score in (scores | {Verdict.UNSUPPORTED: 0.0}).items()}
    total = sum(powers.values())
    return {verdict: power / total for verdict, power in powers.items()}


def belief(
    looks: Sequence[Look],
    weights: Mapping[Verdict, Mapping[str, float]] = WEIGHTS,
    line: float = SUPPORT_LINE,
) -> Belief:
    """The most probable verdict, but supported only from the line on."""
    of = probabilities(looks, weights)
    verdict = max(of, key=lambda one: of[one])
    if verdict is Verdict.SUPPORTED and of[verdict] < line:
        verdict = max((Verdict.UNSUPPORTED, Verdict.CONTRADICTED), key=lambda one: of[one])
    others = sorted((probability for one, probability in of.items() if one is not verdict), reverse=True)
    distance = of[verdict] - (line if verdict is Verdict.SUPPORTED else others[0])
    near_support = verdict is not Verdict.SUPPORTED and of[Verdict.SUPPORTED] >= line - MARGIN
    places = range(len(looks))
    return Belief(
        verdict,
        of[verdict],
        distance < MARGIN or near_support,
        max(places, key=lambda n: looks[n].said.entailment),
        max(places, key=lambda n: (looks[n].near >= looks[0].near - ON_SUBJECT, looks[n].said.contradiction)),
    )


def log_odds(probability: float) -> float:
    """``ln(p / (1 - p))``, kept within 5.3 of 0."""
    return math.log((probability + 0.005) / (1 - probability + 0.005))
