"""The settings drawer: presets, sliders, their effects, and the changes since the preset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from ragqa.infra.http import missing_key
from ragqa.library.collection import collection_of
from ragqa.plugins import registry
from ragqa.records.differences import Difference, differences
from ragqa.records.limits import limits
from ragqa.records.view import View, reselect
from ragqa.retrieval.learned_ranker import rankings_read
from ragqa.retrieval.ranking import adding_command, lacking_rankings
from ragqa.server.access.policy import Act
from ragqa.settings.config import (
    RANKED,
    Config,
    FusionConfig,
    GenerationConfig,
    RerankingConfig,
    choosing,
    with_values,
    without_default_reranker,
)
from ragqa.settings.environment import has_llm, page_models
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import LONGEST_EXPLANATION, LONGEST_NAME, save_preset
from ragqa.settings.presets import PRESETS, Preset
from ragqa.ui import access
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import RENDER, notice_html
from ragqa.ui.pages.model_choice import can_ask, model_widget
from ragqa.ui.pages.notices import draw_notices, error_kept, keep_notices
from ragqa.ui.pages.widgets import radio, slider, widgets
from ragqa.ui.state import resources
from ragqa.ui.state.settings_values import (
    FILTER,
    ON_PAGE,
    config_of,
    first_values,
    fusion_of,
    preset_values,
    weight_values,
    with_preset,
)

PANES, TABS, LIMITS, CHANGES = "live", "tabs", "limits", "changes"
FOLLOWING = (TABS, PANES, LIMITS, CHANGES)  # the fragments that show the effect of the filter, in drawing order
_SETTINGS = {one.key: one for one in ON_PAGE}
_STORE = "settings"  # plain keys: those of widgets vanish when the page changes
_PLAIN = {
    PRESETS[0].name: "Standard",
    "RIRAG .70/.20": "Fusion only",
    "AUEB .90/.10": "Strict",
    "no filter, k = 10": "Broad",
}
_PRESET, _SAVED, _RESET = "chosen_preset", "saved_preset", "reset_now"


def settings_panel(
    index: str,
    defaults: Config,
    rankings: Sequence[str] = tuple(FusionConfig().weights),
    encoder: str = "",
    place: DeltaGenerator | None = None,
    view: View | None = None,
    checking: bool = False,
) -> Config:
    """Draws the drawer in the sidebar and the preset in ``place`` beside the question; returns the settings.

    ``rankings`` are the names of the index's retrievers, each with a slider; ``encoder`` is that of ``dense``. Beside
    the filter's sliders stands the effect of each limit on the passages of ``view``. ``checking``: for texts to check.
    """
    weights = partial(weight_values, rankings=rankings, encoder=encoder)
    values: dict[str, Any] = st.session_state.setdefault(_STORE, first_values(PRESETS[0], defaults))
    with st.sidebar:
        st.html('<p class="rq-drawer">Settings</p>')
        own, problems = resources.own_presets(Paths.from_env().presets)
        presets = _offered((*PRESETS, *own), rankings, encoder)
        preset = presets[_chosen_preset(presets, weights, place)]
        lacking, key = _needs(preset, rankings, encoder)
        if lacking or key:  # the preset was chosen for another corpus or by an address
            how = f"To add it: {_adding(lacking, index)}" if lacking else f"Set {key} and start again."
            needed = f"The preset needs {', '.join(lacking) or key}, which is missing here: it is left out. {how}"
            (place or st).html(notice_html(needed, "mixed"))
        if st.session_state.pop(_RESET, False):
            _apply_preset(presets, weights)
        for name, value in weights(preset).items():  # for rankings that the earlier corpus did not have
            values.setdefault(name, value)
        st.caption(preset.explanation if preset in PRESETS else plain_markdown(preset.explanation))
        top = st.container()  # filled after the widgets below, which give the changed values
        groups = (registry.RETRIEVERS, registry.RERANKERS, registry.GENERATORS)
        for problem in (*problems, *(line for group in groups for line in registry.problems(group))):
            st.warning(plain_markdown(problem))
        words = _filtering_widgets(values, moves=view is not None)
        _retrieval_widgets(values, rankings)
        fit = partial(_fitting, checking=checking)
        _reranking_widgets(values, presets.values(), rankings, index, fit)
        _answer_widgets(values, defaults.generation)
        config = fit(config_of(values, index, defaults, preset.retrieval, rankings))
        st.session_state[_STORE] = values
        with top:
            st.fragment(partial(_changes, preset, config, rankings, encoder, fit), key=CHANGES)()
        st.fragment(partial(_say_what_limits, words, config, view), key=LIMITS)()
    return config


def with_moved_filter(config: Config) -> Config:
    """These settings with the present values of the filter's sliders, whose fragments are drawn alone."""
    values: dict[str, Any] = st.session_state.get(_STORE, {})
    return with_values(config, {name: values[name] for name in FILTER if name in values})


def _filter_moved(name: str) -> None:
    """Redraws only the fragments that show the effect of the filter."""
    st.session_state[_STORE][name] = st.session_state[f"set_{name}"]
    with suppress(StreamlitAPIException):  # without these fragments the whole page is drawn
        st.rerun(scope=FOLLOWING)


def current_settings(index: str, defaults: Config, rankings: Sequence[str], encoder: str) -> Config:
    """The settings of the drawer for pages without one; those of the first preset where it was never drawn."""
    own, _ = resources.own_presets(Paths.from_env().presets)
    presets = {preset.name: preset for preset in (*PRESETS, *own)}
    preset = presets.get(st.session_state.get(_PRESET) or "", PRESETS[0])
    kept: dict[str, Any] = st.session_state.get(_STORE) or first_values(PRESETS[0], defaults)
    values = weight_values(preset, rankings, encoder) | kept
    config = config_of(values, index, defaults, preset.retrieval, rankings)
    return resources.fitted(config, Paths.from_env())


def apply_values(changed: Mapping[str, Any], defaults: Config) -> None:
    """Sets these settings, by the names of `ragqa.ui.state.settings_values`, for every page of the session."""
    values = st.session_state.setdefault(_STORE, first_values(PRESETS[0], defaults))
    for name, value in changed.items():
        values[name] = st.session_state[f"set_{name}"] = value


def preset_label(name: str) -> str:
    """The label of a preset in a list: its plain name where it has one, then its own name; "": the defaults."""
    return f"{_PLAIN[name]} ({name})" if name in _PLAIN else name or "the default settings"


def _chosen_preset(
    presets: Mapping[str, Preset], weights: Callable[[Preset], dict[str, float]], place: DeltaGenerator | None
) -> str:
    st.session_state.setdefault("preset", st.session_state.get(_PRESET))
    if st.session_state["preset"] not in presets:  # its file is gone, or nothing was chosen yet
        st.session_state.pop("preset")
    (place or st).selectbox(
        "Preset",
        list(presets),
        list(presets).index(st.session_state["preset"]) if "preset" in st.session_state else 0,
        format_func=preset_label,
        key="preset",
        on_change=_apply_preset,
        args=(presets, weights),
        label_visibility="collapsed",
    )
    st.session_state[_PRESET] = chosen = str(st.session_state["preset"])
    return chosen


def _fitting(config: Config, *, checking: bool) -> Config:
    """The settings without the default reranker where it is not used: see `resources.fitted`."""
    return without_default_reranker(config) if checking else resources.fitted(config, Paths.from_env())


def _changes(
    preset: Preset, config: Config, rankings: Sequence[str], encoder: str, fit: Callable[[Config], Config]
) -> None:
    """The differences from the preset, a button that resets them, and a form that saves them as a preset."""
    config = with_moved_filter(config)
    base = fit(with_preset(config, preset, rankings, encoder))
    changed = differences(base, config)
    if changed:
        st.html(RENDER.changed(f"Changed since “{preset.name}”", changed))
    with st.container(horizontal=True):
        if changed and st.button("Reset", key="reset_preset"):
            st.session_state[_RESET] = (
                True  # handled where the sliders are drawn, because they ignore a change that is made here
            )
            st.rerun()
        with st.popover("Save as a preset"), st.form("save_preset", border=False):
            st.text_input("Name", key="preset_name", max_chars=LONGEST_NAME, placeholder="Outsourcing, strict")
            saved = st.form_submit_button("Save", on_click=_save, args=(config, preset, changed))
            st.caption(
                "Keeps ranking and filter for everybody who uses this ragqa; corpus and writer are not part of it."
            )
    if saved:
        st.rerun()
    draw_notices(_SAVED)


def _save(config: Config, preset: Preset, changed: Sequence[Difference]) -> None:
    """Saves these settings as a preset file under the name in the form, and chooses it."""
    name = str(st.session_state.get("preset_name", "")).strip()
    since = ", ".join(row.words for row in changed) or "nothing changed"
    words = f"Saved on the page, {datetime.now(UTC):%Y-%m-%d}, from “{preset.name}”: {since}."[:LONGEST_EXPLANATION]
    with error_kept(_SAVED):
        with access.gate().doing(Act.PRESET, name=name):
            file = save_preset(Preset.of(name, words, config), Paths.from_env().presets)
        st.session_state["preset"] = name
        keep_notices(_SAVED, (f"Saved as “{name}” in {file.name}; `ragqa ask --preset` takes the name too.", "good"))


def _say_what_limits(words: Mapping[str, DeltaGenerator], config: Config, view: View | None) -> None:
    """Shows the effect of each limit of the filter on the shown passages beside its slider."""
    config = with_moved_filter(config)
    if view is None or view.config.index != config.index or not view.rankings:
        return
    current = reselect(view, config.fusion, config.filtering, config.reranking)
    found = limits(current)
    if found is None:
        return
    for name, place in words.items():
        if name not in found.words:
            continue
        binds = name in found.binding
        place.caption(f"**{found.words[name]}**" if binds else found.words[name])


def _offered(presets: Sequence[Preset], rankings: Sequence[str], encoder: str) -> dict[str, Preset]:
    """The presets that work with this corpus and server, and the chosen one, by name."""
    chosen = st.session_state.get("preset") or st.session_state.get(_PRESET)
    return {one.name: one for one in presets if one.name == chosen or not any(_needs(one, rankings, encoder))}


def _needs(preset: Preset, rankings: Sequence[str], encoder: str) -> tuple[tuple[str, ...], str]:
    """The missing rankings that the preset needs, and the name of a missing API key."""
    model = preset.reranking.model
    lacking = lacking_rankings(preset.fusion, rankings, encoder)
    read = () if preset.reranking == RANKED else rankings_read(model)  # which is left out where a ranking is missing
    return (*lacking, *(name for name in read if name not in (*rankings, *lacking))), missing_key(model)


def _adding(names: Sequence[str], index: str) -> str:
    return adding_command(names, index, of_library=collection_of(index, Paths.from_env().library) is not None)


def _group(name: str) -> str:
    """A visual heading only, because the page's first real heading is its name, below."""
    return f'<p class="rq-group">{name}</p>'


def _retrieval_widgets(values: dict[str, Any], rankings: Sequence[str]) -> None:
    st.html(_group("Retrieval and fusion"))
    widgets(values, "retrieval")
    widgets(values, "fusion")
    for name in rankings:
        part, encoder = registry.find(registry.RETRIEVERS, name), name.removeprefix("dense:")
        label = f"{part.label if part else name} weight" + (f", {encoder}" if encoder != name else "")
        slider(values, f"weight_{name}", plain_markdown(label), (0.0, 1.0, 0.05), part.explanation if part else "")
    shares = fusion_of(values, rankings).weights
    if "dense" not in rankings:
        st.caption("No vectors in this index: lexical only.")
    words = " + ".join(f"{registry.label(name)} {share:.2f}" for name, share in shares.items())
    st.caption(plain_markdown(words if values["fusion"] == "wsum" else f"Ranks of {' and '.join(shares)}, all alike."))


def _rerankers(presets: Iterable[Preset]) -> tuple[str, ...]:
    """The rerankers that the page offers: of the registry, presets and RAGQA_PAGE_MODELS; "" is off."""
    own = [part.name for part in registry.parts(registry.RERANKERS) if part.is_name]
    further = page_models("RAGQA_PAGE_MODELS")
    return tuple(dict.fromkeys(("", *own, *further, *(preset.reranking.model for preset in presets))))


def _reranking_widgets(
    values: dict[str, Any],
    presets: Iterable[Preset],
    rankings: Sequence[str],
    index: str,
    fit: Callable[[Config], Config],
) -> None:
    st.html(_group("Reranker"))
    offered, before = _rerankers(presets), values["reranker"]
    labels = {"": "off"} | {part.name: part.label for part in registry.parts(registry.RERANKERS)}
    if st.session_state.setdefault("set_reranker", values["reranker"]) not in offered:
        st.session_state["set_reranker"] = ""
    values["reranker"] = st.selectbox(
        "Reranker",
        offered,
        offered.index(st.session_state["set_reranker"]),
        key="set_reranker",
        format_func=lambda name: labels.get(name, name),
        help=_SETTINGS["reranker"].help,
    )
    chosen = choosing(RerankingConfig(before, values["rerank_depth"], values["rerank_weight"]), values["reranker"])
    if before != values["reranker"]:
        for key, value in (("rerank_depth", chosen.depth), ("rerank_weight", chosen.weight)):
            values[key] = st.session_state[f"set_{key}"] = value
    missing = [name for name in rankings_read(values["reranker"]) if name not in rankings]
    if fit(Config(index, reranking=chosen)).reranking != chosen:
        st.caption("Left out here: it ranks questions in English by bm25, context and dense.")
    elif missing:
        words = f"{values['reranker']} reads the ranking {', '.join(missing)}, which this corpus lacks: choose another."
        st.warning(plain_markdown(f"{words} To add it: {_adding(missing, index)}"))
    if registry.is_api_name(values["reranker"]):
        st.caption("Behind an API: the question and the passages it reads are sent to that server.")
    key = missing_key(values["reranker"])
    if key:
        st.warning(plain_markdown(f"{values['reranker']} needs a key: set {key} and start again, or choose off."))
    widgets(values, "reranking")


def _filtering_widgets(values: dict[str, Any], *, moves: bool) -> dict[str, DeltaGenerator]:
    """Draws the filter's sliders; returns a place below each for its effect, by the name of the setting.

    With a run on the page (``moves``), moving a slider redraws only what depends on the filter.
    """
    st.html(_group("Filter"))
    return widgets(values, "filtering", _filter_moved if moves else None)


def _answer_widgets(values: dict[str, Any], defaults: GenerationConfig) -> None:
    st.html(_group("Answer and scores"))
    has_model, asks = can_ask(), registry.needs_language_model
    radio(
        values,
        "generator",
        "Generator",
        {part.name: part.label for part in registry.parts(registry.GENERATORS) if has_model or not asks(part.name)},
        _SETTINGS["generator"].help,
    )
    if asks(values["generator"]):
        model_widget(values, defaults)
    widgets(values, "generation")
    if not has_model:
        how = "run `make local`, or set OPENAI_API_KEY or OPENAI_BASE_URL and start again"
        st.caption(f"No language model is configured. To use one, {how}.")
    widgets(values, "scoring", without=() if has_llm() or values.get("local_model") else ("verifier",))


def _apply_preset(presets: Mapping[str, Preset], weights: Callable[[Preset], dict[str, float]]) -> None:
    """Sets every slider to the value of the chosen preset."""
    preset = presets[st.session_state["preset"]]
    for name in [name for name in st.session_state[_STORE] if name.startswith("weight_")]:  # also for other corpora
        del st.session_state[_STORE][name]
        st.session_state.pop(f"set_{name}", None)
    for name, value in (preset_values(preset) | weights(preset)).items():
        st.session_state[f"set_{name}"] = value
        st.session_state[_STORE][name] = value
