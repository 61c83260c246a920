"""Turns the verifier's probabilities on a few windows into one verdict with a calibrated probability.

A logistic model judges each passage by the verifier's probabilities on its windows, and by nothing else: comparisons of
words only learn how claims are written. The passage that supports the sentence most decides, or else the nearest. The
weights and thresholds are in `belief.json`, or for another verifier in `calibration.json` in its folder. `ragqa train
verdicts --out` writes either file, fitted on claims that the verifier was not trained on (README.md has the figures).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import fmean

from ragqa.models import ADAPTED, adapter_of
from ragqa.types.scores import NliProbabilities, Verdict

FILE = Path(__file__).with_name("belief.json")
OF_FOLDER = "calibration.json"
ON_SUBJECT = 0.2  # nearness; a passage further than this below the nearest window cannot contradict
MARGIN = 0.08  # distance from a threshold below which a verdict is not sure
COST = 4.0  # cost of calling a contradicted sentence supported; for an unsupported one it is 1


@dataclass(frozen=True, slots=True)
class Look:
    """The verifier's result for one window, with its ``near`` and ``evidence`` (see `Window`) and passage index.

    ``back`` is the result in the other direction: the answer sentence is the premise, the evidence the hypothesis.
    """

    said: NliProbabilities
    back: NliProbabilities
    near: float
    passage: int
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The weight of each feature for each verdict, relative to unsupported, and the thresholds of the verdicts."""

    weights: Mapping[Verdict, Mapping[str, float]]
    supported: float  # threshold of `support`
    contradicted: float  # threshold of P(contradicted)


@dataclass(frozen=True, slots=True)
class Belief:
    """The verdict, its probability, whether it is unsure, and the position of the look that decided it.

    ``supporting`` holds the indexes of the passages that support the sentence on their own.
    """

    verdict: Verdict
    probability: float
    unsure: bool
    deciding: int
    supporting: frozenset[int]


@cache
def calibration(file: Path = FILE) -> Calibration:
    """The weights and thresholds in this file."""
    found = json.loads(file.read_text(encoding="utf-8"))
    lines = found["lines"]
    return Calibration({Verdict(of): found["weights"][of] for of in found["weights"]}, **lines)


def calibration_of(verifier: str) -> Calibration:
    """The calibration of this verifier, an adapter's name or a folder; the default where it has none of its own."""
    folder = adapter_of(verifier) if verifier in ADAPTED else Path(verifier).expanduser()
    own = folder / OF_FOLDER
    return calibration(own if verifier and own.is_file() else FILE)


def features(looks: Sequence[Look]) -> dict[str, float]:
    """The features of one passage, from its looks with the nearest window first."""
    found = {"bias": 1.0}
    nearest, widest = looks[0], max(looks, key=lambda look: len(look.evidence))
    for name in ("entailment", "contradiction", "neutral"):
        values = [getattr(look.said, name) for look in looks]
        found |= {
            f"{name}, mean": log_odds(fmean(values)),
            f"{name}, most": log_odds(max(values)),
            f"{name}, least": log_odds(min(values)),
            f"{name}, nearest": log_odds(getattr(nearest.said, name)),
            f"{name}, widest": log_odds(getattr(widest.said, name)),
        }
    for name in ("entailment", "contradiction"):
        values = [getattr(look.back, name) for look in looks]
        found |= {f"back {name}, most": log_odds(max(values)), f"back {name}, nearest": log_odds(values[0])}
    return found


def probabilities(looks: Sequence[Look], known: Calibration) -> dict[Verdict, float]:
    """P(supported), P(contradicted) and P(unsupported) by the looks at one passage; they sum to 1."""
    found = features(looks)
    scores = {verdict: math.fsum(of[name] * found[name] for name in of) for verdict, of in known.weights.items()}
    scores[Verdict.UNSUPPORTED] = 0.0
    powers = {verdict: math.exp(score - max(scores.values())) for verdict, score in scores.items()}
    total = math.fsum(powers.values())
    return {verdict: power / total for verdict, power in powers.items()}


def support(found: Mapping[Verdict, float]) -> float:
    """P(supported) with P(contradicted) counted `COST` times: ``s / (s + COST c + u)``, in [0, 1]."""
    of = found[Verdict.SUPPORTED]
    return of / (of + COST * found[Verdict.CONTRADICTED] + found[Verdict.UNSUPPORTED])


def belief(looks: Sequence[Look], known: Calibration) -> Belief:
    """The verdict: supported or contradicted from its threshold on, else unsupported.

    The looks at one passage must stand next to each other in ``looks``.
    """
    nearest = max(look.near for look in looks)
    passages = [list(group) for _, group in groupby(looks, lambda look: look.passage)]
    judged = [(probabilities(of, known), of[0].passage, max(look.near for look in of)) for of in passages]
    supporting = frozenset(place for found, place, _ in judged if support(found) >= known.supported)
    of = max((found for found, _, _ in judged), key=support)
    on_subject = (found for found, _, near in judged if near >= nearest - ON_SUBJECT)
    against = max(on_subject, key=lambda found: found[Verdict.CONTRADICTED])
    contradicted = against[Verdict.CONTRADICTED]
    verdict = Verdict.UNSUPPORTED
    if supporting:
        verdict = Verdict.SUPPORTED
    elif contradicted >= known.contradicted and contradicted == max(against.values()):
        verdict, of = Verdict.CONTRADICTED, against
    distance = min(abs(support(of) - known.supported), abs(contradicted - known.contradicted))
    is_most_probable = of[verdict] == max(of.values())
    is_against = verdict is Verdict.CONTRADICTED
    places = [
        n
        for n, look in enumerate(looks)
        if (not is_against or look.near >= nearest - ON_SUBJECT) and (not supporting or look.passage in supporting)
    ]
    deciding = max(places, key=lambda n: looks[n].said.contradiction if is_against else looks[n].said.entailment)
    return Belief(verdict, of[verdict], distance < MARGIN or not is_most_probable, deciding, supporting)


def log_odds(probability: float) -> float:
    """``ln(p / (1 - p))``, kept within 5.3 of 0."""
    return math.log((probability + 0.005) / (1 - probability + 0.005))
