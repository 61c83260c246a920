"""What a client is sent: results and streams while it is there, problems in words."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import Final, TypeVar

from anyio import to_thread
from fastapi import Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from ragqa.errors import (
    AccessError,
    BusyError,
    ConfigError,
    CorpusError,
    GenerationError,
    IndexingError,
    ModelError,
    QuestionError,
    RagqaError,
    RecordError,
)
from ragqa.server.api.service import StillWanted
from ragqa.types.events.pipeline import Event

_logger = logging.getLogger(__name__)
_T = TypeVar("_T")
FAILED: Final = "ragqa failed unexpectedly; its log says more"

_STATUS: Final[dict[type[RagqaError], int]] = {  # the first class that matches
    AccessError: 403,
    BusyError: 503,
    QuestionError: 422,
    CorpusError: 404,
    RecordError: 404,
    IndexingError: 404,
    ConfigError: 422,
    GenerationError: 502,
    ModelError: 503,
}
_TITLES: Final = {
    401: "Access denied",
    403: "Not allowed",
    404: "Not found",
    411: "Length required",
    413: "Too large",
    422: "Cannot be done as asked",
    503: "Busy",
}


def problem(status: int, words: str) -> JSONResponse:
    """An error response by RFC 9457, which also has the field ``error`` that OpenAI's clients read."""
    body = {"type": "about:blank", "title": _TITLES.get(status, "Failed"), "status": status, "detail": words}
    error = {"error": {"message": words, "type": body["title"], "code": status}}
    return JSONResponse(body | error, status, media_type="application/problem+json")


def status_of(error: Exception) -> int:
    """The HTTP status of one of ragqa's errors; 500 for an unexpected error."""
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)


@asynccontextmanager
async def _watched(request: Request) -> AsyncIterator[threading.Event]:
    """An event that is set when the client of this request, whose body is read, closes the connection."""
    gone = threading.Event()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    watching = asyncio.create_task(watch())
    try:
        yield gone
    finally:
        watching.cancel()


def _wanted_until(gone: threading.Event) -> StillWanted:
    def still_wanted() -> None:
        if gone.is_set():
            raise BusyError("The client has closed the connection.")

    return still_wanted


async def done(request: Request, work: Callable[[StillWanted], _T]) -> _T:
    """What ``work`` returns, from a thread; it is told when the client has gone. Raises as ``work``."""
    async with _watched(request) as gone:
        return await run_in_threadpool(work, _wanted_until(gone))


async def sent(
    request: Request,
    begin: Callable[[StillWanted], Iterator[Event]],
    lines: Callable[[Iterator[Event]], Iterator[str]],
) -> StreamingResponse:
    """The ``lines`` of the events as server-sent events; an error before the first line is raised, not streamed."""
    # The queue has no bound, so that the thread never waits for a client that has gone.
    made: queue.SimpleQueue[str | Exception | None] = queue.SimpleQueue()

    def run(still_wanted: StillWanted) -> None:
        try:
            with closing(begin(still_wanted)) as events:  # type: ignore[type-var]
                for text in lines(events):
                    made.put(text)
        except Exception as error:  # raised below, or sent in the stream
            if not isinstance(error, RagqaError):
                _logger.exception("a streamed request failed unexpectedly")
            made.put(error)
        finally:
            made.put(None)

    async with _watched(request) as gone:
        work = partial(contextvars.copy_context().run, run, _wanted_until(gone))
        threading.Thread(target=work, name="ragqa-stream", daemon=True).start()
        try:
            first = await run_in_threadpool(made.get)
        except BaseException:  # the server stops
            gone.set()
            raise
    if isinstance(first, Exception):
        raise first

    async def body() -> AsyncIterator[str]:
        one: str | Exception | None = first
        try:
            while one is not None:
                if isinstance(one, Exception):
                    words = str(one) if isinstance(one, RagqaError) else FAILED
                    yield line({"error": {"message": words, "code": status_of(one)}}, "error")
                else:
                    yield one
                # left at once when the client goes; `run` always puts None, so that the thread ends
                one = await to_thread.run_sync(made.get, abandon_on_cancel=True)
        finally:
            gone.set()

    # The background task runs also where the client has gone before the body began.
    left = BackgroundTask(gone.set)
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(body(), media_type="text/event-stream", headers=headers, background=left)


def line(data: object, event: str = "") -> str:
    """One server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False, default=str)}\n\n"
