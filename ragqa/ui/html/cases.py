"""Cases -> HTML: the list, and one case as a person may see it. Pure, every value escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ragqa.records.case_words import HIDDEN, Found, title_of
from ragqa.records.cases import DRAFT, CaseView, Seen
from ragqa.records.sign_off import changed_since
from ragqa.ui.html.template import Templates

_TEMPLATES: Final = Templates("cases.html")
WITH_THE_CASE: Final = "with the case"
KINDS: Final = {"submitted": "mixed", "approved": "good", "returned": "bad", "overridden": "mixed"}


def cases_html(found: Sequence[Found], looked: Mapping[str, Seen]) -> str:
    """The cases as a table with state, open tasks and the places of the searched words.

    A case is marked as changed where it or one of its items has changed since a submission or decision.
    """
    rows = []
    for one in found:
        numbers = (0, *(item.number for item in one.case.items))
        changed = [number for number in numbers if changed_since(one.case, number, looked)]
        rows.append((one.case, one.case.state(), bool(changed), one.places))
    return _TEMPLATES.cases(rows, KINDS)


def case_html(case: CaseView, looked: Mapping[str, Seen]) -> str:
    """State, items, tasks, notes and sign-off of a case; items that are not in ``looked`` are hidden."""
    rows = [(one, looked.get(one.ref), title_of(one, looked), *_state(case, one.number, looked)) for one in case.items]
    return _TEMPLATES.case(case, *_state(case, 0, looked), rows, KINDS, HIDDEN)


def _state(case: CaseView, number: int, looked: Mapping[str, Seen]) -> tuple[str, tuple[str, ...]]:
    reviews = case.reviews()  # of the whole case, which was submitted or decided on with the items that it then had
    is_part = number and case.state(number) == DRAFT and reviews and f"item {number}" in reviews[-1][1].parts
    return WITH_THE_CASE if is_part else case.state(number), changed_since(case, number, looked)
