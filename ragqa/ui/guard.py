"""The middleware before the page's server: it rejects requests for another host or from another site.

Its headers forbid that a response is framed, that its type is guessed, and that it loads anything from elsewhere.

Streamlit only compares Host and Origin with each other. A web site whose name points to this machine passes that check,
and a foreign Origin makes Streamlit ask a public server for this machine's address while all requests wait.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import os
import re
import sys
from base64 import b64encode
from collections import Counter
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.websockets import WebSocketClose

from ragqa.errors import RagqaError
from ragqa.settings.environment import whole_number
from ragqa.ui import access
from ragqa.ui.uploads import PATH, Uploads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_logger = logging.getLogger(__name__)

HOSTS: Final = ("localhost", "127.0.0.1", "::1")  # the default of `server.allowedHosts`
PROBES: Final = ("/healthz", "/readyz")  # requested by machines under an address, not a name; they reveal nothing
_SHOWN: Final = 80  # characters of a request's value in a message


def content_policy() -> str:
    """Allows only content from this server: the page's scripts, those in its HTML, and the panes' own (blob)."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    inline = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = [f"'sha256-{b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in inline]
    allowed = {
        "default-src": "'self'",
        "script-src": " ".join(["'self' blob: 'unsafe-eval'", *hashes]),  # Vega compiles charts in the browser
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self' data: blob:",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in allowed.items())


HEADERS: Final = {
    "Content-Security-Policy": content_policy(),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """ASGI middleware, the first that handles a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._uploads = app, Uploads()
        self._open: Counter[str] = Counter()  # the number of open websockets, by client address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or rejects it with a message."""
        if scope["type"] == "lifespan":
            sweeping = asyncio.create_task(self._uploads.sweep())
            try:
                await self._app(scope, receive, in_words(send))
            except RagqaError:  # `in_words` has shown it
                pass
            finally:
                sweeping.cancel()
            return
        status, refusal = self._refusal(scope)
        if refusal:
            _logger.info("refused: %s", refusal)
            if scope["type"] == "websocket":
                await WebSocketClose(1008)(scope, receive, send)
            else:
                await _refused(scope["path"], status, refusal)(scope, receive, with_headers(send))
            return
        with self._counted(scope):
            await self._app(scope, receive, with_headers(send) if scope["type"] == "http" else send)

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        if words := foreign(scope) or forwarded(scope):
            return 403, words
        if scope["path"].endswith("/_stcore/metrics") and (words := refused_figures(Headers(scope=scope))):
            return 401, words
        most = whole_number("RAGQA_SESSIONS_PER_ADDRESS")
        if scope["type"] == "websocket" and self._open[_address(scope)] >= most:
            return 429, f"expected at most {most} open pages from one address, found more; close some"
        if scope["type"] == "http" and PATH in scope["path"] and scope["method"] != "OPTIONS":
            return self._uploads.refusal(scope)
        return 0, ""

    @contextmanager
    def _counted(self, scope: Scope) -> Iterator[None]:
        if scope["type"] == "http":
            with self._uploads.arriving(scope) if PATH in scope["path"] else nullcontext():
                yield
            return
        address = _address(scope)
        self._open[address] += 1
        try:
            yield
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]


def _refused(path: str, status: int, words: str) -> Response:
    """The refusal in words; a program's, of /v1 or /mcp, is a problem as all its others are."""
    if path.lstrip("/").partition("/")[0] not in {"v1", "mcp"}:
        return PlainTextResponse(words + "\n", status)
    from ragqa.server.api.replies import problem

    return problem(status, words)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def foreign(scope: Scope) -> str:
    """Why this request is of another host or site than this server's; "" where it is not."""
    headers = Headers(scope=scope)
    hosts = headers.getlist("host")
    host = hosts[0] if len(hosts) == 1 else ""
    allowed = st.get_option("server.allowedHosts") or HOSTS
    if scope["path"] not in PROBES and not is_allowed(host, allowed):
        return (
            f"expected a request for {', '.join(allowed)}, found one for {_shown(host)!r}; the operator of this server "
            "can add a name: make serve HOSTS=…, or server.allowedHosts"
        )
    origin = headers.get("origin")
    changes = scope["type"] == "websocket" or scope["method"] not in {"GET", "HEAD", "OPTIONS"}
    if changes and origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return f"expected a request from this site's own page, found one from {_shown(origin)!r}; open the page itself"
    return ""


def forwarded(scope: Scope) -> str:
    """Why a request through a proxy is rejected; "" where it is allowed, or came through none.

    A server that needs no sign-in because it only serves this machine would be open to everybody behind a proxy.
    """
    names = [name for name in Headers(scope=scope) if name.startswith("x-forwarded-") or name == "forwarded"]
    if not names or access.is_guarded() or access.is_open_to_all() or scope["path"] in PROBES:
        return ""
    return (
        f"expected a request from this machine, found one that a proxy forwarded ({names[0]}); the operator has to set "
        "RAGQA_ACCESS=on, so that people sign in, or RAGQA_ACCESS=off, which gives everybody behind it all rights"
    )


def refused_figures(headers: Headers) -> str:
    """Why the metrics are denied, or "": with sign-in, and wherever a token is set, the request must have the token."""
    token = os.environ.get("RAGQA_METRICS_TOKEN", "").strip()
    if not token and not access.is_guarded():
        return ""
    told = headers.get("authorization", "").encode()
    if token and hmac.compare_digest(told, f"Bearer {token}".encode()):
        return ""
    return "expected Authorization: Bearer and the value of RAGQA_METRICS_TOKEN, which the server must have too"


def in_words(send: Send) -> Send:
    """Shows a startup error of ragqa's settings as its message, not as a traceback."""

    async def sent(message: Message) -> None:
        error = sys.exc_info()[1]
        if message["type"] == "lifespan.startup.failed" and isinstance(error, RagqaError):
            message = {**message, "message": str(error)}
        await send(message)

    return sent


def with_headers(send: Send) -> Send:
    """Adds `HEADERS` to a response, where it does not set them itself."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def is_allowed(host: str, allowed: tuple[str, ...]) -> bool:
    """Whether a Host header, without its port, is one of these; ``*.NAME`` stands for every name below NAME."""
    try:
        parts = urlsplit(f"//{host}")
        name = (parts.hostname or "").rstrip(".")
        is_plain = parts.netloc == host and "@" not in host and parts.port != 0
    except ValueError:
        return False
    wanted = [one.strip().lower().rstrip(".").strip("[]") for one in allowed]
    return (
        bool(name)
        and is_plain
        and any(one in {"*", name} or (one.startswith("*.") and name.endswith(one[1:])) for one in wanted)
    )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
