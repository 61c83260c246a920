"""A case: the items of one matter (by reference), with notes, tasks and sign-off, computed from its events. Pure.

Events of a case are never changed or deleted (`ragqa.records.case_store` keeps them). A submission or decision stores
hashes of what it was about, so that later changes can be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Final, TypeAlias

from ragqa.errors import QuestionError, RecordError
from ragqa.infra.cleaning import without_invisible

FORMS: Final = "record:ID, document:CORPUS/ID, row:CORPUS/ID of a register, or gaps:CORPUS/POLICIES"
LONGEST: Final = 4_000  # characters of a note, task or reason; titles and names have `LONGEST_NAME`
LONGEST_NAME: Final = 200


class Step(StrEnum):
    """The kind of an event."""

    OPENED = "opened"
    SHARED = "shared"
    WITHDRAWN = "no longer shared"
    ADDED = "added"
    REMOVED = "removed"
    NOTED = "noted"
    TASKED = "task"
    DONE = "done"
    SUBMITTED = "submitted"
    APPROVED = "approved"
    RETURNED = "returned"
    OVERRIDDEN = "overridden"


DECISIONS: Final = (Step.APPROVED, Step.RETURNED, Step.OVERRIDDEN)
DRAFT: Final = "draft"


@dataclass(frozen=True, slots=True)
class Signer:
    """The person behind an event. ``id`` is that of the sign-in; without sign-in it is "" and the name was typed."""

    name: str
    id: str = ""

    @property
    def is_proven(self) -> bool:
        """Whether the person signed in."""
        return bool(self.id)

    @property
    def shown(self) -> str:
        """The name, marked where it is not proven by a sign-in."""
        return self.name if self.is_proven else f"{self.name} (name not proven)"

    def is_same(self, other: Signer) -> bool:
        """Whether both may be one person: by id, or by name (letter case is ignored)."""
        return (self.id == other.id != "") or self.name.casefold() == other.name.casefold()


@dataclass(frozen=True, slots=True)
class Seen:
    """The object that an item refers to, as one person sees it at one moment.

    ``parts`` are hashes by name; the object is unchanged where all are equal. ``versions`` name the versions of ragqa
    and corpus. ``authors`` are ids; ``address`` is that of the page that shows the object, "" where there is none.
    """

    title: str
    parts: Mapping[str, str]
    versions: Mapping[str, str] = field(default_factory=dict)
    authors: tuple[str, ...] = ()
    text: str = ""
    address: str = ""


Look: TypeAlias = Callable[[Sequence[str]], Mapping[str, Seen]]  # from references to the objects that may be seen


@dataclass(frozen=True, slots=True)
class CaseEvent:
    """One step. ``item`` is the number of an item or task, 0 for the case; ``at`` is ISO 8601, UTC."""

    step: Step
    by: Signer
    at: str = ""  # set by the store
    text: str = ""  # title, name, note, task or reason
    item: int = 0
    ref: str = ""
    owner: str = ""
    due: str = ""  # a day, YYYY-MM-DD
    parts: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseItem:
    """An item of a case; `FORMS` lists the forms of ``ref``."""

    number: int
    ref: str
    added: CaseEvent


@dataclass(frozen=True, slots=True)
class CaseTask:
    """A task; ``done`` is None while it is open."""

    number: int
    made: CaseEvent
    done: CaseEvent | None = None


@dataclass(frozen=True, slots=True)
class CaseView:
    """The state of a case after its events. ``names`` are those it is shared with; ``version`` counts its events."""

    case_id: str
    version: int
    title: str
    opened: CaseEvent
    last_at: str
    names: tuple[str, ...] = ()
    items: tuple[CaseItem, ...] = ()
    notes: tuple[CaseEvent, ...] = ()
    tasks: tuple[CaseTask, ...] = ()
    review: tuple[tuple[int, CaseEvent], ...] = ()  # submissions and decisions with the numbers of their events

    def item(self, number: int) -> CaseItem:
        """The item with this number. Raises RecordError."""
        for one in self.items:
            if one.number == number:
                return one
        raise RecordError(
            f"case {self.case_id} has no item {number}; it has {', '.join(str(i.number) for i in self.items) or 'none'}"
        )

    def reviews(self, item: int = 0) -> tuple[tuple[int, CaseEvent], ...]:
        """Submissions and decisions about an item (0: the case), oldest first, each with the number of its event."""
        return tuple(one for one in self.review if one[1].item == item)

    def state(self, item: int = 0) -> str:
        """The state of its sign-off: draft, submitted, approved, returned or overridden."""
        reviews = self.reviews(item)
        return str(reviews[-1][1].step) if reviews else DRAFT

    def submission(self, item: int = 0) -> int:
        """The event number of the submission that waits for a decision; 0 where none waits."""
        reviews = self.reviews(item)
        return reviews[-1][0] if reviews and reviews[-1][1].step is Step.SUBMITTED else 0


def case_of(case_id: str, events: Sequence[CaseEvent]) -> CaseView:
    """The case after these events; the first event, which must exist, opened it."""
    names: dict[str, None] = {}
    items: dict[int, CaseItem] = {}
    tasks: dict[int, CaseTask] = {}
    notes, review, n_items = [], [], 0
    for n, event in enumerate(events, start=1):
        match event.step:
            case Step.SHARED:
                names[event.text] = None
            case Step.WITHDRAWN:
                names.pop(event.text, None)
            case Step.ADDED:
                n_items += 1
                items[n_items] = CaseItem(n_items, event.ref, event)
            case Step.REMOVED:
                items.pop(event.item, None)
            case Step.NOTED:
                notes.append(event)
            case Step.TASKED:
                tasks[len(tasks) + 1] = CaseTask(len(tasks) + 1, event)
            case Step.DONE:
                tasks[event.item] = replace(tasks[event.item], done=event)
            case Step.SUBMITTED | Step.APPROVED | Step.RETURNED | Step.OVERRIDDEN:
                review.append((n, event))
    first = events[0]
    found = (tuple(names), tuple(items.values()), tuple(notes), tuple(tasks.values()), tuple(review))
    return CaseView(case_id, len(events), first.text, first, events[-1].at, *found)


# What is added ------------------------------------------------------------------------------------------------------


def words_of(text: str, what: str, most: int = LONGEST) -> str:
    """Cleaned text that a person typed. Raises QuestionError where it is empty or too long."""
    kept = without_invisible(text).strip()
    kept = " ".join(kept.split()) if most == LONGEST_NAME else kept
    if not kept:
        raise QuestionError(f"{what} is empty: expected 1 to {most:,} characters; type it")
    if len(kept) > most:
        raise QuestionError(f"{what}: expected 1 to {most:,} characters, found {len(kept):,}; correct it")
    return kept


def day_of(text: str) -> str:
    """A day, or "" for none. Raises QuestionError."""
    try:
        return date.fromisoformat(text.strip()).isoformat() if text.strip() else ""
    except ValueError as error:
        raise QuestionError(f"due: expected a day such as 2026-12-31, found {text[:20]!r}; correct it") from error


def added(case: CaseView, ref: str, by: Signer, look: Look) -> CaseEvent:
    """The event that adds the item ``ref``. Raises RecordError where it was added before or cannot be seen."""
    ref = ref if ":" in ref else f"record:{ref}"
    if any(one.ref == ref for one in case.items):
        raise RecordError(f"{ref[:80]} is in case {case.case_id} already; submit, note or remove it there")
    if not look([ref]):
        raise RecordError(f"there is no {ref[:80]!r} that you may see; expected {FORMS}")
    return CaseEvent(Step.ADDED, by, ref=ref)


def done(case: CaseView, number: int, by: Signer) -> CaseEvent:
    """The event that completes a task. Raises RecordError where no open task has this number."""
    if not any(one.number == number and not one.done for one in case.tasks):
        still = ", ".join(str(one.number) for one in case.tasks if not one.done) or "none"
        raise RecordError(f"case {case.case_id} has no open task {number}; open are: {still}")
    return CaseEvent(Step.DONE, by, item=number)
