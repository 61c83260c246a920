"""A real HTTP server on 127.0.0.1 that speaks the chat completions protocol and misbehaves on demand.

::

    with OpenAIServer(status(429, retry_after="0"), answer("Firms must keep records [1].")) as server:
        LlmGenerator(GenerationConfig(base_url=server.base_url, model="test"))
        ...
        assert len(server.requests) == 2

Each request is met by the next behaviour; the last one meets all that follow. A behaviour is a function of the
exchange, so tests may write their own. The server also runs alone, for trying the page by hand:
``python -m tests.support.openai_server``.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Exchange"], None]


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def prompt(self) -> str:
        return "\n".join(message["content"] for message in self.body["messages"])

    @property
    def n_passages(self) -> int:
        return len(re.findall(r'^<passage-\w+ number="', self.prompt, re.MULTILINE))


class Exchange:
    """One request and the means to answer it, well or badly."""

    def __init__(self, handler: BaseHTTPRequestHandler, request: Request, stopping: threading.Event) -> None:
        self.request = request
        self._handler = handler
        self._stopping = stopping

    def send(self, code: int, body: bytes, content_type: str = "application/json", **headers: str) -> None:
        """A whole response; header names are written with underscores."""
        self._handler.send_response(code)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(body)), **headers}.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()
        self._handler.wfile.write(body)

    def begin_stream(self) -> None:
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", "text/event-stream")
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()

    def data(self, text: str) -> None:
        """One server-sent event with this data."""
        event = f"data: {text}\n\n".encode()
        self._handler.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        self._handler.wfile.flush()

    def chunk(self, delta: dict[str, Any] | None = None, finish_reason: str | None = None, **fields: Any) -> None:
        """One chat completion chunk; without delta and finish reason it has no choices, as a usage chunk has none."""
        choices = []
        if delta is not None or finish_reason is not None:
            choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish_reason}]
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0}
        chunk["model"] = self.request.body.get("model", "test")
        self.data(json.dumps({**chunk, "choices": choices, **fields}))

    def text(self, text: str, seconds_per_piece: float = 0.0) -> None:
        """The text as content deltas, a word each."""
        self.chunk({"role": "assistant", "content": ""})
        for piece in re.findall(r"\s*\S+|\s+", text):
            self.chunk({"content": piece})
            self.wait(seconds_per_piece)

    def end_stream(self) -> None:
        self.data("[DONE]")
        self._handler.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Resets the connection in the middle of the body."""
        self._handler.close_connection = True
        self._handler.wfile.flush()
        time.sleep(0.05)  # a reset overtakes what the client has not read yet
        self._handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._handler.connection.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds: float) -> None:
        """Sleeps, but no longer than the server runs."""
        if seconds:
            self._stopping.wait(seconds)


# Behaviours ---------------------------------------------------------------------------------------------------------


def behaviour(meet: Callable[..., None]) -> Callable[..., Behaviour]:
    """A function of an exchange and what else it needs, to be called with the latter first."""
    return lambda *given, **named: lambda exchange: meet(exchange, *given, **named)


@behaviour
def answer(
    exchange: Exchange,
    text: str | Callable[[Request], str],
    *,
    finish_reason: str | None = "stop",
    usage: tuple[int, int] | None = (100, 20),
    seconds_per_piece: float = 0.0,
) -> None:
    """The text streamed word by word, then the finish reason and, where asked for, the usage."""
    exchange.begin_stream()
    exchange.text(text(exchange.request) if callable(text) else text, seconds_per_piece)
    if finish_reason is not None:
        exchange.chunk({}, finish_reason)
    if usage and exchange.request.body.get("stream_options", {}).get("include_usage"):
        prompt, completion = usage
        counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        exchange.chunk(usage=counts)
    exchange.end_stream()


def cites_all(request: Request) -> str:
    """An answer with one sentence per passage of the prompt, each cited; for `answer`."""
    return " ".join(
        f"Passage {number} says what a Firm must do [{number}]." for number in range(1, request.n_passages + 1)
    )


@behaviour
def events(exchange: Exchange, *datas: str) -> None:
    """These server-sent events and no others."""
    exchange.begin_stream()
    for data in datas:
        exchange.data(data)
    exchange.end_stream()


@behaviour
def deltas(exchange: Exchange, *parts: dict[str, Any], finish_reason: str | None = "stop") -> None:
    """These deltas, one chunk each."""
    exchange.begin_stream()
    for part in parts:
        exchange.chunk(part)
    if finish_reason is not None:
        exchange.chunk({}, finish_reason)
    exchange.end_stream()


@behaviour
def status(
    exchange: Exchange, code: int, message: str = "no", *, retry_after: str | None = None, param: str | None = None
) -> None:
    """An error response as OpenAI words it. ``{key}`` in the message is replaced by the key that was sent."""
    error = {"message": message.replace("{key}", exchange.request.key), "type": "error", "param": param, "code": None}
    headers = {} if retry_after is None else {"Retry_After": retry_after}
    exchange.send(code, json.dumps({"error": error}).encode(), **headers)


@behaviour
def page(exchange: Exchange, text: str, code: int = 200, content_type: str = "text/html") -> None:
    """A response that is not of the protocol at all."""
    exchange.send(code, text.encode(), content_type)


@behaviour
def cut_after(exchange: Exchange, text: str) -> None:
    """The connection reset after this text."""
    exchange.begin_stream()
    if text:
        exchange.text(text)
    exchange.cut()


@behaviour
def malformed_after(exchange: Exchange, text: str, data: str = '{"choices": [{"delta": ') -> None:
    """An event that is not JSON after this text, then an ordinary end."""
    exchange.begin_stream()
    if text:
        exchange.text(text)
    exchange.data(data)
    exchange.chunk({"content": " Never read."}, "stop")
    exchange.end_stream()


@behaviour
def stall_after(exchange: Exchange, text: str, seconds: float = 60.0) -> None:
    """Silence after this text, or instead of a response where the text is empty."""
    if text:
        exchange.begin_stream()
        exchange.text(text)
    exchange.wait(seconds)
    exchange.cut()


@behaviour
def refusing(
    exchange: Exchange, parameter: str, behaviour: Behaviour, message: str = "Unsupported parameter: '{name}'."
) -> None:
    """400 while the request carries this parameter, the other behaviour otherwise."""
    refused = status(400, message.replace("{name}", parameter))
    (refused if parameter in exchange.request.body else behaviour)(exchange)


# Server -------------------------------------------------------------------------------------------------------------


@dataclass
class OpenAIServer:
    """Runs from ``with`` to the end of the block; ``requests`` holds what came in, in order."""

    script: tuple[Behaviour, ...]
    requests: list[Request] = field(default_factory=list)

    def __init__(self, *script: Behaviour, models: tuple[str, ...] = ()) -> None:
        self.models = models
        self.script = script or (answer(cites_all),)
        self.requests = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> OpenAIServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                outer._list_models(self)

            def do_POST(self) -> None:
                outer._meet(self)

            def log_message(self, *_args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _list_models(self, handler: BaseHTTPRequestHandler) -> None:
        listed = {"object": "list", "data": [{"id": name, "object": "model", "created": 0} for name in self.models]}
        found = bool(self.models) and handler.path.endswith("/models")
        body = json.dumps(listed if found else {"error": {"message": "no such path"}}).encode()
        handler.send_response(200 if found else 404)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _meet(self, handler: BaseHTTPRequestHandler) -> None:
        n_bytes = int(handler.headers.get("Content-Length", 0))
        data = handler.rfile.read(n_bytes)
        if len(data) < n_bytes:  # a client that was killed before it had sent its request: none was made
            return
        body = json.loads(data or b"{}")
        request = Request(handler.path, {name.lower(): value for name, value in handler.headers.items()}, body)
        with self._lock:
            behaviour = self.script[min(len(self.requests), len(self.script) - 1)]
            self.requests.append(request)
        with contextlib.suppress(ConnectionError, BrokenPipeError, OSError):  # the client left first
            behaviour(Exchange(handler, request, self._stopping))


def main(arguments: Sequence[str] = ()) -> None:
    """Serves `cites_all` slowly until interrupted; prints what to set."""
    with OpenAIServer(answer(cites_all, seconds_per_piece=0.05)) as server, contextlib.suppress(KeyboardInterrupt):
        print(f"OPENAI_BASE_URL={server.base_url} {' '.join(arguments)}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
