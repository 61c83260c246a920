"""The work that a new version of a corpus causes: the changed rows, who handles them, and what rests on them.

An answer rests on a row where the register finds the row in a passage that the answer cites. It rests on a new row
where the row was added to a passage that the answer cites.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragqa.errors import RecordError
from ragqa.index import Index
from ragqa.infra.journal import JOURNAL
from ragqa.library.changes import cited, renamed, stale
from ragqa.library.gap_rows import GapRun
from ragqa.library.gaps import GapStore
from ragqa.library.register import Obligation, RowChange, compared, register
from ragqa.library.register_store import Handling, Register
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore

_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A changed row, with its handling and what rests on it; ``row`` is the earlier row where it is gone.

    ``answers`` maps record ids to questions, ``gaps`` maps corpora of policies to the row's label in their gap run.
    """

    row: Obligation
    change: RowChange
    handling: Handling
    answers: Mapping[str, str]
    gaps: Mapping[str, str]


def answers_before(corpus: str, corpus_sha256: str, store: RecordStore) -> Iterator[AnswerRecord]:
    """The stored answers from earlier states of this corpus, the newest first; unreadable ones are skipped."""
    after = 0
    while page := store.list(_AT_ONCE, after=after, index=corpus):
        after += len(page)
        then = store.sealed([one.record_id for one in page])
        for one in page:
            found = then.get(one.record_id)
            if found is None or found.corpus_sha256 != corpus_sha256:
                try:
                    yield store.load(one.record_id, is_opened=False)
                except RecordError:
                    continue


def gap_results(folder: Path, policies: Collection[str]) -> dict[str, dict[str, str]]:
    """The labels of the gap runs below this folder, by corpus of policies and row id. Raises as `GapStore`.

    A person's label takes precedence over the verifier's.
    """
    found = {}
    for name in sorted(policies):
        if (folder / name / JOURNAL).is_file():
            store = GapStore(folder / name)
            run = GapRun((), store.corrections)
            found[name] = {row: str(run.label(gap)) for row, (gap, _) in store.known.items()}
    return found


def work_list(
    found: Register,
    changes: Sequence[RowChange],
    answers: Iterable[AnswerRecord],
    index: Index,
    gaps: Mapping[str, Mapping[str, str]],
) -> tuple[WorkItem, ...]:
    """The rows that are new, changed or gone, in the order of ``changes``, with what rests on each.

    ``changes`` are all changes between the versions, ``index`` holds the present corpus, ``gaps`` are `gap_results`;
    results of rows that were read again since do not count. Raises ModelError.
    """
    resting: dict[int, dict[str, str]] = {}
    for answer in answers:
        for place in _touched(answer, changes, index):
            resting.setdefault(place, {})[answer.record_id] = answer.question.title
    return tuple(
        WorkItem(row, one, found.handling(row.obligation_id), resting.get(place, {}), _resting_gaps(one, gaps))
        for place, one in enumerate(changes)
        if one.what != "unchanged" and (row := one.after or one.before)
    )


def _resting_gaps(one: RowChange, gaps: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    before, after = (row.obligation_id if row else "" for row in (one.before, one.after))
    return {name: results[before] for name, results in gaps.items() if before in results and after not in results}


def _touched(answer: AnswerRecord, changes: Sequence[RowChange], index: Index) -> set[int]:
    """The positions in ``changes`` of the rows that this answer rests on."""
    lost = {one.passage_id for one in stale(answer, index)}
    if not lost:
        return set()
    place_of = {one.before.obligation_id: place for place, one in enumerate(changes) if one.before}
    found: set[int] = set()
    for passage in (one for one in cited(answer) if one.passage_id in lost):
        rows = list(register([passage]))
        held = {place_of[row.obligation_id] for row in rows if row.obligation_id in place_of}
        between = [row for row in rows if row.obligation_id not in place_of]  # added after the version compared with
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
