"""Trains the classifier of strength on hand-labelled sentences; settings were chosen by folds of documents.

Two logistic regressions with L1, which drops most features, are fitted on the same patterns
(`ragqa.scoring.strength.patterns`). The first decides whether a sentence binds; sentences labelled only with yes or no
add to it with low weight. The second, one against the rest, decides the strength among binding or among other
sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragqa.lab.labelled import LabelledSentence, own_sentences, read_labelled_sentences
from ragqa.lab.strengths import StrengthSentence, labelled_strengths
from ragqa.lab.training.model_folder import ModelCard, write_card
from ragqa.models import write_manifest
from ragqa.scoring.repass.obligations import TfidfObligationClassifier
from ragqa.scoring.strength import COLUMNS, KIND, WEIGHTS_FILE, StrengthWeights, patterns, read_weights, write_weights
from ragqa.types.scores import Strength

FOLDS = 5
INVERSE_STRENGTH = 1.0  # of the regularisation; .5, 1, 2 and 4 tried by folds of documents
OWN_WEIGHT, OTHER_WEIGHT = 0.5, 0.1  # of our own sentences, and of a model-labelled data set
LEAST = 2  # sentences that must have a pattern


@dataclass(frozen=True, slots=True)
class Binding:
    """Measures of how well binding sentences are recognised; each in [0, 1]."""

    precision: float
    recall: float
    f1: float
    strengths: float  # share of all sentences whose strength is right

    @classmethod
    def of(cls, labels: Sequence[Strength], calls: Sequence[Strength]) -> Binding:
        """The measures of these calls against the labels."""
        hits = sum(label.binds and call.binds for label, call in zip(labels, calls, strict=True))
        wanted, called = sum(label.binds for label in labels), sum(call.binds for call in calls)
        same = sum(label is call for label, call in zip(labels, calls, strict=True))
        return cls(
            hits / called if called else 0.0,
            hits / wanted if wanted else 0.0,
            2 * hits / (wanted + called) if wanted + called else 0.0,
            same / len(labels) if labels else 0.0,
        )


def train_strength(data: Path, folder: Path, out: Path) -> ModelCard:
    """Trains, writes weights, MODEL.json and README.md to ``out``, and measures the written weights on the test part.

    ``data`` is a JSON list of {Text, Obligation}, ``folder`` RAGQA_DATA. Raises CorpusError.
    """
    sentences, further = labelled_strengths(folder), weak_sentences(data)
    train = [one for one in sentences if not one.is_test]
    test = [one for one in sentences if one.is_test]
    weights = fit(train, further)
    out.mkdir(parents=True, exist_ok=True)
    write_weights(weights, out / WEIGHTS_FILE)
    write_manifest(out, KIND, WEIGHTS_FILE)
    labels, calls = _judged(read_weights(out / WEIGHTS_FILE), test)
    old = TfidfObligationClassifier().classify([one.text for one in test])
    makers = [_maker(one) for one in test]
    rows = [
        ("cross-validated by document, training part", len(train), cross_validated(train, further)),
        ("test part, other documents", len(test), Binding.of(labels, calls)),
        (
            "test part, RePASs' obligations-tfidf",  # an obligation is a "must"
            len(test),
            Binding.of(labels, [Strength.MUST if one else Strength.NONE for one in old]),
        ),
    ]
    for maker in sorted(set(makers)):
        own = Binding.of(_of(maker, labels, makers), _of(maker, calls, makers))
        rows.append((f"test part, {maker}", makers.count(maker), own))
    card = _card(rows, Counter(zip(labels, calls, strict=True)))
    write_card(out, card)
    return card


def weak_sentences(data: Path) -> list[LabelledSentence]:
    """Sentences with only a yes or no label, with their weights. Raises CorpusError."""
    own = [LabelledSentence(one.text, one.obligation, weight=OWN_WEIGHT) for one in own_sentences("added")]
    others = read_labelled_sentences(data)
    return own + [LabelledSentence(one.text, one.obligation, weight=OTHER_WEIGHT) for one in others]


def fit(train: Sequence[StrengthSentence], further: Sequence[LabelledSentence] = ()) -> StrengthWeights:
    """The weights, without patterns that are 0 in all columns."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(analyzer=patterns, binary=True, min_df=LEAST)
    matrix = vectorizer.fit_transform([one.text for one in train] + [one.text for one in further])
    names = vectorizer.get_feature_names_out()
    binds = [one.strength.binds for one in train] + [one.obligation for one in further]
    columns = [_fitted(matrix, binds, [1.0] * len(train) + [one.weight for one in further])]
    for strength in COLUMNS:
        columns.append(_fitted(matrix[: len(train)], [one.strength is strength for one in train], [1.0] * len(train)))
    numbers = np.stack([weights for weights, _ in columns], axis=1)
    kept = np.flatnonzero(np.abs(numbers).max(axis=1) > 0)
    rows = {str(names[n]): place for place, n in enumerate(kept)}
    return StrengthWeights(
        rows, numbers[kept].astype(np.float32), np.array([one for _, one in columns], dtype=np.float32)
    )


def cross_validated(train: Sequence[StrengthSentence], further: Sequence[LabelledSentence]) -> Binding:
    """The measures of each fifth of the documents by weights fitted on the others."""
    from sklearn.model_selection import GroupKFold

    labels, calls = [], []
    for others, part in GroupKFold(FOLDS).split(train, groups=[one.document for one in train]):
        some = _judged(fit([train[n] for n in others], further), [train[n] for n in part])
        labels += some[0]
        calls += some[1]
    return Binding.of(labels, calls)


def _judged(weights: StrengthWeights, some: Sequence[StrengthSentence]) -> tuple[list[Strength], list[Strength]]:
    return [one.strength for one in some], [weights.strength(one.text) for one in some]


def _fitted(matrix: Any, labels: Sequence[bool], weights: Sequence[float]) -> tuple[Any, float]:  # noqa: ANN401
    from sklearn.linear_model import LogisticRegression

    if len(set(labels)) < 2:
        return np.zeros(matrix.shape[1]), 10.0 if labels[0] else -10.0
    model = LogisticRegression(C=INVERSE_STRENGTH, l1_ratio=1.0, solver="liblinear", max_iter=300, random_state=0)
    model.fit(matrix, labels, sample_weight=weights)
    return model.coef_[0], float(model.intercept_[0])


def _of(maker: str, strengths: Sequence[Strength], makers: Sequence[str]) -> list[Strength]:
    return [strength for strength, other in zip(strengths, makers, strict=True) if other == maker]


def _maker(one: StrengthSentence) -> str:
    parts = one.document.split("/")
    return parts[1] if parts[0] == "documents" else parts[0]


def _card(rows: Sequence[tuple[str, int, Binding]], calls: Counter[tuple[Strength, Strength]]) -> ModelCard:
    """The card with these rows, the first of which counts the training part, and the (label, call) of the test part."""
    wrong = [(pair, n) for pair, n in calls.most_common() if pair[0] is not pair[1]][:6]
    return ModelCard(
        title="strength: does this sentence bind somebody, and how?",
        use="One of must, must not, may only, should, may, none for a sentence or a list item after its lead-in. "
        "Sparse logistic regression on words, pairs of words and outlines; numpy alone at use. It says which "
        "obligations are listed, missed and registered; RePASs keeps obligations-tfidf.",
        figures=[
            ("what", "sentences", "F1 of what binds", "precision", "recall", "right strength"),
            *(
                (name, f"{n:,}", f"{one.f1:.3f}", f"{one.precision:.3f}", f"{one.recall:.3f}", f"{one.strengths:.3f}")
                for name, n, one in rows
            ),
        ],
        figures_note="Must, must not and may only bind. The test documents were set apart before anything was trained "
        "and measured once. Most frequent mistakes there (label, called): "
        + "; ".join(f"{label} called {call}: {n}" for (label, call), n in wrong)
        + ".",
        data=f"{rows[0][1]:,} sentences and items labelled by reading (`ragqa/lab/data/strengths.jsonl`), drawn at "
        "random and, for about half, where an earlier fit was unsure; for whether they bind also our own added "
        f"sentences (weight {OWN_WEIGHT}) and ObligationClassificationDataset.json (weight {OTHER_WEIGHT}).",
        command="ragqa train obligations --strength RAGQA_DATA --data ObligationClassificationDataset.json "
        "--out ragqa/models/strength",
        seed=0,
        limits="One person labelled half of them, a language model the others. A duty in words that no labelled "
        "sentence has (an order without a duty word, "
        '"will" for "must") is missed more often than one with "must" or "shall"; "shall" of what merely applies or '
        "is deemed is sometimes taken for a duty. English only.",
    )
