"""Settings as widgets, drawn from what their schema declares; ``values`` holds what is chosen, by key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragqa.settings.config import settings_at
from ragqa.settings.schema import Place, is_day


def widgets(
    values: dict[str, Any],
    part: str,
    on_change: Callable[[str], None] | None = None,
    without: Collection[str] = (),
) -> dict[str, DeltaGenerator]:
    """Draws the widgets of this part's effective settings, choices first; returns a place below each, by key.

    A slider calls ``on_change`` with its name. Settings that are names have their own widgets elsewhere.
    """
    words = {}
    for setting in sorted(settings_at(Place.PAGE, part), key=lambda one: not one.choices):
        key = setting.key
        if (setting.is_name and not setting.is_day) or key in without or not setting.applies(values):
            continue
        if setting.is_day:
            now = st.session_state.setdefault(f"set_{key}", values[key])
            day = st.text_input(setting.label, now, key=f"set_{key}", help=setting.help, placeholder="YYYY-MM-DD")
            values[key] = day if is_day(day) else setting.default
        elif setting.choices:
            radio(values, key, setting.label, setting.choices, setting.help)
        elif isinstance(setting.default, bool):
            now = st.session_state.setdefault(f"set_{key}", values[key])
            values[key] = st.toggle(setting.label, now, key=f"set_{key}", help=setting.help)
        else:
            low, high = setting.usual or (0, 1)
            now = st.session_state.get(f"set_{key}", values[key])  # a preset file may have an unusual value
            bounds = (min(low, now), max(high, now), setting.step)
            slider(values, key, setting.label, bounds, setting.help, on_change=on_change)
        words[key] = st.empty()
    return words


def slider(
    values: dict[str, Any],
    name: str,
    label: str,
    bounds: tuple[float, float, float],
    help_text: str,
    *,
    on_change: Callable[[str], None] | None = None,
) -> None:
    """Draws a slider with these bounds (lowest, highest, step)."""
    low, high, step = bounds
    key = f"set_{name}"
    now = st.session_state.setdefault(key, values[name])
    values[name] = st.slider(label, low, high, now, step, key=key, help=help_text, on_change=on_change, args=(name,))


def radio(values: dict[str, Any], name: str, label: str, options: Mapping[Any, str], help_text: str) -> None:
    """Draws a choice; ``options`` are values with their labels, the first of which replaces a value not offered."""
    key = f"set_{name}"
    if values[name] not in options:
        values[name] = next(iter(options))
    now = st.session_state.setdefault(key, values[name])
    names = list(options)
    values[name] = st.radio(
        label,
        names,
        names.index(now) if now in names else 0,
        format_func=options.get,
        key=key,
        help=help_text,
        horizontal=True,
    )
