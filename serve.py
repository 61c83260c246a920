"""The page with addresses for whoever looks after a server: `streamlit run serve.py`, or `make serve`."""

from __future__ import annotations

import streamlit as st

from ragqa.ui.serving import lifespan, routes

app = st.App("app.py", routes=routes(), lifespan=lifespan)
