"""The LLM generator against a real HTTP server, through the real client."""

import json
import logging
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from ragqa.errors import ConfigError, GenerationError, RateLimitedError, RefusedError, TimedOutError
from ragqa.generation.llm import reply
from ragqa.generation.llm.client import ChatClient, redacted
from ragqa.generation.llm.generator import PAUSING, WAITING, LlmGenerator
from ragqa.generation.llm.reply import ThinkingFilter
from ragqa.generation.prompts import PASSAGE_MAX_CHARS, PASSAGES_MAX_CHARS
from ragqa.settings.config import GenerationConfig
from ragqa.types import Passage, Question, Usage
from ragqa.types.events.generation import Token, Working
from tests.support.openai_server import (
    OpenAIServer,
    answer,
    cites_all,
    cut_after,
    deltas,
    events,
    malformed_after,
    page,
    refusing,
    stall_after,
    status,
)
from tests.support.streams import drain

KEY = "sk-test-0123456789abcdef"
QUESTION = Question("What must a Firm do?")
PASSAGES = [Passage(f"p{number}", "d1", f"A Firm must do thing {number}.", "Conduct Rules") for number in (1, 2, 3)]
CONFIG = GenerationConfig(generator="llm", model="test-model", timeout_seconds=5.0, max_retries=1)


OPENED = []


def generator_for(server, key=KEY, **settings):
    generator = LlmGenerator(replace(CONFIG, base_url=server.base_url, **settings), key)
    OPENED.append(generator)
    return generator


def run(generator, passages=PASSAGES, question=QUESTION):
    """All tokens and the answer, without the word of each second in which a busy machine brought nothing."""
    events, answered = drain(generator.stream(question, passages))
    return [event for event in events if event not in (Working(WAITING), Working(PAUSING))], answered


def ask(*script, key=KEY, **settings):
    """Tokens, answer and the requests of one question against this script."""
    with OpenAIServer(*script) as server:
        tokens, answered = run(generator_for(server, key, **settings))
        return tokens, answered, server.requests


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch):
    """The client's own back-off starts at half a second; the tests need its order, not its patience."""
    monkeypatch.setattr("ragqa.generation.llm.retry.FIRST_PAUSE_SECONDS", 0.01)
    yield
    while OPENED:
        OPENED.pop().close()


# The ordinary way ---------------------------------------------------------------------------------------------------


def test_answer_streams_piece_by_piece_and_comes_back_with_citations_and_usage():
    text = "A Firm must do thing 1 [1]. It must also do the others [2][3]."
    tokens, answered, requests = ask(answer(text, usage=(321, 45)))
    assert all(isinstance(token, Token) and token.text for token in tokens)
    assert len(tokens) == len(text.split())
    assert "".join(token.text for token in tokens) == answered.raw == text
    assert answered.text == "A Firm must do thing 1. It must also do the others."
    assert [(sentence.text, sentence.citations) for sentence in answered.sentences] == [
        ("A Firm must do thing 1.", (1,)),
        ("It must also do the others.", (2, 3)),
    ]
    assert all(answered.text[s.start : s.end] == s.text for s in answered.sentences)
    assert (answered.generator, answered.model) == ("LLM", "test-model")
    assert answered.usage == Usage(321, 45)
    assert (answered.finish_reason, answered.note, answered.rejected_citations) == ("stop", "", ())
    assert len(requests) == 1


def test_request_carries_the_settings_the_key_and_the_framed_passages():
    _, _, [request] = ask(answer("Yes [1]."), temperature=0.5, max_tokens=77)
    assert request.path == "/v1/chat/completions"
    assert request.key == KEY
    settings = {name: value for name, value in request.body.items() if name != "messages"}
    assert settings == {
        "model": "test-model",
        "temperature": 0.5,
        "max_tokens": 77,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert [message["role"] for message in request.body["messages"]] == ["system", "user"]
    assert request.n_passages == 3
    assert "A Firm must do thing 2." in request.prompt


def test_tokens_arrive_before_the_answer_is_complete():
    seen = threading.Event()

    def behave(exchange):
        exchange.begin_stream()
        exchange.text("One ")
        if seen.wait(60):
            exchange.text("two three.")
        exchange.end_stream()

    with OpenAIServer(behave) as server:
        stream = generator_for(server, timeout_seconds=60.0).stream(QUESTION, PASSAGES)
        first = next(stream).text
        seen.set()
        tokens, _ = drain(stream)
    assert first == "One"
    assert first + "".join(token.text for token in tokens) == "One two three."


def test_server_that_wants_no_key_gets_a_placeholder():
    _, answered, [request] = ask(answer("Yes [1]."), key=None)
    assert request.key == "none"
    assert answered.finish_reason == "stop"


def test_key_and_address_come_from_the_arguments_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    _, _, [request] = ask(answer("Yes [1]."), key=None)
    assert request.key == "none"
    assert "api.openai.com" in repr(LlmGenerator(CONFIG, "k"))


def test_no_passage_asks_nobody():
    with OpenAIServer() as server:
        tokens, answered = run(generator_for(server), passages=[])
        assert server.requests == []
    assert tokens == []
    assert (answered.text, answered.sentences, answered.finish_reason) == ("", (), "empty")
    assert "No passage was kept" in answered.note
    assert "threshold" in answered.note


def test_one_generator_serves_several_threads():
    answers = {}
    with OpenAIServer(answer(cites_all)) as server:
        generator = generator_for(server)

        def work(n):
            answers[n] = run(generator, PASSAGES[:n])[1]

        threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [len(answers[n].sentences) for n in (1, 2, 3)] == [1, 2, 3]


# Citations ----------------------------------------------------------------------------------------------------------


def test_invented_citation_is_rejected_and_said():
    _, answered, _ = ask(answer("A Firm must act [1]. It must report [9]."))
    assert answered.rejected_citations == (9,)
    assert [sentence.citations for sentence in answered.sentences] == [(1,), ()]
    assert "[9]" not in answered.text
    assert "[9]" in answered.note
    assert "1 to 3" in answered.note


def test_answer_without_citations_says_so():
    _, answered, _ = ask(answer("A Firm keeps records."))
    assert "cited no passage" in answered.note


def test_citations_are_verified_against_the_passages_really_sent():
    n_fitting = PASSAGES_MAX_CHARS // PASSAGE_MAX_CHARS
    long = [Passage(f"p{n}", "d", "x" * PASSAGE_MAX_CHARS) for n in range(n_fitting + 1)]
    with OpenAIServer(answer(f"A [{n_fitting}]. B [{n_fitting + 1}].")) as server:
        _, answered = run(generator_for(server), long)
    assert answered.rejected_citations == (n_fitting + 1,)
    assert "too long: 1" in answered.note


# Retries and refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [status(429, retry_after="0"), status(500), status(503), page("<h1>bad</h1>", 502)])
def test_a_passing_trouble_is_retried(first):
    _, answered, requests = ask(first, answer("Yes [1]."))
    assert answered.text == "Yes."
    assert len(requests) == 2


def test_a_connection_cut_before_the_response_is_retried():
    _, answered, requests = ask(lambda exchange: exchange.cut(), answer("Yes [1]."))
    assert (answered.text, len(requests)) == ("Yes.", 2)


def test_rate_limit_that_stays_is_an_error_after_bounded_tries():
    with OpenAIServer(status(429, "slow down", retry_after="0")) as server:
        with pytest.raises(RateLimitedError, match=r"HTTP 429 \(slow down\) in 3 tries; wait") as caught:
            run(generator_for(server, max_retries=2))
        assert len(server.requests) == 1 + 2
    assert caught.value.__cause__ is not None


def test_retry_after_beyond_the_clients_bound_is_not_waited_for():
    with OpenAIServer(status(429, retry_after="86400")) as server:
        with pytest.raises(RateLimitedError):
            run(generator_for(server))
        assert len(server.requests) == 1


def test_server_error_that_stays_is_a_generation_error():
    with OpenAIServer(status(500, "boom")) as server, pytest.raises(GenerationError, match="HTTP 500.*boom") as caught:
        run(generator_for(server))
    assert type(caught.value) is GenerationError


@pytest.mark.parametrize(
    ("code", "next_step"),
    [
        (400, "keep fewer passages"),
        (401, "check OPENAI_API_KEY"),
        (403, "may use this model"),
        (404, "check the model name"),
        (413, "keep fewer passages"),
        (422, "keep fewer passages"),
    ],
)
def test_refusals_are_not_retried_and_say_what_to_do(code, next_step):
    with OpenAIServer(status(code, "because")) as server:
        with pytest.raises(RefusedError, match=next_step) as caught:
            run(generator_for(server, max_retries=3))
        assert len(server.requests) == 1
    assert f"HTTP {code} (because)" in str(caught.value)
    assert "test-model" in str(caught.value)
    assert "without a language model" in str(caught.value)


def test_gateway_time_out_is_a_time_out():
    with OpenAIServer(status(504)) as server, pytest.raises(TimedOutError, match="in time"):
        run(generator_for(server, max_retries=0))


def test_nobody_listening_is_said_with_the_address():
    with OpenAIServer() as server:
        port = server.port
    generator = LlmGenerator(replace(CONFIG, base_url=f"http://someone:secret@127.0.0.1:{port}/v1", max_retries=0))
    with pytest.raises(GenerationError, match=f"127.0.0.1:{port} that lasts, found: .*refused") as caught:
        run(generator)
    assert "secret" not in str(caught.value) + repr(generator)


@pytest.mark.parametrize("login", ["someone:secret", "someone:pa@secret", "some@secret:x"])
def test_no_part_of_a_login_stays_in_the_address(login):
    client = ChatClient(replace(CONFIG, base_url=f"http://{login}@127.0.0.1:9/v1/@x"))
    assert client.server.base_url == "http://127.0.0.1:9/v1/@x"
    client.close()
    with pytest.raises(ConfigError) as caught:
        ChatClient(replace(CONFIG, base_url=f"ftp://{login}@127.0.0.1:9/v1"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("parameter", ["stream_options", "temperature"])
def test_a_parameter_that_the_server_refuses_is_left_out(parameter):
    _, answered, requests = ask(refusing(parameter, answer("Yes [1].")))
    assert len(requests) == 2
    assert parameter not in requests[1].body
    assert answered.text == "Yes."
    assert parameter in answered.note


def test_max_tokens_is_renamed_then_left_out():
    _, answered, requests = ask(refusing("max_tokens", answer("Yes [1].")), max_tokens=50)
    assert requests[1].body["max_completion_tokens"] == 50
    assert answered.note == ""
    either = refusing("max_tokens", refusing("max_completion_tokens", answer("Yes [1].")))
    _, answered, requests = ask(either)
    assert len(requests) == 3
    assert not {"max_tokens", "max_completion_tokens"} & set(requests[2].body)
    assert "max_completion_tokens" in answered.note


def test_the_parameter_named_in_the_error_decides():
    def behave(exchange):
        refused = status(400, "temperature and max_tokens are fine", param="messages")
        refused(exchange)

    with OpenAIServer(behave) as server:
        with pytest.raises(RefusedError, match="are fine"):
            run(generator_for(server))
        assert len(server.requests) == 1
    named = status(400, "no", param="stream_options.include_usage")
    _, answered, requests = ask(named, answer("Yes [1]."))
    assert len(requests) == 2
    assert "stream_options" in answered.note


def test_a_server_that_refuses_every_parameter_is_not_asked_for_ever():
    with OpenAIServer(status(400, "temperature max_tokens max_completion_tokens stream_options")) as server:
        with pytest.raises(RefusedError):
            run(generator_for(server))
        assert len(server.requests) == 1 + 4


# Streams that break -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (cut_after("A Firm must act [1]. It must"), "connection"),
        (malformed_after("A Firm must act [1]. It must"), "stream of chat completion chunks"),
        (malformed_after("A Firm must act [1]. It must", '{"error": {"message": "out of memory"}}'), "out of memory"),
        (stall_after("A Firm must act [1]. It must"), "within 0.3 s, found silence"),
        (answer("A Firm must act [1]. It must", finish_reason=None), "without saying that the answer is complete"),
    ],
    ids=["cut", "malformed", "error event", "stall", "no finish reason"],
)
@pytest.mark.long
def test_text_before_a_break_is_kept(behaviour, reason, caplog):
    tokens, answered, requests = ask(behaviour, timeout_seconds=0.3 if "0.3" in reason else 5.0)
    assert "".join(token.text for token in tokens) == answered.raw == "A Firm must act [1]. It must"
    assert answered.text == "A Firm must act. It must"
    assert [sentence.citations for sentence in answered.sentences] == [(1,), ()]
    assert answered.finish_reason == "interrupted"
    assert reason in answered.note
    assert len(requests) == 1  # a stream that has begun is not begun again


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (cut_after(""), "connection to .* that lasts"),
        (malformed_after(""), "stream of chat completion chunks"),
        (events('{"error": {"message": "model crashed"}}'), "model crashed"),
        (events(), "without any text"),
        (events("5", '"text"', "[]", "{}", '{"choices": 5}', '{"choices": [null]}'), "without any text"),
        (page("<html>Welcome</html>"), "often ending in /v1"),
        (page('{"choices": []}', content_type="application/json"), "often ending in /v1"),
    ],
)
@pytest.mark.long
def test_a_break_before_any_text_is_an_error(behaviour, expected):
    with OpenAIServer(behaviour) as server, pytest.raises(GenerationError, match=expected) as caught:
        run(generator_for(server, max_retries=0))
    assert type(caught.value) is GenerationError


@pytest.mark.parametrize("behaviour", [stall_after(""), stall_after("<think>")])
@pytest.mark.long
def test_silence_before_any_text_is_a_time_out(behaviour):
    with OpenAIServer(behaviour) as server:
        with pytest.raises(TimedOutError, match=r"within 0\.2 s, found silence"):
            run(generator_for(server, timeout_seconds=0.2, max_retries=1))
        assert len(server.requests) <= 2


def test_leaving_a_stream_closes_the_connection():
    hung_up = threading.Event()

    def for_ever(exchange):
        exchange.begin_stream()
        try:
            while True:
                exchange.chunk({"content": "and on "})
        except OSError:
            hung_up.set()

    with OpenAIServer(for_ever) as server:
        stream = generator_for(server).stream(QUESTION, PASSAGES)
        next(stream)
        stream.close()
        assert hung_up.wait(5)
        assert list(stream) == []


def test_an_error_of_the_reader_is_not_taken_for_one_of_the_server():
    with OpenAIServer(answer("One two three.")) as server:
        stream = generator_for(server).stream(QUESTION, PASSAGES)
        next(stream)
        with pytest.raises(KeyError):
            stream.throw(KeyError("mine"))


# Endings ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "finish_reason", "note"),
    [
        (answer("A Firm must [1]", finish_reason="length"), "length", "limit of 800 tokens"),
        (answer("A Firm must [1]", finish_reason="content_filter"), "interrupted", "content filter stopped"),
        (answer("A Firm must [1].", finish_reason="eos"), "stop", ""),
        (answer(""), "empty", "wrote no answer"),
        (answer(" \n "), "empty", "wrote no answer"),
        (answer("[1]"), "empty", "wrote no answer"),
        (answer("", finish_reason="length"), "empty", "still reasoning"),
        (answer("", finish_reason="content_filter"), "empty", "withheld"),
        (deltas({"refusal": "I can"}, {"refusal": "not."}), "empty", 'declined: "I cannot."'),
    ],
)
@pytest.mark.long
def test_every_ending_is_named(behaviour, finish_reason, note):
    _, answered, _ = ask(behaviour)
    assert answered.finish_reason == finish_reason
    assert note in answered.note
    assert (answered.sentences == ()) == (finish_reason == "empty")


@pytest.mark.parametrize(
    "behaviour",
    [
        answer('{"answer": "A Firm must \\ud83d keep\\u0000 [1]."}'),
        deltas({"refusal": "I can\x07not \ud83d."}),
    ],
)
def test_what_no_record_can_hold_is_taken_out_wherever_the_server_hides_it(behaviour):
    _, answered, _ = ask(behaviour)
    told = answered.text + answered.note + "".join(sentence.text for sentence in answered.sentences)
    assert told.encode()
    assert not {"\x00", "\x07"} & set(told)


def test_an_empty_completion_keeps_its_usage():
    _, answered, _ = ask(answer("", usage=(10, 0)))
    assert (answered.text, answered.usage) == ("", Usage(10, 0))


def test_missing_or_absurd_usage_is_zero():
    assert ask(answer("Yes [1].", usage=None))[1].usage == Usage()
    chunk = json.dumps({"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]})
    absurd = json.dumps({"choices": [], "usage": {"prompt_tokens": "many", "completion_tokens": -3}})
    assert ask(events(chunk, absurd))[1].usage == Usage()


def test_a_server_that_never_stops_is_stopped(monkeypatch):
    monkeypatch.setattr(reply, "MAX_ANSWER_CHARS", 50)

    def for_ever(exchange):
        exchange.begin_stream()
        while True:
            exchange.chunk({"content": "and on "})

    tokens, answered, _ = ask(for_ever)
    assert answered.finish_reason == "length"
    assert "50 characters" in answered.note
    assert len(tokens) == 50 // len("and on ") + 1


def test_text_that_only_begins_like_a_thought_is_not_lost():
    tokens, answered, _ = ask(deltas({"content": "<th"}))
    assert "".join(token.text for token in tokens) == answered.text == "<th"


def test_reasoning_is_ignored():
    _, answered, _ = ask(
        deltas({"reasoning_content": "Let me see."}, {"reasoning": "Hm."}, {"content": None}, {"content": "Yes [1]."})
    )
    assert answered.raw == "Yes [1]."


def test_inline_thoughts_are_neither_shown_nor_scored():
    pieces = ["<thi", "nk>Passage [2] is ", "odd.</thi", "nk>\n\nA Firm must act", " [1]."]
    tokens, answered, _ = ask(deltas(*({"content": piece} for piece in pieces)))
    assert answered.raw == "".join(token.text for token in tokens) == "A Firm must act [1]."
    assert answered.sentences[0].citations == (1,)


def test_control_characters_and_lone_surrogates_are_taken_out():
    chunk = (
        '{"choices": [{"index": 0, "delta": {"content": "Y\\u0000e\\u001bs\\ud800 [1]."}, "finish_reason": "stop"}]}'
    )
    _, answered, _ = ask(events(chunk))
    assert answered.raw == "Yes\ufffd [1]."
    answered.raw.encode()


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["plain"], "plain"),
        (["<"], "<"),
        (["<", "5 days"], "<5 days"),
        ([" \n<think>a</think> b"], "b"),
        (["<think>a", "b"], ""),
        (["<think>a</think>", " b <think>c</think>"], " b <think>c</think>"),
        (list("<think>abc</think>de"), "de"),
        ([""], ""),
    ],
)
def test_thinking_filter(pieces, shown):
    thoughts = ThinkingFilter()
    assert "".join(map(thoughts.feed, pieces)) + thoughts.finish() == shown
    assert thoughts.finish() == ""


# Secrets ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [KEY, "plain-secret-of-a-local-server"])
@pytest.mark.parametrize(
    "behaviour",
    [
        status(401, "Incorrect API key provided: {key}."),
        status(429, "Key {key} is out of quota", retry_after="0"),
        status(500, "Authorization: Bearer {key}"),
        lambda exchange: exchange.send(400, f"bad key {exchange.request.key}".encode(), "text/plain"),
        lambda exchange: exchange.send(422, json.dumps({"detail": {"key": exchange.request.key}}).encode()),
        lambda exchange: malformed_after("", json.dumps({"error": {"message": exchange.request.key}}))(exchange),
        lambda exchange: malformed_after("", exchange.request.key)(exchange),
    ],
    ids=["401", "429", "500", "text", "json", "event", "malformed"],
)
@pytest.mark.long
def test_the_key_never_shows_in_an_error_or_a_log(behaviour, key, caplog):
    caplog.set_level(logging.DEBUG)
    with OpenAIServer(behaviour) as server:
        generator = generator_for(server, key)
        with pytest.raises(GenerationError) as caught:
            run(generator)
        logging.getLogger("test").exception("what a page might log", exc_info=caught.value)
        assert server.requests[0].key == key  # it did travel
    cause = caught.value.__cause__
    shown = [str(caught.value), repr(caught.value), repr(generator), caplog.text]
    while cause is not None:
        shown += [str(cause), repr(cause), str(vars(cause).get("body")), str(vars(cause).get("message"))]
        cause = cause.__cause__ or cause.__context__
    assert not [text for text in shown if key in text]


def test_the_key_never_shows_in_an_answer(caplog):
    caplog.set_level(logging.DEBUG)

    def echo(exchange):
        malformed_after("A Firm must", json.dumps({"error": {"message": exchange.request.key}}))(exchange)

    _, answered, _ = ask(echo)
    assert answered.finish_reason == "interrupted"
    assert KEY not in repr(answered) + caplog.text


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("bad key abcd1234", "abcd1234", "bad key [key]"),
        ("bad key sk-proj-AbC*****6789.", "other", "bad key [key]"),
        ("no key", "", "no key"),
        ("an x marks", "x", "an x marks"),
        ("two\nlines\x00 and\ttab", "", "two lines and tab"),
        ("y" * 1000, "", "y" * 300 + "…"),
    ],
)
def test_redacted(text, key, expected):
    assert redacted(text, key) == expected


# Settings that cannot work ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["localhost:11434/v1", "ftp://host/v1", "http://", "http://[bad", "http://a b/v1", "http://h:x/"]
)
def test_unusable_address_is_a_config_error(url):
    with pytest.raises(ConfigError, match="base URL must"):
        LlmGenerator(replace(CONFIG, base_url=url))


@pytest.mark.parametrize(
    ("address", "shown"), [("ftp://me:secret@host/v1", "'ftp://host/v1'"), ("me:secret@host/v1", "'host/v1'")]
)
def test_unusable_address_is_shown_without_its_login(address, shown):
    with pytest.raises(ConfigError) as caught:
        LlmGenerator(replace(CONFIG, base_url=address))
    assert "secret" not in str(caught.value)
    assert shown in str(caught.value)


def test_key_with_unsendable_characters_is_a_config_error_that_hides_it():
    with pytest.raises(ConfigError, match="API key") as caught:
        LlmGenerator(CONFIG, "sk-ключ-0123456789")
    assert "0123456789" not in str(caught.value)


def test_key_copied_with_a_line_end_works():
    _, answered, [request] = ask(answer("Yes [1]."), key=f" {KEY}\n")
    assert request.key == KEY
    assert answered.finish_reason == "stop"


# Models of the server -----------------------------------------------------------------------------------------------


def test_models_are_listed_sorted_and_once():
    with (
        OpenAIServer(models=("qwen", "llama", "qwen")) as server,
        closing(ChatClient(GenerationConfig(base_url=server.base_url), KEY)) as client,
    ):
        assert client.models() == ("llama", "qwen")


def test_a_server_that_lists_none_says_so():
    with OpenAIServer() as server:
        config = GenerationConfig(base_url=server.base_url, max_retries=0)
        with closing(ChatClient(config, KEY)) as client, pytest.raises(GenerationError, match="HTTP 404") as caught:
            client.models()
    assert KEY not in str(caught.value)


# Which model answers ------------------------------------------------------------------------------------------------


def test_the_answer_names_the_model_that_the_server_reports():
    def behave(exchange):
        exchange.begin_stream()
        exchange.chunk({"content": "Yes [1]."}, model="test-model-2026\x07-11-22")
        exchange.chunk({}, "stop", model="test-model-2026-11-22")
        exchange.end_stream()

    with OpenAIServer(behave) as server:
        generator = generator_for(server)
        assert generator.model == "test-model"
        _, answered = run(generator)
    assert (answered.model, generator.model) == ("test-model-2026-11-22", "test-model-2026-11-22")


@pytest.mark.parametrize("listed", [(), ("test-model",), ("other", "test-model:latest")])
def test_a_listed_name_is_asked_and_so_is_any_where_nothing_is_listed(listed):
    with OpenAIServer(answer("Yes [1]."), models=listed) as server:
        _, answered = run(generator_for(server))
    assert answered.finish_reason == "stop"


def test_a_name_the_server_does_not_list_is_refused_before_asking():
    with OpenAIServer(answer("Yes [1]."), models=("large", "tiny")) as server:
        with pytest.raises(RefusedError) as raised:
            run(generator_for(server))
        assert server.requests == []
    for part in ("lists (large, tiny)", "found 'test-model'", "RAGQA_MODEL or --model"):
        assert part in str(raised.value)
    assert KEY not in str(raised.value)
