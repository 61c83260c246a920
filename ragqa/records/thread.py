"""A record and those that it follows, read from a store one by one."""

from __future__ import annotations

from collections.abc import Iterator

from ragqa.errors import RecordError
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore


def records_back(record_id: str, records: RecordStore) -> Iterator[AnswerRecord]:
    """The record of this id, the one that it follows, and so on; it ends where an earlier one is gone.

    Raises RecordError where there is no record of this id.
    """
    seen: set[str] = set()
    while record_id and record_id not in seen:
        try:
            record = records.load(record_id)
        except RecordError:
            if not seen:
                raise
            return
        seen.add(record_id)
        yield record
        record_id = record.question.follow_up.record_id if record.question.follow_up else ""
