"""What stands before the page's server: a request that is for another host, or of another site, never reaches it.

Streamlit compares Host and Origin with each other alone, which a web site whose name was pointed to this machine
passes; and a foreign Origin has it ask a public address who this machine is, while everybody waits.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocketClose

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_logger = logging.getLogger(__name__)

HOSTS: Final = ("localhost", "127.0.0.1", "::1")  # where `server.allowedHosts` names none
PROBES: Final = ("/healthz", "/readyz")  # asked by machines that know an address and no name; they tell nothing
_SHOWN: Final = 80  # characters of what somebody sent


class Guard:
    """ASGI middleware; the first that sees a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or refuses it in a sentence."""
        refusal = _refusal(scope) if scope["type"] in {"http", "websocket"} else ""
        if not refusal:
            await self._app(scope, receive, send)
            return
        _logger.info("refused: %s", refusal)
        if scope["type"] == "websocket":
            await WebSocketClose(1008)(scope, receive, send)
        else:
            await PlainTextResponse(refusal + "\n", 403)(scope, receive, send)


def _refusal(scope: Scope) -> str:
    """Why this request goes no further; "" where it does."""
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
