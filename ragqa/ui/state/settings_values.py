"""Converts between the widgets' values, by name, and `Config` or `Preset`. Pure, without Streamlit.

The values of a panel are a dict: the settings that `ragqa.settings.schema` places on the page, by their keys, and
``weight_RANKING`` for each ranking. The key of a widget is ``set_`` and the name.
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
    """The values of a new session: this preset, and the settings of the environment for the rest."""
    reranking = {one.key: getattr(defaults.reranking, one.field) for one in ON_PAGE if one.part == "reranking"}
    return _shown(defaults) | preset_values(preset) | reranking


def preset_values(preset: Preset) -> dict[str, Any]:
    """The values of a preset, without weights."""
    return {one.key: getattr(getattr(preset, one.part), one.field) for one in ON_PAGE if hasattr(preset, one.part)}


def _shown(config: Config) -> dict[str, Any]:
    every = values_by_key(config)
    return {one.key: every[one.key] for one in ON_PAGE}


def weight_values(preset: Preset, rankings: Sequence[str], encoder: str) -> dict[str, float]:
    """The preset's weight for each ranking of the index; ``dense:ENCODER`` counts for ``dense`` of that encoder."""
    weights = fitting_weights(own_weights(preset.fusion.weights, rankings), encoder)
    return {f"weight_{name}": float(weights.get(name, 0.0)) for name in rankings}


def fusion_of(values: Mapping[str, Any], rankings: Sequence[str]) -> FusionConfig:
    """The weights as shares; if all are 0, they are equal."""
    shares = {name: values[f"weight_{name}"] for name in rankings}
    return FusionConfig.of(values["fusion"], **(shares if any(shares.values()) else dict.fromkeys(shares, 1.0)))


def config_of(
    values: Mapping[str, Any], index: str, defaults: Config, retrieval: RetrievalConfig, rankings: Sequence[str]
) -> Config:
    """The settings with these values; settings without a widget come from ``defaults`` and ``retrieval``."""
    base = replace(defaults, index=index, retrieval=retrieval, fusion=fusion_of(values, rankings))
    return with_values(base, {one.key: values[one.key] for one in ON_PAGE})


def with_preset(config: Config, preset: Preset, rankings: Sequence[str], encoder: str) -> Config:
    """These settings after choosing the preset on the page."""
    values = weight_values(preset, rankings, encoder) | {"fusion": preset.fusion.method}
    fusion = replace(preset.fusion, weights=fusion_of(values, rankings).weights)
    return replace(presets.with_preset(config, preset), index=config.index, fusion=fusion)


def values_of(config: Config, rankings: Sequence[str]) -> dict[str, Any]:
    """The panel's values for this config, as far as the panel can show it."""
    return _shown(config) | {f"weight_{name}": float(config.fusion.weights.get(name, 0.0)) for name in rankings}
