"""A question of a data set with one of its passages -> HTML. Pure, every value escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ragqa.types import Passage
from ragqa.ui.html.render import badge_html, place, text_html


def pair_html(row: Mapping[str, Any], passage_id: str, passage: Passage | None, told: Sequence[str]) -> str:
    """The question, what kind it is, the passage; ``told`` are the labels that two gave, without who."""
    kinds = " · ".join(str(row[key]) for key in ("kind", "persona", "form") if row.get(key))
    several = len(row["passages"])
    part = f", one of {several} passages: it need answer its own part only" if several > 1 else ""
    badges = " ".join(badge_html(label, "mixed") for label in sorted(told))
    gone = "The index of this set is gone or was rebuilt: the text is not at hand."
    return (
        f'<div data-pair="{escape(str(row.get("id", "")))} {escape(passage_id)}">'
        f'<p class="rq-question">{escape(str(row["question"]))}</p>'
        f'<p class="rq-fine">{escape(kinds)}{escape(part)}</p>{f"<p>Two said: {badges}</p>" if badges else ""}'
        f'<p class="rq-fine">{escape(place(passage) if passage else passage_id)}</p>'
        f'<div class="rq-passage rq-pair" tabindex="0" role="region" aria-label="Passage">'
        f"{text_html(passage.text) if passage else gone}</div></div>"
    )
