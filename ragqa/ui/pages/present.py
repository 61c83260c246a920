"""Presentation mode: ``?present=1`` shows the page in large type; keys step through the examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from ragqa.english.words import quantity

PRESENT = "present"  # parameter of the address, "1"; it stays when other parameters change
_AT = "presented"  # session key: the index of the present example
_STYLE = """<style>
html { font-size: 21px !important; }
.st-key-choices, .st-key-present_go, .st-key-signed_in, .st-key-phone, .rq-brand { display: none !important; }
[data-testid=stHeader] { visibility: hidden; }
[data-testid=stExpandSidebarButton] { visibility: visible; } /* the sliders are what a room wants to see move */
.stMainBlockContainer { padding: 3.6rem 2.5rem 2rem !important; max-width: 84rem; margin: 0 auto; }
.rq-evidence:not([hidden]) { top: 3.6rem; max-height: calc(100vh - 14.5rem); } /* above the follow-up's box */
.st-key-presenting { position: fixed; right: 1.5rem; top: 0.4rem; z-index: 97; width: auto; }
@media (max-width: 640px) {
  html { font-size: 17px !important; }
  [data-testid=stExpandSidebarButton]::after { content: none !important; }
  .st-key-presenting [data-testid=stCaptionContainer] { display: none; }
  .stMainBlockContainer { padding: 3.6rem 1rem 2rem !important; }
  [data-testid=stLayoutWrapper]:has(> * > * > .st-key-follow_up) { bottom: 0 !important; }
}
</style>"""


def presenting() -> bool:
    """Whether the address asks for presentation mode."""
    return st.query_params.get(PRESENT) == "1"


def asked_in_address() -> dict[str, str]:
    """The other parameters of the address."""
    return {name: value for name, value in st.query_params.to_dict().items() if name != PRESENT}


def go_to(query: dict[str, str]) -> None:
    """Sets the parameters of the address; presentation mode is kept."""
    st.query_params.from_dict(query | ({PRESENT: "1"} if presenting() else {}))


def present_button() -> None:
    """The button that starts presentation mode."""
    words = "Presentation: large type; → shows the next example, the drawer has the sliders."
    st.button("Present", key="present_go", icon=":material/slideshow:", help=words, on_click=_begin)


def draw_presentation(examples: Sequence[str], ask: Callable[[str], None]) -> None:
    """Its style and keys: → and ← step through the examples, Escape leaves. ``ask`` asks a question."""
    st.html(_STYLE)
    at = st.session_state.get(_AT, -1)
    with st.container(horizontal=True, vertical_alignment="center", key="presenting", gap="small"):
        if examples:
            st.button("Back", key="present_back", shortcut="Left", on_click=_step, args=(examples, -1, ask))
            st.button("Next", key="present_next", shortcut="Right", on_click=_step, args=(examples, 1, ask))
            st.caption(f"{at + 1} of {len(examples)}" if at >= 0 else quantity(len(examples), "question"))
        st.button("Leave", key="present_leave", shortcut="Esc", on_click=_leave)


def _begin() -> None:
    st.query_params[PRESENT] = "1"
    st.session_state.pop(_AT, None)


def _leave() -> None:
    st.query_params.pop(PRESENT, None)


def _step(examples: Sequence[str], by: int, ask: Callable[[str], None]) -> None:
    at = st.session_state.get(_AT, -1 if by > 0 else 0)
    st.session_state[_AT] = at = (at + by) % len(examples)
    ask(examples[at])
