"""A person's work on cases: the gate allows each step, and the audit log has it, before it is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ragqa.records import cases
from ragqa.records.case_store import CaseStore
from ragqa.records.cases import LONGEST_NAME, CaseEvent, CaseView, Look, Seen, Signer, Step, words_of
from ragqa.records.sign_off import SignOff, decided, sign_offs, submitted
from ragqa.server.access.audit import AuditLog
from ragqa.server.access.gate import Gate
from ragqa.server.access.policy import GROUP, ROLE, Act


@dataclass(frozen=True, slots=True)
class CaseDesk:
    """One person's desk: ``store`` has the cases that they may see, and ``look`` shows the items that they may see.

    ``name`` is the typed name, which is used only without sign-in; ``log`` records the steps also then. Every step
    raises AccessError where the person may not take it, RecordError where it is not possible, QuestionError for text
    that is empty or too long.
    """

    gate: Gate
    store: CaseStore
    look: Look
    log: AuditLog
    name: str = ""

    @property
    def signer(self) -> Signer:
        """The person who takes the steps."""
        if self.gate.audit:
            return Signer(self.gate.person.name, self.gate.person.id)
        return Signer(words_of(self.name, "your name", LONGEST_NAME))

    def begin(self, title: str) -> CaseView:
        """Opens a new case."""
        title = words_of(title, "the title of a case", LONGEST_NAME)
        with self._doing(Act.CASE, "", Step.OPENED):
            return self.store.begin(title, self.signer)

    def share(self, case_id: str, who: str, *, shared: bool) -> CaseView:
        """Shares the case with an address, ``group:NAME`` or ``role:NAME``, or ends that; its items are not shared."""
        who = words_of(who, "whom to share with", LONGEST_NAME)
        who = who if who.startswith((GROUP, ROLE)) else who.casefold()
        event = CaseEvent(Step.SHARED if shared else Step.WITHDRAWN, self.signer, text=who)
        return self._add(case_id, event.step, lambda _: event, names=[who])

    def add(self, case_id: str, ref: str) -> CaseView:
        """Adds an item that the person may see."""
        return self._add(case_id, Step.ADDED, lambda case: cases.added(case, ref, self.signer, self.look), ref=ref)

    def remove(self, case_id: str, item: int) -> CaseView:
        """Removes an item; decisions on it stay in the events."""
        event = CaseEvent(Step.REMOVED, self.signer, item=item)
        return self._add(case_id, Step.REMOVED, lambda case: replace(event, ref=case.item(item).ref), item=item)

    def note(self, case_id: str, text: str) -> CaseView:
        """Adds a note."""
        event = CaseEvent(Step.NOTED, self.signer, text=words_of(text, "a note"))
        return self._add(case_id, Step.NOTED, lambda _: event)

    def task(self, case_id: str, text: str, owner: str = "", due: str = "") -> CaseView:
        """Adds a task; ``owner`` is any name, ``due`` a day, YYYY-MM-DD, or empty."""
        owner = words_of(owner, "the owner of a task", LONGEST_NAME) if owner.strip() else ""
        event = CaseEvent(Step.TASKED, self.signer, text=words_of(text, "a task"), owner=owner, due=cases.day_of(due))
        return self._add(case_id, Step.TASKED, lambda _: event)

    def done(self, case_id: str, task: int) -> CaseView:
        """Completes a task."""
        return self._add(case_id, Step.DONE, lambda case: cases.done(case, task, self.signer), item=task)

    def submit(self, case_id: str, item: int = 0, why: str = "") -> CaseView:
        """Submits an item, or the case (0), for another person's decision."""

        def make(case: CaseView) -> CaseEvent:
            return submitted(case, item, self.signer, self.looked(case), why)

        return self._add(case_id, Step.SUBMITTED, make, item=item)

    def decide(self, case_id: str, step: Step, item: int = 0, why: str = "", submission: int = 0) -> CaseView:
        """Approves, returns or overrides a submission; ``submission`` is the event number that the person was shown."""

        def make(case: CaseView) -> CaseEvent:
            return decided(case, step, item, self.signer, self.looked(case), why, submission)

        return self._add(case_id, step, make, Act.REVIEW, item=item)

    def looked(self, *seen: CaseView) -> Mapping[str, Seen]:
        """The items of these cases that the person may see, by reference."""
        return self.look(list(dict.fromkeys(item.ref for case in seen for item in case.items)))

    def signed(self, refs: Sequence[str]) -> tuple[SignOff, ...]:
        """The decisions on the items with these references, and on the visible cases that hold them."""
        held = [one for one in self.store.list() if any(item.ref in refs for item in one.items)]
        looked = self.looked(*held)
        found = {(one.what, one.decision.at): one for ref in refs for one in sign_offs(held, ref, looked)}
        return tuple(found.values())

    def _add(
        self, case_id: str, step: Step, make: Callable[[CaseView], CaseEvent], act: Act = Act.CASE, **about: object
    ) -> CaseView:
        self.store.load(case_id)  # raises for a hidden case before the log says that the step was taken
        with self._doing(act, case_id, step, **about):
            return self.store.append(case_id, make)

    @contextmanager
    def _doing(self, act: Act, case_id: str, step: Step, **about: object) -> Iterator[None]:
        """As `Gate.doing`, but logged also without sign-in."""
        entry: dict[str, Any] = about if self.gate.audit else about | {"name": self.signer.shown}
        logged = replace(self.gate, audit=self.gate.audit or self.log)
        with logged.doing(act, case=case_id, what=str(step), **entry):
            yield
