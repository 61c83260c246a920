"""The relevance of the best passages by rank, with the limits of the filter, as HTML. Pure, like `render`.

Plain HTML, because a chart library took half of the time that a slider's redraw may take. Choosing a point shows its
passage, as choosing its row does; keyboard users choose the rows.
"""

from __future__ import annotations

from typing import Final

from ragqa.records.limits import limits
from ragqa.types import Drop, Limit, Selection
from ragqa.ui.html.template import Templates

_TEMPLATES: Final = Templates("passages.html")
_KINDS = dict.fromkeys(Drop, ("below", "×")) | {  # decision -> class and sign; the sign works without colour
    None: ("kept", "●"),
    Drop.AFTER_MAX_DROP: ("fallen", "▼"),
    Drop.BEYOND_TOP_K: ("beyond", "■"),
    Drop.AFTER_CUT: ("fallen", "▼"),
}


def curve_html(selection: Selection, limit: int) -> str:
    """Relevance by rank of the best ``limit`` candidates, with the filter's limits and their effects in words.

    A fan-out shows no limits, because it keeps the union of what the filter of each question keeps.
    """
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda one: one.rank)[:limit]
    if not candidates:
        return ""
    count, found = len(candidates), limits(selection)
    dots = [(one, *_KINDS[one.drop], f"{_x(one.rank, count):.2f}", f"{100 * one.relevance:.2f}") for one in candidates]
    ticks = [(rank, f"{_x(rank, count):.2f}") for rank in (1, *range(5, count + 1, 5))]
    kinds = dict.fromkeys((*_KINDS[one.drop], str(one.drop) if one.drop else "kept") for one in candidates)
    lines = [line for one in selection.limits if (line := _line(one, count))]
    return _TEMPLATES.curve(dots, ticks, kinds, lines, found.summary if found else "")


def _x(rank: int | float, count: int) -> float:
    return 100 * (rank - 0.5) / count


def _line(limit: Limit, count: int) -> tuple[str, str, str, str] | None:
    """(classes, side, position in percent, words) of a limit's line; None where it is not shown.

    A limit of relevance is a horizontal line; any other limit is a vertical line after the last rank that it keeps.
    """
    if not limit.label or (limit.height is None and limit.keeps >= count):
        return None
    way, side, at = "across", "bottom", 100 * (limit.height or 0.0)
    if limit.height is None:
        way, side, at = "down", "left", _x(limit.keeps + 0.5, count)
    low = " rq-low" if limit.setting == "top_k" else ""
    turned = " rq-left-of" if way == "down" and at > 60 else ""
    kind = f"rq-limit-{way}{' rq-binding' if limit.ends else ''}{turned}{low}"
    return kind, side, f"{at:.2f}", f"{limit.label}, ends the list" if limit.ends else limit.label
