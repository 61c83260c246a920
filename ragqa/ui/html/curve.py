"""The relevance of the best passages by rank, with the limits that end the list, as HTML. Pure, like `render`.

Drawn by the browser at once: a chart library took half of what a slider's redraw may cost. Choosing a point shows its
passage, as choosing its row does; the rows are the way by keyboard.
"""

from __future__ import annotations

from html import escape

from ragqa.types import Candidate, Drop, Limit, Selection
from ragqa.ui.html.render import place
from ragqa.ui.state.limits import limits

_KINDS = dict.fromkeys(Drop, ("below", "×")) | {  # decision -> class and sign, which tells them apart without colour
    None: ("kept", "●"),
    Drop.AFTER_MAX_DROP: ("fallen", "▼"),
    Drop.BEYOND_TOP_K: ("beyond", "■"),
    Drop.AFTER_CUT: ("fallen", "▼"),
}


def curve_html(selection: Selection, limit: int) -> str:
    """Relevance by rank for the best ``limit`` candidates, with the limits and what each of them does, in words.

    Of a fan-out, which keeps a union of what each question's own filter keeps, no limit is shown.
    """
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda one: one.rank)[:limit]
    if not candidates:
        return ""
    count = len(candidates)
    dots = "".join(_dot(one, count) for one in candidates)
    ticks = "".join(
        f'<span class="rq-tick" style="left:{_x(rank, count):.2f}%">{rank}</span>'
        for rank in (1, *range(5, count + 1, 5))
    )
    kinds = dict.fromkeys((_KINDS[one.drop], str(one.drop) if one.drop else "kept") for one in candidates)
    legend = "".join(f'<span><i class="rq-dot-{kind}">{sign}</i> {escape(name)}</span>' for (kind, sign), name in kinds)
    found = limits(selection)
    lines = "".join(_line(one, count) for one in selection.limits)
    return (
        f'<div class="rq-curve" role="img" aria-label="Relevance by rank. '
        f'{escape(found.summary if found else "")}">'
        '<span class="rq-axis" style="bottom:100%">1</span><span class="rq-axis" style="bottom:0">0</span>'
        f"{lines}{dots}{ticks}</div>"
        f'<p class="rq-fine rq-legend">{legend}<span>across: rank; up: relevance</span></p>'
    )


def _x(rank: int | float, count: int) -> float:
    return 100 * (rank - 0.5) / count


def _dot(one: Candidate, count: int) -> str:
    kind, sign = _KINDS[one.drop]
    words = f"{one.rank}. {place(one.passage)}: {one.explanation}"
    return (
        f'<span class="rq-dot rq-dot-{kind}" data-show="p{one.rank}" title="{escape(words)}" '
        f'style="left:{_x(one.rank, count):.2f}%;bottom:{100 * one.relevance:.2f}%">{sign}</span>'
    )


def _line(limit: Limit, count: int) -> str:
    """The line of a limit: across at its relevance, else down behind the last rank it keeps, where that is shown."""
    if not limit.label or (limit.height is None and limit.keeps >= count):
        return ""
    way, side, at = "across", "bottom", 100 * (limit.height or 0.0)
    if limit.height is None:
        way, side, at = "down", "left", _x(limit.keeps + 0.5, count)
    low = " rq-low" if limit.setting == "top_k" else ""
    turned = " rq-left-of" if way == "down" and at > 60 else ""
    text = f"{limit.label}, ends the list" if limit.ends else limit.label
    return (
        f'<span class="rq-limit rq-limit-{way}{" rq-binding" if limit.ends else ""}{turned}{low}" '
        f'style="{side}:{at:.2f}%"><b>{escape(text)}</b></span>'
    )
