"""A `SideBySide`, or points of a `Sweep`, -> HTML tables. Pure, every value escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ragqa.records.comparison import PassageRow, Said, SentenceRow, SideBySide
from ragqa.records.differences import CORPUS
from ragqa.ui.html.render import RENDER, mark_of
from ragqa.ui.html.template import Templates

COMPARE: Final = Templates("compare.html")
SLOPES: Final = 20  # ranks whose passages are drawn
_MATCHES = {"same": "plain", "reworded": "plain", "only A": "mixed", "only B": "mixed"}


def summary_html(comparison: SideBySide, titles: Mapping[str, str]) -> str:
    """The differences in settings, and their effects in words; ``titles`` are those of the corpora, by name."""
    named = [
        replace(one, a=titles[one.a], b=titles[one.b]) if one.part == CORPUS else one for one in comparison.differs
    ]
    settings = RENDER.changed("What differs, A → B", named) if named else ""
    return COMPARE.summary(settings, comparison.words)


def sentences_html(rows: Sequence[SentenceRow]) -> str:
    """The sentences of A beside the matching ones of B."""
    return COMPARE.sentences(rows, _MATCHES, _mark)


def _mark(said: Said) -> tuple[str, str]:
    return mark_of(said.verdict, said) if said.verdict else ("", "")


def passages_html(rows: Sequence[PassageRow]) -> str:
    """Ranks in A and B, how far each passage moved, and which side keeps it."""
    shown = [row for row in rows if min(row.rank_a or SLOPES + 1, row.rank_b or SLOPES + 1) <= SLOPES]
    a, b = _rows([row.rank_a for row in shown]), _rows([row.rank_b for row in shown])
    slopes = COMPARE.slopes(list(zip(shown, a, b, strict=True)), max(filter(None, (*a, *b)))) if shown else ""
    return slopes + COMPARE.passages(rows)


def _rows(ranks: Sequence[int | None]) -> list[float | None]:
    """The line of the picture for each rank; ranks below `SLOPES` follow each other after a gap."""
    below = sorted(rank for rank in ranks if rank and rank > SLOPES)
    return [SLOPES + 1.5 + below.index(rank) if rank in below else rank for rank in ranks]
