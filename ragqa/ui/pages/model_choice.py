"""The choice of the language model: a local one, or one of the server's that the page offers."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from ragqa.errors import RagqaError
from ragqa.generation.llm.client import ChatClient
from ragqa.generation.local.server import usable_models
from ragqa.settings.config import GenerationConfig
from ragqa.settings.environment import api_key, has_llm, has_server, page_models
from ragqa.settings.paths import Paths
from ragqa.ui.shared import shared

_SECONDS = 3.0  # time limit of a request; a server that does not answer is asked again after a minute

_logger = logging.getLogger(__name__)


def can_ask() -> bool:
    """Whether there is any language model, configured or local."""
    return has_llm() or bool(usable_models(Paths.from_env().local_models))


def model_widget(values: dict[str, Any], defaults: GenerationConfig) -> None:
    """Draws the choice and puts it into ``values["model"]``, or ``values["local_model"]`` for a local model.

    A visitor can only choose offered models, because the models of a server may cost money.
    """
    local, of_server = _local_models(defaults), _of_server(defaults)
    options = [*of_server, *local] or [defaults.model]
    named = values["model"] if values["model"] in options else options[0]
    now = next((label for label, name in local.items() if name == values["local_model"]), named)
    if st.session_state.setdefault("set_model", now) not in options:
        st.session_state["set_model"] = now
    words = "Further ones: RAGQA_LANGUAGE_MODELS." if of_server else "On this machine: `ragqa models list`."
    chosen = st.selectbox("Model", options, key="set_model", help=words)
    values["local_model"] = local.get(chosen or "", "")
    if values["local_model"]:
        st.caption("On this machine: no key, no network. Loaded at the first question; one answer at a time.")
    else:
        values["model"] = chosen or defaults.model


def model_names(defaults: GenerationConfig) -> dict[str, tuple[str, str]]:
    """The available models, by label: ``model`` and ``local_model``, which is "" for a server's model."""
    local = {label: (defaults.model, name) for label, name in _local_models(defaults).items()}
    return {name: (name, "") for name in _of_server(defaults)} | local


def is_listed(name: str, defaults: GenerationConfig) -> bool:
    """Whether the server's list, which is at most a minute old, has this model."""
    return name in _models(defaults.base_url, bool(api_key()))


def _of_server(defaults: GenerationConfig) -> tuple[str, ...]:
    """The server's models: the configured one, and those of RAGQA_LANGUAGE_MODELS, else all that it lists."""
    if not has_server():
        return ()
    names = page_models("RAGQA_LANGUAGE_MODELS") or _models(defaults.base_url, bool(api_key()))
    return tuple(dict.fromkeys((defaults.model, *names)))


def _local_models(defaults: GenerationConfig) -> dict[str, str]:
    """The local models, by label."""
    names = (*filter(None, (defaults.local_model,)), *usable_models(Paths.from_env().local_models))
    return {f"{Path(name).name} (local model)": name for name in names}


@shared(seconds=60)
def _models(base_url: str, has_key: bool) -> tuple[str, ...]:
    """The server's models, () where it lists none; asked once a minute, and when a key is set or removed."""
    config = replace(GenerationConfig(), base_url=base_url, timeout_seconds=_SECONDS, max_retries=0)
    try:
        with closing(ChatClient(config, api_key())) as client:
            return client.models()
    except RagqaError as error:
        _logger.warning("The language model server lists no models: %s", error)
        return ()
