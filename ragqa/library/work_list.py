"""What a new version of a corpus asks of its readers: the rows that changed, who deals with them, what rests on them.

An answer rests on a row where a passage that it cites, read as the register reads it, holds the row; on a new row where
that passage is the one that the row was added to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragqa.errors import RecordError
from ragqa.library.changes import Holdings, cited, renamed, stale
from ragqa.library.register import Obligation, RowChange, compared, register
from ragqa.library.register_store import Handling, Register
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore

_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A change of ``row``, the earlier one where it is gone; ``answers`` that rest on it are questions by record id."""

    row: Obligation
    change: RowChange
    handling: Handling
    answers: Mapping[str, str]


def answers_before(corpus: str, corpus_sha256: str, store: RecordStore) -> Iterator[AnswerRecord]:
    """The answers kept from this corpus as it was before, the newest first; one that cannot be read is passed over."""
    after = 0
    while page := store.list(_AT_ONCE, after=after, index=corpus):
        after += len(page)
        then = store.corpora([one.record_id for one in page])
        for one in page:
            if then.get(one.record_id) != corpus_sha256:
                try:
                    yield store.load(one.record_id, is_opened=False)
                except RecordError:
                    continue


def work_list(
    found: Register, changes: Sequence[RowChange], answers: Iterable[AnswerRecord], index: Holdings
) -> tuple[WorkItem, ...]:
    """The rows of these changes that are new, changed or gone, in their order, with what rests on each.

    ``changes`` are all that became of the rows, ``index`` holds the corpus as it is now. Raises ModelError.
    """
    resting: dict[int, dict[str, str]] = {}
    for answer in answers:
        for place in _touched(answer, changes, index):
            resting.setdefault(place, {})[answer.record_id] = answer.question.title
    return tuple(
        WorkItem(row, one, found.handling(row.obligation_id), resting.get(place, {}))
        for place, one in enumerate(changes)
        if one.what != "unchanged" and (row := one.after or one.before)
    )


def _touched(answer: AnswerRecord, changes: Sequence[RowChange], index: Holdings) -> set[int]:
    """The places of the changes that this answer rests on."""
    lost = {one.passage_id for one in stale(answer, index)}
    if not lost:
        return set()
    place_of = {one.before.obligation_id: place for place, one in enumerate(changes) if one.before}
    found: set[int] = set()
    for passage in (one for one in cited(answer) if one.passage_id in lost):
        rows = list(register([passage]))
        held = {place_of[row.obligation_id] for row in rows if row.obligation_id in place_of}
        between = [row for row in rows if row.obligation_id not in place_of]  # of a version after the one compared with
        if between:
            ends = {one.after: place for place, one in enumerate(changes) if one.after}
            later = compared(between, list(ends))
            held |= {ends[one.after] for one in later if one.before and one.after}
        now = {after.passage_id for place in held if (after := changes[place].after)}
        position = index.position_of.get(passage.passage_id)
        if position is not None and renamed([passage], [index.passages[position]]):
            now.add(passage.passage_id)
        added = (place for place, one in enumerate(changes) if one.what == "new" and one.after)
        held |= {place for place in added if (after := changes[place].after) and after.passage_id in now}
        found |= {place for place in held if changes[place].what != "unchanged"}
    return found
