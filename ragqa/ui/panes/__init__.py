"""The two panes of an answer: the answer itself, and beside it the evidence of whatever is chosen.

One Streamlit component of the second kind (no iframe, no build step). It is given HTML that `ragqa.ui.html.render…`
escaped and copies it through a list of allowed elements, so that a slip there runs no script. Choosing something
happens in the browser alone: whatever carries ``data-show=ID``, here or anywhere on the page, shows the card of that
id, which is among those given or stands hidden on the page as ``data-card=ID``.
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
    <div data-part="question"></div><div data-part="answer"></div><div data-part="scores"></div>
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
    """What both panes show, as escaped HTML. ``id`` says whose answer it is: another one's choice is forgotten."""

    id: str = ""
    question: str = ""
    answer: str = ""
    scores: str = ""
    notes: str = ""
    cards: dict[str, str] = field(default_factory=dict)  # by the id that shows them
    status: str = ""  # told to a screen reader when it changes


def draw_panes(panes: Panes) -> None:
    """Mounts the component, or gives the mounted one something new to show."""
    css, js = _read("css"), _read("js")
    mount = st.components.v2.component("ragqa_panes", html=_HTML, css=css, js=js, isolate_styles=False)
    mount(key="panes", data=asdict(panes))


@cache
def _read(end: str) -> str:
    return (_HERE / f"panes.{end}").read_text(encoding="utf-8")
