"""Language model servers that send too much, too long, packed, or from elsewhere: memory stays bounded, Stop works."""

import resource
import threading
import time
from dataclasses import replace

import pytest

from ragqa.errors import GenerationError
from ragqa.generation.llm import client as client_module
from ragqa.generation.llm.generator import LlmGenerator
from ragqa.generation.llm.reply import MAX_ANSWER_CHARS
from ragqa.settings.config import GenerationConfig
from ragqa.types import Passage, Question
from ragqa.types.events.generation import Token, Working
from tests.support.misbehaving import CALL, REPLIES, drops, silent
from tests.support.openai_server import OpenAIServer, answer, deltas

QUESTION, PASSAGES = Question("Who must act?"), [Passage("1", "d", "Firms must act.")]
CONFIG = GenerationConfig(model="test", timeout_seconds=30.0, max_retries=0)


def asked(behaviour, **changes):
    with OpenAIServer(behaviour) as server:
        generator = LlmGenerator(replace(CONFIG, base_url=server.base_url, **changes), "sk-x")
        events = generator.stream(QUESTION, PASSAGES)
        try:
            while True:
                next(events)
        except StopIteration as end:
            return end.value
        finally:
            generator.close()


@pytest.mark.long
@pytest.mark.parametrize("name", REPLIES)
def test_memory_is_bounded_and_a_sentence_said(name):
    before, said, given = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "expected", None
    try:
        given = asked(REPLIES[name])
    except GenerationError as error:
        said = str(error)
    assert "expected" in said[:1_000]
    assert len(said) < 1_000
    if given:
        assert len(given.raw) <= MAX_ANSWER_CHARS + 1
        assert given.usage.prompt_tokens <= 10**9
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_a_stream_of_drops_ends(monkeypatch):
    monkeypatch.setattr(client_module, "MAX_REPLY_SECONDS", 1.0)
    with pytest.raises(GenerationError, match="takes more than 1 s"):
        asked(drops)


def test_nothing_is_sent_to_another_address():
    with OpenAIServer(answer("Firms must act [1].")) as other:

        def redirect(exchange):
            exchange.send(307, b"", Location=f"{other.base_url}/chat/completions")

        with pytest.raises(GenerationError, match="HTTP 307"):
            asked(redirect)
        assert not [one for one in other.requests if one.path.endswith("completions")]


@pytest.mark.parametrize(
    ("parts", "reason", "what"),
    [
        ([{"reasoning_content": "Let me see."}], "stop", "reasoning"),
        ([{"reasoning": "Let me see."}], "length", "reasoning"),
        ([{"content": "<think>Let me see.</think>"}], "stop", "reasoning"),
        ([{"content": "<think>Let me"}], None, "reasoning"),
        ([{"tool_calls": [CALL]}], "tool_calls", "calls of tools"),
        ([{"reasoning": "Hm."}, {"tool_calls": [CALL]}], "tool_calls", "calls of tools"),
    ],
)
def test_reasoning_or_calls_of_tools_alone_are_no_answer(parts, reason, what):
    with pytest.raises(GenerationError, match=f"an answer in words by model 'test' at .*, found {what} and no"):
        asked(deltas(*parts, finish_reason=reason))


def _writing(others):
    return [one for one in threading.enumerate() if one.name == "ragqa-writing" and one not in others]


@pytest.mark.parametrize("behaviour", [silent, drops])
def test_who_stops_is_free_at_once_and_the_connection_goes(behaviour):
    others = set(threading.enumerate())
    with OpenAIServer(behaviour) as server:
        generator = LlmGenerator(replace(CONFIG, base_url=server.base_url), "sk-x")
        events = generator.stream(QUESTION, PASSAGES)
        assert isinstance(next(events), Working | Token)
        began = time.monotonic()
        events.close()
        assert time.monotonic() - began < 2
        until = time.monotonic() + 5
        while behaviour is drops and _writing(others):
            assert time.monotonic() < until
            time.sleep(0.05)
