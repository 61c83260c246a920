"""A record and the earlier records of its conversation, read from a store one by one."""

from __future__ import annotations

from collections.abc import Iterator

from ragqa.errors import RecordError
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore


def records_back(record_id: str, records: RecordStore) -> Iterator[AnswerRecord]:
    """The record with this id, the record that it follows, and so on, until an earlier one is gone.

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
