"""Fits weights and thresholds of `ragqa.scoring.verdicts.belief` on claims that the verifier was not trained on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ragqa.errors import ConfigError
from ragqa.lab.claims import ClaimedPassage
from ragqa.lab.training.claim_verdicts import LABELS
from ragqa.scoring.policies import judge_of
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.verdicts.belief import Calibration, Look, belief, features, probabilities
from ragqa.types import AnswerSentence, Passage
from ragqa.types.scores import Verdict

VERDICTS = (Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.UNSUPPORTED)  # in the order of `LABELS`
LINES = [n / 100 for n in range(5, 96)]
# Largest shares out of fold: contradicted and unsupported claims called supported, supported ones called contradicted.
MOST_CONTRADICTED, MOST_UNSUPPORTED, MOST_DENIED = 0.10, 0.13, 0.15
LEAST_DENIAL = 0.5  # threshold of contradiction: a lower one would call nearly every sentence unsure
REGULARISATION_C = 0.1  # inverse strength; .02 to 1 tried out of fold, equal within .01


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """A claim with the verifier's results; ``label`` is an index into `LABELS`."""

    document: str
    kind: str
    label: int
    looks: tuple[Look, ...]


def cases_of(passages: Iterable[ClaimedPassage], scorer: RepassScorer) -> Iterator[list[ReadClaim]]:
    """The claims of each passage, without those for which no window is read. Raises ScoringError."""
    for passage in passages:
        source = Passage(passage.id, passage.id, " ".join(passage.sentences), title=passage.title)
        judge = judge_of([source], scorer)
        said = [AnswerSentence(claim.text, 0, len(claim.text)) for claim in passage.claims]
        pairs = list(dict.fromkeys(pair for sentence in said for pair in judge.second_looks(sentence)))
        table = dict(zip(pairs, scorer.verdicts.predict(pairs), strict=True))
        document = ":".join(passage.id.split(":")[:2])
        cases = [
            ReadClaim(document, claim.kind, LABELS.index(claim.label), tuple(judge.looks(claim.text, table)))
            for claim in passage.claims
        ]
        yield [case for case in cases if case.looks]


def fitted(cases: Sequence[ReadClaim]) -> Calibration:
    """Weights by multinomial logistic regression over standardised features; the thresholds are still 1.

    Raises ConfigError if a label has no case.
    """
    from sklearn.linear_model import LogisticRegression

    labels = [case.label for case in cases]
    if set(labels) != set(range(len(LABELS))):
        found = ", ".join(LABELS[n] for n in sorted(set(labels))) or "none"
        msg = f"expected claims of all labels ({', '.join(LABELS)}) to learn from, found {found}; give more claims"
        raise ConfigError(msg)
    known = [features(case.looks) for case in cases]
    names = [name for name in known[0] if name != "bias"]
    rows = np.array([[of[name] for name in names] for of in known])
    middle, spread = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-6)
    model = LogisticRegression(C=REGULARISATION_C, max_iter=3000).fit((rows - middle) / spread, labels)
    weights = {}
    for n, verdict in enumerate(VERDICTS[:2]):
        of = (model.coef_[n] - model.coef_[2]) / spread
        bias = model.intercept_[n] - model.intercept_[2] - float(of @ middle)
        weights[verdict] = {"bias": float(bias)} | dict(zip(names, map(float, of), strict=True))
    return Calibration(weights, 1.0, 1.0)


def out_of_fold(cases: Sequence[ReadClaim], n_folds: int) -> list[Calibration]:
    """For each case, the weights fitted without its document. Raises ConfigError."""
    from sklearn.model_selection import GroupKFold

    documents = [case.document for case in cases]
    if len(set(documents)) < n_folds:
        msg = f"expected claims over at least {n_folds} documents, found {len(set(documents))}; give more claims"
        raise ConfigError(msg)
    found = [Calibration({}, 1.0, 1.0)] * len(cases)
    for train, test in GroupKFold(n_folds).split(documents, groups=documents):
        known = fitted([cases[n] for n in train])
        for n in test:
            found[n] = known
    return found


def most_probable(cases: Sequence[ReadClaim], known: Sequence[Calibration]) -> float:
    """The balanced accuracy of the most probable label, without thresholds."""
    right: list[list[bool]] = [[] for _ in LABELS]
    for case, of in zip(cases, known, strict=True):
        found = probabilities(case.looks, of)
        right[case.label].append(VERDICTS.index(max(found, key=found.__getitem__)) == case.label)
    return float(np.mean([np.mean(one) for one in right]))


@dataclass(frozen=True, slots=True)
class Shares:
    """The rates at these two thresholds: ``called[label][said]``, indexes into `LABELS`."""

    supported: float
    contradicted: float
    called: tuple[tuple[float, ...], ...]

    @property
    def balanced(self) -> float:
        """The mean over the labels of the share judged right."""
        return sum(row[n] for n, row in enumerate(self.called)) / len(self.called)

    def is_allowed(self, most_contradicted: float = MOST_CONTRADICTED) -> bool:
        """Whether few enough false sentences are called supported."""
        return self.called[1][0] <= most_contradicted and self.called[2][0] <= MOST_UNSUPPORTED


def shares(cases: Sequence[ReadClaim], known: Sequence[Calibration], supported: float, contradicted: float) -> Shares:
    """The rates of the verdicts at these thresholds; ``known`` holds one calibration per case."""
    counts = np.zeros((len(LABELS), len(LABELS)))
    for case, of in zip(cases, known, strict=True):
        at = replace(of, supported=supported, contradicted=contradicted)
        counts[case.label, VERDICTS.index(belief(case.looks, at).verdict)] += 1
    found = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # a label may have no claim
    return Shares(supported, contradicted, tuple(map(tuple, found.tolist())))


def chosen(
    cases: Sequence[ReadClaim], known: Sequence[Calibration], most_contradicted: float = MOST_CONTRADICTED
) -> Shares:
    """The rates at the lowest allowed thresholds: few false claims are supported, and few true ones contradicted.

    ``most_contradicted`` is the largest share of contradicted claims that may be called supported.
    """
    at = (shares(cases, known, line, 1.0) for line in LINES)
    supported = next((one.supported for one in at if one.is_allowed(most_contradicted)), LINES[-1])
    found = [shares(cases, known, supported, line) for line in LINES if line >= LEAST_DENIAL]
    return next((one for one in found if one.called[0][1] <= MOST_DENIED), found[-1])


def written(known: Calibration, trained_on: str) -> str:
    """The text of `belief.json`."""
    weights = {
        str(verdict): {name: round(value, 4) for name, value in of.items()} for verdict, of in known.weights.items()
    }
    lines = {"supported": known.supported, "contradicted": known.contradicted}
    return json.dumps({"lines": lines, "weights": weights, "fitted_on": trained_on}, indent=1) + "\n"
