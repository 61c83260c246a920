"""What every client of an API does, encoder and reranker alike: it tries again, believes little, keeps its key."""

import email.utils
import json
import logging
import time
from functools import partial

import pytest

from ragqa.errors import ModelError
from ragqa.infra import http as http_client
from ragqa.infra.http import TRIES
from ragqa.retrieval import api_encoder, api_reranker
from tests.support.api_clients import KEY, KINDS, TEXTS, refused
from tests.support.embedding_server import EmbeddingServer, page, reset, status, vectors
from tests.support.helpers import reprs_within

pytestmark = pytest.mark.usefixtures("slept")
CHARS_PER_REQUEST = max(api_encoder.CHARS_PER_REQUEST, api_reranker.CHARS_PER_REQUEST)


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def client(kind, client_of):
    """Makes a client of this kind for a server."""
    return partial(client_of, kind.maker, name=kind.name)


@pytest.fixture
def failure(kind, client):
    """What the client of this server says where it gets no answer."""
    return lambda server: refused(partial(kind.ask, client(server), TEXTS))


class TestTexts:
    def test_equal_ones_are_sent_once_and_empty_ones_as_a_space(self, kind, client):
        texts = ["b", "", "a", "b", " ", "b", "a\ud800"]
        with EmbeddingServer() as server:
            assert kind.ask(client(server), texts) == kind.right(["b", " ", "a", "b", " ", "b", "a?"])
            assert server.sent == [["b", " ", "a", "a?"]]

    def test_one_that_is_longer_than_a_request_goes_alone(self, kind, client):
        texts = ["a", "b" * (CHARS_PER_REQUEST + 1), "c"]
        with EmbeddingServer() as server:
            kind.ask(client(server), texts)
            assert server.sent == [["a"], [texts[1]], ["c"]]


@pytest.mark.parametrize(
    "name", ["openai:", "openai", "voyage", "voyage: ", "cohere:m", "", ":m", "openai:a\nb", "voyage:a\nb", "OpenAI:m"]
)
def test_names_that_mean_no_api(kind, name):
    with pytest.raises(ModelError, match="expected an? (encoder|reranker) called openai:MODEL or voyage:MODEL"):
        kind.maker(name, environ={})


class TestRetries:
    @pytest.mark.parametrize(
        "fault",
        [status(429), status(500), status(502), status(503), status(408), reset(), reset(b'{"data": [')],
        ids=["429", "500", "502", "503", "408", "reset", "reset-in-the-body"],
    )
    def test_what_may_pass_is_tried_again(self, kind, client, slept, fault):
        with EmbeddingServer(fault, fault, vectors()) as server:
            assert kind.ask(client(server), TEXTS) == kind.right(TEXTS)
            assert server.sent == [TEXTS] * 3
        assert len(slept) == 2

    @pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
    def test_a_refusal_is_not(self, kind, failure, slept, code):
        with EmbeddingServer(status(code, "no such thing")) as server:
            message = failure(server)
            assert len(server.requests) == 1
            assert f"127.0.0.1:{server.port}" in message
        assert slept == []
        assert f"HTTP {code} (no such thing) in try 1 of {TRIES}" in message
        assert kind.expected in message
        assert message.endswith(kind.instead)

    @pytest.mark.parametrize(
        ("code", "next_step"),
        [
            (400, "lengths (up to {longest} characters here)"),
            (401, "check {provider}_API_KEY,"),
            (403, "check that {provider}_API_KEY may use this model"),
            (404, "check the model name and {provider}_BASE_URL"),
            (429, "wait a minute"),
            (500, "try again later"),
        ],
    )
    def test_the_message_says_what_to_do(self, kind, failure, code, next_step):
        with EmbeddingServer(status(code)) as server:
            assert next_step.format(longest=kind.longest, provider=kind.provider) in failure(server)

    @pytest.mark.parametrize("fault", [status(429), status(500), reset()], ids=["429", "500", "reset"])
    def test_tries_are_bounded_and_pauses_grow(self, kind, failure, slept, fault):
        with EmbeddingServer(fault) as server:
            message = failure(server)
            assert len(server.requests) == TRIES
        assert f"in try {TRIES} of {TRIES}" in message
        assert message.endswith(kind.instead)
        assert len(slept) == TRIES - 1
        for n, pause in enumerate(slept):
            assert 2**n <= pause <= 1.25 * 2**n

    def test_pauses_differ_between_clients(self, failure, slept):
        with EmbeddingServer(status(500)) as server:
            failure(server)
            failure(server)
        assert slept[: TRIES - 1] != slept[TRIES - 1 :]

    @pytest.mark.parametrize(
        ("asked", "least", "most"),
        [
            ("7", 7, 7 * 1.25),
            ("0.5", 1, 1.25),
            ("3600", 30, 30),
            ("nan", 1, 1.25),
            ("-5", 1, 1.25),
            ("soon", 1, 1.25),
            ("9" * 400, 1, 1.25),
            ("Mon, 01 Jan 2001 00:00:00 GMT", 1, 1.25),
            ("Mon, 01 Jan 2999 00:00:00 GMT", 30, 30),
        ],
    )
    def test_retry_after_is_honoured_up_to_a_bound(self, kind, client, slept, asked, least, most):
        with EmbeddingServer(status(429, retry_after=asked), vectors()) as server:
            kind.ask(client(server), ["a"])
        (pause,) = slept
        assert least <= pause <= most

    def test_retry_after_as_a_date(self, kind, client, slept):
        date = email.utils.formatdate(time.time() + 12, usegmt=True)
        with EmbeddingServer(status(503, retry_after=date), vectors()) as server:
            kind.ask(client(server), ["a"])
        assert 9 <= slept[0] <= 12 * 1.25

    def test_silence_ends(self, kind, client, monkeypatch):
        monkeypatch.setattr(http_client, "TIMEOUT_SECONDS", 0.2)
        with EmbeddingServer(vectors(seconds=30), vectors()) as server:
            assert kind.ask(client(server), ["a"]) == kind.right(["a"])
            assert len(server.requests) == 2

    def test_silence_every_time_is_an_error(self, failure, monkeypatch):
        monkeypatch.setattr(http_client, "TIMEOUT_SECONDS", 0.1)
        monkeypatch.setattr(http_client, "TRIES", 2)
        with EmbeddingServer(vectors(seconds=30)) as server:
            assert "no whole answer within 0.1 s in try 2 of 2" in failure(server)
            assert len(server.requests) == 2

    def test_so_does_an_answer_in_drops(self, failure, monkeypatch):
        monkeypatch.setattr(http_client, "TIMEOUT_SECONDS", 0.3)
        monkeypatch.setattr(http_client, "TRIES", 1)

        def drip(exchange):
            exchange.begin_stream()
            for _ in range(200):
                exchange.data(" ")
                exchange.wait(0.05)
            exchange.end_stream()

        with EmbeddingServer(drip) as server:
            assert "no whole answer within 0.3 s" in failure(server)

    def test_nobody_there(self, kind, client, slept):
        with EmbeddingServer() as server:
            made = client(server)
        message = refused(partial(kind.ask, made, TEXTS))
        assert len(slept) == TRIES - 1
        assert "ConnectError" in message
        assert f"check that it runs, and check that {kind.provider}_BASE_URL" in message


class TestAnswersAreChecked:
    @pytest.mark.parametrize(
        ("behaviour", "said"),
        [
            (page("<h1>Welcome</h1>"), "not JSON: <h1>Welcome</h1>"),
            (page(""), "not JSON"),
            (page('{"data": [{"index": 0, "'), "not JSON"),
            (page("[" * 100_000), "not JSON"),
            (page("[1, 2]"), "without a list called {lists}: [1, 2]"),
            (page('{"error": {"message": "overloaded"}}'), "without a list called {lists}: overloaded"),
        ],
    )
    def test_what_is_no_answer_is_refused_at_once(self, kind, client, slept, behaviour, said):
        self.is_refused_at_once(kind, client, slept, behaviour, said.format(lists=kind.lists))

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda body: body.update(data={}), "without a list called data"),
            (lambda body: body["data"].pop(), "2 items of data"),
            (lambda body: body["data"].append(body["data"][0]), "4 items of data"),
            (lambda body: body["data"][1].update(index=body["data"][0]["index"]), "3 items of data, 2 of them"),
            (lambda body: body["data"][1].update(index=7), "3 items of data"),
            (lambda body: body["data"][1].update(index=-1), "3 items of data"),
            (lambda body: body["data"][1].update(index=True), "3 items of data, 2 of them"),
            (lambda body: body["data"][1].update(index="1"), "3 items of data, 2 of them"),
            (lambda body: body["data"][1].update(index=None), "3 items of data, 2 of them"),
            (lambda body: body["data"][1].pop("index"), "3 items of data, 2 of them"),
            (lambda body: body["data"].__setitem__(1, None), "3 items of data, 2 of them"),
        ],
    )
    def test_a_spoilt_list_is_refused_at_once(self, kind, client, slept, change, said):
        self.is_refused_at_once(kind, client, slept, kind.spoilt(change), said)

    def is_refused_at_once(self, kind, client, slept, behaviour, said):
        with EmbeddingServer(behaviour, vectors()) as server:
            made = client(server)
            message = refused(partial(kind.ask, made, TEXTS))
            assert said in message
            assert f"check that {kind.provider}_BASE_URL names {kind.serves}" in message
            assert len(server.requests) == 1
            assert slept == []
            assert kind.ask(made, TEXTS) == kind.right(TEXTS)

    def test_an_answer_without_end(self, failure, monkeypatch):
        monkeypatch.setattr(http_client, "MAX_ANSWER_BYTES", 100)
        with EmbeddingServer() as server:
            assert "more than 100 bytes" in failure(server)

    def test_what_a_server_says_is_cut_and_made_plain(self, failure):
        with EmbeddingServer(status(400, "\x1b[31mred\u202e\nline\ttwo " + "x" * 5000)) as server:
            message = failure(server)
        assert "\x1b" not in message
        assert "\n" not in message
        assert "line two xxx" in message
        assert message.count("x" * 10) <= 200 / 10
        assert len(message) < 600

    @pytest.mark.parametrize("body", ['{"detail": "bad key"}', '{"error": "bad key"}', '["bad key"]', "bad key"])
    def test_other_ways_to_say_it(self, failure, body):
        with EmbeddingServer(page(body, 401)) as server:
            assert "bad key" in failure(server)


class TestTheKeyStaysSecret:
    @pytest.mark.parametrize(
        "behaviour",
        [
            status(401, "Incorrect API key provided: {key}. Get one."),
            status(500, "x" * 190 + " {key}"),
            page(json.dumps({"echo": KEY}), 403),
            page(json.dumps({"error": {"echo": KEY.replace("/", "\\/")}}).replace("\\\\/", "\\/"), 403),
            page(f"<p>{KEY}</p>", 404),
            page(f"<p>{KEY}</p>"),
            page(json.dumps({"data": KEY})),
            page(json.dumps({"results": KEY})),
            page('{"echo": ' + json.dumps(KEY), 400),
            page(" " * 99_990 + KEY, 400),
            lambda exchange: exchange.send(200, b"{}", X=f"a\r\n{KEY} no header"),
        ],
        ids="401 at-the-cut json json-escaped html not-json no-data no-results json-cut after-space header".split(),
    )
    def test_in_no_error_and_no_log(self, failure, caplog, behaviour):
        caplog.set_level(logging.DEBUG, "ragqa")
        caplog.set_level(logging.INFO)
        with EmbeddingServer(behaviour) as server:
            message = failure(server)  # looks into the traceback, too
            assert server.requests[0].key == KEY
        assert KEY[:9] not in message
        assert KEY[:9] not in caplog.text

    def test_a_key_that_only_looks_like_one(self, failure):
        with EmbeddingServer(status(401, "your key sk-abc123****wxyz or pa-1234567890 or Bearer abcdef")) as server:
            assert "your key [key] or [key] or [key]" in failure(server)

    def test_not_in_info_or_repr(self, kind, client):
        with EmbeddingServer() as server:
            made = client(server)
            kind.ask(made, TEXTS)
            shown = [repr(made), repr(made.info), *reprs_within(made)]
        assert not any(KEY[:9] in text for text in shown)

    def test_a_redirect_is_not_followed_with_it(self, failure):
        with EmbeddingServer() as other:

            def redirect(exchange):
                exchange.send(307, b"{}", Location=other.base_url + exchange.request.path.removeprefix("/v1"))

            with EmbeddingServer(redirect) as server:
                assert "HTTP 307" in failure(server)
            assert other.requests == []

    def test_the_log_says_why_it_waits(self, kind, client, caplog):
        caplog.set_level(logging.INFO, "ragqa")
        with EmbeddingServer(status(429, "slow down, {key}"), vectors()) as server:
            kind.ask(client(server), ["a"])
        assert "HTTP 429 (slow down, [key]); next try in 1." in caplog.text
        assert KEY not in caplog.text
