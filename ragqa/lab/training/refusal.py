"""The weights by which a sentence is chosen and a question refused (`ragqa.generation.direct.weighing`), fitted again.

Questions are those of labelled passages that the selector has not learnt, asked of an index that holds the passages:
answered, a near miss, or with its passage taken out and its neighbours kept. Nothing is written: who likes what is
printed puts it into `weighing.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

import numpy as np

from ragqa.errors import CorpusError
from ragqa.generation.direct import weighing
from ragqa.generation.direct.asking import parts_of
from ragqa.generation.direct.candidates import Evidence
from ragqa.generation.direct.weighing import READ, Measured, added, measured, of_best
from ragqa.lab.claims import ClaimedPassage, ClaimQuestion
from ragqa.plugins.protocols import Encoder, Selector
from ragqa.types import Passage, Ranking

Kind = Literal["answered", "near", "removed"]
CHOICE: Final = tuple(name for name in weighing.CHOICE)
BEST: Final = tuple(name for name in weighing.ANSWERED if name != "bias")
REFUSED: Final = 0.07  # of answered questions whose first sentence is right: where the line lies
FOLDS: Final = 5
LEAST_STEP: Final = 1e-6


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """A question with what is measured of its nearest sentences, and which of these are right."""

    passage: str  # its id: what is learnt of a passage is not tested on it
    kind: Kind
    measured: tuple[Measured, ...]
    is_right: tuple[bool, ...]
    absent: float
    n_sources: int


@dataclass(frozen=True, slots=True)
class RefusalReport:
    """Shares out of fold: right first of the answered with the passage among what was read; refused, by kind."""

    first: float
    refused: Mapping[str, float]
    counts: Mapping[str, int]


def read_questions(
    claims: Sequence[ClaimedPassage],
    passages: Mapping[str, Passage],
    search: Callable[[str], Ranking],
    encoder: Encoder,
    selector: Selector,
) -> Iterator[ReadQuestion]:
    """The questions of those claims whose passage the index holds; ``passages`` by the id among the claims."""
    for claimed in claims:
        own = passages.get(claimed.id)
        for question in claimed.questions if own else ():
            ranking = search(question.text)
            yield _read(claimed, question, "answered" if question.answerable else "near", ranking, encoder, selector)
            if question.answerable:
                others = Ranking.of(ranking.retriever, [hit for hit in ranking.hits if hit.passage is not own])
                yield _read(claimed, question, "removed", others, encoder, selector)


def _read(
    claimed: ClaimedPassage,
    question: ClaimQuestion,
    kind: Kind,
    ranking: Ranking,
    encoder: Encoder,
    selector: Selector,
) -> ReadQuestion:
    evidence, part = Evidence(ranking), parts_of(question.text)[0]
    sources = [evidence.sources[place] for place in evidence.nearest(part, READ)]
    gold = [" ".join(claimed.sentences[place].split()) for place in question.sentences]
    right = [kind == "answered" and any(one.text in text or text in one.text for text in gold) for one in sources]
    values = measured(part, sources, evidence, encoder, selector)
    absent = len(evidence.absent(part)) / max(1, len(part.content))
    return ReadQuestion(claimed.id, kind, tuple(values), tuple(right), absent, len(evidence.sources))


def fitted(questions: Sequence[ReadQuestion]) -> tuple[dict[str, float], dict[str, float]]:
    """(weights of the choice, weights of the refusal). Raises CorpusError where one kind of question is missing."""
    from sklearn.linear_model import LogisticRegression

    steps = [
        [asdict(right)[name] - asdict(wrong)[name] for name in CHOICE]
        for one in questions
        for right, is_right in zip(one.measured, one.is_right, strict=True)
        for wrong, is_also in zip(one.measured, one.is_right, strict=True)
        if is_right and not is_also
    ]
    if not steps or {one.kind for one in questions} != {"answered", "near", "removed"}:
        msg = "expected questions that are answered, near misses and such with their passage taken out, found fewer "
        msg += "kinds; name an index that holds the claims' passages"
        raise CorpusError(msg)
    rows = np.array([*steps, *([-value for value in row] for row in steps)])
    model = LogisticRegression(C=1.0, fit_intercept=False, max_iter=500)
    model.fit(rows, [True] * len(steps) + [False] * len(steps))
    choice = dict(zip(CHOICE, map(float, model.coef_[0]), strict=True))
    best = [_best(one, choice) for one in questions]
    known = [place for place, one in enumerate(questions) if one.kind != "answered" or best[place][1]]
    labels = [questions[place].kind == "answered" for place in known]
    values = np.array([[best[place][0][name] for name in BEST] for place in known])
    refusal = LogisticRegression(C=1.0, max_iter=500, class_weight="balanced").fit(values, labels)
    weights = dict(zip(BEST, map(float, refusal.coef_[0]), strict=True))
    totals = sorted(values[np.array(labels)] @ refusal.coef_[0])
    line = float(totals[math.floor(REFUSED * len(totals))]) - LEAST_STEP  # what lies on it is answered
    return choice, {"bias": -line, **weights}


def _best(question: ReadQuestion, choice: Mapping[str, float]) -> tuple[dict[str, float], bool]:
    """What is measured of the sentence that is chosen, and whether it is right."""
    order = sorted(range(len(question.measured)), key=lambda n: (-added(choice, question.measured[n]), n))
    found = [question.measured[place] for place in order]
    values = asdict(found[0]) | of_best(found, question.absent, question.n_sources)
    return values, question.is_right[order[0]]


def out_of_fold(questions: Sequence[ReadQuestion]) -> RefusalReport:
    """Each question measured by weights fitted on other passages' questions."""
    ids = list(dict.fromkeys(one.passage for one in questions))
    fold_of = {name: place % FOLDS for place, name in enumerate(ids)}
    first: list[bool] = []
    refused: dict[str, list[bool]] = {}
    for fold in range(FOLDS):
        choice, weights = fitted([one for one in questions if fold_of[one.passage] != fold])
        for one in (one for one in questions if fold_of[one.passage] == fold):
            values, is_right = _best(one, choice)
            total = math.fsum(weight * values[name] for name, weight in weights.items())
            refused.setdefault(one.kind, []).append(total < 0)
            if one.kind == "answered":
                first.append(is_right)
    shares = {kind: float(np.mean(found)) for kind, found in refused.items()}
    return RefusalReport(float(np.mean(first)), shares, {kind: len(found) for kind, found in refused.items()})
