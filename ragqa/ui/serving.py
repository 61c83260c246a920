"""What `serve.py` adds to the page's server: addresses for whoever looks after it. See ragqa/server/README.md."""

from __future__ import annotations

import hmac
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Lock, Thread
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from ragqa.errors import RagqaError
from ragqa.infra import logs
from ragqa.infra.metrics import CONTENT_TYPE, FIGURES
from ragqa.server.memory import share_heaps
from ragqa.server.queue import whole_number
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.ui import access
from ragqa.ui.state import resources
from ragqa.ui.state.run import finish

_logger = logging.getLogger(__name__)
_NO_STORE = {"Cache-Control": "no-store"}
STOP_SECONDS: Final = 8  # of the ten that Docker gives
_looking = Lock()


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[dict[str, object]]:
    """Loads the models as soon as the server runs, so that it can say when it is ready; lets runs end when it stops."""
    share_heaps()
    logs.set_up()
    access.is_guarded()  # a wrong setting ends the server, and not each visit
    turns, seconds = resources.turns(), whole_number("RAGQA_STOP_SECONDS", STOP_SECONDS, least=0)
    _begin()
    yield {}
    await run_in_threadpool(finish, turns, float(seconds))


def routes() -> list[Route]:
    """``/healthz``, ``/readyz`` and ``/metrics``."""
    return [Route("/healthz", _health), Route("/readyz", _ready), Route("/metrics", _metrics)]


async def _health(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok\n", headers=_NO_STORE)


async def _ready(_request: Request) -> PlainTextResponse:
    missing = await run_in_threadpool(missing_now)
    words = f"not ready: {missing}\n" if missing else "ready\n"
    return PlainTextResponse(words, 503 if missing else 200, headers=_NO_STORE)


async def _metrics(request: Request) -> PlainTextResponse:
    """Where people sign in, and wherever a token is set, for whoever knows RAGQA_METRICS_TOKEN; else for everybody."""
    token = os.environ.get("RAGQA_METRICS_TOKEN", "").strip()
    if token or access.is_guarded():
        told = request.headers.get("authorization", "").encode()
        if not token or not hmac.compare_digest(told, f"Bearer {token}".encode()):
            words = (
                "expected Authorization: Bearer and the value of RAGQA_METRICS_TOKEN, which the server must have too\n"
            )
            return PlainTextResponse(words, 401, headers={**_NO_STORE, "WWW-Authenticate": "Bearer"})
    return PlainTextResponse(FIGURES.text(), media_type=CONTENT_TYPE, headers=_NO_STORE)


def missing_now() -> str:
    """What the first question would have to wait for or would fail of; "" where nothing. Says nothing of paths."""
    if not _looking.acquire(blocking=False):  # somebody else's look may be loading what was missing
        return "models and the first corpus are being opened"
    try:
        loading = _begin()
        if loading is None:
            return "the settings, see the log"
        if loading.is_alive():
            return "models are being loaded"
        config, paths = Config.from_env(), Paths.from_env()
        return resources.missing(config, paths)
    finally:
        _looking.release()


def _begin() -> Thread | None:
    try:
        return resources.warm_up(Config.from_env(), Paths.from_env())
    except RagqaError as error:
        _logger.error("%s", error)
        return None
