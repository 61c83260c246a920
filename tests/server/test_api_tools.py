"""ragqa's tools by the Model Context Protocol, asked by the official client."""

import asyncio

import pytest

from ragqa.errors import GenerationError
from tests.support.fakes import FakeGenerator
from tests.support.helpers import ANSWER
from tests.support.programs import ToyBackend, served

pytest.importorskip("mcp", reason="the extra mcp is not installed: pip install ragqa[mcp]")


@pytest.fixture
def backend(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    return ToyBackend(tmp_path)


def told(backend, *calls):
    """What comes of these calls, (tool, arguments) each, at once."""
    from mcp import Client

    from ragqa.server.api.tools import tools_server

    async def run():
        async with Client(tools_server(backend)) as client:
            return await asyncio.gather(*(client.call_tool(name, arguments) for name, arguments in calls))

    return asyncio.run(run())


def test_the_tools_are_read_only_and_say_what_they_are_for(backend):
    from mcp import Client

    from ragqa.server.api.tools import tools_server

    async def run():
        async with Client(tools_server(backend)) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(run())
    names = {"list_corpora", "search", "ask", "check_text", "read_rule", "find_obligations"}
    assert {tool.name for tool in tools} == names
    assert all(tool.annotations.read_only_hint and 20 < len(tool.description) < 200 for tool in tools)


def test_every_tool_answers_and_two_at_once(backend):
    corpus = {"corpus": "rulebook"}
    found = told(
        backend,
        ("list_corpora", {}),
        ("search", corpus | {"question": "Who must act?", "limit": 1}),
        ("ask", corpus | {"question": "Who must act?"}),
        ("check_text", corpus | {"text": "A firm must act at once."}),
        ("read_rule", corpus | {"reference": "3.4 of the Other Rules"}),
        ("find_obligations", corpus | {"passage_ids": ["1:1.1"]}),
    )
    assert not any(one.is_error for one in found)
    corpora, searched, asked, checked, rule, duties = (one.structured_content for one in found)
    assert corpora["corpora"][0]["name"] == "rulebook"
    assert [one["passage_id"] for one in searched["results"]] == ["1:1.1"]
    assert [(one["verdict"], one["citations"]) for one in asked["sentences"]] == [
        ("supported", ["1:1.1"]),
        ("unsupported", ["1:1.2"]),
    ]
    assert checked["sentences"][0]["verdict"] == "supported"
    assert rule["passages"][0]["number"] == "3.4"
    assert [one["text"] for one in duties["obligations"]] == ["A firm must act at once."]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("ask", {"corpus": "rulebook", "question": " "}, "question is empty"),
        ("ask", {"question": "x"}, "corpus"),
        ("find_obligations", {"corpus": "rulebook", "passage_ids": ["gone"]}, "expected the id of a passage"),
        ("search", {"corpus": "rulebook", "question": "x", "limit": "many"}, "limit"),
    ],
)
def test_bad_arguments_are_refused_in_words(backend, tool, arguments, words):
    (found,) = told(backend, (tool, arguments))
    assert found.is_error
    assert words in found.content[0].text


def test_a_writer_that_fails_is_told_without_a_trace(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    broken = ToyBackend(tmp_path, generator=FakeGenerator(ANSWER, GenerationError("the server is down"), error_after=1))
    (found,) = told(broken, ("ask", {"corpus": "rulebook", "question": "Who must act?"}))
    assert found.is_error
    assert "the server is down" in found.content[0].text
    assert "Traceback" not in found.content[0].text
    assert broken.queue.at_work == 0


def test_a_passage_is_a_resource(backend):
    from mcp import Client

    from ragqa.server.api.tools import tools_server

    async def run():
        async with Client(tools_server(backend)) as client:
            return await client.read_resource("ragqa://rulebook/2:3.4")

    assert asyncio.run(run()).contents[0].text == "Nothing here matters."


@pytest.mark.enable_socket
def test_over_http_the_same_with_a_key(backend):
    from contextlib import asynccontextmanager, nullcontext

    from mcp import Client
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from ragqa.errors import AccessError
    from ragqa.server.access.gate import Gate
    from ragqa.server.api.http import Keyed
    from ragqa.server.api.tools import mounted

    tools = mounted(backend)

    @asynccontextmanager
    async def lifespan(_):
        async with tools.running():
            yield

    def gate_of(headers):
        if headers.get("authorization") != "Bearer right":
            raise AccessError("expected another key")
        return Gate()

    app = Starlette(routes=[Mount("/mcp", Keyed(tools.app, gate_of, lambda gate: nullcontext()))], lifespan=lifespan)

    async def run(address, key):
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, follow_redirects=True) as http,
            Client(streamable_http_client(f"{address}/mcp/", http_client=http)) as client,
        ):
            return await client.call_tool("ask", {"corpus": "rulebook", "question": "Who must act?"})

    with served(app) as address:
        assert asyncio.run(run(address, "right")).structured_content["sentences"][0]["verdict"] == "supported"
        with pytest.raises(Exception, match="401|Unauthorized|closed|error"):
            asyncio.run(run(address, "wrong"))
