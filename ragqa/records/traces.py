"""The stages of a question as OpenTelemetry spans, for a trace viewer (extra `otel`).

Names follow OpenTelemetry's conventions for generative AI and, for the kind of each span, OpenInference. The target is
set by OpenTelemetry's own variables, as OTEL_EXPORTER_OTLP_ENDPOINT; the default is a collector on this machine. Texts
of question, passages, answer and reasons are left out unless RAGQA_TRACES=texts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, Tracer
from opentelemetry.util.types import AttributeValue

from ragqa.infra.version import __version__
from ragqa.settings.config import Config
from ragqa.types import Answer, Passage, Question, Ranking
from ragqa.types.events.pipeline import Answered, Event, Fused, Reranked, Retrieved, Selected
from ragqa.types.events.scoring import RelevanceMeasured, Scored
from ragqa.types.scores import Breakdown

_MOST: Final = 10  # documents of each ranking in a span
_KIND: Final = "openinference.span.kind"
_Attributes = dict[str, AttributeValue]


@cache
def tracer() -> Tracer:
    """A tracer of the process's provider; without one, of a provider that exports by OTLP over HTTP."""
    os.environ.setdefault("OTEL_SERVICE_NAME", "ragqa")
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        provider = TracerProvider(span_limits=SpanLimits(max_events=2_000))  # long texts have one event per verdict
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
    return trace.get_tracer("ragqa", __version__)


class Spans:
    """The spans of one question; a context manager that ends with it."""

    def __init__(self, question: Question, config: Config, record_id: str, *, texts: bool) -> None:
        self._config, self._texts = config, texts
        self._relevance: float | None = None
        about: _Attributes = {_KIND: "CHAIN", "ragqa.record_id": record_id, "ragqa.corpus": config.index}
        if texts:
            about["input.value"] = question.given or question.text
        self._root = tracer().start_span("check" if question.given else "ask", attributes=about)

    def observe(self, event: Event, stage: str, seconds: float) -> None:
        """Adds a span for the stage that ended with this event; ``seconds`` is the pipeline's own work for it."""
        match event:
            case Retrieved(rankings):
                for one in rankings:
                    self._span(f"{stage} {one.retriever}", "RETRIEVER", seconds, self._found(_hits(one)))
            case Fused(ranking):
                self._span(stage, "RETRIEVER", seconds, self._found(_hits(ranking)))
            case Reranked(ranking):
                about = self._documents("reranker.output_documents", _hits(ranking))
                about["reranker.model_name"] = self._config.reranking.model
                self._span(stage, "RERANKER", seconds, about)
            case Selected(selection):
                kept = [(one.passage, one.relevance) for one in selection.kept]
                self._span(stage, "RETRIEVER", seconds, self._found(kept))
            case Answered(answer):
                kind = "LLM" if self._config.generation.asks_model else "CHAIN"
                self._span(stage, kind, seconds, self._written(answer))
            case RelevanceMeasured(relevance):
                self._relevance = relevance.value
            case Scored():
                breakdown = event.of(self._config.scoring.mode)
                self._span(stage, "EVALUATOR", seconds, {}, list(self._evaluations(breakdown)))

    def __enter__(self) -> None:
        """The question is being answered."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace_: object) -> None:
        """Ends the root span; an error adds its type, and with texts its message. A stopped reader is not an error."""
        if error and not isinstance(error, GeneratorExit):
            self._root.set_attribute("error.type", type(error).__name__)
            self._root.set_status(Status(StatusCode.ERROR, str(error) if self._texts else None))
        self._root.end()

    def _span(
        self, name: str, kind: str, seconds: float, about: _Attributes, evaluations: Iterable[_Attributes] = ()
    ) -> None:
        began, within = time.time_ns() - int(seconds * 1e9), trace.set_span_in_context(self._root)
        span = tracer().start_span(name, within, attributes={_KIND: kind, **about}, start_time=began)
        for one in evaluations:
            span.add_event("gen_ai.evaluation.result", one)
        span.end()

    def _found(self, documents: Iterable[tuple[Passage, float]]) -> _Attributes:
        return self._documents("retrieval.documents", documents) | {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.provider.name": "ragqa",
            "gen_ai.data_source.id": self._config.index,
        }

    def _documents(self, name: str, documents: Iterable[tuple[Passage, float]]) -> _Attributes:
        about: _Attributes = {}
        for n, (passage, score) in enumerate(islice(documents, _MOST)):
            about[f"{name}.{n}.document.id"] = passage.passage_id
            about[f"{name}.{n}.document.score"] = float(score)
            if self._texts:
                about[f"{name}.{n}.document.content"] = passage.text
        return about

    def _written(self, answer: Answer) -> _Attributes:
        usage = answer.usage
        about: _Attributes = {
            "gen_ai.response.finish_reasons": (answer.finish_reason,),
            "ragqa.generator": answer.generator,
            "ragqa.is_refusal": answer.is_refusal,
        }
        if self._config.generation.asks_model:
            about |= {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"}
            about |= {"gen_ai.request.model": answer.model, "llm.model_name": answer.model}
            for kind, name, tokens in (
                ("input", "prompt", usage.prompt_tokens),
                ("output", "completion", usage.completion_tokens),
            ):
                about |= {f"gen_ai.usage.{kind}_tokens": tokens, f"llm.token_count.{name}": tokens}
        if self._texts:
            about["output.value"] = answer.text
            self._root.set_attribute("output.value", answer.text)
        return about

    def _evaluations(self, breakdown: Breakdown) -> Iterator[_Attributes]:
        """Each verdict, RePASs with its three parts, and the answer relevance where it was measured."""
        for verdict in breakdown.verdicts:
            value = breakdown.sentences[verdict.index].entailment
            about = _evaluation("verdict", value) | {"gen_ai.evaluation.score.label": str(verdict.verdict)}
            why = {"gen_ai.evaluation.explanation": verdict.reason} if self._texts else {}
            yield about | {"ragqa.sentence": verdict.index} | why
        repass = breakdown.repass
        yield _evaluation("RePASs", repass.composite)
        yield _evaluation("entailment", repass.entailment)
        yield _evaluation("contradiction", repass.contradiction)
        yield _evaluation("obligation coverage", repass.obligation_coverage)
        if self._relevance is not None:
            yield _evaluation("answer relevance", self._relevance)


def _hits(ranking: Ranking) -> list[tuple[Passage, float]]:
    return [(hit.passage, hit.score) for hit in ranking.hits[:_MOST]]


def _evaluation(name: str, value: float) -> _Attributes:
    return {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": float(value)}
