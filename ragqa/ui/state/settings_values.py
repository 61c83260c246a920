"""Between the widgets' values, by name, and `Config` or `Preset`. Pure: no streamlit here.

A panel's values are a dict of plain values: those of the settings that `ragqa.settings.schema` places on the page, by
their keys, and ``weight_RANKING`` for each ranking. A widget's key is ``set_`` and the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ragqa.retrieval.ranking import fitting_weights, own_weights
from ragqa.settings import presets
from ragqa.settings.config import Config, FusionConfig, RetrievalConfig, settings_at, values_by_key, with_values
from ragqa.settings.presets import Preset
from ragqa.settings.schema import Place

ON_PAGE: Final = settings_at(Place.PAGE)
FILTER: Final = tuple(one.key for one in ON_PAGE if one.part == "filtering" and one.low is not None)


def first_values(preset: Preset, defaults: Config) -> dict[str, Any]:
    """Those of a session that has changed nothing: this preset, and what the environment says of the rest."""
    reranking = {one.key: getattr(defaults.reranking, one.field) for one in ON_PAGE if one.part == "reranking"}
    return _shown(defaults) | preset_values(preset) | reranking


def preset_values(preset: Preset) -> dict[str, Any]:
    """What a preset decides beside weights."""
    return {one.key: getattr(getattr(preset, one.part), one.field) for one in ON_PAGE if hasattr(preset, one.part)}


def _shown(config: Config) -> dict[str, Any]:
    every = values_by_key(config)
    return {one.key: every[one.key] for one in ON_PAGE}


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
    base = replace(defaults, index=index, retrieval=retrieval, fusion=fusion_of(values, rankings))
    return with_values(base, {one.key: values[one.key] for one in ON_PAGE})


def with_preset(config: Config, preset: Preset, rankings: Sequence[str], encoder: str) -> Config:
    """These settings with those of the preset in their place, as choosing it on the page gives them."""
    values = weight_values(preset, rankings, encoder) | {"fusion": preset.fusion.method}
    fusion = replace(preset.fusion, weights=fusion_of(values, rankings).weights)
    return replace(presets.with_preset(config, preset), index=config.index, fusion=fusion)


def values_of(config: Config, rankings: Sequence[str]) -> dict[str, Any]:
    """The values under which a panel of these rankings gives this config, where it can."""
    return _shown(config) | {f"weight_{name}": float(config.fusion.weights.get(name, 0.0)) for name in rankings}
