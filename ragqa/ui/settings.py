"""The settings panel: presets, sliders, one line each on what they do. Gives back a `Config`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from ragqa.config import (
    Config,
    FilteringConfig,
    FusionConfig,
    GenerationConfig,
    RetrievalConfig,
    ScoringConfig,
    has_llm,
)
from ragqa.presets import PRESETS, Preset
from ragqa.types import ScoringMode

__all__ = ["settings_panel"]

_STORE = "settings"  # plain key: widget keys vanish when the page changes
_GENERATORS = {
    "extractive": "extractive, no language model",
    "llm": "language model",
    "none": "none, passages only",
}
_RANKINGS = {
    "bm25": ("BM25 weight", "How much the ranking by words counts, against the other two. 0 leaves it out."),
    "context": ("Context weight", "The ranking by words of each passage read with its neighbours in the document."),
    "dense": ("Dense weight", "The ranking by meaning (cosine of vectors)."),
}
_FUSIONS = {"wsum": "weighted sum", "rrf": "reciprocal rank"}


def settings_panel(index: str, defaults: Config) -> Config:
    """Draws the panel in the sidebar and returns the settings as they stand."""
    values: dict[str, Any] = st.session_state.setdefault(_STORE, _values(PRESETS[0], defaults))
    with st.sidebar:
        st.header("Settings")
        names = [preset.name for preset in PRESETS]
        st.selectbox("Preset", names, key="preset", on_change=_apply_preset)
        preset = PRESETS[names.index(st.session_state["preset"])]
        explanation = st.empty()  # filled when the widgets below have said what was changed
        _retrieval_widgets(values)
        _filtering_widgets(values)
        _answer_widgets(values)
        changed = any(values[key] != value for key, value in _preset_values(preset).items())
        explanation.caption(preset.explanation + (" *Changed by hand since.*" if changed else ""))
    st.session_state[_STORE] = values
    return _config(values, index, defaults)


def _retrieval_widgets(values: dict[str, Any]) -> None:
    st.subheader("Retrieval and fusion")
    _radio(values, "fusion", "Fusion", _FUSIONS, "A weighted sum of normalised scores, or of 1/(60 + rank).")
    for name, (label, help_text) in _RANKINGS.items():
        _slider(values, f"weight_{name}", label, (0.0, 1.0, 0.05), help_text)
    shares = _fusion(values).weights
    words = " + ".join(f"{name} {share:.2f}" for name, share in shares.items())
    st.caption(words if values["fusion"] == "wsum" else f"Ranks of {' and '.join(shares)}, all alike.")


def _filtering_widgets(values: dict[str, Any]) -> None:
    st.subheader("Filter")
    _slider(values, "threshold", "Threshold", (0.0, 1.0, 0.01), "Lowest relevance kept. The best passage always is.")
    _slider(
        values, "max_drop", "Max drop", (0.0, 1.0, 0.01), "A fall this large between neighbours ends the list. 1 = off."
    )
    _slider(values, "top_k", "Top-k", (1, 30, 1), "Most passages an answer is written from.")


def _answer_widgets(values: dict[str, Any]) -> None:
    st.subheader("Answer and scores")
    _radio(
        values,
        "generator",
        "Generator",
        _GENERATORS,
        "Who writes the answer; none shows what retrieval finds, at once.",
    )
    if not has_llm():
        st.caption("No language model is configured. Set OPENAI_API_KEY or OPENAI_BASE_URL and start again to use one.")
    modes = {ScoringMode.PAPER: "paper", ScoringMode.SCRIPT: "script"}
    _radio(
        values, "mode", "RePASs mode", modes, "The paper's definition, or the reference script's for published figures."
    )


def _slider(
    values: dict[str, Any],
    name: str,
    label: str,
    bounds: tuple[float, float, float],
    help_text: str,
    *,
    disabled: bool = False,
) -> None:
    low, high, step = bounds
    key = f"set_{name}"
    st.session_state.setdefault(key, values[name])
    values[name] = st.slider(label, low, high, step=step, key=key, help=help_text, disabled=disabled)


def _radio(values: dict[str, Any], name: str, label: str, options: dict[Any, str], help_text: str) -> None:
    key = f"set_{name}"
    choices = [option for option in options if option != "llm" or has_llm()]
    if values[name] not in choices:
        values[name] = choices[0]
    st.session_state.setdefault(key, values[name])
    values[name] = st.radio(label, choices, format_func=options.get, key=key, help=help_text, horizontal=True)


def _values(preset: Preset, defaults: Config) -> dict[str, Any]:
    return _preset_values(preset) | {"generator": defaults.generation.generator, "mode": defaults.scoring.mode}


def _preset_values(preset: Preset) -> dict[str, Any]:
    return {
        "fusion": preset.fusion.method,
        **{f"weight_{name}": preset.fusion.weights.get(name, 0.0) for name in _RANKINGS},
        "threshold": preset.filtering.threshold,
        "max_drop": preset.filtering.max_drop,
        "top_k": preset.filtering.top_k,
    }


def _apply_preset() -> None:
    """Moves every slider to the chosen preset's value."""
    preset = next(preset for preset in PRESETS if preset.name == st.session_state["preset"])
    for name, value in _preset_values(preset).items():
        st.session_state[f"set_{name}"] = value
        st.session_state[_STORE][name] = value


def _fusion(values: dict[str, Any]) -> FusionConfig:
    """The three sliders as shares; all at 0 count alike."""
    shares = {name: values[f"weight_{name}"] for name in _RANKINGS}
    return FusionConfig.of(values["fusion"], **(shares if any(shares.values()) else dict.fromkeys(shares, 1.0)))


def _config(values: dict[str, Any], index: str, defaults: Config) -> Config:
    generation: GenerationConfig = replace(defaults.generation, generator=values["generator"])
    scoring: ScoringConfig = replace(defaults.scoring, mode=ScoringMode(values["mode"]))
    return Config(
        index=index,
        retrieval=RetrievalConfig(),
        fusion=_fusion(values),
        filtering=FilteringConfig(values["threshold"], values["max_drop"], values["top_k"]),
        generation=generation,
        scoring=scoring,
    )
