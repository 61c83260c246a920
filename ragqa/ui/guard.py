"""What stands before the page's server: a request that is for another host, or of another site, never reaches it.

What is answered may not be framed, guessed at, or made to load anything from elsewhere.

Streamlit compares Host and Origin with each other alone, which a web site whose name was pointed to this machine
passes; and a foreign Origin has it ask a public address who this machine is, while everybody waits.
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
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocketClose

from ragqa.errors import RagqaError
from ragqa.settings.environment import whole_number
from ragqa.ui import access
from ragqa.ui.uploads import PATH, Uploads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_logger = logging.getLogger(__name__)

HOSTS: Final = ("localhost", "127.0.0.1", "::1")  # where `server.allowedHosts` names none
PROBES: Final = ("/healthz", "/readyz")  # asked by machines that know an address and no name; they tell nothing
_SHOWN: Final = 80  # characters of what somebody sent


def content_policy() -> str:
    """Everything comes from this server: the page's scripts, the few lines in its HTML, and the panes' own (blob)."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    inline = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = [f"'sha256-{b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in inline]
    allowed = {
        "default-src": "'self'",
        "script-src": " ".join(["'self' blob: 'unsafe-eval'", *hashes]),  # charts are compiled where they are drawn
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
    """ASGI middleware; the first that sees a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._uploads = app, Uploads()
        self._open: Counter[str] = Counter()  # websockets by the address they come from

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or refuses it in a sentence."""
        if scope["type"] == "lifespan":
            sweeping = asyncio.create_task(self._uploads.sweep())
            try:
                await self._app(scope, receive, in_words(send))
            except RagqaError:  # it is said already
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
                await PlainTextResponse(refusal + "\n", status)(scope, receive, with_headers(send))
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
            f"expected a request for {', '.join(allowed)}, found one for {_shown(host)!r}; whoever runs this server "
            "adds a name: make serve HOSTS=…, or server.allowedHosts"
        )
    origin = headers.get("origin")
    changes = scope["type"] == "websocket" or scope["method"] not in {"GET", "HEAD", "OPTIONS"}
    if changes and origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return f"expected a request of this site's own page, found one of {_shown(origin)!r}; open the page itself"
    return ""


def forwarded(scope: Scope) -> str:
    """Why a request that came through a proxy goes no further; "" where it may, or came through none.

    A server that asks nobody to sign in because it listens to this machine alone would be everybody's behind one.
    """
    names = [name for name in Headers(scope=scope) if name.startswith("x-forwarded-") or name == "forwarded"]
    if not names or access.is_guarded() or access.is_open_to_all() or scope["path"] in PROBES:
        return ""
    return (
        f"expected a request of this machine, found one that a proxy passed on ({names[0]}); whoever runs this server "
        "sets RAGQA_ACCESS=on, and people sign in, or RAGQA_ACCESS=off, and whoever reaches the proxy may do everything"
    )


def refused_figures(headers: Headers) -> str:
    """Why figures are not told: where people sign in, and wherever a token is set, only who knows it is."""
    token = os.environ.get("RAGQA_METRICS_TOKEN", "").strip()
    if not token and not access.is_guarded():
        return ""
    told = headers.get("authorization", "").encode()
    if token and hmac.compare_digest(told, f"Bearer {token}".encode()):
        return ""
    return "expected Authorization: Bearer and the value of RAGQA_METRICS_TOKEN, which the server must have too"


def in_words(send: Send) -> Send:
    """A start that fails of a setting ends with its sentence in place of the trace that the server would print."""

    async def sent(message: Message) -> None:
        error = sys.exc_info()[1]
        if message["type"] == "lifespan.startup.failed" and isinstance(error, RagqaError):
            message = {**message, "message": str(error)}
        await send(message)

    return sent


def with_headers(send: Send) -> Send:
    """Adds `HEADERS` to what is answered, where it does not say otherwise itself."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def is_allowed(host: str, allowed: tuple[str, ...]) -> bool:
    """Whether a Host header names one of these, whatever the port; ``*.`` before a name stands for any below it."""
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
