"""From what the verifier says of a few windows to one verdict with a calibrated probability.

Each passage is judged by a logistic model over the verifier's word on its windows and a few comparisons of words; the
passage that supports most decides, or else the nearest. Weights and lines are in `belief.json`, those of another
verifier in `calibration.json` of its folder. `ragqa train verdicts --out` writes either: fitted on claims that the
verifier has not seen (README.md has the figures).
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

from ragqa.english.reading import read
from ragqa.models import ADAPTED, adapter_of
from ragqa.types.scores import NliProbabilities, Verdict

FILE = Path(__file__).with_name("belief.json")
OF_FOLDER = "calibration.json"
ON_SUBJECT = 0.2  # of nearness below the nearest window: a passage further off contradicts nothing
MARGIN = 0.08  # from a line: nearer, a verdict is not sure
COST = 4.0  # of a contradicted sentence called supported, where that of an unsupported one is 1


@dataclass(frozen=True, slots=True)
class Look:
    """What the verifier said of one window: ``near`` and ``evidence`` as of `Window`, ``passage`` which it is of.

    ``back`` is what it said of the window's words where the sentence is the premise.
    """

    said: NliProbabilities
    back: NliProbabilities
    near: float
    passage: int
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a feature weighs for a verdict, against unsupported, and the lines from which verdicts are given."""

    weights: Mapping[Verdict, Mapping[str, float]]
    supported: float  # of `support`
    contradicted: float  # of P(contradicted)


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


@cache
def calibration(file: Path = FILE) -> Calibration:
    """The weights and lines of this file."""
    found = json.loads(file.read_text(encoding="utf-8"))
    lines = found["lines"]
    return Calibration({Verdict(of): found["weights"][of] for of in found["weights"]}, **lines)


def calibration_of(verifier: str) -> Calibration:
    """Those of this verifier, an adapter's name or a folder, where it has some of its own; else the default one's."""
    folder = adapter_of(verifier) if verifier in ADAPTED else Path(verifier).expanduser()
    own = folder / OF_FOLDER
    return calibration(own if verifier and own.is_file() else FILE)


def features(text: str, looks: Sequence[Look]) -> dict[str, float]:
    """What the weights weigh, of the looks at one passage, the nearest window first."""
    found = {"bias": 1.0, "near": looks[0].near}
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
    said, narrow, wide = read(text), read(nearest.evidence), read(widest.evidence)
    n_words, known = max(1, len(said.content)), set(wide.plain)
    found["words, nearest"] = len(said.content & narrow.content) / n_words
    found["words, widest"] = len(said.content & wide.content) / n_words
    found["new capitals"] = len({word.lower for word in said.words[1:] if word.is_capital} - known)
    return found


def probabilities(text: str, looks: Sequence[Look], known: Calibration) -> dict[Verdict, float]:
    """P(supported), P(contradicted) and P(unsupported) by one passage, which sum to 1."""
    found = features(text, looks)
    scores = {verdict: math.fsum(of[name] * found[name] for name in of) for verdict, of in known.weights.items()}
    scores[Verdict.UNSUPPORTED] = 0.0
    powers = {verdict: math.exp(score - max(scores.values())) for verdict, score in scores.items()}
    total = math.fsum(powers.values())
    return {verdict: power / total for verdict, power in powers.items()}


def support(found: Mapping[Verdict, float]) -> float:
    """P(supported), lowered where what it might be instead is worse than unsupported; in [0, 1]."""
    of = found[Verdict.SUPPORTED]
    return of / (of + COST * found[Verdict.CONTRADICTED] + found[Verdict.UNSUPPORTED])


def belief(text: str, looks: Sequence[Look], known: Calibration) -> Belief:
    """Supported and contradicted only from their lines on, else unsupported; ``looks`` of a passage side by side."""
    nearest = max(look.near for look in looks)
    passages = [list(group) for _, group in groupby(looks, lambda look: look.passage)]
    judged = [(probabilities(text, of, known), of[0].passage, max(look.near for look in of)) for of in passages]
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
