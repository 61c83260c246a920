"""Twenty replies of a language model's server that are too large, too long, packed, from elsewhere, broken or none."""

from __future__ import annotations

import json
import zlib
from typing import Final

from tests.support.openai_server import (
    Behaviour,
    Exchange,
    cut_after,
    deltas,
    malformed_after,
    page,
    stall_after,
    status,
)

CALL: Final = {"index": 0, "id": "1", "type": "function", "function": {"name": "rm", "arguments": "{}"}}


def chunk(text: str = "", **delta: object) -> str:
    choice = {"index": 0, "delta": {"content": text, **delta}, "finish_reason": None}
    return json.dumps(
        {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [choice]}
    )


def packed(megabytes: int, head: bytes = b"") -> bytes:
    """So many zeros in a thousandth of their length."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    began = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)  # after each the same one fits
    return began + block * megabytes + packer.flush()


def huge_token(exchange: Exchange) -> None:
    exchange.begin_stream()
    exchange.data(chunk("x" * 10_000_000))
    exchange.data("[DONE]")


def huge_refusal(exchange: Exchange) -> None:
    exchange.begin_stream()
    exchange.data(chunk("", refusal="no" * 5_000_000))
    exchange.data("[DONE]")


def endless_thoughts(exchange: Exchange) -> None:
    exchange.begin_stream()
    for _ in range(400):
        exchange.data(chunk("", reasoning_content="y" * 100_000))


def endless_line(exchange: Exchange) -> None:
    exchange.begin_stream()
    for _ in range(400):
        exchange._handler.wfile.write(b"186a0\r\n" + b"z" * 100_000 + b"\r\n")


def packed_error(exchange: Exchange) -> None:
    exchange.send(500, packed(600), Content_Encoding="gzip")


def packed_answer(exchange: Exchange) -> None:
    exchange.send(200, packed(600, b"data: "), "text/event-stream", Content_Encoding="gzip")


def huge_error(exchange: Exchange) -> None:
    exchange.send(400, b"e" * (60 * 2**20))


def elsewhere(exchange: Exchange) -> None:
    exchange.send(307, b"", Location="http://127.0.0.1:1/v1/chat/completions")


def claimed_tokens(exchange: Exchange) -> None:
    exchange.begin_stream()
    said = json.loads(chunk("Firms must act [1]."))
    exchange.data(json.dumps({**said, "usage": {"prompt_tokens": 10**30, "completion_tokens": 1, "total_tokens": 1}}))
    exchange.data("[DONE]")


def drops(exchange: Exchange) -> None:
    exchange.begin_stream()
    while not exchange._stopping.wait(0.05):
        exchange.data(chunk("", reasoning_content="."))


def silent(exchange: Exchange) -> None:
    exchange.wait(60)


def many_choices(exchange: Exchange) -> None:
    exchange.begin_stream()
    exchange.data(json.dumps({**json.loads(chunk()), "choices": [json.loads(chunk("x"))["choices"][0]] * 100_000}))
    exchange.data("[DONE]")


def deep_json(exchange: Exchange) -> None:
    exchange.begin_stream()
    exchange.data("[" * 200_000)


def many_headers(exchange: Exchange) -> None:
    exchange.send(200, b"", **{f"X_{number}": "y" * 1_000 for number in range(5_000)})


STOPPED: Final = {"silent": silent, "drops": drops, "stalls": stall_after("Firms must")}  # they end when a person stops
REPLIES: Final[dict[str, Behaviour]] = {
    **{one.__name__: one for one in (huge_token, huge_refusal, endless_thoughts, endless_line, packed_error)},
    **{one.__name__: one for one in (packed_answer, huge_error, elsewhere, claimed_tokens)},
    **{one.__name__: one for one in (many_choices, deep_json, many_headers)},
    "reasoning_only": deltas({"reasoning_content": "Let me see."}),
    "calls_of_tools": deltas({"tool_calls": [CALL]}),
    "cut": cut_after(""),
    "malformed": malformed_after(""),
    "web_page": page("<html>" + "x" * 2**20),
    "wait_for_years": status(429, retry_after="1000000000"),
}
