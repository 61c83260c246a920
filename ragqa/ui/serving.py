"""The parts that `app.py` adds to the page's server: middleware, and routes for operators and programs.

See ragqa/server/README.md.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from threading import Lock, Thread
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route

from ragqa.errors import RagqaError
from ragqa.infra import logs
from ragqa.infra.metrics import CONTENT_TYPE, METRICS
from ragqa.server.memory import share_heaps
from ragqa.settings.config import Config
from ragqa.settings.environment import check_numbers, whole_number
from ragqa.settings.paths import Paths, keep_private
from ragqa.ui import access
from ragqa.ui.guard import Guard, refused_figures
from ragqa.ui.state import resources
from ragqa.ui.state.run import finish

if TYPE_CHECKING:
    from ragqa.server.api.tools import MountedTools

_logger = logging.getLogger(__name__)
_NO_STORE = {"Cache-Control": "no-store"}
_looking = Lock()


@asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[dict[str, object]]:
    """Loads the models when the server starts, so that it can report readiness; lets runs end when it stops."""
    share_heaps()
    keep_private(Paths.from_env().home, new_files=True)
    logs.set_up()
    check_numbers()
    access.is_guarded()  # an invalid setting stops the server at its start, not each visit
    turns, seconds = resources.turns(), whole_number("RAGQA_STOP_SECONDS")
    # Each program that waits for its turn holds a thread, so there are more threads for all other requests.
    held = whole_number("RAGQA_MAX_RUNS") + whole_number("RAGQA_MAX_WAITING")
    to_thread.current_default_thread_limiter().total_tokens += held
    _begin()
    tools = _tools()
    async with tools.running() if tools else nullcontext():
        yield {}
    await run_in_threadpool(finish, turns, float(seconds))


def middleware() -> list[Middleware]:
    """The middleware before Streamlit."""
    return [Middleware(Guard)]


def routes() -> list[BaseRoute]:
    """``/healthz``, ``/readyz``, ``/metrics``, and, where programs have access, ``/v1`` and ``/mcp``."""
    own: list[BaseRoute] = [Route("/healthz", _health), Route("/readyz", _ready), Route("/metrics", _metrics)]
    if not access.serves_programs():
        return own
    from ragqa.server.api.http import Keyed, application
    from ragqa.ui.state.backend import PageBackend

    own.append(Mount("/v1", Keyed(application(PageBackend()), access.gate_of_key, access.acting)))
    if tools := _tools():
        keyed = Keyed(tools.app, access.gate_of_key, access.acting)
        own += [Route("/mcp", keyed), Route("/mcp/", keyed)]  # no Mount, which would leave /mcp itself to the page
    return own


@cache
def _tools() -> MountedTools | None:
    """The tools for assistants, where programs have access and the extra `mcp` is installed."""
    if not access.serves_programs() or find_spec("mcp") is None:
        return None
    from ragqa.server.api.tools import mounted
    from ragqa.ui.state.backend import PageBackend

    return mounted(PageBackend())


async def _health(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok\n", headers=_NO_STORE)


async def _ready(_request: Request) -> PlainTextResponse:
    missing = await run_in_threadpool(missing_now)
    words = f"not ready: {missing}\n" if missing else "ready\n"
    return PlainTextResponse(words, 503 if missing else 200, headers=_NO_STORE)


async def _metrics(request: Request) -> PlainTextResponse:
    if words := refused_figures(request.headers):
        return PlainTextResponse(words + "\n", 401, headers={**_NO_STORE, "WWW-Authenticate": "Bearer"})
    return PlainTextResponse(METRICS.text(), media_type=CONTENT_TYPE, headers=_NO_STORE)


def missing_now() -> str:
    """What the first question would wait for or fail on, without paths; "" where the server is ready."""
    if not _looking.acquire(blocking=False):  # another request may be loading what was missing
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
        access.check_settings()
        return resources.warm_up(Config.from_env(), Paths.from_env())
    except RagqaError as error:
        _logger.error("%s", error)
        return None
