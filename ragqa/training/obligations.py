"""`ragqa train obligations`: the labelled sentences -> the embedded classifier, its model card and an honest report.

Three kinds of sentences are trained on: the train part of the data set, own sentences (`obligation_sentences`), and for
each obligation of the train part the same sentence without its duty word, labelled as no obligation ("firms must keep
records" -> "firms keep records"). Without the last two the model takes seven of ten encyclopedia sentences for
obligations, because nearly every negative in the data set says "may" or "is encouraged".
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ragqa.errors import CorpusError
from ragqa.repass.obligations import (
    KIND,
    LONGEST_NGRAM,
    WEIGHTS_FILE,
    NgramWeights,
    TfidfObligationClassifier,
    probability,
    save_weights,
)
from ragqa.training.model_folder import write_manifest
from ragqa.training.obligation_card import model_card
from ragqa.training.obligation_report import Classify, Figures, ObligationReport, f1_of, measure
from ragqa.training.obligation_sentences import ADDED_OBLIGATIONS, ADDED_STATEMENTS

REGULARISATION_C = 10.0  # inverse strength; 1, 10, 30 and 100 tried by 5-fold cross-validation on the train part
CONTRAST_WEIGHT = 0.2  # of a sentence without its duty word; .05 to 1 tried: more means fewer false alarms, lower F1
TEST_FRACTION = 0.2  # as the reference
FOLDS = 5

_DUTY = re.compile(
    r"\b(?:(?:is|are|be)\s+(?:required|obliged|obligated|mandated)\s+to|must|shall|(?:has|have|needs?)\s+to)\s+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A sentence, whether it obliges somebody, and how much it weighs in training."""

    text: str
    obligation: bool
    weight: float = 1.0


Fitting = Callable[[list[Labelled]], NgramWeights]


def train_obligations(data: Path, out: Path, seed: int = 42) -> ObligationReport:
    """Trains on the train part of the 80/20 split with this seed, writes weights, MODEL.json and README.md to ``out``.

    The written weights are the ones the report measures, read back from disk: nothing of the test part is in them. The
    report also measures the data set alone, without the widening. Raises CorpusError where the data cannot be used.
    """
    from sklearn.model_selection import train_test_split

    started = time.perf_counter()
    sentences = read_labelled_sentences(data)
    try:
        train, test = train_test_split(sentences, test_size=TEST_FRACTION, random_state=seed)
        weights = fit_widened(train)
        plain = _figures(_classify_with(fit(train)), _cross_validated(fit, train), train, test)
        f1_cross_validated = _cross_validated(fit_widened, train)
    except ValueError as error:
        msg = f"{data} cannot be trained on ({error}); expected at least a few dozen sentences of both kinds."
        raise CorpusError(msg) from error
    _write_model(weights, out)
    written = TfidfObligationClassifier(str(out.resolve()))
    report = ObligationReport(
        seed=seed,
        n_train=len(train),
        n_test=len(test),
        n_duplicates=len(sentences) - len({_key(sentence.text) for sentence in sentences}),
        n_added=len(ADDED_OBLIGATIONS) + len(ADDED_STATEMENTS),
        n_contrast=sum(1 for sentence in train if sentence.obligation and without_duty(sentence.text)),
        contrast_weight=CONTRAST_WEIGHT,
        n_ngrams=len(weights.vocabulary),
        shipped=_figures(written.classify, f1_cross_validated, train, test),
        plain=plain,
        seconds=time.perf_counter() - started,
    )
    (out / "README.md").write_text(model_card(report), encoding="utf-8")
    return report


def read_labelled_sentences(data: Path) -> list[Labelled]:
    """The sentences of a JSON list of {Text, Obligation}, in file order. Raises CorpusError."""
    expected = "expected a JSON list of {Text: sentence, Obligation: true or false}"
    try:
        items = json.loads(data.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{data} cannot be read ({error}); {expected}. Give the path with --data."
        raise CorpusError(msg) from error
    if not isinstance(items, list) or not items:
        msg = f"{data} holds no list of sentences; {expected}. Give the path with --data."
        raise CorpusError(msg)
    sentences = []
    for number, item in enumerate(items):
        text, label = (item.get("Text"), item.get("Obligation")) if isinstance(item, dict) else (None, None)
        if not isinstance(text, str) or not isinstance(label, bool):
            msg = f"Item {number} of {data} is {str(item)[:80]!r}; {expected}. Correct the item."
            raise CorpusError(msg)
        sentences.append(Labelled(text, label))
    return sentences


def widening(train: list[Labelled]) -> list[Labelled]:
    """What is trained on beyond the data set: own sentences, and train obligations without their duty words."""
    contrast = [without_duty(sentence.text) for sentence in train if sentence.obligation]
    return [
        *(Labelled(text, obligation=True) for text in ADDED_OBLIGATIONS),
        *(Labelled(text, obligation=False) for text in ADDED_STATEMENTS),
        *(Labelled(text, obligation=False, weight=CONTRAST_WEIGHT) for text in contrast if text),
    ]


def without_duty(text: str) -> str | None:
    """The sentence without its duty words ("must", "shall", "is required to", …); None where it has none."""
    stripped = _DUTY.sub("", text)
    return None if stripped == text else stripped


def fit(sentences: list[Labelled]) -> NgramWeights:
    """TF-IDF (1- to 3-grams seen twice or more, 1 + ln count, L2) with logistic regression.

    Raises ValueError, as scikit-learn does, where only one label or no repeated n-gram is present.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = TfidfVectorizer(ngram_range=(1, LONGEST_NGRAM), min_df=2, sublinear_tf=True)
    features = vectorizer.fit_transform([sentence.text for sentence in sentences])
    regression = LogisticRegression(C=REGULARISATION_C, max_iter=3000)
    labels, weights = [s.obligation for s in sentences], [s.weight for s in sentences]
    regression.fit(features, labels, sample_weight=weights)
    numbers = zip(vectorizer.idf_.tolist(), regression.coef_[0].tolist(), strict=True)
    vocabulary = dict(zip(vectorizer.get_feature_names_out().tolist(), numbers, strict=True))
    return NgramWeights(vocabulary, float(regression.intercept_[0]))


def fit_widened(train: list[Labelled]) -> NgramWeights:
    """The same on the train part and what widens it."""
    return fit([*train, *widening(train)])


def _write_model(weights: NgramWeights, out: Path) -> None:
    """Weights first, MODEL.json last: a folder left half-written fails its check instead of being used."""
    out.mkdir(parents=True, exist_ok=True)
    save_weights(weights, out / WEIGHTS_FILE)
    write_manifest(out, KIND, WEIGHTS_FILE)


def _figures(classify: Classify, f1_cross_validated: float, train: list[Labelled], test: list[Labelled]) -> Figures:
    seen = {_key(sentence.text) for sentence in train}
    fresh = {_key(s.text): (s.text, s.obligation) for s in test if _key(s.text) not in seen}
    return measure(classify, [(s.text, s.obligation) for s in test], list(fresh.values()), f1_cross_validated)


def _cross_validated(fitting: Fitting, train: list[Labelled]) -> float:
    """Mean F1 of five parts of the train part, each judged by what was fitted on the other four."""
    from sklearn.model_selection import StratifiedKFold

    scores = []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for others, part in folds.split(train, [sentence.obligation for sentence in train]):
        classify = _classify_with(fitting([train[n] for n in others]))
        scores.append(f1_of(classify, [(train[n].text, train[n].obligation) for n in part]))
    return sum(scores) / len(scores)


def _classify_with(weights: NgramWeights) -> Classify:
    return lambda sentences: [probability(weights, sentence) > 0.5 for sentence in sentences]


def _key(text: str) -> str:
    return " ".join(text.lower().split())
