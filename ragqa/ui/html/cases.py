"""Cases -> HTML: the list, and one of them as somebody sees it. Pure, every value escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ragqa.records.case_words import HIDDEN, Found, title_of
from ragqa.records.cases import CaseView, Seen
from ragqa.records.sign_off import changed_since
from ragqa.ui.html.template import Templates

_TEMPLATES: Final = Templates("cases.html")
KINDS: Final = {"submitted": "mixed", "approved": "good", "returned": "bad", "overridden": "mixed"}


def cases_html(found: Sequence[Found]) -> str:
    """The cases as a table, each with its state, its open tasks and where the words that were looked for stand."""
    return _TEMPLATES.cases([(one.case, one.case.state(), one.places) for one in found], KINDS)


def case_html(case: CaseView, looked: Mapping[str, Seen]) -> str:
    """State, items, tasks, notes and sign-off of a case, as far as its items are in ``looked``."""
    rows = [(one, looked.get(one.ref), title_of(one, looked), *_state(case, one.number, looked)) for one in case.items]
    return _TEMPLATES.case(case, *_state(case, 0, looked), rows, KINDS, HIDDEN)


def _state(case: CaseView, number: int, looked: Mapping[str, Seen]) -> tuple[str, tuple[str, ...]]:
    return case.state(number), changed_since(case, number, looked)
