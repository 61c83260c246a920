"""Compares the indents of texts: whether they are equal, and whether a text is outside the unit before it."""

from __future__ import annotations

from typing import Final

from ragqa.corpus.documents.labels import GUIDANCE
from ragqa.corpus.documents.model import OUTERMOST, Block, Unit

TOLERANCE: Final = 6.0  # points within which two indents are equal


def announces(unit: Unit) -> bool:
    """Whether the unit's last text announces a list."""
    last = unit.parts[-1] if unit.parts else None
    return isinstance(last, Block) and last.text.endswith((":", "—", "–"))


def further(top: Unit, indent: float, *, opens: bool, announced: bool) -> float:
    """What the place of a new list below the last unit weighs more or less."""
    if opens and announced and aligned(top.indent, indent) <= 0:
        return 2.5  # "(h) the following: (i) …", "(iii) either— (aa) …"
    if top.indent and indent and indent < top.indent - TOLERANCE:
        return -1.5
    further = opens and top.style and top.indent and indent > top.indent and aligned(top.indent, indent) < 0
    return 1.5 if further else 0.0  # "(i)" further right than "(h)" begins a new list


def is_after_box(unit: Unit, block: Block) -> bool:
    """Whether a text is outside a box such as a note, by the levels of a web page."""
    return unit.style == GUIDANCE and not unit.is_heading and 0 < block.indent < unit.indent <= TOLERANCE


def aligned(before: float, after: float) -> float:
    """1 if two indents are equal, -1 if not, 0 if one is unknown."""
    if not before or not after or before == after == OUTERMOST:
        return 0.0
    return 1.0 if abs(before - after) <= (TOLERANCE if max(before, after) > 10 else 0.1) else -1.0


def is_outside(block: Block, unit: Unit) -> bool:
    """Whether a text is further left than the unit's."""
    return bool(block.indent) and block.indent < unit.indent - 0.5 * (TOLERANCE if unit.indent > 10 else 1)
