"""The relevance of the best passages by rank, with the limits that end the list, as HTML. Pure, like `render`.

Drawn by the browser at once: a chart library took half of what a slider's redraw may cost. Choosing a point shows its
passage, as choosing its row does; the rows are the way by keyboard.
"""

from __future__ import annotations

from html import escape

from ragqa.settings.config import FilteringConfig
from ragqa.types import Candidate, Drop, Selection
from ragqa.ui.html.render import place
from ragqa.ui.state.limits import CUT, MAX_DROP, THRESHOLD, TOP_K, Limits, fall_of, limits

_KINDS = dict.fromkeys(Drop, ("below", "×")) | {  # decision -> class and sign, which tells them apart without colour
    None: ("kept", "●"),
    Drop.AFTER_MAX_DROP: ("fallen", "▼"),
    Drop.BEYOND_TOP_K: ("beyond", "■"),
    Drop.AFTER_CUT: ("fallen", "▼"),
}


def curve_html(selection: Selection, filtering: FilteringConfig, limit: int) -> str:
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
    found = limits(selection, filtering)
    lines = _limits_html(found, selection, filtering, count) if found else ""
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


def _limits_html(found: Limits, selection: Selection, filtering: FilteringConfig, count: int) -> str:
    across, down = "across", "down"
    drawn = [(THRESHOLD, f"threshold {filtering.threshold:.2f}", across, 100 * filtering.threshold)]
    if filtering.method == "expected-f2":
        drawn = [(CUT, "expected F2", down, _x(found.kept + 0.5, count))] if CUT in found.binding else []
    fallen = fall_of(selection, filtering)
    if fallen and fallen.rank <= count:
        words = f"max drop {filtering.max_drop:.2f}: falls {fallen.fall:.2f}"
        drawn.append((MAX_DROP, words, down, _x(fallen.rank - 0.5, count)))
    if filtering.top_k < count:
        drawn.append((TOP_K, f"top {filtering.top_k}", down, _x(filtering.top_k + 0.5, count)))
    return "".join(_line(words, way, at, binds=name in found.binding) for name, words, way, at in drawn)


def _line(words: str, way: str, at: float, *, binds: bool) -> str:
    low = " rq-low" if words.startswith("top") else ""
    side = "bottom" if way == "across" else "left"
    turned = " rq-left-of" if way == "down" and at > 60 else ""
    text = f"{words}, ends the list" if binds else words
    return (
        f'<span class="rq-limit rq-limit-{way}{" rq-binding" if binds else ""}{turned}{low}" style="{side}:{at:.2f}%">'
        f"<b>{escape(text)}</b></span>"
    )
