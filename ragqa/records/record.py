"""Answer records: all that explains an answer and repeats it, as JSON; `ragqa.records.store` keeps them."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ragqa.errors import RecordError
from ragqa.settings.config import (
    FilteringConfig,
    FusionConfig,
    GenerationConfig,
    RerankingConfig,
    RetrievalConfig,
    any_generator,
)
from ragqa.settings.scoring import ScoringConfig
from ragqa.types import Answer, Candidate, Drop, ModelInfo, Passage, Question, Ranking, ScoredPassage, Selection
from ragqa.types.events.generation import TraceEvent
from ragqa.types.events.scoring import Relevance, Scored
from ragqa.types.scores import Verdict

# The form in which records are written. Earlier ones: 5 knew no sub-questions, 4 no reranking, 3 no trace of how an
# answer was written, 2 two rankings and one weight, 1 one NLI model for both uses.
SCHEMA_VERSION = 6


def current_version(record: object) -> object:
    """A record of an older version in the form of this one; anything else as it is."""
    if isinstance(record, dict) and record.get("schema_version") == 1:
        record = _with_version_2(record)
    if isinstance(record, dict) and record.get("schema_version") == 2:
        weight = float(record["fusion"]["bm25_weight"])
        fusion = {"method": record["fusion"]["method"], "weights": {"bm25": weight, "dense": 1.0 - weight}}
        record = record | {"fusion": fusion, "schema_version": 3}
    if isinstance(record, dict) and record.get("schema_version") == 3:
        record = record | {"trace": [], "schema_version": 4}
    if isinstance(record, dict) and record.get("schema_version") == 4:
        record = record | {"reranking": {}, "reranker_scores": [], "schema_version": 5}
    if isinstance(record, dict) and record.get("schema_version") == 5:
        record = record | {"schema_version": SCHEMA_VERSION}
    return record


def _with_version_2(record: dict[str, Any]) -> dict[str, Any]:
    scoring = {**record["scoring"], "coverage_model": record["scoring"]["nli_model"]}
    scoring["entailment_model"] = scoring.pop("nli_model")
    models = {**record["models"], "coverage": record["models"]["nli"]}
    models["entailment"] = models.pop("nli")
    scored = record.get("scored") and {
        mode: _with_two_models(breakdown) for mode, breakdown in record["scored"].items()
    }
    return record | {"scoring": scoring, "models": models, "scored": scored, "schema_version": 2}


def _with_two_models(evaluation: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in evaluation.items() if name != "nli_model"}
    return rest | {"entailment_model": evaluation["nli_model"], "coverage_model": evaluation["nli_model"]}


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
class Feedback:
    """What a reader says of the verdict on sentence ``index``: what it should be, and why; ``at`` is ISO 8601, UTC."""

    index: int
    verdict: Verdict
    why: str
    at: str


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
    feedback: tuple[Feedback, ...] = ()

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

        That is ``again``, of which only the parts of each score are taken, and the limits where they decided alike: a
        record does not keep them.
        """
        hits = {candidate.passage.passage_id: candidate.hit for candidate in (*again.kept, *again.dropped)}
        by_id, previous, candidates = self._passage_by_id(), 1.0, []
        for entry in self.candidates:
            hit = hits.get(entry.passage_id, ScoredPassage(by_id[entry.passage_id], entry.score))
            candidates.append(
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
        kept = tuple(candidate for candidate in candidates if candidate.drop is None)
        dropped = tuple(candidate for candidate in candidates if candidate.drop is not None)
        is_alike = {candidate.passage for candidate in kept} == {candidate.passage for candidate in again.kept}
        return Selection(kept, dropped, again.limits if is_alike else ())

    def with_feedback(self, index: int, verdict: Verdict, why: str) -> AnswerRecord:
        """With this said of the verdict on sentence ``index``, in place of what was said of it before."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        others = (one for one in self.feedback if one.index != index)
        return replace(self, feedback=(*others, Feedback(index, verdict, why, now)))

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
            raise RecordError(
                f"this is not a ragqa record: at {place}, {first['msg']}; "
                "export it again with `ragqa records export RECORD_ID`"
            ) from error

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
    note: str = ""


def new_record_id() -> str:
    """A fresh id that sorts by time and never repeats: ``20261121-104233-9f8e7d6c5b``."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(5)}"
