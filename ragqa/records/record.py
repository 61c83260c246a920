"""Answer records: everything needed to explain and repeat an answer, as JSON; `ragqa.records.store` keeps them."""

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

# The version in which records are written. Version 5 had no sub-questions, 4 no reranking, 3 no trace of how an answer
# was written, 2 only two rankings with one weight, 1 only one NLI model for both uses.
SCHEMA_VERSION = 6


def current_version(record: object) -> object:
    """A record of an older version, converted to this version; anything else unchanged."""
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
    """A ranking by reference: (passage_id, raw score), best first; other fields as in `ragqa.types.Ranking`.

    ``notes`` hold (note, via) of the hits that have one, by passage_id.
    """

    retriever: str
    hits: tuple[tuple[str, float], ...]
    finds: bool = True
    bounds: tuple[float, float] | None = None
    notes: dict[str, tuple[str, str]] = field(default_factory=dict)

    def hit(self, passage: Passage, score: float) -> ScoredPassage:
        """The hit, as the retriever gave it."""
        return ScoredPassage(passage, score, (), (), *self.notes.get(passage.passage_id, ("", "")))


@dataclass(frozen=True, slots=True)
class CandidateEntry:
    """The decision of the filter on one candidate; see `ragqa.types.Candidate`."""

    passage_id: str
    rank: int
    score: float
    relevance: float
    drop: Drop | None
    explanation: str


@dataclass(frozen=True, slots=True)
class Feedback:
    """A reader's correction of the verdict on sentence ``index``, with the reason; ``at`` is ISO 8601, UTC."""

    index: int
    verdict: Verdict
    why: str
    at: str


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """One question with everything that followed from it, except the API key.

    ``candidates`` follow from `ranked`: ``fuse`` under ``fusion``, then ``rerank`` by ``reranker_scores`` (raw, by
    passage_id, the best fused passage first) where ``reranking`` names a model, then ``select`` under ``filtering``. If
    later versions have other rules, the stored ``candidates`` count. Scoring ``answer`` against ``kept`` again with the
    same ``models`` gives ``scored``. ``trace`` holds the steps of LOC, VRR or a fan-out in order; the candidates of a
    fan-out follow from `ragqa.generation.fanout.merging.reselected`, and its evidence is among ``passages``. ``status``
    is ``"writing"`` while the answer is only the best so far, ``"stopped"`` where the reader stopped it then, else
    ``"answered"``, ``"scored"`` or ``"scoring failed"`` (with ``error``).
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
    answer_relevance: Relevance | None = None  # None for a refusal, and in older records
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
        """The rankings of the retrievers, with their passages."""
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
        """The selection as it was recorded, also where today's rules would select other passages.

        ``again`` is the selection by today's rules. It supplies what a record does not store: the parts of each score,
        and the limits where both selections keep the same passages.
        """
        hits = {candidate.passage.passage_id: candidate.hit for candidate in (*again.kept, *again.dropped)}
        by_id, previous, candidates = self._passage_by_id(), 1.0, []
        for entry in self.candidates:
            if entry.passage_id not in by_id:  # what only a rule's number had found was not stored once
                msg = f"expected passage {entry.passage_id!r} among those of record {self.record_id}, found none"
                raise RecordError(f"{msg}; ask the question again")
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
        """The record with this correction for sentence ``index``, which replaces an earlier one."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        others = (one for one in self.feedback if one.index != index)
        return replace(self, feedback=(*others, Feedback(index, verdict, why, now)))

    def to_json(self, *, indent: int | None = 2) -> str:
        """The record as JSON text; `from_json` reads it back to an equal record."""
        return _adapter().dump_json(self, indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> AnswerRecord:
        """The record in this JSON text. Raises RecordError, which names the invalid field."""
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
    """A line of the record list. ``composite`` is in the record's own mode; None without scores."""

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


def claims_in(record: AnswerRecord) -> list[dict[str, Any]]:
    """Readers' feedback on the verdicts of a record, as rows of ``claims.jsonl``; their folds are by record.

    A claim belongs to the passage of the deciding source sentence, or of the first sentence if none decided.
    """
    if record.scored is None:
        return []
    shown, found = record.scored.paper, []
    for said in record.feedback:
        judged = next((one for one in shown.verdicts if one.index == said.index), None)
        if (
            judged is None
            or not shown.premises
            or str(said.verdict) not in {"supported", "contradicted", "unsupported"}
        ):
            continue
        number = shown.premises[judged.deciding or 0].passage_index
        places = [n for n, premise in enumerate(shown.premises) if premise.passage_index == number]
        deciding = [places.index(n) for n in (*judged.contradicting, *judged.supporting) if n in places]
        text = next(one.sentence.text for one in shown.sentences if one.index == said.index)
        claim = {"text": text, "label": str(said.verdict), "kind": "feedback", "from": deciding or [0]}
        found.append(
            {
                "id": f"feedback:{record.record_id}",
                "corpus": record.index,
                "title": record.kept[number].title,
                "sentences": [shown.premises[n].text for n in places],
                "writer": "feedback",
                "claims": [claim],
                "questions": [],
            }
        )
    return found
