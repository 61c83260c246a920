"""Which language model answers: one on this machine, or of the server's those that may be chosen here."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from ragqa.errors import RagqaError
from ragqa.generation.llm.client import ChatClient
from ragqa.models.catalogue import usable_models
from ragqa.settings.config import GenerationConfig, api_key, has_llm, has_server, page_models
from ragqa.settings.paths import Paths
from ragqa.ui.shared import shared

_SECONDS = 3.0  # a server that does not answer by then is asked again after a minute

_logger = logging.getLogger(__name__)


def can_ask() -> bool:
    """Whether there is any language model: configured, or fetched to this machine."""
    return has_llm() or bool(usable_models(Paths.from_env().local_models))


def model_widget(values: dict[str, Any], defaults: GenerationConfig) -> None:
    """Draws the choice and puts it into ``values["model"]``, or for a local one into ``values["local_model"]``.

    A visitor can choose those that are offered and name no other: somebody pays for what a server's model writes.
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
    """What can be asked, by what it is called in a list: ``model`` and ``local_model``, the latter "" of a server's."""
    local = {label: (defaults.model, name) for label, name in _local_models(defaults).items()}
    return {name: (name, "") for name in _of_server(defaults)} | local


def is_listed(name: str, defaults: GenerationConfig) -> bool:
    """Whether the server answered within a minute and offers this model."""
    return name in _models(defaults.base_url, bool(api_key()))


def _of_server(defaults: GenerationConfig) -> tuple[str, ...]:
    """What may be chosen of the server: the configured model, and those of RAGQA_LANGUAGE_MODELS, else all listed."""
    if not has_server():
        return ()
    names = page_models("RAGQA_LANGUAGE_MODELS") or _models(defaults.base_url, bool(api_key()))
    return tuple(dict.fromkeys((defaults.model, *names)))


def _local_models(defaults: GenerationConfig) -> dict[str, str]:
    """What can be asked on this machine, by what it is called in the list."""
    names = (*filter(None, (defaults.local_model,)), *usable_models(Paths.from_env().local_models))
    return {f"{Path(name).name} (local model)": name for name in names}


@shared(seconds=60)
def _models(base_url: str, has_key: bool) -> tuple[str, ...]:
    """The names the server offers, none where it cannot say; asked once a minute, and when the key comes or goes."""
    config = replace(GenerationConfig(), base_url=base_url, timeout_seconds=_SECONDS, max_retries=0)
    try:
        with closing(ChatClient(config, api_key())) as client:
            return client.models()
    except RagqaError as error:
        _logger.warning("The language model server lists no models: %s", error)
        return ()
