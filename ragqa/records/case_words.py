"""A case as one person sees it: as JSON, and search by words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragqa.english.words import cut
from ragqa.records.cases import CaseEvent, CaseItem, CaseView, Seen
from ragqa.records.sign_off import changed_since

_EXCERPT: Final = 160  # characters of a search result
HIDDEN: Final = "gone, or not yours to see"


@dataclass(frozen=True, slots=True)
class Found:
    """A case that has all words, and the first (place, excerpt) pairs in it that have any of them."""

    case: CaseView
    places: tuple[tuple[str, str], ...]


def search(cases: Sequence[CaseView], words: str, looked: Mapping[str, Seen]) -> Iterator[Found]:
    """The cases with all these words in title, notes, tasks, reasons or visible items."""
    wanted = words.casefold().split()
    for case in cases:
        texts = [("title", case.title), *((f"note {n}", one.text) for n, one in enumerate(case.notes, 1))]
        texts += [(f"task {one.number}", f"{one.made.text} {one.made.owner} {one.made.due}") for one in case.tasks]
        texts += [(f"{event.step} by", f"{event.by.name} {event.text}") for _, event in case.review]
        shown = [(one.number, looked[one.ref]) for one in case.items if one.ref in looked]
        texts += [(f"item {n}", f"{seen.title}\n{seen.text}") for n, seen in shown]
        lower = [(place, text, text.casefold()) for place, text in texts]
        if all(any(word in low for _, _, low in lower) for word in wanted):
            hits = [(place, _excerpt(text, low, wanted)) for place, text, low in lower if any(w in low for w in wanted)]
            yield Found(case, tuple(hits[:5]))


def _excerpt(text: str, low: str, wanted: Sequence[str]) -> str:
    at = max(0, min(place for word in wanted if (place := low.find(word)) >= 0) - _EXCERPT // 4)
    return ("…" if at else "") + cut(" ".join(text[at : at + 2 * _EXCERPT].split()), _EXCERPT)


def told(case: CaseView, looked: Mapping[str, Seen]) -> dict[str, object]:
    """The case as JSON for a person who may see the items in ``looked``; of other items only number and state."""

    def signed(number: int) -> dict[str, object]:
        is_shown = not number or case.item(number).ref in looked
        return {
            "state": case.state(number),
            "changed_since": list(changed_since(case, number, looked)),
            "review": [
                _event(one) | ({"parts": one.parts, "versions": one.versions} if is_shown else {})
                for _, one in case.reviews(number)
            ],
        }

    items = [
        {"number": one.number, "ref": one.ref if one.ref in looked else "", "title": title_of(one, looked)}
        | {"added": _event(one.added)}
        | signed(one.number)
        for one in case.items
    ]
    tasks = [
        _event(one.made)
        | {"number": one.number, "owner": one.made.owner, "due": one.made.due}
        | {"done": _event(one.done) if one.done else None}
        for one in case.tasks
    ]
    about = {
        "case_id": case.case_id,
        "title": case.title,
        "opened": _event(case.opened),
        "shared_with": list(case.names),
    }
    return about | signed(0) | {"items": items, "notes": [_event(one) for one in case.notes], "tasks": tasks}


def title_of(item: CaseItem, looked: Mapping[str, Seen]) -> str:
    """The title of an item for a person who may see the items in ``looked``."""
    return looked[item.ref].title if item.ref in looked else HIDDEN


def _event(event: CaseEvent) -> dict[str, object]:
    by = {"name": event.by.name, "id": event.by.id, "proven": event.by.is_proven}
    return {"step": str(event.step), "by": by, "at": event.at, "text": event.text}
