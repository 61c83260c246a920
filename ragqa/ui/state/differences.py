"""What two settings differ in, by name and in words: a preset and what was moved since, A and B, a record and today."""

from __future__ import annotations

from dataclasses import dataclass

from ragqa.plugins import registry
from ragqa.settings.config import Config, FilteringConfig, FusionConfig, GenerationConfig, ranges
from ragqa.ui.state.settings_values import REFUSING

FUSIONS = {"wsum": "weighted sum", "rrf": "reciprocal rank"}
FILTERS = {"limits": "limits", "expected-f2": "expected F2"}
CORPUS, RANKING, FILTER, WRITER, SCORES = "corpus", "ranking", "filter", "writer", "scores"


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that is not the same: ``name`` is what the page calls it, ``part`` what it decides."""

    part: str
    name: str
    a: str
    b: str

    @property
    def words(self) -> str:
        """``"Threshold 0.70 → 0.55"``."""
        return f"{self.name} {self.a} → {self.b}"


def differences(a: Config, b: Config) -> tuple[Difference, ...]:
    """Every setting that decides an answer and is not the same, in the order of the work.

    What has no effect is left out: depth and weight of no reranker, the options of another generator, weights under
    reciprocal ranks beside their names.
    """
    rows = (
        _one(CORPUS, "Corpus", a.index, b.index),
        _one(RANKING, "Candidates of each ranking", a.retrieval.top_k, b.retrieval.top_k),
        _one(RANKING, "Fusion", FUSIONS[a.fusion.method], FUSIONS[b.fusion.method]),
        *_weights(a.fusion, b.fusion),
        *_reranking(a, b),
        _one(FILTER, "Filter by", FILTERS[a.filtering.method], FILTERS[b.filtering.method]),
        *_limits(a.filtering, b.filtering),
        _one(FILTER, "Top-k", a.filtering.top_k, b.filtering.top_k),
        *_writing(a.generation, b.generation),
        _one(SCORES, "RePASs mode", a.scoring.mode, b.scoring.mode),
        _one(SCORES, "Model of E and C", a.scoring.entailment_model, b.scoring.entailment_model),
        _one(SCORES, "Model of OC", a.scoring.coverage_model, b.scoring.coverage_model),
        _one(SCORES, "Model of verdicts", a.scoring.verdict_model, b.scoring.verdict_model),
    )
    return tuple(row for row in rows if row)


def _one(part: str, name: str, a: object, b: object) -> Difference | None:
    return None if a == b else Difference(part, name, str(a), str(b))


def _drop(value: float) -> str:
    return "off" if value >= 1 else f"{value:.2f}"


def _limits(a: FilteringConfig, b: FilteringConfig) -> list[Difference | None]:
    if "limits" not in (a.method, b.method):
        return []
    return [
        _one(FILTER, "Threshold", f"{a.threshold:.2f}", f"{b.threshold:.2f}"),
        _one(FILTER, "Max drop", _drop(a.max_drop), _drop(b.max_drop)),
    ]


def _weights(a: FusionConfig, b: FusionConfig) -> list[Difference | None]:
    names = dict.fromkeys((*a.weights, *b.weights))
    if "rrf" in (a.method, b.method):
        used = [", ".join(sorted(name for name in each.weights if each.weights[name])) for each in (a, b)]
        return [_one(RANKING, "Rankings", *used)]
    return [
        _one(RANKING, f"Weight of {name}", f"{a.weights.get(name, 0.0):.2f}", f"{b.weights.get(name, 0.0):.2f}")
        for name in names
    ]


def _reranking(a: Config, b: Config) -> list[Difference | None]:
    one, other = a.reranking, b.reranking
    rows = [_one(RANKING, "Reranker", one.model or "off", other.model or "off")]
    if one.model and other.model:
        rows.append(_one(RANKING, "Depth of the reranker", one.depth, other.depth))
        rows.append(_one(RANKING, "Weight of the reranker", f"{one.weight:.2f}", f"{other.weight:.2f}"))
    return rows


def writer_model(generation: GenerationConfig) -> str:
    """The language model that this generator asks, "" where it asks none."""
    if not registry.needs_language_model(generation.generator):
        return ""
    return generation.local_model or generation.model


def _writing(a: GenerationConfig, b: GenerationConfig) -> list[Difference | None]:
    rows = [
        _one(WRITER, "Generator", a.generator, b.generator),
        _one(WRITER, "Language model", writer_model(a) or "none", writer_model(b) or "none"),
    ]
    if a.generator != b.generator:
        return rows
    part = registry.find(registry.GENERATORS, a.generator)
    known = ranges(GenerationConfig)
    for name in part.options if part else ():
        label = known[name].name.capitalize() if name in known else name
        rows.append(_one(WRITER, label, getattr(a, name), getattr(b, name)))
    if a.generator in REFUSING:
        anyway = ("yes" if one.quote_anyway else "no" for one in (a, b))
        rows.append(_one(WRITER, "Quote anyway", *anyway))
    return rows
