"""The ablations of AUEB's paper as lists of variants, each with its published table.

AUEB = Chasandras et al. 2025. Table 3: the filter's threshold and max drop. Table 4: passages, obligations alone, or
obligations with their own prompt. Table 7: RePASs after each step of VRR, here with NOC and LOC before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean
from typing import Any

from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.generated_answers.comparing import PublishedRow, published_rows
from ragqa.generation.llm.generator import ObligationsGenerator
from ragqa.pipeline import Pipeline
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.scoring.repass.verifier import RepassVerifier
from ragqa.settings.config import Config, FilteringConfig
from ragqa.settings.environment import api_key, prompt_folder
from ragqa.types.scores import RePASs

AUEB = "Chasandras"


class Study(StrEnum):
    """The table that is reproduced."""

    FILTER = "filter"
    OBLIGATION_CONTEXT = "obligation-context"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Variant:
    """One run of a study: its folder's name, its settings, and a further change of the loaded pipeline."""

    name: str
    config: Config
    change: Callable[[Pipeline], Pipeline] | None = None


def variants(study: Study, config: Config) -> tuple[Variant, ...]:
    """The runs of this study, based on ``config``, which names the generator for `Study.FILTER`."""
    match study:
        case Study.FILTER:
            pairs = ((0.7, 0.2), (0.75, 0.05), (0.8, 0.05), (0.85, 0.15), (0.9, 0.1))
            return tuple(
                Variant(
                    f"threshold-{threshold:.2f}-drop-{drop:.2f}",
                    replace(config, filtering=FilteringConfig(threshold, drop, config.filtering.top_k)),
                )
                for threshold, drop in pairs
            )
        case Study.OBLIGATION_CONTEXT:
            return (
                Variant("passages", _with_generator(config, "llm")),
                Variant("obligations", _with_generator(config, "obligations"), _with_the_prompt_for_passages),
                Variant("obligations-and-prompt", _with_generator(config, "obligations")),
            )
        case Study.STEPS:
            names = (("NOC", "extractive"), ("LOC", "loc"), ("VRR", "vrr"))
            return tuple(Variant(name, _with_generator(config, generator)) for name, generator in names)


def published_beside(study: Study) -> tuple[PublishedRow, ...]:
    """AUEB's published figures by step or variant."""
    table = {Study.FILTER: "3", Study.OBLIGATION_CONTEXT: "4", Study.STEPS: "7"}[study]
    rows = published_rows(table, AUEB)
    if study is Study.STEPS:
        rows = (*(row for row in published_rows("5", AUEB) if row.name.startswith(("NOC", "LOC"))), *rows)
    return rows


def _with_generator(config: Config, name: str) -> Config:
    return replace(config, generation=replace(config.generation, generator=name))


class _PlainObligations(ObligationsGenerator):
    """The obligations alone, with the prompt for passages."""

    name = "LLM, from the obligations only, prompt for passages"
    prompt_name = "answer"


def _with_the_prompt_for_passages(pipeline: Pipeline) -> Pipeline:
    if not isinstance(pipeline.scorer, RepassScorer):
        msg = f"the obligations must be found by RePASs' own classifier, found {type(pipeline.scorer).__name__}"
        raise ConfigError(msg)
    verifier = RepassVerifier(pipeline.scorer)
    generator = _PlainObligations(pipeline.config.generation, verifier, api_key(), prompt_folder())
    return replace(pipeline, generator=generator)


def step_means(details: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, RePASs, int], ...]:
    """RePASs after each step of VRR over a run's questions, in the run's mode: (step, means, number of questions).

    ``preprocessing`` is each question's first candidate, ``verify`` the best of them (the first at a tie). A question
    whose refinement ended before a step keeps its last score; the number counts questions that took the step. Questions
    without a scored candidate are left out.
    """
    paths = [path for detail in details if (path := _path(detail.get("steps", ())))]
    names = dict.fromkeys(name for path in sorted(paths, key=len, reverse=True) for name, _ in path)
    found = []
    for name in sorted(names, key=_order):
        reached = [[repass for step, repass in path if _order(step) <= _order(name)][-1] for path in paths]
        taken = sum(any(step == name for step, _ in path) for path in paths)
        parts = zip(*((r.entailment, r.contradiction, r.obligation_coverage) for r in reached), strict=True)
        found.append((name, RePASs(*(fmean(part) for part in parts)), taken))
    return tuple(found)


def _path(steps: Sequence[Mapping[str, Any]]) -> list[tuple[str, RePASs]]:
    scores = [(s["step"], RePASs(s["entailment"], s["contradiction"], s["obligation_coverage"])) for s in steps]
    candidates = (
        sorted((int(name.partition(" ")[2]), repass) for name, repass in scores if name.startswith("candidate"))
        if scores
        else []
    )
    if not candidates:
        return []
    best = max(candidates, key=lambda found: (found[1].composite, -found[0]))[1]
    refined = [(name, repass) for name, repass in scores if not name.startswith("candidate")]
    return [("preprocessing", candidates[0][1]), ("verify", best), *refined]


def _order(name: str) -> tuple[int, int]:
    """The sort key of a step: removal 1, insertion 1, removal 2 …"""
    kind, _, number = name.partition(" ")
    if kind in ("preprocessing", "verify"):
        return 0, ("preprocessing", "verify").index(kind)
    return int(number), ("removal", "insertion").index(kind)
