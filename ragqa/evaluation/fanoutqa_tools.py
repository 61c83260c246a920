"""The metrics that can be had on this machine, and for each of the others why not and how to get it.

ROUGE is the `rouge-score` package's, BLEURT the `bleurt` package's with its BLEURT-20 checkpoint: what the `fanoutqa`
package calls. That package's own evaluation cannot be imported beside ragqa: it wants BLEURT installed and a client of
OpenAI below version 3. Its normalisation can, and is what accuracy goes through (`ragqa.evaluation.fanoutqa_text`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ragqa.evaluation.fanoutqa_judge import JUDGE_MISSING
from ragqa.evaluation.fanoutqa_metrics import ROUGE_TYPES, Judge, Metrics, Missing, Rouge, lemmas_missing
from ragqa.evaluation.fanoutqa_text import Normaliser, load_normaliser

BLEURT_CHECKPOINT = "BLEURT-20"
BLEURT_REMEDY = (
    "pip install 'bleurt @ git+https://github.com/google-research/bleurt.git@master' (with TensorFlow, about 2 GB), "
    "unpack https://storage.googleapis.com/bleurt-oss-21/BLEURT-20.zip and name its folder in RAGQA_BLEURT"
)
ROUGE_REMEDY = "pip install 'ragqa[fanoutqa]' or pip install rouge-score"


def load_metrics(normaliser: Normaliser | None = None, judge: Judge | None = None) -> Metrics:
    """Everything that can be measured here; what cannot is in ``missing``. Raises ModelError as `load_normaliser`."""
    normaliser = normaliser or load_normaliser()
    missing = list(lemmas_missing(normaliser))
    rouge, bleurt = load_rouge(), load_bleurt()
    if isinstance(rouge, Missing):
        missing.append(rouge)
    if isinstance(bleurt, Missing):
        missing.append(bleurt)
    if judge is None:
        missing.append(JUDGE_MISSING)
    return Metrics(
        normaliser=normaliser,
        rouge=None if isinstance(rouge, Missing) else rouge,
        bleurt=None if isinstance(bleurt, Missing) else bleurt,
        judge=judge,
        missing=tuple(missing),
    )


def load_rouge() -> Callable[[str, str], Mapping[str, Rouge]] | Missing:
    """(reference, answer) -> ROUGE-1, -2 and -L with stemming, as the `fanoutqa` package asks for them."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        return Missing("ROUGE", "the package rouge-score is not installed", ROUGE_REMEDY)
    return partial(_rouge, RougeScorer(ROUGE_TYPES, use_stemmer=True))


def _rouge(scorer: Any, reference: str, answer: str) -> dict[str, Rouge]:  # noqa: ANN401 - the library has no types
    found = scorer.score(reference, answer)
    return {kind: Rouge(part.precision, part.recall, part.fmeasure) for kind, part in found.items()}


def load_bleurt(environ: Mapping[str, str] | None = None) -> Callable[[str, str], float] | Missing:
    """(reference, answer) -> BLEURT; the checkpoint is ``RAGQA_BLEURT`` or the folder BLEURT-20 beside."""
    env = os.environ if environ is None else environ
    try:
        from bleurt.score import BleurtScorer
    except ImportError:
        return Missing("BLEURT", "the package bleurt is not installed (it is not on PyPI)", BLEURT_REMEDY)
    folder = Path(env.get("RAGQA_BLEURT") or BLEURT_CHECKPOINT).expanduser()
    if not folder.is_dir():
        return Missing("BLEURT", f"no checkpoint at {folder}", BLEURT_REMEDY)
    return partial(_bleurt, BleurtScorer(str(folder)))


def _bleurt(scorer: Any, reference: str, answer: str) -> float:  # noqa: ANN401
    return float(scorer.score(references=[reference], candidates=[answer])[0])
