"""Settings of RePASs and verdicts, their profiles, and the models named in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ragqa.settings.schema import PRECISIONS, Checked, Precision, check, compared, library, setting
from ragqa.types.scores import ScoringMode

CoverageInput = Literal["pair", "joined"]
SplitterName = Literal["nupunkt", "punkt"]
VerifierName = Literal["model", "llm", "llm-all"]


@dataclass(frozen=True, slots=True)
class ScoringConfig(Checked):
    """How RePASs and verdicts are computed. `ragqa.models.resolve_model` resolves the names of models."""

    mode: ScoringMode = setting(
        ScoringMode.PAPER,
        "RePASs mode",
        help="How RePASs is computed. By the paper's definition, or as the reference script does, which published "
        "figures are made with; both are always computed.",
        choices={mode: mode.value for mode in ScoringMode},
    )
    coverage_threshold: float = library(
        0.7, "coverage threshold", 0.0, 1.0, help="Of the probability of entailment.", source="RIRAG 4"
    )
    verdict_threshold: float = library(0.5, "verdict threshold", 0.0, 1.0, help="E or C at or above it decides.")
    entailment_model: str = compared("nli-minilm-l6", "model of E and C", help="RAGQA_ENTAILMENT_MODEL.")
    coverage_model: str = compared("nli-minilm-l6", "model of OC", help="RAGQA_COVERAGE_MODEL.")
    coverage_input: CoverageInput = library(
        "pair",
        "coverage input",
        help='Input of the coverage model. joined: one text "answer sentence [SEP] obligation", as the script does.',
        choices={"pair": "pair", "joined": "joined"},
    )
    verdict_model: str = compared(
        "", "model of verdicts", help="RAGQA_VERDICT_MODEL, the verifier; empty: verifier-minilm-l6."
    )
    answer_model: str = compared(
        "",
        "model of answers",
        help="RAGQA_ANSWER_MODEL, a larger selector (answers-mpnet): the mean of it and answers-minilm-l12 chooses the "
        "sentences that answer; empty: answers-minilm-l12 alone.",
    )
    verifier: VerifierName = setting(
        "model",
        "verdicts by",
        help="Who judges the answer's sentences. llm: the verifier, and the language model for verdicts that are not "
        "sure; llm-all: the language model for every sentence that is not a quotation.",
        choices={
            "model": "verifier",
            "llm": "language model where not sure",
            "llm-all": "language model, every sentence",
        },
    )
    obligation_model: str = library("obligations-tfidf", "model of obligations", help="RAGQA_OBLIGATION_MODEL.")
    sentence_splitter: SplitterName = library(
        "nupunkt",
        "sentence splitter",
        help="Splitter of sentences. punkt (NLTK, if its data is installed) splits as the script does.",
        choices={"nupunkt": "nupunkt", "punkt": "punkt"},
    )
    precision: Precision = library(
        "auto",
        "precision",
        help="Precision of the NLI models; auto: the faster one.",
        choices=PRECISIONS,
    )


SCORING_PROFILES: dict[str, ScoringConfig] = {
    "embedded": ScoringConfig(),
    # What RegNLP/RePASs scripts/evaluate_model.py loads; the last is a folder that its authors never published.
    "reference": ScoringConfig(
        mode=ScoringMode.SCRIPT,
        entailment_model="cross-encoder/nli-deberta-v3-xsmall",
        coverage_model="microsoft/deberta-large-mnli",
        coverage_input="joined",
        obligation_model="./models/obligation-classifier-legalbert",
        sentence_splitter="punkt",
        precision="fp32",
    ),
}


def scoring_from_env(environ: Mapping[str, str] | None = None) -> ScoringConfig:
    """The profile that ``RAGQA_SCORING_PROFILE`` names, with the models named one by one in place of its own.

    ``RAGQA_ENTAILMENT_MODEL``, ``RAGQA_COVERAGE_MODEL``, ``RAGQA_VERDICT_MODEL``, ``RAGQA_ANSWER_MODEL`` and
    ``RAGQA_OBLIGATION_MODEL`` each take an embedded name, the path of a local folder or a hub name. An entailment model
    named alone is used for coverage too.
    """
    env = os.environ if environ is None else environ
    name = env.get("RAGQA_SCORING_PROFILE") or "embedded"
    check(name in SCORING_PROFILES, "RAGQA_SCORING_PROFILE", " or ".join(SCORING_PROFILES), name)
    return scoring_with(
        SCORING_PROFILES[name],
        env.get("RAGQA_ENTAILMENT_MODEL") or "",
        env.get("RAGQA_COVERAGE_MODEL") or "",
        env.get("RAGQA_OBLIGATION_MODEL") or "",
        env.get("RAGQA_VERDICT_MODEL") or "",
        env.get("RAGQA_ANSWER_MODEL") or "",
    )


def scoring_with(
    scoring: ScoringConfig,
    entailment: str = "",
    coverage: str = "",
    obligation: str = "",
    verdict: str = "",
    answer: str = "",
) -> ScoringConfig:
    """The configuration with these models in place of its own; an empty name leaves that one as it is.

    An entailment model named alone is used for coverage too, unless the profile has another model for coverage.
    """
    if entailment and not coverage and scoring.coverage_model == scoring.entailment_model:
        coverage = entailment
    return replace(
        scoring,
        entailment_model=entailment or scoring.entailment_model,
        coverage_model=coverage or scoring.coverage_model,
        obligation_model=obligation or scoring.obligation_model,
        verdict_model=verdict or scoring.verdict_model,
        answer_model=answer or scoring.answer_model,
    )
