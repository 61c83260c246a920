"""Answer records: everything needed to explain an answer and to repeat it, in SQLite and as JSON.

A record is written when the answer is complete and again when its scores are, each in one transaction (WAL), so that a
crash at any moment loses at most the step it interrupted. Its body is stamped with its sha256 and checked when read.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ragqa.config import (
    FilteringConfig,
    FusionConfig,
    GenerationConfig,
    RerankingConfig,
    RetrievalConfig,
    ScoringConfig,
    any_generator,
)
from ragqa.disk_cache import use_wal
from ragqa.errors import RecordError
from ragqa.events.generation import TraceEvent
from ragqa.events.scoring import Relevance, Scored
from ragqa.record_versions import SCHEMA_VERSION, current_version
from ragqa.types import Answer, Candidate, Drop, ModelInfo, Passage, Question, Ranking, ScoredPassage, Selection

PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RankingEntry:
    """A retriever's ranking by reference: (passage_id, raw score), best first; the rest as in `ragqa.types.Ranking`.

    ``notes`` hold (note, via) of the hits that have one, by passage_id.
    """

    retriever: str
    hits: tuple[tuple[str, float], ...]
    finds: bool = True
    bounds: tuple[float, float] | None = None
    notes: dict[str, tuple[str, str]] = field(default_factory=dict)

    def hit(self, passage: Passage, score: float) -> ScoredPassage:
        """The hit as the retriever gave it."""
        return ScoredPassage(passage, score, (), (), *self.notes.get(passage.passage_id, ("", "")))


@dataclass(frozen=True, slots=True)
class CandidateEntry:
    """What filtering decided about one candidate; see `ragqa.types.Candidate`."""

    passage_id: str
    rank: int
    score: float
    relevance: float
    drop: Drop | None
    explanation: str


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """One question with all that followed from it. Only the API key is left out.

    ``fuse`` of `ranked` under ``fusion``, where ``reranking`` names a model ``rerank`` by ``reranker_scores`` (raw, by
    passage_id, the best fused passage first), and ``select`` under ``filtering`` give ``candidates`` again while the
    rules are those of its day; where they are not, ``candidates`` counts. Re-scoring ``answer`` against ``kept`` with
    the same ``models`` gives ``scored`` again. ``trace`` is what LOC, VRR or a fan-out did, in order; a fan-out's
    candidates are those of `ragqa.generation.fanout.merging.reselected`, and its evidence is among ``passages``.
    ``status`` is ``"answered"``, ``"scored"``, ``"scoring failed"``, the last with ``error``, or, while
    the answer is the best so far, ``"writing"``, and ``"stopped"`` where it stayed so at the reader's request.
    """

    record_id: str
    created_at: str  # ISO 8601, UTC
    question: Question
    index: str
    retrieval: RetrievalConfig
    fusion: FusionConfig
    reranking: RerankingConfig
    filtering: FilteringConfig
    generation: GenerationConfig
    scoring: ScoringConfig
    manifest: dict[str, Any]
    models: dict[str, ModelInfo]
    passages: tuple[Passage, ...]
    rankings: tuple[RankingEntry, ...]
    reranker_scores: tuple[tuple[str, float], ...]
    candidates: tuple[CandidateEntry, ...]
    answer: Answer
    scored: Scored | None = None
    answer_relevance: Relevance | None = None  # None of a refusal, and in older records
    trace: tuple[Annotated[TraceEvent, Field(discriminator="kind")], ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    status: str = "answered"
    error: str = ""
    ragqa_version: str = ""
    schema_version: int = SCHEMA_VERSION

    @property
    def kept(self) -> tuple[Passage, ...]:
        """The passages the answer was written from, best first: citation [n] means ``kept[n - 1]``."""
        by_id = self._passage_by_id()
        return tuple(by_id[entry.passage_id] for entry in self.candidates if entry.drop is None)

    @property
    def ranked(self) -> tuple[Ranking, ...]:
        """The rankings with their passages, as the retrievers gave them."""
        by_id = self._passage_by_id()
        return tuple(
            Ranking.of(
                entry.retriever,
                [entry.hit(by_id[passage_id], score) for passage_id, score in entry.hits],
                finds=entry.finds,
                bounds=entry.bounds,
            )
            for entry in self.rankings
        )

    def selection(self, again: Selection) -> Selection:
        """What was decided when this was recorded, whatever today's rules make of the same rankings.

        That is ``again``, of which only the parts of each score are taken: a record does not keep them.
        """
        hits = {one.passage.passage_id: one.hit for one in (*again.kept, *again.dropped)}
        by_id, previous, found = self._passage_by_id(), 1.0, []
        for entry in self.candidates:
            hit = hits.get(entry.passage_id, ScoredPassage(by_id[entry.passage_id], entry.score))
            found.append(
                Candidate(
                    replace(hit, score=entry.score),
                    entry.rank,
                    entry.relevance,
                    previous - entry.relevance,
                    entry.drop,
                    entry.explanation,
                )
            )
            previous = entry.relevance
        kept = tuple(one for one in found if one.drop is None)
        return Selection(kept, tuple(one for one in found if one.drop is not None))

    def to_json(self, *, indent: int | None = 2) -> str:
        """The record as JSON text; `from_json` reads it back to an equal record."""
        return _adapter().dump_json(self, indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> AnswerRecord:
        """The record in this JSON text. Raises RecordError saying which field is wrong."""
        try:
            with any_generator():
                return _adapter().validate_python(current_version(json.loads(text)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if not isinstance(error, ValidationError):
                what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
                msg = f"this is not a ragqa record: {what}; export it again with `ragqa records export RECORD_ID`"
                raise RecordError(msg) from error
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the top level"
            msg = (
                f"this is not a ragqa record: at {place}, {first['msg']}; "
                "export it again with `ragqa records export RECORD_ID`"
            )
            raise RecordError(msg) from error

    def _passage_by_id(self) -> dict[str, Passage]:
        return {passage.passage_id: passage for passage in self.passages}


@cache
def _adapter() -> TypeAdapter[AnswerRecord]:
    return TypeAdapter(AnswerRecord)


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """A line of the record list. ``composite`` is in the record's own mode, None while not scored."""

    record_id: str
    created_at: str
    question: str
    index: str
    generator: str
    status: str
    composite: float | None


def new_record_id() -> str:
    """A fresh id that sorts by time and never repeats: ``20261121-104233-9f8e7d6c5b``."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(5)}"


_TABLE = """
CREATE TABLE IF NOT EXISTS records (
    record_id TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    question TEXT NOT NULL,
    index_name TEXT NOT NULL,
    generator TEXT NOT NULL,
    status TEXT NOT NULL,
    composite REAL,
    sha256 TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT
"""

_READERS = """
CREATE TABLE IF NOT EXISTS readers (
    record_id TEXT NOT NULL,
    who TEXT NOT NULL,
    is_author INTEGER NOT NULL,
    PRIMARY KEY (record_id, who)
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks into a store. ``names`` are what a record may be shared with, ``hidden`` corpora not theirs to read.

    ``refused`` is told of every id that was asked for and not found or not shown. ``everything``: all is shown.
    """

    author: str
    names: frozenset[str]
    hidden: frozenset[str]
    refused: Callable[[str], None]
    everything: bool = False

    def condition(self) -> tuple[str, tuple[str, ...]]:
        """SQL that holds of the rows of ``records`` that are shown, and its values."""
        if self.everything:
            return "1", ()
        names, hidden = sorted(self.names), sorted(self.hidden)
        shared = f"record_id IN (SELECT record_id FROM readers WHERE who IN ({_marks(names)}))"  # noqa: S608 - marks only
        return f"{shared} AND index_name NOT IN ({_marks(hidden)})", (*names, *hidden)


def _marks(values: Sequence[str]) -> str:
    return ",".join("?" * len(values))


class RecordStore:
    """The records of one SQLite file; safe to share between threads and processes (one connection per call).

    With a ``reader`` it shows what is theirs or shared with them, and what is saved is theirs.
    """

    def __init__(self, path: Path, reader: Reader | None = None) -> None:
        self.path = path
        self._ready = False
        self._reader = reader

    def seen_by(self, reader: Reader) -> RecordStore:
        """The same records as this reader sees them."""
        made = RecordStore(self.path, reader)
        made._ready = self._ready
        return made

    def save(self, record: AnswerRecord) -> None:
        """Stores the record, replacing an earlier state of the same id, durably and at once."""
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
        with self._connection() as connection:
            connection.execute("INSERT OR REPLACE INTO records VALUES (?,?,?,?,?,?,?,?,?)", row)
            if self._reader:
                connection.execute(
                    "INSERT OR IGNORE INTO readers VALUES (?,?,1)", (record.record_id, self._reader.author)
                )

    def load(self, record_id: str) -> AnswerRecord:
        """The record of this id. Raises RecordError when there is none or its body was altered."""
        body, stamp = self._row(record_id, "body, sha256")
        found = hashlib.sha256(body.encode()).hexdigest()
        if found != stamp:
            msg = (
                f"record {record_id!r} was altered: its stamp says sha256 {stamp[:12]}…, its body has {found[:12]}…; "
                "ask the question again"
            )
            raise RecordError(msg)
        return AnswerRecord.from_json(body)

    def list(self, limit: int = 50) -> tuple[RecordSummary, ...]:
        """The newest records first, at most ``limit``."""
        shown, values = self._condition()
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT record_id, created_at, question, index_name, generator, status, composite FROM records "  # noqa: S608
                f"WHERE {shown} ORDER BY created_at DESC, record_id DESC LIMIT ?",
                (*values, limit),
            ).fetchall()
        return tuple(RecordSummary(*row) for row in rows)

    def corpora(self, record_ids: Sequence[str]) -> dict[str, str]:
        """The corpus_sha256 of the index that each of these records was answered from, by record id."""
        shown, values = self._condition()
        with self._connection() as connection:
            rows = connection.execute(
                f"SELECT record_id, json_extract(body, '$.manifest.corpus_sha256') FROM records "  # noqa: S608
                f"WHERE record_id IN ({_marks(record_ids)}) AND {shown}",
                (*record_ids, *values),
            ).fetchall()
        return {record_id: sha256 or "" for record_id, sha256 in rows}

    def check(self, record_id: str) -> None:
        """Raises RecordError where `load` would find none of this id."""
        self._row(record_id, "1")

    def shared_with(self, record_id: str) -> tuple[str, ...] | None:
        """The names it is shared with beside its author; None where that is not for this reader to say."""
        if not self._is_own(record_id):
            return None
        with self._connection() as connection:
            found = connection.execute(
                "SELECT who FROM readers WHERE record_id = ? AND NOT is_author ORDER BY who", (record_id,)
            ).fetchall()
        return tuple(who for (who,) in found)

    def share(self, record_id: str, who: str, *, shared: bool) -> None:
        """Shares it with this name, or no longer. Raises RecordError where it is not the reader's own."""
        if not self._is_own(record_id):
            raise self._none(record_id)
        with self._connection() as connection:
            if shared:
                connection.execute("INSERT OR IGNORE INTO readers VALUES (?,?,0)", (record_id, who))
            else:
                connection.execute(
                    "DELETE FROM readers WHERE record_id = ? AND who = ? AND NOT is_author", (record_id, who)
                )

    def _is_own(self, record_id: str) -> bool:
        self.check(record_id)
        if self._reader is None or self._reader.everything:
            return True
        with self._connection() as connection:
            return bool(
                connection.execute(
                    "SELECT 1 FROM readers WHERE record_id = ? AND who = ? AND is_author",
                    (record_id, self._reader.author),
                ).fetchone()
            )

    def _condition(self) -> tuple[str, tuple[str, ...]]:
        return self._reader.condition() if self._reader else ("1", ())

    def _row(self, record_id: str, columns: str) -> Any:  # noqa: ANN401 - a row of SQLite
        shown, values = self._condition()
        with self._connection() as connection:
            row = connection.execute(
                f"SELECT {columns} FROM records WHERE record_id = ? AND {shown}",  # noqa: S608 - columns and marks only
                (record_id, *values),
            ).fetchone()
        if row is None:
            raise self._none(record_id)
        return row

    def _none(self, record_id: str) -> RecordError:
        if self._reader:
            self._reader.refused(record_id)
        return RecordError(f"no record {record_id!r} in {self.path.name}; `ragqa records list` shows those there are")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection in one transaction; SQLite's own errors come out as RecordError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=PATIENCE_SECONDS)) as connection:
                if not self._ready:
                    use_wal(connection, PATIENCE_SECONDS)
                    connection.execute(_TABLE)
                    connection.execute(_READERS)
                    self._ready = True
                with connection:
                    yield connection
        except (sqlite3.Error, OSError) as error:
            msg = f"cannot use the record file {self.path}: {error}; set RAGQA_HOME to a folder you may write to"
            raise RecordError(msg) from error
