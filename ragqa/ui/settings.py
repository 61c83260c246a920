"""The settings panel: presets, sliders, one line each on what they do. Gives back a `Config`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragqa import registry
from ragqa.config import (
    Config,
    FilteringConfig,
    FusionConfig,
    GenerationConfig,
    RerankingConfig,
    RetrievalConfig,
    ScoringConfig,
    page_models,
    ranges,
)
from ragqa.http_client import is_api_name, missing_key
from ragqa.paths import Paths
from ragqa.preset_files import presets_in
from ragqa.presets import PRESETS, Preset
from ragqa.retrieval.names import also_option, fitting_weights, lacking_rankings
from ragqa.types import ScoringMode
from ragqa.ui.model_choice import can_ask, model_widget

_STORE = "settings"  # plain key: widget keys vanish when the page changes
_WRITING = {name: found for name, found in ranges(GenerationConfig).items() if found.explanation}
_FUSIONS = {"wsum": "weighted sum", "rrf": "reciprocal rank"}


def settings_panel(
    index: str,
    defaults: Config,
    rankings: Sequence[str] = tuple(FusionConfig().weights),
    encoder: str = "",
    place: DeltaGenerator | None = None,
) -> Config:
    """Draws the panel in the sidebar, the preset in ``place`` beside the question; returns the settings as they stand.

    ``rankings`` are the names of the index's retrievers, each of which gets a slider; ``encoder`` made its ``dense``.
    """
    weights = partial(_weight_values, rankings=rankings, encoder=encoder)
    values: dict[str, Any] = st.session_state.setdefault(_STORE, _values(PRESETS[0], defaults))
    with st.sidebar:
        st.html('<p class="rq-drawer">Settings</p>')
        own, problems = presets_in(Paths.from_env().presets)
        presets = _served_first((*PRESETS, *own), rankings, encoder)
        if st.session_state.get("preset") not in presets:  # its file is gone
            st.session_state.pop("preset", None)
        (place or st).selectbox(
            "Preset",
            list(presets),
            format_func=lambda name: f"Preset: {name}",
            key="preset",
            on_change=_apply_preset,
            args=(presets, weights),
            label_visibility="collapsed",
        )
        preset = presets[st.session_state["preset"]]
        for name, value in weights(preset).items():  # of rankings that the corpus before this one had not
            values.setdefault(name, value)
        explanation = st.empty()  # filled when the widgets below have said what was changed
        groups = (registry.RETRIEVERS, registry.RERANKERS, registry.GENERATORS)
        for problem in (*problems, *(line for group in groups for line in registry.problems(group))):
            st.warning(_verbatim(problem))
        missing = lacking_rankings(preset.fusion, rankings, encoder)
        if missing:
            st.warning(_verbatim(_missing(missing, index)))
        _retrieval_widgets(values, rankings)
        _reranking_widgets(values, presets.values())
        _filtering_widgets(values)
        _answer_widgets(values, defaults.generation)
        changed = _is_changed(values, _preset_values(preset) | weights(preset))
        written = preset.explanation if preset in PRESETS else _verbatim(preset.explanation)
        explanation.caption(written + (" *Changed by hand since.*" if changed else ""))
    st.session_state[_STORE] = values
    return _config(values, index, defaults, preset.retrieval, rankings)


def _served_first(presets: Sequence[Preset], rankings: Sequence[str], encoder: str) -> dict[str, Preset]:
    """By name, those whose rankings the index has before the others."""
    served = {preset.name: preset for preset in presets if not lacking_rankings(preset.fusion, rankings, encoder)}
    return served | {preset.name: preset for preset in presets if preset.name not in served}


def _missing(names: Sequence[str], index: str) -> str:
    options = " ".join(map(also_option, names))
    return (
        f"This corpus has no ranking {', '.join(names)}, which the preset weighs: the others share its weight. "
        f"To add it: ragqa index build {index} --source PATH {options}"
    )


def _group(name: str) -> str:
    """A heading to the eye; the page's own headings begin below, after its name."""
    return f'<p class="rq-group">{name}</p>'


def _verbatim(text: str) -> str:
    """Text of a file as Markdown that shows it as it is: no link, picture or formula in it comes alive."""
    return re.sub(r"([^\w\s])", r"\\\1", text)


def _retrieval_widgets(values: dict[str, Any], rankings: Sequence[str]) -> None:
    st.html(_group("Retrieval and fusion"))
    _radio(values, "fusion", "Fusion", _FUSIONS, "A weighted sum of normalised scores, or of 1/(60 + rank).")
    for name in rankings:
        part, encoder = registry.find(registry.RETRIEVERS, name), name.removeprefix("dense:")
        label = f"{part.label if part else name} weight" + (f", {encoder}" if encoder != name else "")
        _slider(values, f"weight_{name}", _verbatim(label), (0.0, 1.0, 0.05), part.explanation if part else "")
    shares = _fusion(values, rankings).weights
    if "dense" not in rankings:
        st.caption("No vectors in this index: lexical only.")
    words = " + ".join(f"{name} {share:.2f}" for name, share in shares.items())
    st.caption(_verbatim(words if values["fusion"] == "wsum" else f"Ranks of {' and '.join(shares)}, all alike."))


def _rerankers(presets: Iterable[Preset]) -> tuple[str, ...]:
    """What a visitor may have loaded: the registry's rerankers, those of presets and of RAGQA_PAGE_MODELS; "": off."""
    own = [part.name for part in registry.parts(registry.RERANKERS) if part.is_name]
    return tuple(dict.fromkeys(("", *own, *page_models(), *(preset.reranking.model for preset in presets))))


def _reranking_widgets(values: dict[str, Any], presets: Iterable[Preset]) -> None:
    st.html(_group("Reranker"))
    offered = _rerankers(presets)
    chosen = st.session_state.setdefault("set_reranker", values["reranker"])
    if chosen not in offered:
        st.session_state["set_reranker"] = ""
    values["reranker"] = st.selectbox(
        "Reranker",
        offered,
        key="set_reranker",
        format_func=lambda name: name or "off",
        help="Puts the best passages in a new order: ranker-adgm is quick and was trained on questions about "
        "regulation; a cross-encoder's or an API's where RAGQA_PAGE_MODELS or a preset names it.",
    )
    if is_api_name(values["reranker"]):
        st.caption("Behind an API: the question and the passages it reads are sent to that server.")
    key = missing_key(values["reranker"])
    if key:
        st.warning(_verbatim(f"{values['reranker']} needs a key: set {key} and start again, or choose off."))
    if values["reranker"]:
        now = st.session_state.get("set_rerank_depth", values["rerank_depth"])  # a preset file may say 1 to 1000
        bounds = (min(5, now), max(100, now), 5)
        _slider(values, "rerank_depth", "Depth", bounds, "How many of the best fused passages it reads.")
        _slider(
            values, "rerank_weight", "Weight", (0.0, 1.0, 0.05), "Its share of the score; the rest is the fused one."
        )


def _filtering_widgets(values: dict[str, Any]) -> None:
    st.html(_group("Filter"))
    _slider(values, "threshold", "Threshold", (0.0, 1.0, 0.01), "Lowest relevance kept. The best passage always is.")
    _slider(
        values, "max_drop", "Max drop", (0.0, 1.0, 0.01), "A fall this large between neighbours ends the list. 1 = off."
    )
    most = max(30, values["top_k"], st.session_state.get("set_top_k", 1))  # a preset file may say up to 100
    _slider(values, "top_k", "Top-k", (1, most, 1), "Most passages an answer is written from.")


def _answer_widgets(values: dict[str, Any], defaults: GenerationConfig) -> None:
    st.html(_group("Answer and scores"))
    _radio(
        values,
        "generator",
        "Generator",
        {part.name: part.label for part in registry.parts(registry.GENERATORS) if can_ask() or not _asks(part)},
        "Who writes the answer; none shows what retrieval finds, at once.",
    )
    chosen = registry.find(registry.GENERATORS, values["generator"])
    if chosen and _asks(chosen):
        model_widget(values, defaults)
    if values["generator"] == "direct":
        st.session_state.setdefault("set_quote_anyway", values["quote_anyway"])
        values["quote_anyway"] = st.toggle(
            "Quote anyway",
            key="set_quote_anyway",
            help="Quotes the nearest sentences of what the corpus seems not to answer, instead of refusing.",
        )
    for name in chosen.options if chosen else ():
        allowed = _WRITING[name]
        label = allowed.name.removeprefix("most ").capitalize()
        _slider(values, name, label, (allowed.low, allowed.high, 1), allowed.explanation)
    if not can_ask():
        how = "run `make local`, or set OPENAI_API_KEY or OPENAI_BASE_URL and start again"
        st.caption(f"No language model is configured. To use one, {how}.")
    modes = {ScoringMode.PAPER: "paper", ScoringMode.SCRIPT: "script"}
    _radio(
        values, "mode", "RePASs mode", modes, "The paper's definition, or the reference script's for published figures."
    )


def _asks(generator: registry.Part) -> bool:
    return registry.LANGUAGE_MODEL in generator.needs


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
    if values[name] not in options:
        values[name] = next(iter(options))
    st.session_state.setdefault(key, values[name])
    values[name] = st.radio(label, list(options), format_func=options.get, key=key, help=help_text, horizontal=True)


def _values(preset: Preset, defaults: Config) -> dict[str, Any]:
    writing = ("generator", "model", "local_model", "quote_anyway", *_WRITING)
    generation = {name: getattr(defaults.generation, name) for name in writing}
    return _preset_values(preset) | generation | _reranking_values(defaults.reranking) | {"mode": defaults.scoring.mode}


def _preset_values(preset: Preset) -> dict[str, Any]:
    return {
        "fusion": preset.fusion.method,
        "threshold": preset.filtering.threshold,
        "max_drop": preset.filtering.max_drop,
        "top_k": preset.filtering.top_k,
    } | _reranking_values(preset.reranking)


def _reranking_values(reranking: RerankingConfig) -> dict[str, Any]:
    return {"reranker": reranking.model, "rerank_depth": reranking.depth, "rerank_weight": reranking.weight}


def _is_changed(values: Mapping[str, Any], of_preset: Mapping[str, Any]) -> bool:
    """Whether a setting that counts is another than the preset's; depth and weight of no reranker do not."""
    idle = set() if values["reranker"] else {"rerank_depth", "rerank_weight"}
    return any(values[name] != value for name, value in of_preset.items() if name not in idle)


def _weight_values(preset: Preset, rankings: Sequence[str], encoder: str) -> dict[str, float]:
    """A slider's value for each ranking of the index."""
    weights = fitting_weights(preset.fusion.weights, encoder)
    return {f"weight_{name}": float(weights.get(name, 0.0)) for name in rankings}


def _apply_preset(presets: Mapping[str, Preset], weights: Callable[[Preset], dict[str, float]]) -> None:
    """Moves every slider to the chosen preset's value."""
    preset = presets[st.session_state["preset"]]
    for name in [name for name in st.session_state[_STORE] if name.startswith("weight_")]:  # of other corpora, too
        del st.session_state[_STORE][name]
        st.session_state.pop(f"set_{name}", None)
    for name, value in (_preset_values(preset) | weights(preset)).items():
        st.session_state[f"set_{name}"] = value
        st.session_state[_STORE][name] = value


def _fusion(values: dict[str, Any], rankings: Sequence[str]) -> FusionConfig:
    """The sliders as shares; all at 0 count alike."""
    shares = {name: values[f"weight_{name}"] for name in rankings}
    return FusionConfig.of(values["fusion"], **(shares if any(shares.values()) else dict.fromkeys(shares, 1.0)))


def _config(
    values: dict[str, Any], index: str, defaults: Config, retrieval: RetrievalConfig, rankings: Sequence[str]
) -> Config:
    writing: dict[str, Any] = {name: int(values[name]) for name in _WRITING}
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
        fusion=_fusion(values, rankings),
        reranking=RerankingConfig(values["reranker"], values["rerank_depth"], values["rerank_weight"]),
        filtering=FilteringConfig(values["threshold"], values["max_drop"], values["top_k"]),
        generation=generation,
        scoring=scoring,
    )
