"""Sign-off of a case or item: one person submits, another decides; later changes are shown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragqa.errors import AccessError, RecordError
from ragqa.infra.journal import digest
from ragqa.records.cases import DECISIONS, CaseEvent, CaseView, Seen, Signer, Step, words_of


def seen_in(case: CaseView, number: int, looked: Mapping[str, Seen]) -> Seen | None:
    """An item, or the whole case (0), as ``looked`` shows it; None where any part of it is not visible.

    The parts of a case are its title, its items (each by the hash of its own parts), its notes and its tasks.
    """
    if number:
        return looked.get(case.item(number).ref)
    if any(one.ref not in looked for one in case.items):
        return None
    seen = {one.number: looked[one.ref] for one in case.items}
    authors = tuple(dict.fromkeys(who for one in seen.values() for who in one.authors))
    return Seen(case.title, _case_parts(case, seen), {"events": str(case.version)}, authors)


def _case_parts(case: CaseView, seen: Mapping[int, Seen]) -> dict[str, str]:
    tasks = {
        f"task {one.number}": digest({"task": made.text, "owner": made.owner, "due": made.due, "done": bool(one.done)})
        for one in case.tasks
        for made in [one.made]
    }
    notes = {f"note {n}": digest({"note": one.text}) for n, one in enumerate(case.notes, 1)}
    items = {f"item {n}": digest(one.parts) for n, one in seen.items()}
    return {"title": digest({"title": case.title})} | items | notes | tasks


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """The changes between the parts of two looks, in words; empty where both are equal."""
    told = [
        (name, "gone" if name not in now else "new" if name not in before else "changed") for name in {**before, **now}
    ]
    return tuple(f"{name} {what}" for name, what in told if before.get(name) != now.get(name))


def changed_since(case: CaseView, number: int, looked: Mapping[str, Seen]) -> tuple[str, ...]:
    """The visible changes of an item or the case since its latest submission or decision."""
    reviews = case.reviews(number)
    if not reviews:
        return ()
    was = reviews[-1][1].parts
    if number:
        seen = looked.get(case.item(number).ref)
        return changes(was, seen.parts) if seen else ()
    hidden = {f"item {one.number}" for one in case.items if one.ref not in looked}
    now = _case_parts(case, {one.number: looked[one.ref] for one in case.items if one.ref in looked})
    return changes({name: one for name, one in was.items() if name not in hidden}, now)


def submitted(case: CaseView, number: int, by: Signer, looked: Mapping[str, Seen], why: str = "") -> CaseEvent:
    """The event that submits an item or the case for another person's decision. Raises RecordError."""
    seen = _shown(case, number, looked)
    if not number and not (case.items or case.notes):
        raise RecordError(f"case {case.case_id} has nothing to approve; add an item or a note, then submit it")
    return _signed(Step.SUBMITTED, by, why, number, seen)


def decided(
    case: CaseView, step: Step, number: int, by: Signer, looked: Mapping[str, Seen], why: str, submission: int = 0
) -> CaseEvent:
    """The event of another person's decision on the latest submission, with hashes of what they saw.

    ``submission`` is the event number that they were shown; 0 means the latest. Raises AccessError where the person is
    an author, RecordError where nothing waits, where an approved item has changed, or where they may not see it.
    """
    what = f"item {number} of case {case.case_id}" if number else f"case {case.case_id}"
    waiting = case.submission(number)
    if not waiting or submission not in (0, waiting):
        msg = f"{what} is {case.state(number)}; " + (
            "look at it again: it was submitted anew after you had opened it"
            if waiting
            else "somebody has to submit it first"
        )
        raise RecordError(msg)
    if is_author(case, number, by):
        raise AccessError(f"{by.name} is an author of {what}; another person has to decide on it")
    seen = _shown(case, number, looked)
    told = changes(dict(case.reviews(number))[waiting].parts, seen.parts)
    if told and step is Step.APPROVED:
        msg = f"{what} has changed since it was submitted ({', '.join(told)}); have it submitted again, or return it"
        raise RecordError(msg)
    return _signed(step, by, why, number, seen)


def _signed(step: Step, by: Signer, why: str, number: int, seen: Seen) -> CaseEvent:
    if why.strip() or step in (Step.RETURNED, Step.OVERRIDDEN):
        why = words_of(why, f"the reason for which it is {step}")
    return CaseEvent(
        step, by, text=why.strip(), item=number, parts=seen.parts, versions=seen.versions, authors=seen.authors
    )


def is_author(case: CaseView, number: int, by: Signer) -> bool:
    """Whether the person is an author of the item or case, and so may not decide on it.

    Authors are those who submitted it, added the item, opened the case, or wrote the underlying record.
    """
    authors = [one.added.by for one in case.items if number in (0, one.number)]
    authors += [case.opened.by] * (not number)
    for event in [event for _, event in case.reviews(number) if event.step is Step.SUBMITTED][-1:]:
        authors += [event.by, *(Signer("", who) for who in event.authors)]
    return any(by.is_same(one) for one in authors)


def _shown(case: CaseView, number: int, looked: Mapping[str, Seen]) -> Seen:
    seen = seen_in(case, number, looked)
    if seen is None:
        hidden = [one.number for one in case.items if one.ref not in looked and number in (0, one.number)]
        msg = f"item {hidden[0]} of case {case.case_id} is gone or not yours to see; have it shared, or remove it"
        raise RecordError(msg)
    return seen


@dataclass(frozen=True, slots=True)
class SignOff:
    """The decision on an item or case, its submission, and the changes since."""

    what: str
    submission: CaseEvent
    decision: CaseEvent
    changed: tuple[str, ...]


def sign_offs(cases: Sequence[CaseView], ref: str, looked: Mapping[str, Seen]) -> Iterator[SignOff]:
    """The decisions on the items with this ``ref`` and on the cases that hold them."""
    for case in cases:
        for number in (n for item in case.items if item.ref == ref for n in (item.number, 0)):
            reviews = [event for _, event in case.reviews(number)]
            if case.state(number) in DECISIONS:
                what = f"Item {number} of case “{case.title}”" if number else f"Case “{case.title}”"
                submission = next(one for one in reversed(reviews) if one.step is Step.SUBMITTED)
                yield SignOff(what, submission, reviews[-1], changed_since(case, number, looked))
