"""The weights of `ragqa.scoring.verdicts.belief.SUPPORT`, fitted again from probes and measured out of fold.

Learnt from: re-worded sentences are supported; sentences whose source was taken away, and those of other documents, are
not. Edited sentences are only counted, under the present weights and the fitted ones. The product's own judge says what
is known of a pair and what the verdict is. Nothing is written: who likes what is printed puts it into `belief.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.verdicts.judging import passages_for
from ragqa.evaluation.benchmarks.verdicts.labelled import labelled
from ragqa.evaluation.benchmarks.verdicts.probes import OTHER, REMOVED, REWORDED, Expected, Probe, drawn, sentences_of
from ragqa.pipeline import Pipeline
from ragqa.scoring.repass.scorer import CosineOf
from ragqa.scoring.verdicts.belief import SUPPORT, Evidence, features, support
from ragqa.scoring.verdicts.judge import Judge, Table
from ragqa.types import Answer, AnswerSentence
from ragqa.types.scores import Verdict
from ragqa.types.streams import returned

ROUNDS: Final = 4  # a case is learnt from by its best source sentence, and which that is depends on the weights
MOST_REMOVED: Final = 0.05  # share of sentences without their source that may be supported where it was learnt
PART: Final = "open"  # of the labelled probes: sealed ones choose nothing
EDITED, SAYS_MORE = "edited", "says more"
KINDS: Final = (REWORDED, REMOVED, OTHER, EDITED, SAYS_MORE)  # in the order of a report

Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Case:
    """A probe with what a verdict on it needs; cases of one ``document`` are in one fold.

    ``numbers`` are P(entailment) and P(contradiction) of its source sentences and the second looks.
    """

    kind: str
    document: str
    sentence: AnswerSentence
    numbers: tuple[Sequence[float], Sequence[float], Table]
    judge: Callable[..., Judge]  # given ``weights``

    def verdict(self, weights: Weights) -> Verdict:
        """As the product would say it with these weights."""
        return self.judge(weights=weights).sentence(0, self.sentence, *self.numbers).verdict

    def evidence(self) -> list[Evidence]:
        """Of the source sentences that only the weights decide on."""
        return self.judge(weights=SUPPORT).evidence(self.sentence, *self.numbers)


def probes_of(pipeline: Pipeline, n: int, seed: int) -> list[Probe]:
    """The open labelled probes about this index, and ``n`` made ones of each kind that is not supported."""
    sentences = sentences_of(pipeline.index, seed, n)
    made = drawn(sentences, (REMOVED, OTHER), n, seed, pipeline.models.obligations)
    return [*(probe for probe in labelled(pipeline.index, PART) if not probe.obligation), *made]


def cases_of(pipeline: Pipeline, probes: Sequence[Probe]) -> Iterator[Case]:
    """Each probe against its ten passages, as `ragqa eval verdicts` judges it. Raises ScoringError."""
    index, models, config = pipeline.index, pipeline.models, pipeline.config.scoring
    for probe in probes:
        own = [index.passages[index.position_of[name]] for name in probe.own]
        passages = passages_for(probe, [hit.passage for hit in pipeline.search(probe.asked).hits], own)
        sentence = AnswerSentence(probe.text, 0, len(probe.text))
        found = returned(pipeline.scorer.stream(Answer(probe.text, (sentence,), "probe", ""), passages)).paper
        similarity = CosineOf(models.sentences) if models.sentences else None
        judge = partial(Judge, found.premises, passages, config, similarity)
        looks = judge().second_looks(sentence)
        numbers = (
            [row[0] for row in found.entailment_matrix],
            [row[0] for row in found.contradiction_matrix],
            dict(zip(looks, models.reader.predict(looks), strict=True)),  # remembered since a moment ago
        )
        document = probe.document_id or own[0].document_id
        yield Case(_kind(probe), f"{index.manifest.name} {document}", sentence, numbers, judge)


def _kind(probe: Probe) -> str:
    return {Expected.CONTRADICTED: EDITED, Expected.NOT_SUPPORTED: SAYS_MORE}.get(probe.expected, probe.kind)


def fitted(cases: Sequence[Case]) -> dict[str, float]:
    """Weights as of `SUPPORT`: logistic, both classes weighing the same, each case by its best source sentence.

    Then the bias is lowered until at most one in twenty of the cases without their source is supported. Raises
    ConfigError where one of the classes has no case to learn from.
    """
    from sklearn.linear_model import LogisticRegression

    known = [(case.kind, case.evidence()) for case in cases if case.kind in (REWORDED, REMOVED, OTHER)]
    learnt = [(kind, found) for kind, found in known if found]  # the others are decided by another rule
    labels = [kind == REWORDED for kind, _ in learnt]
    if len(set(labels)) < 2:
        msg = (
            f"expected cases that are supported and cases that are not, found {sum(labels)} and "
            f"{len(labels) - sum(labels)} to learn from; take an index that labelled probes are about, or a larger --n"
        )
        raise ConfigError(msg)
    weights: dict[str, float] = dict(SUPPORT)
    for _ in range(ROUNDS):
        rows = [list(features(max(found, key=lambda one: support(one, weights))).values()) for _, found in learnt]
        model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(rows, labels)
        names = features(learnt[0][1][0])
        weights = {"bias": float(model.intercept_[0]), **dict(zip(names, map(float, model.coef_[0]), strict=True))}
    removed = sorted(max(support(one, weights) for one in found) for kind, found in learnt if kind == REMOVED)
    n_allowed = math.floor(MOST_REMOVED * sum(case.kind == REMOVED for case in cases))
    if len(removed) > n_allowed:
        weights["bias"] -= max(0.0, removed[len(removed) - n_allowed - 1])
    return weights


def out_of_fold(cases: Sequence[Case], n_folds: int) -> list[Verdict]:
    """The verdict on each case under weights that were fitted without its document. Raises ConfigError."""
    from sklearn.model_selection import GroupKFold

    documents = [case.document for case in cases]
    if len(set(documents)) < n_folds:
        msg = f"expected cases of at least {n_folds} documents, found {len(set(documents))}; take fewer --folds"
        raise ConfigError(msg)
    verdicts = [Verdict.NONE] * len(cases)
    for train, test in GroupKFold(n_folds).split(documents, groups=documents):
        weights = fitted([cases[n] for n in train])
        for n in test:
            verdicts[n] = cases[n].verdict(weights)
    return verdicts


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of the ``n`` cases of a kind, in [0, 1]."""

    kind: str
    n: int
    supported: float
    contradicted: float


def rates(cases: Sequence[Case], verdicts: Sequence[Verdict]) -> list[Rates]:
    """By kind, those without a case left out."""
    found = []
    for kind in KINDS:
        said = [verdict for case, verdict in zip(cases, verdicts, strict=True) if case.kind == kind]
        if said:
            shares = (said.count(one) / len(said) for one in (Verdict.SUPPORTED, Verdict.CONTRADICTED))
            found.append(Rates(kind, len(said), *shares))
    return found
