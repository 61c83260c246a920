"""The model card that `ragqa train obligations` writes beside the weights."""

from __future__ import annotations

from ragqa.training.obligation_report import ObligationReport
from ragqa.training.obligation_sentences import ADDED_OBLIGATIONS, ADDED_STATEMENTS, PROBE_OBLIGATIONS, PROBE_STATEMENTS


def model_card(report: ObligationReport) -> str:
    """The card as Markdown, its figures those of this report."""
    shipped, plain = report.shipped, report.plain
    n_positive, n_negative = len(PROBE_OBLIGATIONS), len(PROBE_STATEMENTS)
    return f"""# obligations-tfidf: does this sentence oblige somebody?

TF-IDF of 1- to 3-grams ({report.n_ngrams:,} of them) with logistic regression. Stored as safetensors: the n-grams,
their inverse document frequencies, their coefficients, the intercept. No sentence is stored. Used by RePASs (which
source sentences must be covered) and by the extractive generator.

Made by `ragqa train obligations --data ObligationClassificationDataset.json --out ragqa/models/obligations-tfidf`, seed
{report.seed}, in seconds.

## Trained on

- The train part ({report.n_train:,} sentences) of RegNLP/ObligationClassifier: scikit-learn's
  `train_test_split(test_size=0.2, random_state={report.seed})`. The test part is in nothing below.
- The {report.n_contrast:,} obligations among them that have a duty word, once more without it ("firms must keep
  records" -> "firms keep records"), labelled as no obligation, weight {report.contrast_weight}.
- {len(ADDED_OBLIGATIONS)} obligations and {len(ADDED_STATEMENTS)} other sentences of our own
  (`ragqa/training/obligation_sentences.py`): facts, headings, definitions, permissions, powers, list items.

## Scores of exactly these weights

| | these weights | data set alone |
|---|---|---|
| F1, test part ({report.n_test} sentences) | {shipped.f1:.4f} | {plain.f1:.4f} |
| F1, test part without texts repeated in either part ({shipped.n_fresh}) | {shipped.f1_fresh:.4f} | \
{plain.f1_fresh:.4f} |
| F1, 5-fold cross-validation within the train part | {shipped.f1_cross_validated:.4f} | \
{plain.f1_cross_validated:.4f} |
| own probe: obligations found (of {n_positive}) | {shipped.probe_obligations_found} | {plain.probe_obligations_found} |
| own probe: other sentences kept out (of {n_negative}) | {shipped.probe_statements_kept_out} | \
{plain.probe_statements_kept_out} |

The data set repeats {report.n_duplicates} texts, some across the two parts; the second row leaves them out. The
settings were chosen by the third row together with the probe, and the test figures were seen on the way. What the
widening costs in F1 on this data set stands there; it buys that ordinary sentences are no longer taken for obligations.
The probe and the demonstration encyclopedia were never trained on, but they were looked at while the own sentences and
the weight were chosen: they show the effect, they are no independent test. A test of the project holds the share of
encyclopedia sentences taken for obligations below 5 %.

## Weak points

- The words decide: a duty without a duty word ("The form goes to the registrar by Friday.") is missed, a duty word in a
  description ("a rule that firms must follow") counts.
- The data set is machine-written paraphrase of one regulator's texts, labelled by a language model; part of its
  obligations say "should" or "is expected to", and those sentences remain unsure.
- English only.
"""
