"""Which language model answers: one on this machine, those that the server lists, or any other name typed in."""

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
from ragqa.settings.config import GenerationConfig, api_key, has_llm, has_server
from ragqa.settings.paths import Paths
from ragqa.ui.shared import shared

_SECONDS = 3.0  # a server that does not answer by then is asked again after a minute; the name can be typed in

_logger = logging.getLogger(__name__)


def can_ask() -> bool:
    """Whether there is any language model: configured, or fetched to this machine."""
    return has_llm() or bool(usable_models(Paths.from_env().local_models))


def model_widget(values: dict[str, Any], defaults: GenerationConfig) -> None:
    """Draws the choice and puts it into ``values["model"]``, or for a local one into ``values["local_model"]``.

    Of this machine's files a visitor can choose those that are offered and name no other.
    """
    local = _local_models(defaults)
    listed = _models(defaults.base_url, bool(api_key())) if has_server() else ()
    of_server = (values["model"], defaults.model, *listed) if has_server() or not local else ()
    options = list(dict.fromkeys((*of_server, *local)))
    now = next((label for label, name in local.items() if name == values["local_model"]), options[0])
    if st.session_state.setdefault("set_model", now) not in options and not has_server():
        st.session_state["set_model"] = now
    told = f"{len(listed)} of the server's models are listed" if listed else "The server lists no models"
    chosen = st.selectbox(
        "Model",
        options,
        key="set_model",
        accept_new_options=bool(of_server),
        help=f"{told}; any other name may be typed in." if of_server else "On this machine: `ragqa models list`.",
    )
    values["local_model"] = local.get(chosen or "", "")
    if values["local_model"]:
        st.caption("On this machine: no key, no network. Loaded at the first question; one answer at a time.")
    else:
        values["model"] = chosen or defaults.model


def model_names(defaults: GenerationConfig) -> dict[str, tuple[str, str]]:
    """What can be asked, by what it is called in a list: ``model`` and ``local_model``, the latter "" of a server's."""
    listed = _models(defaults.base_url, bool(api_key())) if has_server() else ()
    served = dict.fromkeys((defaults.model, *listed)) if has_server() else {}
    local = {label: (defaults.model, name) for label, name in _local_models(defaults).items()}
    return {name: (name, "") for name in served} | local


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
