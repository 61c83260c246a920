"""Which language model answers: those that the server lists, or any other name typed in."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from typing import Any

import streamlit as st

from ragqa.config import GenerationConfig, api_key
from ragqa.errors import RagqaError
from ragqa.generation.client import ChatClient

_SECONDS = 3.0  # a server that does not answer by then is asked again after a minute; the name can be typed in

_logger = logging.getLogger(__name__)


def model_widget(values: dict[str, Any], defaults: GenerationConfig) -> None:
    """Draws the choice and puts it into ``values["model"]``."""
    listed = _models(defaults.base_url, bool(api_key()))
    options = list(dict.fromkeys((values["model"], defaults.model, *listed)))
    st.session_state.setdefault("set_model", values["model"])
    told = f"{len(listed)} of the server's models are listed" if listed else "The server lists no models"
    chosen = st.selectbox(
        "Model", options, key="set_model", accept_new_options=True, help=f"{told}; any other name may be typed in."
    )
    values["model"] = chosen or defaults.model


@st.cache_data(ttl=60, show_spinner=False)
def _models(base_url: str, has_key: bool) -> tuple[str, ...]:
    """The names the server offers, none where it cannot say; asked once a minute, and when the key comes or goes."""
    config = replace(GenerationConfig(), base_url=base_url, timeout_seconds=_SECONDS, max_retries=0)
    try:
        with closing(ChatClient(config, api_key())) as client:
            return client.models()
    except RagqaError as error:
        _logger.warning("The language model server lists no models: %s", error)
        return ()
