"""A record and the earlier records of its conversation, read from a store one by one; the questions asked before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ragqa.errors import RecordError
from ragqa.generation.given import GivenText
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore

MOST_BEFORE: Final = 20  # records whose questions are offered again


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


def asked_before(index: str, records: RecordStore) -> list[str]:
    """The questions last asked of this corpus, each once, oldest first; none where the records cannot be read."""
    with suppress(RecordError):
        found = records.list(MOST_BEFORE, index=index)
        return [*dict.fromkeys(one.question for one in found[::-1] if one.generator != GivenText.name)]
    return []
