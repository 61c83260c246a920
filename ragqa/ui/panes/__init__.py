"""The two panes of an answer: the answer, and beside it the evidence for what the reader chooses.

It is one Streamlit component of version 2 (no iframe, no build step). It gets HTML that `ragqa.ui.html` has escaped,
and copies only allowed elements of it, so that a mistake there cannot run a script. Choosing happens in the browser
alone: an element with ``data-show=ID``, anywhere on the page, shows the card with that id, which is in ``cards`` or
hidden on the page as ``data-card=ID``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_HTML = """
<section class="rq-panes" hidden>
  <div class="rq-left" role="group" aria-label="Answer">
    <div data-part="question"></div><div data-part="head"></div><div data-part="answer"></div>
    <div data-part="scores"></div>
    <div data-part="notes"></div><div class="rq-print"></div>
  </div>
  <aside class="rq-evidence" aria-label="Evidence" hidden>
    <div class="rq-evidence-top"><h2>Evidence</h2>
      <button type="button" class="rq-close" aria-label="Close the evidence">×</button></div>
    <div class="rq-evidence-body" tabindex="0" role="region" aria-label="Evidence of what is chosen"></div>
  </aside>
</section>
<p class="rq-live" aria-live="polite"></p>
"""


@dataclass(frozen=True, slots=True)
class Panes:
    """The content of both panes, as escaped HTML. With another ``id`` (of an answer) the reader's choice is reset."""

    id: str = ""
    question: str = ""
    head: str = ""  # whether it is answered, and how far that can be relied on
    answer: str = ""
    scores: str = ""
    notes: str = ""
    cards: dict[str, str] = field(default_factory=dict)  # by card id
    status: str = ""  # announced by screen readers when it changes


def draw_panes(panes: Panes) -> None:
    """Mounts the component, or updates the mounted one."""
    css, js = _read("css"), _read("js")
    mount = st.components.v2.component("ragqa_panes", html=_HTML, css=css, js=js, isolate_styles=False)
    mount(key="panes", data=asdict(panes))


@cache
def _read(end: str) -> str:
    return (_HERE / f"panes.{end}").read_text(encoding="utf-8")
