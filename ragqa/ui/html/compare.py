"""A `SideBySide`, and points of a `Sweep`, -> HTML: what stands side by side. Pure, and every value escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ragqa.evaluation.sweep import Point
from ragqa.records.comparison import PassageRow, Said, SentenceRow, SideBySide, ValueRow
from ragqa.ui.html.render import changed_html, mark_of
from ragqa.ui.html.template import Templates

_TEMPLATES: Final = Templates("compare.html")
SLOPES: Final = 20  # ranks that are drawn
_MATCHES = {"same": "plain", "reworded": "plain", "only A": "mixed", "only B": "mixed"}


def summary_html(comparison: SideBySide) -> str:
    """What differs in settings, and what came of it."""
    settings = changed_html("What differs, A → B", comparison.differs) if comparison.differs else ""
    return _TEMPLATES.summary(settings, comparison.words)


def values_html(rows: Sequence[ValueRow], label: str) -> str:
    """Numbers of A and B and the change, with a word for better or worse."""
    return _TEMPLATES.values(rows, label)


def sentences_html(rows: Sequence[SentenceRow]) -> str:
    """A's sentences beside those of B that say the same."""
    return _TEMPLATES.sentences(rows, _MATCHES, _mark)


def _mark(said: Said) -> tuple[str, str]:
    return mark_of(said.verdict, said) if said.verdict else ("", "")


def passages_html(rows: Sequence[PassageRow]) -> str:
    """Ranks in A and in B, how far each moved, and who keeps it."""
    shown = [row for row in rows if min(row.rank_a or SLOPES + 1, row.rank_b or SLOPES + 1) <= SLOPES]
    lowest = max((rank for row in shown for rank in (row.rank_a, row.rank_b) if rank and rank <= SLOPES), default=0)
    return (_TEMPLATES.slopes(shown, lowest) if shown else "") + _TEMPLATES.passages(rows)


def points_html(rows: Sequence[tuple[str, Point]]) -> str:
    """Points as a table, a row each; a dash where there is no gold."""
    return _TEMPLATES.points(rows)
