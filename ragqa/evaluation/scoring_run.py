"""Scoring a file of answers item by item: what is skipped, what is known already, what is scored now.

A `Store` keeps the items; in memory here, on disk in `ragqa.evaluation.scoring_folder`. An item is known by its place
in the file and the hash of its content, so two items of one QuestionID stay two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol

from ragqa.config import SplitterName
from ragqa.errors import RecordError, ScoringError
from ragqa.evaluation.answer_file import AnswerItem, score_item
from ragqa.evaluation.reference_files import Figures, figures_of
from ragqa.protocols import Scorer
from ragqa.types import ScoringMode


class Status(StrEnum):
    """What became of an item."""

    SCORED = "scored"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One item's fate. ``figures`` are there for a scored one only; ``note`` says why another has none."""

    number: int
    question_id: str
    question: str
    status: Status
    figures: Figures | None = None
    note: str = ""


class Store(Protocol):
    """Keeps what became of the items that were tried. An entry is a JSON object, see `_entry`."""

    def known(self) -> Mapping[int, Mapping[str, Any]]:
        """The entries kept so far by item number, without their breakdowns."""
        ...

    def entry(self, number: int) -> Mapping[str, Any]:
        """The whole entry of an item: ``entry["scored"]`` holds its breakdowns in both modes."""
        ...

    def keep(self, entry: Mapping[str, Any]) -> None:
        """Keeps this entry, for good when this returns."""
        ...


class MemoryStore(Store):
    """Keeps entries as long as the process lives."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def known(self) -> Mapping[int, Mapping[str, Any]]:
        return {number: self.entry(number) for number in self._texts}

    def entry(self, number: int) -> Mapping[str, Any]:
        entry: dict[str, Any] = json.loads(self._texts[number])
        return entry

    def keep(self, entry: Mapping[str, Any]) -> None:
        self._texts[entry["number"]] = json.dumps(entry, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """The items of a file, each in one of three: nothing to score, scored before, to be scored now."""

    skipped: tuple[Outcome, ...]
    known: tuple[Outcome, ...]
    pending: tuple[AnswerItem, ...]
    n_failed_before: int  # of the pending ones


def make_plan(items: Sequence[AnswerItem], store: Store) -> Plan:
    """Sorts the items; what failed before is tried again. Raises RecordError where the store holds other items."""
    kept = store.known()
    by_number = {item.number: item for item in items}
    for number, entry in kept.items():
        if number not in by_number or entry["item_sha256"] != by_number[number].sha256:
            msg = (
                f"item {number} was scored with another text than the file has now; choose another folder or --restart"
            )
            raise RecordError(msg)
    known = [_outcome(by_number[number], entry) for number, entry in sorted(kept.items())]
    scored = {outcome.number for outcome in known if outcome.status is Status.SCORED}
    return Plan(
        skipped=tuple(
            Outcome(item.number, item.question_id, item.question, Status.SKIPPED, note=item.skipped)
            for item in items
            if item.skipped
        ),
        known=tuple(outcome for outcome in known if outcome.number in scored),
        pending=tuple(item for item in items if not item.skipped and item.number not in scored),
        n_failed_before=len(known) - len(scored),
    )


def score_pending(
    items: Sequence[AnswerItem], scorer: Scorer, store: Store, mode: ScoringMode, splitter: SplitterName
) -> Iterator[Outcome]:
    """The outcome of each item, in order, once the store has it. An item that cannot be scored fails alone."""
    for item in items:
        try:
            entry = _entry(item, scorer, mode, splitter)
        except ScoringError as error:
            entry = {**_head(item), "status": Status.FAILED, "note": str(error)}
        store.keep(entry)
        yield _outcome(item, entry)


def _head(item: AnswerItem) -> dict[str, Any]:
    return {"number": item.number, "item_sha256": item.sha256, "QuestionID": item.question_id}


def _entry(item: AnswerItem, scorer: Scorer, mode: ScoringMode, splitter: SplitterName) -> dict[str, Any]:
    scored = score_item(item, scorer, splitter)
    figures = figures_of(scored.of(mode))
    entry = {**_head(item), "status": Status.SCORED, "note": "", "figures": asdict(figures), "scored": asdict(scored)}
    try:
        json.dumps(entry, allow_nan=False)
    except ValueError as error:
        msg = f"RePASs gave something that is not a number ({error}); check the model's files, or reinstall ragqa"
        raise ScoringError(msg) from error
    return entry


def _outcome(item: AnswerItem, entry: Mapping[str, Any]) -> Outcome:
    figures = Figures(**entry["figures"]) if entry["status"] == Status.SCORED else None
    status = Status(entry["status"])
    return Outcome(item.number, item.question_id, item.question, status, figures, entry["note"])
