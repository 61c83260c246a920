"""The weights of `ragqa.scoring.verdicts.belief`, fitted on claims that the verifier has not seen, and their line.

Nothing is written: who likes what is printed puts it into `belief.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragqa.errors import ConfigError
from ragqa.lab.claims import ClaimedPassage
from ragqa.lab.training.claim_verdicts import LABELS, judge_of
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.verdicts.belief import FEATURES, Look, belief, features
from ragqa.types import AnswerSentence, Passage
from ragqa.types.scores import Verdict

VERDICTS = (Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.UNSUPPORTED)  # in the order of `LABELS`
LINES = [n / 100 for n in range(30, 91)]
MOST_CONTRADICTED, MOST_UNSUPPORTED = 0.07, 0.13  # shares of those that may be called supported, out of fold

Weights = Mapping[Verdict, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Case:
    """A claim as the verifier has read it; ``label`` is an index into `LABELS`."""

    document: str
    kind: str
    label: int
    looks: tuple[Look, ...]


def cases_of(passages: Iterable[ClaimedPassage], scorer: RepassScorer) -> Iterator[list[Case]]:
    """The claims of each passage, but for those that no window is read for. Raises ScoringError."""
    for passage in passages:
        source = Passage(passage.id, passage.id, " ".join(passage.sentences), title=passage.title)
        judge = judge_of([source], scorer)
        said = [AnswerSentence(claim.text, 0, len(claim.text)) for claim in passage.claims]
        pairs = list(dict.fromkeys(pair for sentence in said for pair in judge.second_looks(sentence)))
        table = dict(zip(pairs, scorer.verdicts.predict(pairs), strict=True))
        document = ":".join(passage.id.split(":")[:2])
        cases = [
            Case(document, claim.kind, LABELS.index(claim.label), tuple(judge.looks(sentence.text, table)))
            for claim, sentence in zip(passage.claims, said, strict=True)
        ]
        yield [case for case in cases if case.looks]


def fitted(cases: Sequence[Case]) -> dict[Verdict, dict[str, float]]:
    """Weights as of `WEIGHTS`: multinomial logistic. Raises ConfigError where a label has no case."""
    from sklearn.linear_model import LogisticRegression

    labels = [case.label for case in cases]
    if set(labels) != set(range(len(LABELS))):
        found = ", ".join(LABELS[n] for n in sorted(set(labels))) or "none"
        msg = f"expected claims of all labels ({', '.join(LABELS)}) to learn from, found {found}; give more claims"
        raise ConfigError(msg)
    rows = np.array([list(features(case.looks).values()) for case in cases])
    model = LogisticRegression(C=1.0, max_iter=2000, fit_intercept=False).fit(rows, labels)
    against = model.coef_[:2] - model.coef_[2]
    return {
        verdict: dict(zip(FEATURES, map(float, row), strict=True))
        for verdict, row in zip(VERDICTS[:2], against, strict=True)
    }


def out_of_fold(cases: Sequence[Case], n_folds: int) -> list[Weights]:
    """For each case the weights fitted without its document. Raises ConfigError."""
    from sklearn.model_selection import GroupKFold

    documents = [case.document for case in cases]
    if len(set(documents)) < n_folds:
        msg = f"expected claims over at least {n_folds} documents, found {len(set(documents))}; give more claims"
        raise ConfigError(msg)
    weights: list[Weights] = [{}] * len(cases)
    for train, test in GroupKFold(n_folds).split(documents, groups=documents):
        found = fitted([cases[n] for n in train])
        for n in test:
            weights[n] = found
    return weights


@dataclass(frozen=True, slots=True)
class Shares:
    """At a line: balanced accuracy, and of each label the share called supported."""

    line: float
    balanced: float
    supported: float
    contradicted: float
    unsupported: float

    @property
    def is_allowed(self) -> bool:
        return self.contradicted <= MOST_CONTRADICTED and self.unsupported <= MOST_UNSUPPORTED


def shares(cases: Sequence[Case], weights: Sequence[Weights], lines: Sequence[float] = LINES) -> list[Shares]:
    """At each line what the verdicts come to; ``weights`` one for each case."""
    labels = np.array([case.label for case in cases])
    found = []
    for line in lines:
        said = np.array(
            [VERDICTS.index(belief(case.looks, of, line).verdict) for case, of in zip(cases, weights, strict=True)]
        )
        right = [float((said[labels == n] == n).mean()) for n in range(3)]
        called = [float((said[labels == n] == 0).mean()) for n in range(3)]
        found.append(Shares(line, float(np.mean(right)), *called))
    return found


def chosen(found: Sequence[Shares]) -> Shares:
    """The lowest line at which few enough false sentences are supported; the highest of all where none is."""
    return next((one for one in found if one.is_allowed), found[-1])
