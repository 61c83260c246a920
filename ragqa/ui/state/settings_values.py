"""Between the widgets' values, by name, and `Config` or `Preset`. Pure: no streamlit here.

A panel's values are a dict of plain values: ``fusion``, ``weight_RANKING`` for each ranking, ``threshold``,
``max_drop``, ``top_k``, ``filter_method``, ``reranker``, ``rerank_depth``, ``rerank_weight``, ``generator``, ``model``,
``local_model``,
``quote_anyway``, the options of generators, ``mode``. A widget's key is ``set_`` and the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ragqa.retrieval.names import fitting_weights, own_weights
from ragqa.settings.config import (
    Config,
    FilteringConfig,
    FusionConfig,
    GenerationConfig,
    RerankingConfig,
    RetrievalConfig,
    ScoringConfig,
    ranges,
)
from ragqa.settings.presets import Preset
from ragqa.types.scores import ScoringMode

WRITING: Final = {name: found for name, found in ranges(GenerationConfig).items() if found.explanation}
REFUSING: Final = ("direct", "llm")  # generators that refuse what the passages do not seem to answer
FILTER: Final = ("threshold", "max_drop", "top_k")


def first_values(preset: Preset, defaults: Config) -> dict[str, Any]:
    """Those of a session that has changed nothing: this preset, and what the environment says of the rest."""
    writing = ("generator", "model", "local_model", "quote_anyway", *WRITING)
    generation = {name: getattr(defaults.generation, name) for name in writing}
    return preset_values(preset) | generation | _reranking(defaults.reranking) | {"mode": defaults.scoring.mode}


def preset_values(preset: Preset) -> dict[str, Any]:
    """What a preset decides beside weights."""
    return {
        "fusion": preset.fusion.method,
        "threshold": preset.filtering.threshold,
        "max_drop": preset.filtering.max_drop,
        "top_k": preset.filtering.top_k,
        "filter_method": preset.filtering.method,
    } | _reranking(preset.reranking)


def _reranking(reranking: RerankingConfig) -> dict[str, Any]:
    return {"reranker": reranking.model, "rerank_depth": reranking.depth, "rerank_weight": reranking.weight}


def weight_values(preset: Preset, rankings: Sequence[str], encoder: str) -> dict[str, float]:
    """A value for each ranking of the index, in whose names ``dense:ENCODER`` is ``dense``."""
    weights = fitting_weights(own_weights(preset.fusion.weights, rankings), encoder)
    return {f"weight_{name}": float(weights.get(name, 0.0)) for name in rankings}


def fusion_of(values: Mapping[str, Any], rankings: Sequence[str]) -> FusionConfig:
    """The weights as shares; all at 0 count alike."""
    shares = {name: values[f"weight_{name}"] for name in rankings}
    return FusionConfig.of(values["fusion"], **(shares if any(shares.values()) else dict.fromkeys(shares, 1.0)))


def config_of(
    values: Mapping[str, Any], index: str, defaults: Config, retrieval: RetrievalConfig, rankings: Sequence[str]
) -> Config:
    """The settings that these values stand for; what no widget shows is that of ``defaults`` and ``retrieval``."""
    writing: dict[str, Any] = {name: int(values[name]) for name in WRITING}
    generation: GenerationConfig = replace(
        defaults.generation,
        generator=values["generator"],
        model=values["model"],
        local_model=values["local_model"],
        quote_anyway=values["quote_anyway"],
        **writing,
    )
    scoring: ScoringConfig = replace(defaults.scoring, mode=ScoringMode(values["mode"]))
    return Config(
        index=index,
        retrieval=retrieval,
        fusion=fusion_of(values, rankings),
        reranking=RerankingConfig(values["reranker"], values["rerank_depth"], values["rerank_weight"]),
        filtering=FilteringConfig(**{name: values[name] for name in FILTER}, method=values["filter_method"]),
        generation=generation,
        scoring=scoring,
    )


def with_preset(config: Config, preset: Preset, rankings: Sequence[str], encoder: str) -> Config:
    """These settings with those of the preset in their place, as choosing it on the page gives them."""
    weights = {name.removeprefix("weight_"): one for name, one in weight_values(preset, rankings, encoder).items()}
    shares = weights if any(weights.values()) else dict.fromkeys(weights, 1.0)
    return replace(
        config,
        retrieval=preset.retrieval,
        fusion=FusionConfig.of(preset.fusion.method, **shares),
        reranking=preset.reranking,
        filtering=preset.filtering,
    )


def values_of(config: Config, rankings: Sequence[str]) -> dict[str, Any]:
    """The values under which a panel of these rankings gives this config, where it can."""
    preset = Preset("", "", config.retrieval, config.fusion, config.filtering, "", config.reranking)
    return (
        first_values(preset, config)
        | _reranking(config.reranking)
        | {f"weight_{name}": float(config.fusion.weights.get(name, 0.0)) for name in rankings}
    )
