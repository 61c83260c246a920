"""The HTTP endpoints below /v1: OpenAI's chat and ragqa's own. OpenAPI: /v1/openapi.json, for people /v1/docs.

The gate decides what is allowed; `Keyed` finds the person behind a request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import Annotated, Any, Final

from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from ragqa.errors import AccessError, BusyError, QuestionError, RagqaError
from ragqa.infra.disk_cache import RecentResults
from ragqa.infra.version import __version__
from ragqa.records.view import View, advance
from ragqa.server.access.gate import Gate
from ragqa.server.api import chat, documents, page, service
from ragqa.server.api.bodies import (
    AskRequest,
    ChatRequest,
    CheckRequest,
    DocumentRequest,
    ObligationsRequest,
    ScoreRequest,
    SearchRequest,
)
from ragqa.server.api.documents import LibraryBackend
from ragqa.server.api.replies import FAILED, done, line, problem, sent, status_of
from ragqa.server.api.service import Backend, Inquiry, StillWanted
from ragqa.types.events.generation import Token
from ragqa.types.events.pipeline import Event, Fused, Reranked, Retrieved, Selected
from ragqa.types.events.scoring import Scored

_Key = Annotated[str, Header(max_length=200)]
_KEPT: Final = 1_000  # idempotency keys that a process remembers
MOST_BYTES: Final = 64 << 20  # of a request body: a file of 48 MB in base64
_PROBLEM: Final = {"application/problem+json": {"schema": {"type": "object"}}}
_REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    name: {"description": "A refusal in words (RFC 9457)", "content": _PROBLEM} for name in (422, "default")
}

_STREAMED: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"text/event-stream": {}}}}
_SERVERS: Final[list[dict[str, str | Any]]] = [{"url": "/v1"}]


class Keyed:
    """ASGI middleware: finds the person behind a request by its key; the application within acts for them."""

    def __init__(
        self, app: ASGIApp, gate_of: Callable[[Headers], Gate], acting: Callable[[Gate], AbstractContextManager[None]]
    ) -> None:
        """``gate_of`` raises AccessError where a key is required and is missing or wrong."""
        self._app, self._gate_of, self._acting = app, gate_of, acting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or answers with a problem in words."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = _unbounded(headers)
        if refusal:
            await refusal(scope, receive, send)
            return
        try:
            gate = await run_in_threadpool(self._gate_of, headers)
        except RagqaError as error:
            refusal = problem(401 if isinstance(error, AccessError) else 503, str(error))
            refusal.headers["WWW-Authenticate"] = "Bearer"
            await refusal(scope, receive, send)
            return
        with self._acting(gate):
            await self._app(scope, receive, send)


def _unbounded(headers: Headers) -> JSONResponse | None:
    """The problem of a body without a stated length, or above `MOST_BYTES`; None where it is accepted."""
    if "transfer-encoding" in headers:
        return problem(411, "expected a body with its Content-Length, found one in chunks; send it whole")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > MOST_BYTES:
        words = f"expected a body of at most {MOST_BYTES >> 20} MB, found a length of {length[:20]}; send less"
        return problem(413, words)
    return None


def application(backend: LibraryBackend) -> FastAPI:
    """The application below /v1."""
    api = FastAPI(
        title="ragqa", version=__version__, docs_url=None, redoc_url=None, responses=_REFUSALS, servers=_SERVERS
    )
    api.add_exception_handler(RagqaError, _refused)
    api.add_exception_handler(RequestValidationError, _malformed)
    api.add_exception_handler(HTTPException, _unknown)
    api.add_exception_handler(Exception, _failed)
    _add_chat(api, backend)
    _add_questions(api, backend)
    _add_reading(api, backend)
    _add_documents(api, backend)
    api.get("/docs", response_class=HTMLResponse, include_in_schema=False)(lambda: page.described(api.openapi()))
    return api


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    return problem(status_of(error), str(error))


async def _malformed(request: Request, error: Exception) -> JSONResponse:
    if request.method != "GET" and "json" not in (given := request.headers.get("content-type", "no content type")):
        return problem(422, f"expected a body with Content-Type: application/json, found {given}; name it so")
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
    where = ".".join(str(part) for part in first.get("loc", ()))
    found = f"{first.get('msg', '')} at {where}"
    return problem(422, f"expected what /v1/openapi.json describes, found: {found}; correct it")


async def _unknown(request: Request, error: Exception) -> JSONResponse:
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    wanted = "an address and a method of /v1/docs"
    if status == 400:  # nested too deeply, or a number of thousands of digits
        wanted = "a body of JSON that can be read, as /v1/docs describes it"
    refusal = problem(status, f"expected {wanted}, found {request.method} {request.url.path} ({status})")
    refusal.headers.update(headers or {})  # includes Allow, the allowed methods
    return refusal


async def _failed(_request: Request, _error: Exception) -> JSONResponse:
    return problem(500, FAILED)


def _add_chat(api: FastAPI, backend: Backend) -> None:
    @api.get("/models")
    def models() -> dict[str, Any]:
        """The corpora, in the form of OpenAI's list of models."""
        return chat.models(list(service.corpora(backend)))

    @api.get("/models/{model}")
    def model(model: str) -> dict[str, Any]:
        """One of these corpora."""
        return chat.model(model, list(service.corpora(backend)))

    @api.post("/chat/completions", responses=_STREAMED)
    async def completions(body: ChatRequest, request: Request) -> Any:  # noqa: ANN401
        """Answers a question to a corpus in OpenAI's form; earlier messages are the history of a follow-up."""
        question, thread = chat.thread_of([(message.role, message.text) for message in body.messages])
        corpus = chat.corpus_of(body.model, await run_in_threadpool(lambda: list(backend.corpora())))
        asked = await run_in_threadpool(service.asked_of, backend, corpus, question, thread=thread)
        events = partial(service.events, backend, asked)
        if body.stream:
            return await sent(request, events, partial(_chat_lines, body, asked))
        begun = View(asked.question, asked.config)
        view = await done(request, lambda still_wanted: _followed(events(still_wanted), begun))
        return chat.completion(body.model, view, _text(view) + chat.ending(view))


def _add_questions(api: FastAPI, backend: Backend) -> None:
    kept = Idempotent()

    def record(asked: Inquiry, key: str, body: BaseModel) -> dict[str, Any]:
        person = backend.gate().person.id
        record_id = kept.made(person, key, body, lambda: str(service.record_of(backend, asked)["record_id"]))
        return service.stored(backend, record_id)

    # a record or a stream
    async def answered(request: Request, body: AskRequest | CheckRequest, key: str, text: str = "") -> Any:  # noqa: ANN401
        asked = await run_in_threadpool(
            service.asked_of, backend, body.corpus, body.question, text=text, preset=body.preset, as_of=body.as_of
        )
        if body.stream:
            return await sent(request, partial(service.events, backend, asked), _event_lines)
        if key:  # whoever lost the connection asks again with the same key
            return await run_in_threadpool(record, asked, key, body)
        return await done(request, partial(service.record_of, backend, asked))

    @api.post("/ask", responses=_STREAMED)
    async def ask(body: AskRequest, request: Request, idempotency_key: _Key = "") -> Any:  # noqa: ANN401
        """Answers a question and scores the answer: the record, as `ragqa ask --json` prints it."""
        return await answered(request, body, idempotency_key)

    @api.post("/check", responses=_STREAMED)
    async def check(body: CheckRequest, request: Request, idempotency_key: _Key = "") -> Any:  # noqa: ANN401
        """Checks a text against a corpus: the record, as `ragqa check --json` prints it."""
        return await answered(request, body, idempotency_key, body.text)

    @api.post("/score")
    async def score(body: ScoreRequest, request: Request) -> dict[str, Any]:
        """Scores an answer against the given passages: both definitions of RePASs, and verdicts."""
        return await done(request, partial(service.score, backend, body.passages, body.answer))


def _add_reading(api: FastAPI, backend: Backend) -> None:
    @api.post("/search")
    async def search(body: SearchRequest, request: Request) -> dict[str, Any]:
        """The best passages for a question."""

        def found(still_wanted: StillWanted) -> dict[str, Any]:
            asked = service.asked_of(backend, body.corpus, body.question, preset=body.preset, as_of=body.as_of)
            return {"corpus": asked.config.index, "results": service.search(backend, asked, body.limit, still_wanted)}

        return await done(request, found)

    @api.post("/obligations")
    async def obligations(body: ObligationsRequest, request: Request) -> dict[str, Any]:
        """The sentences of these passages that oblige or recommend, each with its strength."""

        def found(still_wanted: StillWanted) -> dict[str, Any]:
            some = [service.passage(backend, body.corpus, one) for one in body.passage_ids]
            told = service.obligations(backend, body.corpus, some, still_wanted)
            return {"corpus": body.corpus, "obligations": told}

        return await done(request, found)

    @api.get("/passages/{passage_id:path}")
    def passage(passage_id: str, corpus: Annotated[str, Query(min_length=1, max_length=200)]) -> dict[str, Any]:
        """One passage of a corpus."""
        return service.passage_row(service.passage(backend, corpus, passage_id), corpus)

    @api.get("/rules")
    def rules(
        corpus: Annotated[str, Query(min_length=1, max_length=200)],
        reference: Annotated[str, Query(min_length=1, max_length=400)],
    ) -> dict[str, Any]:
        """A rule by its number, as “3.1.1 of the Outsourcing Rules”."""
        return {"corpus": corpus, "passages": service.rule(backend, corpus, reference)}

    @api.get("/corpora")
    def corpora() -> dict[str, Any]:
        """The corpora that can be asked."""
        return {"corpora": list(service.corpora(backend))}


def _add_documents(api: FastAPI, backend: LibraryBackend) -> None:
    kept = Idempotent()

    @api.get("/documents")
    def listed(corpus: Annotated[str, Query(min_length=1, max_length=200)]) -> dict[str, Any]:
        """The documents of a library corpus, the files that wait to be indexed, and the state of the latest job."""
        return documents.listed(backend, corpus)

    @api.post("/documents", status_code=202)
    def added(body: DocumentRequest, idempotency_key: _Key = "") -> dict[str, Any]:
        """Adds a file to a corpus, or replaces the document with its name; the corpus is indexed in the background."""
        short = body.model_copy(update={"content": sha256(body.content).digest()})

        def make() -> str:
            return json.dumps(documents.added(backend, body.corpus, body.title, body.name, body.content))

        corpus, left_out = json.loads(kept.made(backend.gate().person.id, idempotency_key, short, make))
        return documents.listed(backend, corpus) | {"left_out": left_out}

    @api.delete("/documents/{document_id:path}", status_code=202)
    def removed(document_id: str, corpus: Annotated[str, Query(min_length=1, max_length=200)]) -> dict[str, Any]:
        """Removes a document from a corpus; the corpus is indexed again in the background."""
        return documents.removed(backend, corpus, document_id)


class Idempotent:
    """What was made for each person and idempotency key: a repeated request gets what the first one made."""

    def __init__(self) -> None:
        self._made: RecentResults[tuple[str, str], tuple[BaseModel, str]] = RecentResults(_KEPT)
        self._running: set[tuple[str, str]] = set()
        self._lock = Lock()

    def made(self, person: str, key: str, body: BaseModel, make: Callable[[], str]) -> str:
        """What ``make`` returns, or returned for the first request with this ``key``; "" is no key.

        Raises QuestionError for another body, BusyError while the first request runs, and as ``make``.
        """
        place = (person, key)
        with self._lock:
            known = self._made.known([place]).get(place)
            if known and known[0] != body:
                words = "expected the body that this Idempotency-Key was first sent with, found another; "
                raise QuestionError(words + "send another key")
            if known:
                return known[1]
            if place in self._running:
                raise BusyError("The first request with this Idempotency-Key is still running; send it again later.")
            if key:
                self._running.add(place)
        try:
            made = make()
            if key:
                self._made.remember({place: (body, made)})
            return made
        finally:
            self._running.discard(place)


# Streams ------------------------------------------------------------------------------------------------------------


def _event_lines(events: Iterator[Event]) -> Iterator[str]:
    for event in events:
        yield line(event_data(event), type(event).__name__)


def event_data(event: Event) -> object:
    """An event as JSON: rankings as ids and scores, a selection as kept and dropped passages with reasons."""
    match event:
        case Retrieved(rankings):
            return [{"retriever": one.retriever, "hits": _hits(one)} for one in rankings]
        case Fused(ranking) | Reranked(ranking):
            return {"hits": _hits(ranking)}
        case Selected(selection):
            return {
                "kept": [service.passage_row(one.passage, "") | {"why": one.explanation} for one in selection.kept],
                "dropped": [
                    {"passage_id": one.passage.passage_id, "why": one.explanation} for one in selection.dropped
                ],
            }
        case Scored(paper, script):
            return {"paper": asdict(paper.repass), "script": asdict(script.repass)}
    return asdict(event)


def _hits(ranking: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a Ranking
    return [{"passage_id": hit.passage.passage_id, "score": hit.score} for hit in ranking.hits]


def _followed(events: Iterator[Event], view: View) -> View:
    for event in events:
        view = advance(view, event)
    return view


def _text(view: View) -> str:
    """The answer with its citation marks."""
    return (view.answer.raw or view.answer.text) if view.answer else ""


def _chat_lines(body: ChatRequest, asked: Inquiry, events: Iterator[Event]) -> Iterator[str]:
    view, written = View(asked.question, asked.config), ""
    for event in events:
        view = advance(view, event)
        if isinstance(event, Token):
            written += event.text
            yield line(chat.chunk(body.model, view, event.text))
    whole = _text(view)
    rest = whole[len(written) :] if whole.startswith(written) else ""
    yield line(chat.chunk(body.model, view, rest + chat.ending(view), last=True))
    if body.stream_options and body.stream_options.include_usage:
        yield line(chat.usage_chunk(body.model, view))
    yield "data: [DONE]\n\n"
