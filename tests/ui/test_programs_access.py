"""Attempts of programs to reach what is not theirs, by /v1 and /mcp of the real routes behind the real guard."""

import base64
import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from ragqa.server.access.policy import Role
from ragqa.server.api.keys import KeyStore
from ragqa.ui import serving
from ragqa.ui.guard import Guard
from tests.ui.test_app_access import SECRET, kept
from tests.ui.test_app_access import indexes as indexes
from tests.ui.test_app_access import lived_in as lived_in
from tests.ui.test_app_access import world as world

pytest.importorskip("mcp", reason="the extra mcp is not installed: pip install ragqa[mcp]")
pytestmark = pytest.mark.long

OPEN, CLOSED = {"corpus": "open"}, {"corpus": "closed"}
WHO = {"question": "Who must feed it?"}
TEXT = {"text": "A firm must feed it."}
FILE = {"name": "more.txt", "content": base64.b64encode(b"A firm must act.").decode()}
CHAT = {"messages": [{"role": "user", "content": "Who must feed it?"}]}
FOREIGN = {"Origin": "http://evil.example"}
REBOUND = {"Host": "evil.example:8501", "Origin": "http://evil.example:8501"}


def call(tool, **arguments):
    """A tool over MCP, as a body."""
    told = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": told}


# Whose key, method, address, body, headers.
ATTEMPTS = {
    "no key, ask": ("", "POST", "/v1/ask", OPEN | WHO, {}),
    "no key, models": ("", "GET", "/v1/models", None, {}),
    "no key, the description": ("", "GET", "/v1/openapi.json", None, {}),
    "no key, a file": ("", "POST", "/v1/documents", OPEN | FILE, {}),
    "no key, a tool": ("", "POST", "/mcp", call("list_corpora"), {}),
    "a revoked key, ask": ("revoked", "POST", "/v1/ask", OPEN | WHO, {}),
    "a revoked key, a passage": ("revoked", "GET", "/v1/passages/x?corpus=closed", None, {}),
    "a revoked key, a tool": ("revoked", "POST", "/mcp", call("ask", **CLOSED, **WHO), {}),
    "a guessed key": ("guessed", "POST", "/v1/search", CLOSED | WHO, {}),
    "a guessed key, a tool": ("guessed", "POST", "/mcp", call("search", **CLOSED, **WHO), {}),
    "a key of nothing but its beginning": ("beginning", "GET", "/v1/corpora", None, {}),
    "a key's hash in its place": ("hash", "GET", "/v1/corpora", None, {}),
    "a key's id in its place": ("id", "GET", "/v1/corpora", None, {}),
    "a key as a password": ("ann", "GET", "/v1/corpora", None, {"Authorization": "Basic YW5uOng="}),
    "a key in the address": ("", "GET", "/v1/corpora?api_key=ragqa_x&access_token=ragqa_x", None, {}),
    "two keys": ("", "GET", "/v1/corpora", None, {"Authorization": "Bearer ragqa_a, Bearer ragqa_b"}),
    "a cookie in a key's place": ("", "GET", "/v1/corpora", None, {"Cookie": "_streamlit_user=root"}),
    "a reader asks": ("rita", "POST", "/v1/ask", OPEN | WHO, {}),
    "a reader chats": ("rita", "POST", "/v1/chat/completions", CHAT | {"model": "ragqa:open"}, {}),
    "a reader checks": ("rita", "POST", "/v1/check", OPEN | TEXT, {}),
    "a reader asks by a tool": ("rita", "POST", "/mcp", call("ask", **OPEN, **WHO), {}),
    "a reader checks by a tool": ("rita", "POST", "/mcp", call("check_text", **OPEN, **TEXT), {}),
    "a reader has an answer scored": ("rita", "POST", "/v1/score", {"passages": ["A."], "answer": "A."}, {}),
    "a reader adds a file": ("rita", "POST", "/v1/documents", OPEN | FILE, {}),
    "an analyst adds a file": ("bob", "POST", "/v1/documents", OPEN | FILE, {}),
    "an analyst makes a corpus": ("bob", "POST", "/v1/documents", FILE | {"title": "Mine"}, {}),
    "an analyst takes a document out": ("bob", "DELETE", "/v1/documents/waits.md?corpus=open", None, {}),
    "a closed corpus asked": ("bob", "POST", "/v1/ask", CLOSED | WHO, {}),
    "a closed corpus streamed": ("bob", "POST", "/v1/ask", CLOSED | WHO | {"stream": True}, {}),
    "a closed corpus in a chat": ("bob", "POST", "/v1/chat/completions", CHAT | {"model": "ragqa:closed"}, {}),
    "a closed corpus checked": ("bob", "POST", "/v1/check", CLOSED | TEXT, {}),
    "a closed corpus searched": ("bob", "POST", "/v1/search", CLOSED | WHO, {}),
    "a closed corpus by a path": ("bob", "POST", "/v1/search", WHO | {"corpus": "../indexes/closed"}, {}),
    "a closed passage": ("bob", "GET", "/v1/passages/rules:1?corpus=closed", None, {}),
    "a closed rule": ("bob", "GET", "/v1/rules?corpus=closed&reference=1", None, {}),
    "closed duties": ("bob", "POST", "/v1/obligations", CLOSED | {"passage_ids": ["rules:1"]}, {}),
    "closed documents": ("carl", "GET", "/v1/documents?corpus=closed", None, {}),
    "a file into a closed corpus": ("carl", "POST", "/v1/documents", CLOSED | FILE, {}),
    "a document out of a closed corpus": ("carl", "DELETE", "/v1/documents/waits.md?corpus=closed", None, {}),
    "a closed corpus asked by a tool": ("bob", "POST", "/mcp", call("ask", **CLOSED, **WHO), {}),
    "a closed corpus searched by a tool": ("carl", "POST", "/mcp", call("search", **CLOSED, **WHO), {}),
    "a closed rule by a tool": ("rita", "POST", "/mcp", call("read_rule", **CLOSED, reference="1"), {}),
    "a foreign site asks": ("ann", "POST", "/v1/ask", OPEN | WHO, FOREIGN),
    "a foreign site calls a tool": ("ann", "POST", "/mcp", call("list_corpora"), FOREIGN),
    "a foreign site deletes": ("root", "DELETE", "/v1/documents/waits.md?corpus=closed", None, FOREIGN),
    "a name pointed here asks": ("ann", "POST", "/v1/ask", CLOSED | WHO, REBOUND),
    "a name pointed here reads": ("ann", "GET", "/v1/corpora", None, {"Host": "evil.example"}),
    "a name pointed here calls a tool": ("ann", "POST", "/mcp", call("list_corpora"), REBOUND),
    "two hosts": ("ann", "GET", "/v1/corpora", None, {"Host": "localhost@evil.example"}),
}
LISTS = {  # what is answered, without what is closed
    "corpora": ("bob", "GET", "/v1/corpora", None, {}),
    "models": ("carl", "GET", "/v1/models", None, {}),
    "corpora by a tool": ("rita", "POST", "/mcp", call("list_corpora"), {}),
}


@pytest.fixture
def client(world, monkeypatch):
    monkeypatch.setenv("RAGQA_API", "on")
    serving._tools.cache_clear()
    tools = serving._tools()
    app = Starlette(routes=serving.routes(), lifespan=lambda _: tools.running())
    with TestClient(Guard(app), base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client
    serving._tools.cache_clear()


@pytest.fixture
def secrets(world):
    """Secrets by whose they are, and what is none."""
    store, made = KeyStore(world.paths.home), {}
    for name, role, groups in (
        ("ann", Role.ANALYST, ("insurers",)),
        ("bob", Role.ANALYST, ()),
        ("carl", Role.CURATOR, ()),
        ("rita", Role.READER, ()),
        ("root", Role.ADMINISTRATOR, ()),
        ("revoked", Role.ADMINISTRATOR, ()),
    ):
        key, made[name] = store.make(f"{name}@example.org", role, groups)
    store.revoke(key.id)
    alive = store.entries()[0]
    return made | {"guessed": "ragqa_" + "A" * 43, "beginning": "ragqa_", "hash": alive.sha256, "id": alive.id}


def tried(client, secrets, who, method, path, body, headers):
    about = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    about |= {"Authorization": f"Bearer {secrets[who]}"} if who else {}
    return client.request(method, path, json=body, headers=about | headers)


def is_refused(answer):
    """By its status or, of a tool, in what it answered."""
    if answer.status_code >= 400:
        return answer.status_code < 500
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    said = json.loads(lines[-1] if lines else answer.text)
    return "jsonrpc" in said and ("error" in said or bool(said["result"].get("isError")))


@pytest.mark.parametrize("how", ATTEMPTS)
def test_an_attempt_reaches_nothing(world, client, secrets, how):
    before = kept(world)
    answer = tried(client, secrets, *ATTEMPTS[how])
    assert is_refused(answer), answer.text
    assert SECRET not in answer.text
    assert kept(world) == before


@pytest.mark.parametrize("how", LISTS)
def test_a_list_leaves_out_what_is_closed(client, secrets, how):
    answer = tried(client, secrets, *LISTS[how])
    assert "open" in answer.text
    assert "closed" not in answer.text
    assert SECRET not in answer.text


def test_another_ones_idempotency_key_gives_a_record_of_ones_own(client, secrets):
    key = {"Idempotency-Key": "the same"}
    ann, bob, again = (tried(client, secrets, who, "POST", "/v1/ask", OPEN | WHO, key) for who in ("ann", "bob", "ann"))
    assert ann.json()["record_id"] == again.json()["record_id"] != bob.json()["record_id"]


@pytest.mark.parametrize(
    ("who", "method", "path", "body"),
    [
        ("ann", "POST", "/v1/ask", CLOSED | WHO),
        ("ann", "POST", "/v1/search", CLOSED | WHO),
        ("rita", "POST", "/v1/search", OPEN | WHO),
        ("ann", "POST", "/mcp", call("ask", **CLOSED, **WHO)),
        ("ann", "POST", "/mcp/", call("ask", **CLOSED, **WHO)),
        ("root", "GET", "/v1/documents?corpus=closed", None),
        ("ann", "POST", "/v1/score", {"passages": ["A firm must act."], "answer": "A firm must act."}),
    ],
)
def test_who_may_does(client, secrets, who, method, path, body):
    """Without these the attempts would fail of an address that answers nobody."""
    answer = tried(client, secrets, who, method, path, body, {})
    assert answer.status_code == 200, answer.text
    assert not is_refused(answer), answer.text
    assert body is None or body.get("corpus") != "closed" or SECRET in answer.text


def test_tools_answer_at_their_address_itself(client, secrets):
    client.follow_redirects = False  # the page's server gives what has no slash at its end to Streamlit
    assert tried(client, secrets, "ann", "POST", "/mcp", call("list_corpora"), {}).status_code == 200


def test_there_are_at_least_forty():
    assert len(ATTEMPTS) >= 40
