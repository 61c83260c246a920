"""ragqa's tools by the Model Context Protocol, asked by the official client."""

import asyncio
import sys
from contextlib import asynccontextmanager, contextmanager, nullcontext
from types import SimpleNamespace

import anyio
import pytest

from ragqa.errors import AccessError, GenerationError
from ragqa.index import build_index
from ragqa.library.collection import make_collection
from ragqa.records.store import RecordStore
from ragqa.server.access.gate import Gate
from ragqa.server.api.local import LocalBackend
from ragqa.settings.config import IndexingConfig
from tests.support.fakes import FakeGenerator
from tests.support.helpers import ANSWER
from tests.support.programs import CountedManifest, SlowGenerator, ToyBackend, served
from tests.support.server import ROOT

pytest.importorskip("mcp", reason="the extra mcp is not installed: pip install ragqa[mcp]")

ASK = {"corpus": "rulebook", "question": "Who must act?"}
CHECK = {"corpus": "rulebook", "text": "A firm must act at once. The moon is green."}


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
    assert [one["rules"] for one in asked["sentences"]] == [["General Rules 1.1"], ["General Rules 1.2"]]
    assert (asked["corpus"], {one["version"] for one in (asked, checked, searched, rule, duties)}) == (
        "rulebook",
        {corpora["corpora"][0]["built_at"]},
    )
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


def test_arguments_that_are_missing_or_of_another_type_are_named(backend):
    (found,) = told(backend, ("search", {"question": 7}))
    (block,) = found.content
    assert found.is_error
    assert "question: Input should be a valid string; corpus: Field required; correct them" in block.text
    assert "http" not in block.text


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


@contextmanager
def over_http(backend):
    """The address of the tools, where `Bearer right` is a key."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    from ragqa.server.api.http import Keyed
    from ragqa.server.api.tools import mounted

    def gate_of(headers):
        if headers.get("authorization") != "Bearer right":
            raise AccessError("expected another key")
        return Gate()

    tools = mounted(backend)
    route = Route("/mcp", Keyed(tools.app, gate_of, lambda gate: nullcontext()))
    with served(Starlette(routes=[route], lifespan=lambda _: tools.running())) as address:
        yield f"{address}/mcp"


@asynccontextmanager
async def called_over_http(address, key="right"):
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, follow_redirects=True, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def called_over_stdio(folder):
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = ["-m", "tests.support.programs", str(folder)]
    started = StdioServerParameters(command=sys.executable, args=command, cwd=ROOT, env={"RAGQA_HOME": str(folder)})
    async with Client(stdio_client(started)) as client:
        yield client


@pytest.mark.enable_socket
def test_over_http_the_same_with_a_key(backend):
    async def run(address, key):
        async with called_over_http(address, key) as client:
            return await client.call_tool("ask", ASK)

    with over_http(backend) as address:
        assert asyncio.run(run(address, "right")).structured_content["sentences"][0]["verdict"] == "supported"
        with pytest.raises(Exception, match="401|Unauthorized|closed|error"):
            asyncio.run(run(address, "wrong"))


async def _worked(client):
    """What is heard of a call that is cancelled at its first word, then of two at once; a bad call in between."""
    heard, cancelled = [], []
    with anyio.CancelScope() as scope:

        async def hear(done, total, words):
            cancelled.append(words)
            scope.cancel()

        await client.call_tool("ask", ASK, progress_callback=hear)
    assert scope.cancelled_caught
    assert (await client.call_tool("ask", {"question": "x"})).is_error

    async def listen(done, total, words):
        heard.append((done, total, words))

    asked = [client.call_tool(*one, progress_callback=listen) for one in (("ask", ASK), ("check_text", CHECK))]
    return cancelled, heard, await asyncio.gather(*asked)


@pytest.mark.long
@pytest.mark.enable_socket
@pytest.mark.parametrize("how", ["stdio", "http"])
def test_long_work_tells_how_far_it_is_and_is_cancelled(tmp_path, monkeypatch, how):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))

    async def run(opened):
        async with opened as client:
            return await _worked(client)

    if how == "stdio":
        cancelled, heard, found = asyncio.run(run(called_over_stdio(tmp_path)))
    else:
        backend = ToyBackend(tmp_path, generator=SlowGenerator(ANSWER))
        with over_http(backend) as address:
            cancelled, heard, found = asyncio.run(run(called_over_http(address)))
        assert backend.queue.at_work == 0
    assert cancelled[0] == "passages found"
    assert len(RecordStore(tmp_path / "records.sqlite3").list()) == 2  # of three that began
    assert not any(one.is_error for one in found)
    stages = [words for _, _, words in heard]
    assert stages.count("passages found") == stages.count("answer written") == stages.count("scored") == 2
    assert "2 of 2 sentences judged" in stages
    assert all(0 < done <= total for done, total, _ in heard)


@pytest.mark.long
@pytest.mark.enable_socket
@pytest.mark.parametrize("tool", ["ask", "search", "check_text"])
def test_a_cancelled_call_that_waits_for_its_turn_leaves_the_queue(backend, tool):
    arguments = {"ask": ASK, "search": ASK, "check_text": CHECK}[tool]
    held = [backend.queue.take() for _ in range(2)]

    async def run(address):
        async with called_over_http(address) as client:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(client.call_tool, tool, arguments)
                    while not backend.queue.waiting:
                        await anyio.sleep(0.02)
                    scope.cancel()
            with anyio.move_on_after(20):
                while backend.queue.waiting:
                    await anyio.sleep(0.02)
            return backend.queue.waiting

    with over_http(backend) as address:
        waiting = asyncio.run(run(address))
        for place in held:
            place.leave()
    assert waiting == 0
    assert not backend.records().list()


def test_a_single_program_calls_a_corpus_of_the_library_by_its_title(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    monkeypatch.setattr("ragqa.server.api.local.index_names", lambda _: ["mine", "rulebook"])
    make_collection("mine", tmp_path / "library", "My rules")
    assert LocalBackend().corpora() == {"mine": "My rules", "rulebook": "Rulebook of an invented regulator"}


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("find_obligations", {"passage_ids": ["1:1.1"] * 201}, "passage_ids: List should have at most 200 items"),
        ("read_rule", {"reference": "3." * 500}, "reference: String should have at most 400 characters"),
    ],
)
def test_no_call_is_longer_than_by_http(backend, monkeypatch, tool, arguments, words):
    opened = []
    monkeypatch.setattr(backend, "index", lambda name: opened.append(name) or ToyBackend.index(backend, name))
    (found,) = told(backend, (tool, {"corpus": "rulebook", **arguments}))
    assert found.is_error
    assert words in found.content[0].text
    assert not opened


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("read_rule", {"reference": "3.4 of the Other Rules"}), ("find_obligations", {"passage_ids": ["1:1.1"]})],
)
def test_a_text_never_carries_the_version_of_an_index_built_meanwhile(backend, monkeypatch, tool, arguments):
    built = iter(f"2026-11-{day:02}T00:00:00+00:00" for day in range(1, 29))

    def index(name):
        found = ToyBackend.index(backend, name)
        return SimpleNamespace(**vars(found) | {"manifest": CountedManifest(created=next(built))})

    monkeypatch.setattr(backend, "index", index)
    (found,) = told(backend, (tool, {"corpus": "rulebook", **arguments}))
    assert found.is_error
    assert "rulebook has been indexed again meanwhile; call again" in found.content[0].text


def test_a_single_program_opens_a_corpus_anew_that_was_indexed_again(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    source, found = tmp_path / "source", []
    source.mkdir()
    for text in ("A firm must act at once.", "A firm may wait a day."):
        (source / "rules.md").write_text(f"# Rules\n\n{text}")
        config = IndexingConfig(encoder="none")
        build_index("mine", source, indexes=tmp_path / "indexes", config=config, encoder=None, format="text")
        index = LocalBackend().index("mine")
        assert LocalBackend().index("mine") is index
        found.append(index.passages[0].text)
    assert found == ["A firm must act at once.", "A firm may wait a day."]


def test_a_resource_that_is_not_there_is_refused_in_words_without_a_trace(backend, caplog):
    from mcp import Client, MCPError

    from ragqa.server.api.tools import tools_server

    async def run():
        async with Client(tools_server(backend)) as client:
            with pytest.raises(MCPError, match="expected the id of a passage of rulebook, found 'gone'"):
                await client.read_resource("ragqa://rulebook/gone")

    asyncio.run(run())
    assert not [record for record in caplog.records if record.exc_info]
