"""From what the verifier says of a few windows to one verdict with a calibrated probability.

Each passage is judged by the mean over its windows, which reads better than any of them alone; the passage that
supports most decides, or else the nearest. The weights are fitted on claims that the verifier has not seen, and the
line from which a sentence counts as supported is chosen on them (`ragqa train verdicts`; README.md has the figures).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from ragqa.types.scores import NliProbabilities, Verdict

ON_SUBJECT = 0.2  # of nearness below the nearest window: a passage further off contradicts nothing
MARGIN = 0.08  # of a probability from its line: nearer, a verdict is not sure

FEATURES = ("bias", "entailment", "contradiction")
WEIGHTS: dict[Verdict, dict[str, float]] = {
    Verdict.SUPPORTED: {"bias": 1.68, "entailment": 1.01, "contradiction": 0.67},
    Verdict.CONTRADICTED: {"bias": 1.55, "entailment": 0.51, "contradiction": 1.12},
}
SUPPORT_LINE = 0.55  # P(supported) from which a sentence is supported
CONTRADICTION_LINE = 0.5  # P(contradicted) from which it is contradicted


@dataclass(frozen=True, slots=True)
class Look:
    """What the verifier said of one window: ``near`` as `Window.near`, ``passage`` which passage it is of."""

    said: NliProbabilities
    near: float
    passage: int


@dataclass(frozen=True, slots=True)
class Belief:
    """The verdict, its probability, whether it is near a line, and the look that decided, by position.

    ``supporting`` are the passages that support it by themselves.
    """

    verdict: Verdict
    probability: float
    unsure: bool
    deciding: int
    supporting: frozenset[int]


Weights = Mapping[Verdict, Mapping[str, float]]


def features(looks: Sequence[Look]) -> dict[str, float]:
    """What the weights weigh, of the looks at one passage."""
    return {
        "bias": 1.0,
        "entailment": log_odds(fmean(look.said.entailment for look in looks)),
        "contradiction": log_odds(fmean(look.said.contradiction for look in looks)),
    }


def probabilities(looks: Sequence[Look], weights: Weights = WEIGHTS) -> dict[Verdict, float]:
    """P(supported), P(contradicted) and P(unsupported) by one passage, which sum to 1."""
    found = features(looks)
    scores = {verdict: sum(of[name] * found[name] for name in of) for verdict, of in weights.items()}
    powers = {verdict: math.exp(score) for verdict, score in (scores | {Verdict.UNSUPPORTED: 0.0}).items()}
    total = sum(powers.values())
    return {verdict: power / total for verdict, power in powers.items()}


def belief(looks: Sequence[Look], weights: Weights = WEIGHTS, line: float = SUPPORT_LINE) -> Belief:
    """Supported and contradicted only from their lines on, else unsupported; ``looks`` of a passage side by side."""
    nearest = max(look.near for look in looks)
    passages = [[look for _, look in group] for _, group in groupby(enumerate(looks), lambda one: one[1].passage)]
    judged = [(probabilities(of, weights), max(look.near for look in of)) for of in passages]
    supporting = [of[0].passage for of, (found, _) in zip(passages, judged, strict=True) if _supports(found, line)]
    on_subject = [found for found, near in judged if near >= nearest - ON_SUBJECT]
    of = max((found for found, _ in judged), key=lambda found: found[Verdict.SUPPORTED])
    against = max(on_subject, key=lambda found: found[Verdict.CONTRADICTED])
    supported, contradicted = of[Verdict.SUPPORTED], against[Verdict.CONTRADICTED]
    verdict = Verdict.UNSUPPORTED
    if _supports(of, line):
        verdict = Verdict.SUPPORTED
    elif contradicted >= CONTRADICTION_LINE:
        verdict, of = Verdict.CONTRADICTED, against
    distance = min(abs(supported - line), abs(contradicted - CONTRADICTION_LINE))
    is_most_probable = of[verdict] == max(of.values())
    is_against = verdict is Verdict.CONTRADICTED
    places = [n for n, look in enumerate(looks) if not is_against or look.near >= nearest - ON_SUBJECT]
    if verdict is Verdict.SUPPORTED:
        places = [n for n in places if looks[n].passage in supporting]
    deciding = _deciding(looks, places, against=is_against)
    return Belief(verdict, of[verdict], distance < MARGIN or not is_most_probable, deciding, frozenset(supporting))


def _supports(found: Mapping[Verdict, float], line: float) -> bool:
    return found[Verdict.SUPPORTED] >= line and found[Verdict.SUPPORTED] > found[Verdict.CONTRADICTED]


def _deciding(looks: Sequence[Look], places: Sequence[int], *, against: bool) -> int:
    """Of these looks, by position, the one that says most against, or that entails most."""
    return max(places, key=lambda n: looks[n].said.contradiction if against else looks[n].said.entailment)


def log_odds(probability: float) -> float:
    """``ln(p / (1 - p))``, kept within 5.3 of 0."""
    return math.log((probability + 0.005) / (1 - probability + 0.005))
