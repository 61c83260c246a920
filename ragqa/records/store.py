"""The store of answer records: one schema and the same statements in a SQLite file and in a PostgreSQL database.

A record is written when the answer is complete and again when its scores are, each in one transaction (WAL), so that a
crash at any moment loses at most the step it interrupted. Its body is stamped with its sha256 and checked when read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final

from ragqa.errors import RecordError
from ragqa.records.database import Database, Execute
from ragqa.records.reader import ALL, NONE, marks
from ragqa.records.record import AnswerRecord, RecordSummary
from ragqa.records.results import RESULT_FIELDS, result_words
from ragqa.types.scores import Verdict

COPIED_AT_ONCE: Final = 50  # records per transaction
READ_AT_ONCE: Final = 100  # records whose results are read in one statement

_COLUMNS: Final = "record_id, created_at, question, index_name, generator, status, composite"
_SAVE: Final = """
INSERT INTO records VALUES (?,?,?,?,?,?,?,?,?)
ON CONFLICT (record_id) DO UPDATE SET created_at = excluded.created_at, question = excluded.question,
    index_name = excluded.index_name, generator = excluded.generator, status = excluded.status,
    composite = excluded.composite, sha256 = excluded.sha256, body = excluded.body
"""
_NOTE: Final = "COALESCE((SELECT note FROM remarks WHERE remarks.record_id = records.record_id), '')"
_HERE: Final = "record_id NOT IN (SELECT record_id FROM remarks WHERE gone_at <> '')"
_REMARK: Final = "INSERT INTO remarks VALUES (?,?,?) ON CONFLICT (record_id) DO UPDATE SET"
UNDO_DAYS: Final = 1  # for which a discarded record can be restored
_STAMP: Final = 7  # the position of sha256 in a row of `_COLUMNS`, sha256, body


@dataclass(frozen=True, slots=True)
class BegunRun:
    """A run that another process began. ``record_id`` is "" where it has stored no answer."""

    began_at: str  # ISO 8601, UTC
    record_id: str
    who: str  # the id of its author, "" where nobody signs in


@dataclass(frozen=True, slots=True)
class SealedRecord:
    """A summary of a record, with the hashes that show whether it has changed.

    ``sha256`` is the hash of its body, ``corpus_sha256`` that of its corpus. ``text`` holds question or checked text,
    answer and note. ``authors`` are ids.
    """

    record_id: str
    title: str
    index: str
    sha256: str
    corpus_sha256: str
    ragqa_version: str
    text: str
    authors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopyReport:
    """The result of `RecordStore.copy_to`: the numbers of copied and known records, and the ids of different ones."""

    copied: int
    known: int
    different: tuple[str, ...]


class RecordStore(Database):
    """The records of one place; safe to share between threads, processes and, with a server, machines.

    With a ``reader`` it shows their own records and those shared with them, and saves records as theirs. Every method
    raises RecordError where the place cannot be used. While a server is away, writes are tried again for ``patience``
    seconds; a restart of the server neither loses nor doubles them. Reads fail at once.
    """

    def save(self, record: AnswerRecord) -> None:
        """Stores the record durably, replacing an earlier state with the same id."""
        body = record.to_json(indent=None)
        composite = record.scored.of(record.scoring.mode).repass.composite if record.scored else None
        row = (
            record.record_id,
            record.created_at,
            record.question.title,
            record.index,
            record.answer.generator,
            record.status,
            composite,
            hashlib.sha256(body.encode()).hexdigest(),
            body,
        )

        def work(execute: Execute) -> None:
            execute(_SAVE, row)
            if self._reader:
                execute(
                    "INSERT INTO readers VALUES (?,?,1) ON CONFLICT DO NOTHING", (record.record_id, self._reader.author)
                )

        self._patiently(work)

    def load(self, record_id: str, *, is_opened: bool = True) -> AnswerRecord:
        """The record with this id. Raises RecordError where there is none, or where it was altered.

        Without ``is_opened`` the access is not logged, because nobody sees the record.
        """
        body, stamp = self._row(record_id, "body, sha256")
        digest = hashlib.sha256(body.encode()).hexdigest()
        if digest != stamp:
            raise RecordError(
                f"record {record_id!r} was altered: its stamp says sha256 {stamp[:12]}…, its body has {digest[:12]}…; "
                "ask the question again"
            )
        if is_opened and self._reader and self._reader.opened:
            self._reader.opened(record_id)
        return AnswerRecord.from_json(body)

    def comment(self, record_id: str, index: int, verdict: Verdict, why: str) -> AnswerRecord:
        """Stores the author's correction of the verdict on this sentence. Raises RecordError on another's record."""
        if not self._is_own(record_id):
            msg = f"record {record_id!r} is another's; ask the question yourself to say what its verdicts should be"
            raise RecordError(msg)
        statement = "UPDATE records SET sha256 = ?, body = ? WHERE record_id = ? AND sha256 = ?"
        while True:  # again if another has changed the record since it was read
            before = self.check(record_id)
            record = self.load(record_id).with_feedback(index, verdict, why)
            body = record.to_json(indent=None)
            values = (hashlib.sha256(body.encode()).hexdigest(), body, record_id, before)
            if self._patiently(partial(_n_changed, statement, values)):
                return record

    def list(
        self,
        limit: int = 50,
        *,
        after: int = 0,
        words: str = "",
        index: str = "",
        since: str = "",
        until: str = "",
        author: str = "",
        result: str = "",
    ) -> tuple[RecordSummary, ...]:
        """The records, newest first: at most ``limit``, without the first ``after``.

        They match the filters: all ``words`` in question or note, this ``index``, created on the days ``since`` to
        ``until`` (ISO 8601), by this ``author`` (an id), with a ``result`` that begins so (one of `RESULTS`).
        """
        shown, values = self._condition()
        filters = {
            " AND index_name = ?": index,
            " AND created_at >= ?": since,
            " AND substr(created_at, 1, 10) <= ?": until,
            " AND record_id IN (SELECT record_id FROM readers WHERE who = ? AND is_author = 1)": author,
        }
        said = [(condition, value) for condition, value in filters.items() if value]
        wanted = "".join(condition for condition, _ in said)
        sought = words.casefold().split()  # not by the engines, whose LOWER knows the letters of ASCII alone
        part = "" if sought or result else " LIMIT ? OFFSET ?"
        rows = self._rows(
            f"SELECT {_COLUMNS}, {_NOTE} FROM records WHERE {shown}{wanted} "  # noqa: S608 - conditions and marks only
            f"ORDER BY created_at DESC, record_id DESC{part}",
            (*values, *(value for _, value in said), *((limit, after) if part else ())),
        )
        found: Iterator[RecordSummary] = (RecordSummary(*row) for row in rows)
        if sought:
            texts = ((one, f"{one.question} {one.note}".casefold()) for one in found)
            found = (one for one, text in texts if all(word in text for word in sought))
        if result:
            found = self._with_result(found, result)
        return tuple(found if part else islice(found, after, after + limit))

    def _with_result(self, found: Iterator[RecordSummary], result: str) -> Iterator[RecordSummary]:
        while some := tuple(islice(found, READ_AT_ONCE)):
            known = self.results([one.record_id for one in some])
            yield from (one for one in some if known.get(one.record_id, "").startswith(result))

    def results(self, record_ids: Sequence[str]) -> dict[str, str]:
        """The result of each of these records in words, see `result_words`."""
        if not record_ids:
            return {}
        shown, values = self._condition()
        fields = ", ".join(self._engine.field(*path) for path in RESULT_FIELDS)
        rows = self._rows(
            f"SELECT record_id, {fields} FROM records WHERE record_id IN ({marks(record_ids)}) AND {shown}",  # noqa: S608
            (*record_ids, *values),
        )
        return {name: result_words(*map(str, (value or "" for value in said))) for name, *said in rows}

    def authors(self) -> tuple[str, ...]:
        """The ids of the authors of the records that the reader may see, in order."""
        shown, values = self._condition()
        within = f"record_id IN (SELECT record_id FROM records WHERE {shown})"  # noqa: S608 - conditions and marks only
        statement = f"SELECT DISTINCT who FROM readers WHERE is_author = 1 AND {within} ORDER BY who"  # noqa: S608
        return tuple(who for (who,) in self._rows(statement, values))

    def sealed(self, record_ids: Sequence[str]) -> dict[str, SealedRecord]:
        """Summaries of those of these records that the reader may see, by id, without opening them."""
        if not record_ids:
            return {}
        shown, values = self._condition()
        within = f"record_id IN ({marks(record_ids)})"
        told = [("manifest", "corpus_sha256"), ("ragqa_version",), ("question", "given"), ("answer", "text")]
        fields = ", ".join(self._engine.field(*path) for path in told)
        rows = self._rows(
            f"SELECT record_id, question, index_name, sha256, {_NOTE}, {fields} FROM records "  # noqa: S608
            f"WHERE {within} AND {shown}",
            (*record_ids, *values),
        )
        authors: dict[str, tuple[str, ...]] = {}
        statement = f"SELECT record_id, who FROM readers WHERE {within} AND is_author = 1"  # noqa: S608
        for record_id, who in self._rows(statement, record_ids):
            authors[record_id] = (*authors.get(record_id, ()), who)
        return {
            name: SealedRecord(
                name,
                title,
                index,
                sha256,
                corpus or "",
                version or "",
                "\n".join(filter(None, (title, *texts))),
                authors.get(name, ()),
            )
            for name, title, index, sha256, note, corpus, version, *said in rows
            for texts in [(*said, note)]
        }

    def check(self, record_id: str) -> str:
        """The sha256 of the record's body. Raises RecordError where `load` would find no record with this id."""
        return str(self._row(record_id, "sha256")[0])

    def shared_with(self, record_id: str) -> tuple[str, ...] | None:
        """The names that the record is shared with; None where it is not the reader's own."""
        if not self._is_own(record_id):
            return None
        rows = self._rows("SELECT who FROM readers WHERE record_id = ? AND is_author = 0 ORDER BY who", (record_id,))
        return tuple(who for (who,) in rows)

    def share(self, record_id: str, who: str, *, shared: bool) -> None:
        """Shares the record with this name, or ends that. Raises RecordError where it is not the reader's own."""
        if not self._is_own(record_id):
            raise self._none(record_id)
        statement = "DELETE FROM readers WHERE record_id = ? AND who = ? AND is_author = 0"
        if shared:
            statement = "INSERT INTO readers VALUES (?,?,0) ON CONFLICT DO NOTHING"
        self._patiently(lambda execute: execute(statement, (record_id, who)))

    def note(self, record_id: str) -> str:
        """The author's note on the record. Raises RecordError as `load`."""
        return str(self._row(record_id, _NOTE)[0])

    def set_note(self, record_id: str, note: str) -> None:
        """Replaces the note on one of the reader's own records. Raises RecordError where it is another's."""
        if not self._is_own(record_id):
            raise self._none(record_id)
        self._patiently(lambda execute: execute(f"{_REMARK} note = excluded.note", (record_id, note, "")))

    def discard(self, record_id: str) -> None:
        """Hides one of the reader's own records; `restore` can undo this for a day, then it is deleted.

        Raises RecordError where it is another's.
        """
        if not self._is_own(record_id):
            raise self._none(record_id)
        now = datetime.now(UTC)
        at, before = (day.isoformat(timespec="seconds") for day in (now, now - timedelta(days=UNDO_DAYS)))
        self._patiently(lambda execute: execute(f"{_REMARK} gone_at = excluded.gone_at", (record_id, "", at)))
        late = self._rows("SELECT record_id FROM remarks WHERE gone_at <> '' AND gone_at < ?", (before,))
        self.delete([name for (name,) in late])

    def restore(self, record_id: str) -> None:
        """Undoes `discard`. Raises RecordError where the record is not the reader's own."""
        if not self._owns(record_id):
            raise self._none(record_id)
        statement = "UPDATE remarks SET gone_at = '' WHERE record_id = ?"
        self._patiently(lambda execute: execute(statement, (record_id,)))

    def begin(self, run_id: str) -> None:
        """Stores that a run has begun, so that other processes know of it; does not wait for a server."""
        who, now = self._reader.author if self._reader else "", datetime.now(UTC).isoformat(timespec="seconds")
        values = (run_id, who, now)
        self._once(lambda execute: execute("INSERT INTO runs VALUES (?,?,?,'') ON CONFLICT DO NOTHING", values))

    def link(self, run_id: str, record_id: str) -> None:
        """Stores the record that a run has written."""
        statement = "UPDATE runs SET record_id = ? WHERE run_id = ?"
        self._patiently(lambda execute: execute(statement, (record_id, run_id)))

    def run(self, run_id: str) -> BegunRun | None:
        """The run with this id, if this reader began it; else None."""
        rows = self._rows("SELECT began_at, record_id, who FROM runs WHERE run_id = ?", (run_id,))
        is_own = self._reader is None or self._reader.everything or (rows and rows[0][2] == self._reader.author)
        return BegunRun(*rows[0]) if rows and is_own else None

    def copy_to(self, other: RecordStore) -> CopyReport:
        """Copies every record unchanged, with its stamp, readers and note; records that exist in ``other`` stay as is.

        It can be repeated after an interruption. Runs are not copied.
        """
        copied, known, different = 0, 0, []
        for rows in self._pages():
            ids = [row[0] for row in rows]
            within = f"WHERE record_id IN ({marks(ids)})"
            there = dict(other._rows(f"SELECT record_id, sha256 FROM records {within}", ids))  # noqa: S608
            readers = self._rows(f"SELECT record_id, who, is_author FROM readers {within}", ids)  # noqa: S608
            readers = [row for row in readers if row[0] not in there]  # else ended shares would begin again
            remarks = self._rows(f"SELECT record_id, note, gone_at FROM remarks {within}", ids)  # noqa: S608
            remarks = [row for row in remarks if row[0] not in there]
            other._patiently(partial(_insert, rows, readers, remarks))
            copied += len(rows) - len(there)
            known += len(there)
            different += [row[0] for row in rows if there.get(row[0], row[_STAMP]) != row[_STAMP]]
        return CopyReport(copied, known, tuple(different))

    def chosen(self, record_ids: Sequence[str] = (), who: str = "", before: str = "") -> tuple[str, ...]:
        """The ids of the records that match all given filters: ids, author, created before (ISO 8601).

        Without a filter there are none.
        """
        conditions = [
            (f"record_id IN ({marks(record_ids)})", record_ids),
            ("record_id IN (SELECT record_id FROM readers WHERE who = ? AND is_author = 1)", [who] if who else []),
            ("created_at < ?", [before] if before else []),
        ]
        held = " AND ".join(condition for condition, values in conditions if values) or NONE
        values = [value for _, wanted in conditions for value in wanted]
        return tuple(record_id for (record_id,) in self._rows(f"SELECT record_id FROM records WHERE {held}", values))  # noqa: S608

    def delete(self, record_ids: Sequence[str], who: str = "") -> None:
        """Deletes these records with all their rows; with ``who`` also that person's runs and access to records."""

        def erase(execute: Execute) -> None:
            for record_id in record_ids:
                for table in ("records", "readers", "runs", "remarks"):
                    execute(f"DELETE FROM {table} WHERE record_id = ?", (record_id,))  # noqa: S608 - names of tables
            if who:
                execute("DELETE FROM readers WHERE who = ?", (who,))
                execute("DELETE FROM runs WHERE who = ?", (who,))

        self._patiently(erase)

    def _pages(self) -> Iterator[Sequence[Any]]:
        """All records as rows, in pages, ordered by id."""
        after = ""
        while rows := self._rows(
            f"SELECT {_COLUMNS}, sha256, body FROM records WHERE record_id > ? AND {_HERE} ORDER BY record_id LIMIT ?",  # noqa: S608
            (after, COPIED_AT_ONCE),
        ):
            yield rows
            after = rows[-1][0]

    def _is_own(self, record_id: str) -> bool:
        self.check(record_id)
        return self._owns(record_id)

    def _owns(self, record_id: str) -> bool:
        if self._reader is None or self._reader.everything:
            return True
        statement = "SELECT 1 FROM readers WHERE record_id = ? AND who = ? AND is_author = 1"
        return bool(self._rows(statement, (record_id, self._reader.author)))

    def _condition(self) -> tuple[str, tuple[str, ...]]:
        shown, values = self._reader.condition() if self._reader else (ALL, ())
        return f"{shown} AND {_HERE}", values

    def _row(self, record_id: str, columns: str) -> Any:  # noqa: ANN401 - a row of either engine
        shown, values = self._condition()
        statement = f"SELECT {columns} FROM records WHERE record_id = ? AND {shown}"  # noqa: S608 - columns and marks only
        rows = self._rows(statement, (record_id, *values))
        if not rows:
            raise self._none(record_id)
        return rows[0]

    def _none(self, record_id: str) -> RecordError:
        if self._reader:
            self._reader.refused(record_id)
        return RecordError(f"no record {record_id!r} in {self._engine.name}; `ragqa records list` lists the records")


def _n_changed(statement: str, values: Sequence[Any], execute: Execute) -> int:
    return int(execute(statement, values).rowcount)


def _insert(rows: Sequence[Any], readers: Sequence[Any], remarks: Sequence[Any], execute: Execute) -> None:
    for table, of_table in (("records", rows), ("readers", readers), ("remarks", remarks)):
        for row in of_table:
            execute(f"INSERT INTO {table} VALUES ({marks(row)}) ON CONFLICT DO NOTHING", row)  # noqa: S608
