"""Follows the events of one question and stores its record whenever a further part is complete."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ragqa.errors import ConfigError, ScoringError
from ragqa.fusion import reranker_scores
from ragqa.infra.version import __version__
from ragqa.records.record import AnswerRecord, CandidateEntry, RankingEntry, new_record_id
from ragqa.records.store import RecordStore
from ragqa.settings.config import Config
from ragqa.types import Answer, Candidate, ModelInfo, Passage, Question, Ranking, Selection
from ragqa.types.events.generation import BestSoFar, EvidenceFound, Token, TraceEvent
from ragqa.types.events.pipeline import FIRST_WORDS, STAGES, Answered, Event, Reranked, Retrieved, Selected
from ragqa.types.events.scoring import RelevanceMeasured, Scored

if TYPE_CHECKING:
    from ragqa.records.traces import Spans


def words_per_second(text: str, seconds: Mapping[str, float]) -> float | None:
    """Words per second of a language model that streamed this text; None where it was not streamed or not timed."""
    writing = seconds.get("generation", 0.0) - seconds.get(FIRST_WORDS, math.inf)
    return len(text.split()) / writing if writing > 0 else None


class Recorder:
    """Records one run. ``seconds`` counts the pipeline's own work per stage, without the time of its consumer."""

    def __init__(
        self,
        question: Question,
        config: Config,
        manifest: Mapping[str, Any],
        models: Mapping[str, ModelInfo],
        store: RecordStore | None,
    ) -> None:
        self.record_id = new_record_id()
        self.seconds: dict[str, float] = {}
        self._question, self._config, self._store = question, config, store
        self._manifest: dict[str, Any] = json.loads(json.dumps(manifest))  # plain JSON values, as read from a record
        self._models = dict(models)
        self._rankings: tuple[Ranking, ...] = ()
        self._reranker_scores: dict[str, float] = {}
        self._selection = Selection((), ())
        self._evidence: dict[str, Passage] = {}  # passages of a fan-out's sub-questions, by id
        self._record: AnswerRecord | None = None
        self._trace: list[TraceEvent] = []
        self._waits_for_words = config.generation.asks_model
        self._spans = _spans(question, config, self.record_id)
        self._spent = 0.0
        self._resumed = time.perf_counter()

    def resume(self) -> None:
        """Starts the pipeline's clock again, when the consumer has handed control back."""
        self._resumed = time.perf_counter()

    def observe(self, event: Event) -> None:
        """Records the event; saves when the answer, its scores or a best answer so far are complete."""
        self._spent += time.perf_counter() - self._resumed
        stage = STAGES.get(type(event))
        if stage:
            self.seconds[stage], self._spent = self.seconds.get(stage, 0.0) + self._spent, 0.0
        if self._spans:
            self._spans.observe(event, stage or "", self.seconds.get(stage or "", 0.0))
        self._take(event)
        self.resume()

    def _take(self, event: Event) -> None:
        match event:
            case Retrieved(rankings):
                self._rankings = rankings
            case Token() if self._waits_for_words and FIRST_WORDS not in self.seconds:
                self.seconds[FIRST_WORDS] = self._spent
            case Reranked(ranking):
                self._reranker_scores = reranker_scores(ranking)
            case Selected(selection):
                self._selection = selection
            case BestSoFar(answer, _, _, scored):
                self._trace.append(replace(event, scored=None, selection=None))
                self._selection = event.selection or self._selection
                self._save(replace(self._new_record(answer), scored=scored, status="writing"))
            case EvidenceFound():
                self._trace.append(replace(event, passages=()))
                self._evidence |= {passage.passage_id: passage for passage in event.passages}
            case _ if isinstance(event, TraceEvent):
                self._trace.append(event)
            case Answered(answer):
                self._save(self._new_record(answer))
            case RelevanceMeasured(relevance) if self._record:
                self._save(replace(self._record, answer_relevance=relevance))
            case Scored() if self._record:
                self._save(replace(self._record, scored=event, seconds=dict(self.seconds), status="scored"))

    @contextmanager
    def storing_failures(self) -> Iterator[None]:
        """Stores an answer whose scoring fails with the error, and an interrupted best answer so far as stopped."""
        try:
            with self._spans or nullcontext():
                yield
        except (GeneratorExit, KeyboardInterrupt):
            if self._record and self._record.status == "writing":
                self._save(replace(self._record, trace=tuple(self._trace), status="stopped"))
            raise
        except ScoringError as error:
            if self._record:
                self._save(replace(self._record, status="scoring failed", error=str(error)))
            raise

    def _save(self, record: AnswerRecord) -> None:
        self._record = record
        if self._store:
            self._store.save(record)

    def _new_record(self, answer: Answer) -> AnswerRecord:
        config, candidates = self._config, (*self._selection.kept, *self._selection.dropped)
        return AnswerRecord(
            record_id=self.record_id,
            created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            question=self._question,
            index=config.index,
            retrieval=config.retrieval,
            fusion=config.fusion,
            reranking=config.reranking,
            filtering=config.filtering,
            generation=config.generation.without_credentials(),
            scoring=config.scoring,
            manifest=self._manifest,
            models=self._models,
            passages=_distinct_passages(self._rankings, self._evidence, candidates),
            rankings=tuple(
                RankingEntry(
                    ranking.retriever,
                    tuple((hit.passage.passage_id, hit.score) for hit in ranking.hits),
                    ranking.finds,
                    ranking.bounds,
                    {hit.passage.passage_id: (hit.note, hit.via) for hit in ranking.hits if hit.note or hit.via},
                )
                for ranking in self._rankings
            ),
            reranker_scores=tuple(self._reranker_scores.items()),
            candidates=tuple(
                CandidateEntry(c.passage.passage_id, c.rank, c.hit.score, c.relevance, c.drop, c.explanation)
                for c in sorted(candidates, key=lambda c: c.rank)
            ),
            answer=answer,
            trace=tuple(self._trace),
            seconds=dict(self.seconds),
            ragqa_version=__version__,
        )


def _spans(question: Question, config: Config, record_id: str) -> Spans | None:
    """The OpenTelemetry spans of this question, if RAGQA_TRACES is on. Raises ConfigError."""
    switch = os.environ.get("RAGQA_TRACES", "").strip().lower()
    if switch in {"", "off"}:
        return None
    if switch not in {"on", "texts"}:
        raise ConfigError(f"RAGQA_TRACES: expected on, texts or off, found {switch[:20]!r}; correct it and start again")
    try:
        from ragqa.records.traces import Spans
    except ImportError as error:
        msg = f"RAGQA_TRACES={switch}: expected OpenTelemetry, found none ({error}); install ragqa[otel]"
        raise ConfigError(msg) from error
    return Spans(question, config, record_id, texts=switch == "texts")


def _distinct_passages(
    rankings: tuple[Ranking, ...], evidence: Mapping[str, Passage], candidates: Iterable[Candidate]
) -> tuple[Passage, ...]:
    """Every passage that the question, a sub-question or a rule's number found, once, ordered by id."""
    by_id = {one.passage.passage_id: one.passage for one in candidates}
    by_id |= {hit.passage.passage_id: hit.passage for ranking in rankings for hit in ranking.hits} | dict(evidence)
    return tuple(by_id[passage_id] for passage_id in sorted(by_id))
