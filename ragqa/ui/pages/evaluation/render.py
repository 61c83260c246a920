"""HTML of an evaluation by ``templates/evaluation.html``; every text of a benchmark, file or model is escaped there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ragqa.evaluation.report import Row
from ragqa.types import Passage
from ragqa.ui.html.template import Templates

EVALUATION: Final = Templates("evaluation.html")


def hits_html(row: Row, passages: Mapping[str, Passage | None]) -> str:
    """The passages found, best first, with gold marked; each opens its text. Then the missed gold passages."""
    found = {name for hit in row.hits if hit.is_gold for name in (hit.passage_id, hit.document_id)}
    return EVALUATION.hits(row, passages, [name for name in row.gold if name not in found])
