"""What programs call below /v1: OpenAI's client, ragqa's own addresses, refusals, streams that are left."""

import base64
import json
import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from ragqa.conversation import MOST_TURNS, Turn
from ragqa.errors import GenerationError
from ragqa.filtering import select
from ragqa.pipeline import MAX_QUESTION_CHARS, MAX_TEXT_CHARS
from ragqa.records.store import RecordStore
from ragqa.records.view import View
from ragqa.server.access.audit import AuditLog
from ragqa.server.access.gate import Gate, RateLimit
from ragqa.server.access.policy import Act, Person, Policy, Role
from ragqa.server.api.chat import ending, thread_of
from ragqa.server.api.keys import KeyStore
from ragqa.settings.config import Config, FilteringConfig
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import preset_text, save_preset
from ragqa.settings.presets import Preset
from ragqa.types import Question, Ranking, ScoredPassage
from tests.support.fakes import FakeGenerator, answer, passage
from tests.support.helpers import ANSWER, make_pipeline
from tests.support.programs import SlowGenerator, SlowScorer, ToyBackend, asgi, served
from tests.support.server import ROOT


@pytest.fixture
def backend(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    return ToyBackend(tmp_path)


@pytest.fixture
def client(backend):
    return TestClient(asgi(backend), raise_server_exceptions=False)


def finished(client, corpus):
    """What /v1/documents says of a corpus when the work on it has ended."""
    for _ in range(600):
        found = client.get("/v1/documents", params={"corpus": corpus}).json()
        if not found["work"]["running"]:
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def waited_for(reached):
    deadline = time.monotonic() + 20
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.02)
    return reached()


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def events_in(text):
    return [
        (lines[0].removeprefix("event: "), json.loads(lines[-1].removeprefix("data: ")))
        for lines in (block.split("\n") for block in text.strip().split("\n\n"))
        if lines[-1] != "data: [DONE]"
    ]


@pytest.mark.enable_socket
def test_the_openai_client_lists_asks_streams_and_is_refused(backend):
    from openai import NotFoundError, OpenAI, UnprocessableEntityError

    with served(asgi(backend)) as address:
        client = OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
        assert [model.id for model in client.models.list()] == ["ragqa:rulebook"]
        ask = {"model": "ragqa:rulebook", "messages": [{"role": "user", "content": "Who must act?"}]}
        whole = client.chat.completions.create(**ask)
        text = whole.choices[0].message.content
        assert text.startswith(ANSWER.raw)
        assert "Sources:\n[1] General Rules › 1.1" in text
        assert "1 supported, 1 unsupported" in text
        proof = whole.model_extra["ragqa"]
        assert [one["verdict"]["verdict"] for one in proof["sentences"]] == ["supported", "unsupported"]
        assert proof["passages"][0]["passage_id"] == "1:1.1"
        assert client.models.retrieve("ragqa:rulebook").id == "ragqa:rulebook"
        with pytest.raises(NotFoundError, match="expected a model of ragqa:rulebook, found 'gpt-4o'"):
            client.models.retrieve("gpt-4o")
        counted = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
        assert (counted[-1].choices, counted[-1].usage.total_tokens) == ([], whole.usage.total_tokens)
        assert counted[-2].model_extra["ragqa"]["sentences"]
        chunks = list(client.chat.completions.create(**ask, stream=True))
        streamed = "".join(chunk.choices[0].delta.content for chunk in chunks)
        assert streamed.split() == text.split()
        assert chunks[-1].choices[0].finish_reason == "stop"
        with pytest.raises(UnprocessableEntityError, match="expected a model of ragqa:rulebook"):
            client.chat.completions.create(**ask | {"model": "gpt-4o"})


@pytest.mark.enable_socket
@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_calls_by_curl_in_the_readme_are_answered(backend):
    text = (ROOT / "ragqa" / "server" / "api" / "README.md").read_text(encoding="utf-8")
    calls = re.findall(r"(?m)^curl (?:.*\\\n)*.*$", text)
    with served(asgi(backend)) as address:
        asked, streamed = (
            subprocess.run(
                ["bash", "-c", call.replace("http://localhost:8501", address)],
                capture_output=True,
                check=True,
                text=True,
            ).stdout
            for call in calls
        )
    assert json.loads(asked)["record_id"]
    assert events_in(streamed)[-1][1]["ragqa"]["record_id"]
    assert streamed.endswith("data: [DONE]\n\n")


def test_a_chat_is_a_thread(client, backend):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who must act?"},
        {"role": "assistant", "content": "A firm must act at once.\n\nSources:\n[1] General Rules"},
        {"role": "user", "content": [{"type": "text", "text": "And when?"}]},
    ]
    body = client.post("/v1/chat/completions", json={"model": "ragqa:rulebook", "messages": messages}).json()
    record = backend.records().load(body["ragqa"]["record_id"])
    assert record.question.follow_up.asked == "And when?"
    last = client.post("/v1/chat/completions", json={"model": "ragqa:rulebook", "messages": messages[:3]})
    assert last.status_code == 422
    assert "the question last" in last.json()["detail"]


@pytest.mark.parametrize("line", ["Not scored: nothing is answered.", "Sentences: 1 supported. RePASs 0.61."])
def test_our_own_lines_below_an_answer_are_no_part_of_it(line):
    asked = "Does this hold?\n\nSources:\nthe rulebook"
    said = [("user", asked), ("assistant", f"A firm must act.\n\n{line}"), ("user", "And when?")]
    assert thread_of(said) == ("And when?", (Turn(asked, "A firm must act."),))
    assert thread_of([("user", asked)]) == (asked, ())


def test_an_answer_is_the_record_and_the_stream_its_events(client, backend, tmp_path):
    record = client.post("/v1/ask", json={"question": "Who must act?", "corpus": "rulebook"}).json()
    assert record == json.loads(RecordStore(tmp_path / "records.sqlite3").load(record["record_id"]).to_json())
    streamed = client.post("/v1/ask", json={"question": "Who must act?", "corpus": "rulebook", "stream": True})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    names = [name for name, _ in events_in(streamed.text)]
    assert names[:3] == ["Retrieved", "Fused", "Selected"]
    assert names[-2:] == ["Scored", "Recorded"]
    figures = dict(events_in(streamed.text))["Scored"]
    assert figures["paper"]["entailment"] == record["scored"]["paper"]["repass"]["entailment"]


def test_a_question_is_asked_as_of_a_day(client):
    body = {"question": "Who must act?", "corpus": "rulebook"}
    record = client.post("/v1/ask", json=body | {"as_of": "2024-03-01"}).json()
    assert record["filtering"]["in_force"] == "2024-03-01"
    assert record["answer"]["note"] == "As of 2024-03-01: of the passages found, none was left out for its dates."
    refused = client.post("/v1/search", json=body | {"as_of": "31 February 2024"})
    assert refused.status_code == 422
    assert "as of must be a day as YYYY-MM-DD, or empty, got '31 February 2024'; change" in refused.json()["detail"]


def test_a_program_names_a_preset_and_no_file_of_the_server(client, tmp_path):
    mine = Preset("mine", "", filtering=FilteringConfig(top_k=7))
    paths = Paths.from_env()
    save_preset(mine, paths.presets)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(preset_text(replace(mine, name="other"), {}))
    body = {"question": "Who must act?", "corpus": "rulebook"}
    assert client.post("/v1/ask", json=body | {"preset": "mine"}).json()["filtering"]["top_k"] == 7
    for file in (elsewhere, paths.presets / "mine.json", tmp_path / "nowhere.json", "~nobody/x.json"):
        refused = client.post("/v1/ask", json=body | {"preset": str(file)})
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith(f"unknown preset {str(file)!r}; choose one of ")
        assert "FILE.json" not in refused.json()["detail"]


def test_the_same_idempotency_key_gives_the_same_record(client):
    body = {"question": "Who must act?", "corpus": "rulebook"}
    first, again, other = (
        client.post("/v1/ask", json=body, headers={"Idempotency-Key": key}).json()["record_id"] for key in "aab"
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("ask", {"question": "Who must sleep?", "corpus": "rulebook"}),
        ("check", {"text": "A firm must act.", "question": "Who must act?", "corpus": "rulebook"}),
    ],
)
def test_an_idempotency_key_is_refused_with_another_body(client, path, body):
    key = {"Idempotency-Key": "a"}
    client.post("/v1/ask", json={"question": "Who must act?", "corpus": "rulebook"}, headers=key)
    refused = client.post(f"/v1/{path}", json=body, headers=key)
    assert (refused.status_code, "Idempotency-Key" in refused.json()["detail"]) == (422, True)


@pytest.mark.enable_socket
def test_a_request_that_is_sent_again_while_the_first_one_runs_is_told_to_wait(backend):
    import httpx2

    held, key = [backend.queue.take() for _ in range(2)], {"Idempotency-Key": "a"}
    with served(asgi(backend)) as address:
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{address}/v1/ask", json=ASK, headers=key, timeout=0.5)
        again = httpx2.post(f"{address}/v1/ask", json=ASK, headers=key)
        assert (again.status_code, "still running" in again.json()["detail"]) == (503, True)
        for place in held:
            place.leave()
        assert waited_for(lambda: httpx2.post(f"{address}/v1/ask", json=ASK, headers=key).status_code == 200)
    assert len(backend.records().list()) == 1


def test_documents_are_added_replaced_listed_and_taken_out(client, tmp_path):
    first = {"name": "keys.txt", "content": encoded("A firm must keep a register of keys."), "title": "House rules"}
    key = {"Idempotency-Key": "k"}
    made = client.post("/v1/documents", json=first, headers=key)
    assert made.status_code == 202, made.text
    again = client.post("/v1/documents", json=first, headers=key)
    assert (again.status_code, again.json()["corpus"]) == (202, "house-rules"), again.text
    other = client.post("/v1/documents", json=first | {"content": encoded("Another.")}, headers=key)
    assert (other.status_code, "Idempotency-Key" in other.json()["detail"]) == (422, True)
    alike = client.post("/v1/documents", json=first)  # while the first of this title is not indexed yet
    assert (alike.status_code, alike.json()["corpus"]) == (202, "house-rules-2"), alike.text
    corpus = made.json()["corpus"]
    found = finished(client, corpus)
    assert (corpus, found["title"], found["is_indexed"], found["work"]["error"]) == (
        "house-rules",
        "House rules",
        True,
        "",
    )
    second = {"name": "doors.txt", "content": encoded("Doors must be shut."), "corpus": corpus}
    client.post("/v1/documents", json=second)
    assert [one["name"] for one in finished(client, corpus)["documents"]] == ["keys.txt", "doors.txt"]
    client.post("/v1/documents", json=second | {"content": encoded("Doors must be shut at night.")})
    doors = finished(client, corpus)["documents"][-1]
    assert doors["version"] == 2
    gone = client.delete(f"/v1/documents/{doors['document_id']}", params={"corpus": corpus})
    assert gone.status_code == 202
    assert [one["name"] for one in finished(client, corpus)["documents"] if not one["removed"]] == ["keys.txt"]


def test_documents_that_cannot_be_taken_are_refused_in_a_sentence(client):
    unknown = client.post("/v1/documents", json={"name": "a.exe", "content": encoded("x"), "title": "New"})
    assert (unknown.status_code, "another kind of file" in unknown.json()["detail"]) == (404, True)
    assert client.get("/v1/documents", params={"corpus": "rulebook"}).status_code == 404
    assert client.post("/v1/documents", json={"name": "a.txt", "content": "no base64!"}).status_code == 422


def test_a_body_without_a_length_or_of_too_many_bytes_is_refused_before_it_is_read(client):
    chunked = client.post("/v1/ask", content=iter([b"{}"]), headers={"Content-Type": "application/json"})
    assert chunked.status_code == 411
    huge = client.post("/v1/ask", content=b"{}", headers={"Content-Length": str(1 << 40)})
    assert huge.status_code == 413
    assert "64 MB" in huge.json()["detail"]


def test_search_check_score_obligations_passages_and_rules(client):
    found = client.post("/v1/search", json={"question": "act", "corpus": "rulebook", "limit": 2}).json()
    assert [one["passage_id"] for one in found["results"]] == ["1:1.1", "1:1.2"]
    assert found["results"][0]["kept"]
    checked = client.post("/v1/check", json={"text": "A firm must act at once.", "corpus": "rulebook"}).json()
    assert checked["question"]["given"] == "A firm must act at once."
    scored = client.post("/v1/score", json={"passages": ["A firm must act."], "answer": "A firm must act."}).json()
    assert scored["paper"]["verdicts"][0]["verdict"] == "supported"
    duties = client.post("/v1/obligations", json={"corpus": "rulebook", "passage_ids": ["1:1.1", "1:1.2"]}).json()
    assert [one["text"] for one in duties["obligations"]] == ["A firm must act at once.", "It must not sleep."]
    assert {one["strength"] for one in duties["obligations"]} == {"must", "must not"}
    assert client.get("/v1/passages/2:3.4", params={"corpus": "rulebook"}).json()["number"] == "3.4"
    rule = client.get("/v1/rules", params={"corpus": "rulebook", "reference": "3.4 of the Other Rules"}).json()
    assert [one["passage_id"] for one in rule["passages"]] == ["2:3.4"]
    assert client.get("/v1/corpora").json()["corpora"][0]["passages"] == 3


def test_a_text_may_be_as_long_as_on_the_page(client):
    text = "A firm must act at once. " * (MAX_TEXT_CHARS // 25)
    body = {"text": text, "corpus": "rulebook"}
    assert client.post("/v1/check", json=body).status_code == 200
    assert client.post("/v1/check", json=body | {"text": text + "x" * 25}).status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("post", "/v1/ask", {}, 422),
        ("post", "/v1/ask", {"question": " "}, 422),
        ("post", "/v1/ask", {"question": "x", "preset": "no such"}, 422),
        ("post", "/v1/score", {"passages": ["x"] * 201, "answer": "x"}, 422),
        ("post", "/v1/score", {"passages": ["x" * 20_001], "answer": "x"}, 422),
        ("post", "/v1/obligations", {"corpus": "rulebook", "passage_ids": ["gone"]}, 404),
        ("get", "/v1/passages/gone?corpus=rulebook", None, 404),
        ("get", "/v1/nothing", None, 404),
        ("get", "/v1/ask", None, 405),
    ],
)
def test_a_refusal_is_a_problem_in_words(client, method, path, body, status):
    answer = client.request(method, path, json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"].startswith(("expected", "The question", "unknown", "no preset", "There is"))


def test_a_bug_is_a_problem_without_a_trace(client, backend):
    def broken():
        raise ValueError("secret words")

    backend.corpora = broken
    answer = client.get("/v1/corpora")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["detail"] == "ragqa failed unexpectedly; its log says more"


def test_a_source_with_a_long_title_has_the_name_that_the_page_shows():
    long = "Regulations for Reserves, for Books and for Time, of Banks and of Others (Reserves)"
    kept = passage("1:2.1", "A firm must act.", title=long, section=f"{long} › Part 2 › 2.1", number="2.1")
    selection = select(Ranking("fused", (ScoredPassage(kept, 1.0),)), FilteringConfig())
    view = View(Question("Who?"), Config(), selection=selection, answer=answer("Act.", [(1,)]))
    assert ending(view) == "\n\nSources:\n[1] Regulations for Reserves (Reserves) › Part 2 › 2.1\n\nNot scored."


def test_only_json_is_read(client):
    plain = client.post("/v1/ask", content='{"question": "x"}', headers={"Content-Type": "text/plain"})
    assert plain.status_code == 422
    assert "expected a body with Content-Type: application/json, found text/plain" in plain.json()["detail"]


def test_a_failure_is_told_before_a_stream_and_in_it(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    broken = ToyBackend(tmp_path, generator=FakeGenerator(ANSWER, GenerationError("the server is down"), error_after=2))
    client = TestClient(asgi(broken), raise_server_exceptions=False)
    body = {"question": "Who must act?", "corpus": "rulebook"}
    assert client.post("/v1/ask", json=body).status_code == 502
    streamed = events_in(client.post("/v1/ask", json=body | {"stream": True}).text)
    assert streamed[-1][0] == "error"
    assert "the server is down" in streamed[-1][1]["error"]["message"]
    broken.queue.close("The server stops.")
    assert client.post("/v1/ask", json=body | {"stream": True}).status_code == 503


SEARCH = {"question": "act", "corpus": "rulebook"}
SCORE = {"passages": ["A firm must act."], "answer": "A firm must act."}
DUTIES = {"corpus": "rulebook", "passage_ids": ["1:1.1"]}


@pytest.mark.parametrize(("path", "body"), [("search", SEARCH), ("score", SCORE), ("obligations", DUTIES)])
def test_what_models_read_waits_in_the_queue_and_counts_as_a_question(client, backend, tmp_path, path, body):
    gate = Gate(Person("ann", Role.ANALYST), Policy(questions_per_hour=2), AuditLog(tmp_path / "audit"), RateLimit())
    backend.gate = lambda: gate
    assert client.post(f"/v1/{path}", json=body).status_code == 200
    assert backend.queue.at_work == 0
    backend.queue.close("The server stops.")
    assert client.post(f"/v1/{path}", json=body).status_code == 503
    assert client.post(f"/v1/{path}", json=body).status_code == 403


LONG = answer("\n".join(["A firm must act at once."] * 40), [(1,)] * 40)  # over a minute of a SlowGenerator


@pytest.mark.enable_socket
def test_a_client_that_goes_frees_its_turn(tmp_path, monkeypatch):
    import httpx2

    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))

    backend = ToyBackend(tmp_path, generator=SlowGenerator(LONG))
    body = {"question": "Who must act?", "corpus": "rulebook", "stream": True}
    with served(asgi(backend)) as address:
        with httpx2.stream("POST", f"{address}/v1/ask", json=body) as answer:
            next(answer.iter_lines())
            assert backend.queue.at_work == 1
        assert waited_for(lambda: not backend.queue.at_work)


CHAT = {"model": "ragqa:rulebook", "messages": [{"role": "user", "content": "Who must act?"}]}
ASK = {"question": "Who must act?", "corpus": "rulebook"}


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("ask", ASK),
        ("ask", ASK | {"stream": True}),
        ("chat/completions", CHAT),
        ("chat/completions", CHAT | {"stream": True}),
        ("search", SEARCH),
        ("score", SCORE),
        ("obligations", DUTIES),
    ],
)
def test_a_client_that_goes_while_it_waits_leaves_the_queue(backend, path, body):
    import httpx2

    held = [backend.queue.take() for _ in range(2)]
    with served(asgi(backend)) as address:
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{address}/v1/{path}", json=body, timeout=0.5)
        assert waited_for(lambda: not backend.queue.waiting)
        for place in held:
            place.leave()
    assert not backend.records().list()


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    ("path", "body"), [("chat/completions", CHAT | {"stream": True}), ("score", SCORE)], ids=["chat", "score"]
)
def test_scoring_for_a_client_that_went_ends(tmp_path, path, body):
    import httpx2

    scorer = SlowScorer(make_pipeline().scorer)
    backend = ToyBackend(tmp_path, scorer=scorer)
    with served(asgi(backend)) as address:
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{address}/v1/{path}", json=body, timeout=1)
        assert waited_for(lambda: not backend.queue.at_work)
    assert scorer.was_left


@pytest.mark.enable_socket
@pytest.mark.parametrize(("headers", "kept"), [({}, 0), ({"Idempotency-Key": "a"}, 1)])
def test_work_for_a_client_that_went_ends_unless_it_can_ask_for_it_again(tmp_path, monkeypatch, headers, kept):
    import httpx2

    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    backend = ToyBackend(tmp_path, generator=SlowGenerator(ANSWER if kept else LONG))
    with served(asgi(backend)) as address:
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{address}/v1/ask", json=ASK, headers=headers, timeout=1)
        assert waited_for(lambda: not backend.queue.at_work)
        stored = [backend.records().load(one.record_id) for one in backend.records().list()]
        answered = [one for one in stored if one.answer]
        assert len(answered) == kept
        if kept:
            again = httpx2.post(f"{address}/v1/ask", json=ASK, headers=headers, timeout=20).json()
            assert again["record_id"] == answered[0].record_id


def test_the_openapi_document_names_every_address(client):
    paths = client.get("/v1/openapi.json").json()["paths"]
    assert {"/chat/completions", "/models", "/search", "/ask", "/check", "/score", "/corpora"} <= set(paths)


def test_the_page_of_it_has_every_address_and_field_and_no_script(client):
    page = client.get("/v1/docs")
    document = client.get("/v1/openapi.json").json()
    assert page.headers["content-type"].startswith("text/html")
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} /v1{path}</code>" in page.text
    assert "<code>idempotency-key</code>" in page.text
    assert "string, 1 to 8,000 characters, needed" in page.text
    assert "string, 1 to 30,000 characters, needed" in page.text
    assert "<script" not in page.text
    assert "http" not in page.text
    refusals = [
        about["responses"]["default"]["content"] for one in document["paths"].values() for about in one.values()
    ]
    assert all("application/problem+json" in one for one in refusals)


def test_a_method_that_is_not_there_is_refused_with_those_that_are(client):
    answer = client.delete("/v1/ask")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["detail"] == "expected an address and a method of /v1/docs, found DELETE /v1/ask (405)"


@pytest.mark.parametrize("stream", [0, "yes"])
def test_a_number_is_no_truth_value(client, stream):
    body = {"question": "Who must act?", "corpus": "rulebook", "stream": stream}
    assert client.post("/v1/ask", json=body).status_code == 422


# Whose key it is ----------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(backend, tmp_path):
    store, acting_now = KeyStore(tmp_path), []
    policy = Policy(corpora={"rulebook": frozenset({"risk"})})
    audit = AuditLog(tmp_path / "audit")

    def gate_of(headers):
        secret = headers.get("authorization", "").removeprefix("Bearer ")
        return Gate(store.person(secret), policy, audit)

    @contextmanager
    def acting(gate):
        acting_now.append(gate)
        yield
        acting_now.pop()

    backend.gate = lambda: acting_now[-1]
    return TestClient(asgi(backend, gate_of, acting), raise_server_exceptions=False), store


@pytest.mark.parametrize(
    ("role", "groups", "path", "status"),
    [
        (Role.READER, ("risk",), "/v1/ask", 403),
        (Role.READER, ("risk",), "/v1/search", 200),
        (Role.READER, (), "/v1/search", 403),
        (Role.ANALYST, (), "/v1/ask", 403),
        (Role.ANALYST, ("risk",), "/v1/ask", 200),
        (Role.ADMINISTRATOR, (), "/v1/ask", 200),
    ],
)
def test_a_key_may_do_what_its_role_may(guarded, role, groups, path, status):
    client, store = guarded
    _, secret = store.make("ann", role, groups)
    body = {"question": "Who must act?", "corpus": "rulebook"}
    assert client.post(path, json=body, headers={"Authorization": f"Bearer {secret}"}).status_code == status


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/search", "/v1/models", "/v1/openapi.json", "/v1/nothing"])
@pytest.mark.parametrize("header", [None, "Bearer", "Bearer ragqa_guess", "Basic YTpi", "Bearer revoked"])
def test_without_a_valid_key_nothing_is_answered(guarded, header, path):
    client, store = guarded
    key, secret = store.make("ann", Role.ADMINISTRATOR)
    store.revoke(key.id)
    headers = {} if header is None else {"Authorization": header.replace("revoked", secret)}
    answer = client.request("GET" if "ask" not in path and "search" not in path else "POST", path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.enable_socket
def test_the_openai_client_is_refused_with_a_wrong_key_and_ends_a_stream_with_the_right_one(tmp_path, monkeypatch):
    from openai import AuthenticationError, OpenAI

    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    backend, store = ToyBackend(tmp_path, generator=SlowGenerator(LONG)), KeyStore(tmp_path)
    _, secret = store.make("ann", Role.ANALYST)

    def gate_of(headers):
        return Gate(store.person(headers.get("authorization", "").removeprefix("Bearer ")))

    with served(asgi(backend, gate_of)) as address:
        with pytest.raises(AuthenticationError, match="valid key of `ragqa keys make`"):
            OpenAI(base_url=f"{address}/v1", api_key="ragqa_guess", max_retries=0).models.list()
        client = OpenAI(base_url=f"{address}/v1", api_key=secret, max_retries=0)
        with client.chat.completions.create(**CHAT, stream=True) as stream:
            assert next(iter(stream)).choices[0].delta.content
            assert backend.queue.at_work == 1
        assert waited_for(lambda: not backend.queue.at_work)


def test_the_log_says_whose_key_asked(guarded, tmp_path):
    client, store = guarded
    _, secret = store.make("ann@example.org", Role.ANALYST, ("risk",))
    body = {"question": "Who must act?", "corpus": "rulebook"}
    client.post("/v1/ask", json=body, headers={"Authorization": f"Bearer {secret}"})
    entry = next(one for one in AuditLog(tmp_path / "audit").entries() if one["act"] == Act.QUESTION)
    assert entry["email"] == "ann@example.org"


@pytest.mark.parametrize(("role", "corpora"), [(Role.READER, {}), (Role.ANALYST, {"rulebook": frozenset()})])
def test_no_model_rewrites_a_follow_up_that_may_not_be_asked(backend, client, monkeypatch, tmp_path, role, corpora):
    rewritten = []
    monkeypatch.setattr("ragqa.server.api.service.rewrite", lambda *told: rewritten.append(told))
    gate = Gate(Person("https://id|s-1", role), Policy(corpora=corpora), AuditLog(tmp_path / "audit"))
    monkeypatch.setattr(backend, "gate", lambda: gate)
    said = [("user", "Who must act?"), ("assistant", "A firm."), ("user", "And for branches?")]
    messages = [{"role": one, "content": text} for one, text in said]
    found = client.post("/v1/chat/completions", json={"model": "ragqa:rulebook", "messages": messages})
    assert found.status_code == 403, found.text
    assert not rewritten


def test_of_a_long_chat_only_what_a_rewriting_uses_is_read():
    said = [("user", "Who must act? " * 10_000), ("assistant", "A firm must act. " * 10_000)] * 20
    asked, thread = thread_of([*said, ("user", "And when?")])
    assert (asked, len(thread)) == ("And when?", MOST_TURNS)
    assert all(len(turn.question) <= MAX_QUESTION_CHARS and len(turn.answer) <= MAX_TEXT_CHARS for turn in thread)


@pytest.mark.parametrize("body", ["[" * 100_000, '{"question": ' + "9" * 5_000 + "}"])
def test_a_body_that_json_cannot_read_is_named_as_the_fault(client, body):
    refused = client.post("/v1/ask", content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 400
    assert "expected a body of JSON" in refused.json()["detail"]
