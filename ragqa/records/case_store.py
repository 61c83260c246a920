"""Stores cases beside the records: one event per row, each stamped with a hash over all events before it.

An event is on disk when `CaseStore.append` returns. When two people add to a case at once, the second event follows the
first and is made again from the case that includes the first. No event is ever replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

from ragqa.errors import RecordError
from ragqa.records.cases import CaseEvent, CaseView, Signer, Step, case_of
from ragqa.records.database import Database, Execute
from ragqa.records.record import new_record_id

_ADD: Final = "INSERT INTO case_events VALUES (?,?,?,?) ON CONFLICT DO NOTHING"
_READ: Final = "SELECT case_id, n, stamp, body FROM case_events"
_FIRST: Final = ""  # the stamp before the first event

_Row = tuple[str, int, str, str]


class CaseStore(Database):
    """The cases of one place; with a ``reader`` only those that they opened or that are shared with them."""

    def begin(self, title: str, by: Signer) -> CaseView:
        """Opens a new case."""
        case_id = new_record_id()
        event = replace(CaseEvent(Step.OPENED, by, text=title), at=_now())
        self._add(case_id, 1, _FIRST, event)
        return case_of(case_id, [event])

    def load(self, case_id: str) -> CaseView:
        """The case with this id. Raises RecordError where this reader may see none, or where it was altered."""
        return self._read(case_id)[0]

    def list(self, problems: set[str] | None = None) -> tuple[CaseView, ...]:
        """All cases that the reader may see, the latest changed first, without those that were altered.

        What was altered is added to ``problems``, if the reader may see all cases.
        """
        cases = []
        for name, rows in groupby(self._rows(f"{_READ} ORDER BY case_id, n", ()), key=lambda row: str(row[0])):
            try:
                cases.append(_case(name, rows)[0])
            except RecordError as error:
                if problems is not None and (self._reader is None or self._reader.everything):
                    problems.add(str(error))
        return tuple(sorted(filter(self._is_shown, cases), key=lambda one: (one.last_at, one.case_id), reverse=True))

    def append(self, case_id: str, make: Callable[[CaseView], CaseEvent]) -> CaseView:
        """Adds the event that ``make`` makes from the present case; ``make`` is called again if the case has changed.

        Raises RecordError as `load`, and what ``make`` raises.
        """
        while True:
            case, stamp, events = self._read(case_id)
            event = replace(make(case), at=_now())
            if self._add(case_id, case.version + 1, stamp, event):
                return case_of(case_id, [*events, event])

    def copy_to(self, other: CaseStore) -> tuple[int, tuple[str, ...]]:
        """Copies all missing events to ``other``; returns their number, and the ids of cases that differ there."""
        there = {(row[0], row[1]): row[2] for row in other._rows(_READ, ())}
        rows = self._rows(f"{_READ} ORDER BY case_id, n", ())
        different = {row[0] for row in rows if there.get((row[0], row[1]), row[2]) != row[2]}
        new = [row for row in rows if row[0] not in different and (row[0], row[1]) not in there]

        def work(execute: Execute) -> None:
            for row in new:
                execute(_ADD, row)

        other._patiently(work)
        return len(new), tuple(sorted(different))

    def _read(self, case_id: str) -> tuple[CaseView, str, Sequence[CaseEvent]]:
        rows = self._rows(f"{_READ} WHERE case_id = ? ORDER BY n", (case_id,))
        if rows:
            case, events = _case(case_id, rows)
            if self._is_shown(case):
                return case, rows[-1][2], events
        if self._reader:
            self._reader.refused(case_id)
        raise RecordError(f"no case {case_id[:60]!r} in {self._engine.name}; `ragqa case list` lists the cases")

    def _is_shown(self, case: CaseView) -> bool:
        if self._reader is None or self._reader.everything:
            return True
        names = self._reader.names  # empty for a person without a role
        return bool(names) and (case.opened.by.id == self._reader.author or bool(names.intersection(case.names)))

    def _add(self, case_id: str, n: int, before: str, event: CaseEvent) -> bool:
        """Adds event ``n``; whether it has that number now. True also where an earlier try was not acknowledged."""
        body = json.dumps(asdict(event), ensure_ascii=False, sort_keys=True)
        row = (case_id, n, _stamp(before, body), body)

        def work(execute: Execute) -> bool:
            execute(_ADD, row)
            found = execute("SELECT stamp FROM case_events WHERE case_id = ? AND n = ?", row[:2]).fetchone()
            return bool(found[0] == row[2])

        return self._patiently(work)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _stamp(before: str, body: str) -> str:
    return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()


def _case(case_id: str, rows: Iterable[_Row]) -> tuple[CaseView, Sequence[CaseEvent]]:
    """The case of these rows. Raises RecordError where a row was altered."""
    before = _FIRST
    events: list[CaseEvent] = []
    for n, (_, number, stamp, body) in enumerate(rows, start=1):
        if number != n or _stamp(before, body) != stamp:
            msg = f"case {case_id} was altered: its event {n} is not as it was written; restore it from a backup"
            raise RecordError(msg)
        told: dict[str, Any] = json.loads(body)
        own = {"step": Step(told["step"]), "by": Signer(**told["by"]), "authors": tuple(told["authors"])}
        events.append(CaseEvent(**told | own))
        before = stamp
    return case_of(case_id, events), events
