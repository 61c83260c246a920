"""What is asked again, how often and until when; that nothing here takes from the process's source of chance."""

import random
import threading

import httpx2
import openai
import pytest

from ragqa.generation.llm.calls import Call, Calls
from ragqa.generation.llm.client import ChatClient
from ragqa.generation.llm.retry import with_retries
from ragqa.generation.prompts import Prompt
from ragqa.settings.config import GenerationConfig
from tests.support.openai_server import OpenAIServer, status

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1")


def refused(code, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return openai.APIStatusError("no", response=httpx2.Response(code, headers=headers, request=REQUEST), body=None)


class Waited(threading.Event):
    """An event that is never waited for, and remembers how long it should have been."""

    def __init__(self):
        super().__init__()
        self.pauses = []

    def wait(self, timeout=None):
        self.pauses.append(timeout)
        return self.is_set()


def after(*errors):
    """Raises these, one a call, then gives the number of calls."""
    made = []

    def ask():
        made.append(1)
        if len(made) <= len(errors):
            raise errors[len(made) - 1]
        return len(made)

    return ask


@pytest.mark.parametrize(
    ("error", "n_calls"),
    [
        *((refused(code), 2) for code in (408, 409, 429, 500, 503)),
        *((refused(code), 1) for code in (400, 401, 404)),
        (openai.APITimeoutError(REQUEST), 2),
        (openai.APIConnectionError(request=REQUEST), 2),
        (refused(500, x_should_retry="false"), 1),
        (refused(400, x_should_retry="true"), 2),
        (refused(429, retry_after="121"), 1),
    ],
)
def test_only_what_may_pass_is_asked_again(error, n_calls):
    if n_calls == 2:
        assert with_retries(after(error), 3, Waited()) == 2
    else:
        with pytest.raises(openai.APIStatusError):
            with_retries(after(error), 3, Waited())


def test_pauses_double_and_a_servers_own_wish_counts():
    errors = [openai.APITimeoutError(REQUEST)] * 6 + [refused(429, retry_after="7"), refused(429, retry_after_ms="250")]
    waited = Waited()
    assert with_retries(after(*errors), 9, waited) == 9
    for pause, least in zip(waited.pauses, (0.5, 1, 2, 4, 8, 8, 7, 0.25), strict=True):
        assert least <= pause <= 1.25 * least
    assert waited.pauses[4:] == [8, 8, 7, 0.25]


def test_the_last_try_raises_what_it_met():
    with pytest.raises(openai.APITimeoutError):
        with_retries(after(*[openai.APITimeoutError(REQUEST)] * 5), 3, waited := Waited())
    assert len(waited.pauses) == 2


def test_what_nobody_waits_for_is_not_asked_again():
    """The openai package would have asked, and had somebody pay, twice more."""
    calling = threading.Event()

    def refuse(exchange):
        calling.set()
        status(429, retry_after="60")(exchange)

    with OpenAIServer(refuse) as server:
        client = ChatClient(GenerationConfig(model="m", base_url=server.base_url), "k")
        prompt = Prompt(({"role": "user", "content": "Go."},), 0, "1")
        others = set(threading.enumerate())
        outcomes = Calls(client, GenerationConfig()).run([Call(prompt)], "writing")
        next(outcomes)
        assert calling.wait(60)
        (thread,) = (one for one in set(threading.enumerate()) - others if one.name == "ragqa-call-0")
        outcomes.close()
        thread.join(60)
        assert not thread.is_alive()
        assert len(server.requests) == 1
        client.close()


def test_chance_of_others_is_not_touched():
    """Hypothesis fails a test during which another thread draws from it, and who seeds it expects its numbers."""
    before = random.getstate()
    with_retries(after(openai.APITimeoutError(REQUEST)), 2, Waited())
    assert random.getstate() == before
