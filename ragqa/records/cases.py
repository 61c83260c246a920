"""A case: what belongs to one matter, by reference, with notes, tasks and sign-off. Pure: events in, what they say out.

Nothing is ever changed or taken back in the events of a case (`ragqa.records.case_store` keeps them). What a submission
or a decision was about is in its event as hashes, so that a later look can say what has changed since.
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
LONGEST: Final = 4_000  # characters of a note, a task, a reason; a title, a name has `LONGEST_NAME`
LONGEST_NAME: Final = 200


class Step(StrEnum):
    """What an event is."""

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
    """Who does something. ``id`` is who signed in, "" where nobody does: then the name is what was typed."""

    name: str
    id: str = ""

    @property
    def is_proven(self) -> bool:
        """Whether they signed in."""
        return bool(self.id)

    @property
    def shown(self) -> str:
        """The name, with what it is worth."""
        return self.name if self.is_proven else f"{self.name} (name not proven)"

    def is_same(self, other: Signer) -> bool:
        """Whether both may be one person: by id, or by the name whatever its case."""
        return (self.id == other.id != "") or self.name.casefold() == other.name.casefold()


@dataclass(frozen=True, slots=True)
class Seen:
    """What an item refers to, as one person sees it at one moment.

    ``parts`` are hashes by name: two looks show the same where all are equal. ``versions`` say what it is a version of.
    ``authors`` are ids of who made it, ``address`` is of the page that shows it, "" where none does.
    """

    title: str
    parts: Mapping[str, str]
    versions: Mapping[str, str] = field(default_factory=dict)
    authors: tuple[str, ...] = ()
    text: str = ""
    address: str = ""


Look: TypeAlias = Callable[[Sequence[str]], Mapping[str, Seen]]  # by reference, of what is there and may be seen


@dataclass(frozen=True, slots=True)
class CaseEvent:
    """One step. ``item`` is the number of an item or a task, 0 the case; ``at`` is ISO 8601, UTC."""

    step: Step
    by: Signer
    at: str = ""  # the store says when
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
    """Something in a case, by its reference: `FORMS`."""

    number: int
    ref: str
    added: CaseEvent


@dataclass(frozen=True, slots=True)
class CaseTask:
    """What somebody is to do; ``done`` is None while it is open."""

    number: int
    made: CaseEvent
    done: CaseEvent | None = None


@dataclass(frozen=True, slots=True)
class CaseView:
    """What the events of a case say. ``names`` are those whom it is shared with; ``version`` counts its events."""

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
        """Submissions and decisions about an item, 0 the case, oldest first, each with the number of its event."""
        return tuple(one for one in self.review if one[1].item == item)

    def state(self, item: int = 0) -> str:
        """How far its sign-off is: draft, submitted, approved, returned or overridden."""
        reviews = self.reviews(item)
        return str(reviews[-1][1].step) if reviews else DRAFT

    def submission(self, item: int = 0) -> int:
        """The number of the latest submission that waits for a decision, 0 where none does."""
        reviews = self.reviews(item)
        return reviews[-1][0] if reviews and reviews[-1][1].step is Step.SUBMITTED else 0


def case_of(case_id: str, events: Sequence[CaseEvent]) -> CaseView:
    """The case that these events, at least one, make, the first of which opened it."""
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
    """What somebody typed, as it is kept. Raises QuestionError where it is empty or too long."""
    kept = without_invisible(text).strip()
    kept = " ".join(kept.split()) if most == LONGEST_NAME else kept
    if not 0 < len(kept) <= most:
        raise QuestionError(f"{what}: expected 1 to {most:,} characters, found {len(kept):,}; correct it")
    return kept


def day_of(text: str) -> str:
    """A day, or "" for none. Raises QuestionError."""
    try:
        return date.fromisoformat(text.strip()).isoformat() if text.strip() else ""
    except ValueError as error:
        raise QuestionError(f"due: expected a day such as 2026-12-31, found {text[:20]!r}; correct it") from error


def added(case: CaseView, ref: str, by: Signer, look: Look) -> CaseEvent:
    """The event that adds what ``ref`` names. Raises RecordError: it is in there, or is not there to be seen."""
    ref = ref if ":" in ref else f"record:{ref}"
    if any(one.ref == ref for one in case.items):
        raise RecordError(f"{ref[:80]} is in case {case.case_id} already; submit, note or remove it there")
    if not look([ref]):
        raise RecordError(f"there is no {ref[:80]!r} that you may see; expected {FORMS}")
    return CaseEvent(Step.ADDED, by, ref=ref)


def done(case: CaseView, number: int, by: Signer) -> CaseEvent:
    """The event that ends a task. Raises RecordError where there is none, or it has ended."""
    if not any(one.number == number and not one.done for one in case.tasks):
        still = ", ".join(str(one.number) for one in case.tasks if not one.done) or "none"
        raise RecordError(f"case {case.case_id} has no open task {number}; open are: {still}")
    return CaseEvent(Step.DONE, by, item=number)
