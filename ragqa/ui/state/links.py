"""Follows links: puts the content of an address into the fields and settings of the session."""

from __future__ import annotations

from typing import Final

import streamlit as st

from ragqa.records.view import View
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.settings.presets import PRESETS, Preset
from ragqa.types.scores import ScoringMode
from ragqa.ui.state import resources
from ragqa.ui.state.address import Link, base_values, link_to

_MAY_LACK: Final = ("generator", "reranker", "model", "local_model")


def link_of_view(view: View) -> Link:
    """The link that asks this view's question again, with its own settings."""
    paths = Paths.from_env()
    rankings = resources.rankings_of(view.config.index, paths)
    return link_to(view.asked, view.config, _presets(paths), Config.from_env(), *rankings)


def apply_link(link: Link, names: list[str]) -> str:
    """Applies the link's corpus, preset and settings; returns what this server lacks, in words, else ""."""
    paths = Paths.from_env()
    corpus = link.corpus or st.session_state.get("kept_corpus") or Config.from_env().index
    if corpus not in names:
        return f"The address names the corpus {corpus!r}, which this server does not have; it has {', '.join(names)}."
    presets = {preset.name: preset for preset in _presets(paths)}
    name = link.preset or next(iter(presets))
    if name not in presets:
        return f"The address names the preset {name!r}, which this server does not have; choose one, and ask."
    rankings, encoder = resources.rankings_of(corpus, paths)
    values = base_values(presets[name], Config.from_env(), rankings, encoder)
    lacking = [key.removeprefix("weight_") for key in link.changed if key not in values]
    if lacking:
        return (
            f"The address weighs the ranking {lacking[0]!r}, which the corpus {corpus} does not have; ask without it."
        )
    values |= link.changed
    values["mode"] = ScoringMode(values["mode"])
    st.session_state["corpus"] = corpus
    st.session_state["preset"] = st.session_state["chosen_preset"] = name
    st.session_state["settings"] = values
    st.session_state.pop("set_model", None)
    for key, value in values.items():
        if key not in {"model", "local_model"}:
            st.session_state[f"set_{key}"] = value
    return ""


def not_offered(link: Link, config: Config) -> str:
    """What the link names and this server does not offer, in words; "" where everything is offered."""
    writing = config.generation
    found = dict(
        zip(_MAY_LACK, (writing.generator, config.reranking.model, writing.model, writing.local_model), strict=True)
    )
    for name in _MAY_LACK:
        if link.changed.get(name, found[name]) != found[name]:
            words = name.replace("_", " ")
            return (
                f"The address asks for the {words} {str(link.changed[name])[:80]!r}, which this server does not offer. "
                "Nothing was asked; look at the settings, then ask."
            )
    return ""


def _presets(paths: Paths) -> tuple[Preset, ...]:
    return (*PRESETS, *resources.own_presets(paths.presets)[0])
