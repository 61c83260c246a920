"""A question of a data set with one of its passages -> HTML. Pure, every value escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ragqa.types import Passage
from ragqa.ui.html.template import Templates

_TEMPLATES: Final = Templates("dataset.html")


def pair_html(row: Mapping[str, Any], passage_id: str, passage: Passage | None, told: Sequence[str]) -> str:
    """The question, what kind it is, the passage; ``told`` are the labels that two gave, without who."""
    kinds = " · ".join(str(row[key]) for key in ("kind", "persona", "form") if row.get(key))
    return _TEMPLATES.pair(row, passage_id, passage, kinds, told)
