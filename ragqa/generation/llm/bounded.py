"""Limits on a server's replies to an `httpx2` client: size, time and no compression; cut off when nobody waits.

A compressed body of 3 MB may expand to gigabytes before the client sees a byte of it, and a server that sends one byte
every few seconds never triggers the time-out. Importing this takes a tenth of a second.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

import httpx2

_stopped: ContextVar[threading.Event | None] = ContextVar("ragqa_http_stopped", default=None)
MAX_EVENT_BYTES: Final = 2**19  # of a line of a stream: parsing 8 MB of choices takes a minute and 200 MB of memory
MAX_PLAIN_BYTES: Final = 2**22  # of a reply that is no stream: a list of models, an error
_POLL_SECONDS: Final = 0.5  # how long a connection stays open after the caller has stopped waiting


@contextmanager
def until(stopped: threading.Event) -> Iterator[None]:
    """Within this context, replies to this thread's requests are cut off when the event is set."""
    token = _stopped.set(stopped)
    try:
        yield
    finally:
        _stopped.reset(token)


def bounds(max_bytes: int, max_seconds: float) -> dict[str, Any]:
    """Client arguments that refuse replies beyond these limits, compressed replies and redirects."""

    def bound(response: httpx2.Response) -> None:
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in {"", "identity"}:
            response.close()
            msg = f"a packed reply ({packed[:20]}), which was not asked for"
            raise httpx2.ReadError(msg, request=response.request)
        response.stream = _Bounded(response, max_bytes, max_seconds)

    return {"follow_redirects": False, "event_hooks": {"request": [_unpacked], "response": [bound]}}


def _unpacked(request: httpx2.Request) -> None:
    request.headers["Accept-Encoding"] = "identity"


class _Bounded(httpx2.SyncByteStream):
    """The bytes of a reply; raises ReadError if there are too many of them or if they take too long."""

    def __init__(self, response: httpx2.Response, max_bytes: int, max_seconds: float) -> None:
        self._stream: Any = response.stream
        self._is_stream = "event-stream" in response.headers.get("content-type", "").lower()
        self._max_bytes, self._max_seconds = max_bytes if self._is_stream else MAX_PLAIN_BYTES, max_seconds
        self._until = time.monotonic() + max_seconds
        self._closed = threading.Event()
        stopped, network = _stopped.get(), response.extensions.get("network_stream")
        if stopped is not None and network is not None:
            threading.Thread(target=self._watch, args=(stopped, network), name="ragqa-http", daemon=True).start()

    def _watch(self, stopped: threading.Event, network: Any) -> None:  # noqa: ANN401 - of httpcore
        while not self._closed.wait(_POLL_SECONDS):
            if stopped.is_set():
                with suppress(OSError, AttributeError):  # the reader notices at once
                    network.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
                return

    def __iter__(self) -> Iterator[bytes]:
        n_bytes = in_line = 0
        for piece in self._stream:
            n_bytes += len(piece)
            end = piece.rfind(b"\n")
            in_line = len(piece) - end - 1 if end >= 0 else in_line + len(piece)
            if self._is_stream and in_line > MAX_EVENT_BYTES:
                msg = f"an event of more than {MAX_EVENT_BYTES >> 10} KB"
                raise httpx2.ReadError(msg)
            if n_bytes > self._max_bytes:
                msg = f"a reply of more than {self._max_bytes >> 20} MB"
                raise httpx2.ReadError(msg)
            if time.monotonic() > self._until:
                msg = f"a reply that takes more than {self._max_seconds:.0f} s"
                raise httpx2.ReadError(msg)
            yield piece

    def close(self) -> None:
        self._closed.set()
        self._stream.close()
