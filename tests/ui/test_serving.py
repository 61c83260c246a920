"""The addresses of `app.py` for whoever looks after a server."""

import asyncio
import os
import threading
import urllib.error
import urllib.request

import anyio
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from ragqa.errors import ModelError
from ragqa.settings.config import Config
from ragqa.settings.environment import ENVIRONMENT, whole_number
from ragqa.types import Question
from ragqa.ui import serving
from ragqa.ui.shared import forget
from ragqa.ui.state import resources
from ragqa.ui.state.run import Run
from tests.support.helpers import make_pipeline
from tests.support.server import running_app

pytestmark = pytest.mark.long
NUMBERS = [one for one in ENVIRONMENT if one.least is not None]


@pytest.fixture
def client(monkeypatch):
    for name in ("RAGQA_ACCESS", "RAGQA_METRICS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    forget()
    yield TestClient(Starlette(routes=serving.routes()))
    forget()


def test_it_is_ready_when_models_and_corpus_are_there_and_says_what_is_missing(client, monkeypatch):
    go_on, fails = threading.Event(), threading.Event()

    def load(*_):
        go_on.wait(20)
        if fails.is_set():
            raise ModelError("/a/secret/path is not there")
        return make_pipeline()

    monkeypatch.setattr(resources, "_pipeline", load)
    assert client.get("/healthz").text == "ok\n"
    found = client.get("/readyz")
    assert (found.status_code, found.text) == (503, "not ready: models are being loaded\n")
    fails.set()
    go_on.set()
    resources.warm_up(Config.from_env(), resources.Paths.from_env()).join(20)
    found = client.get("/readyz")
    assert (found.status_code, found.text) == (503, "not ready: the models\n")
    fails.clear()
    assert client.get("/readyz").text == "ready\n"
    assert client.get("/readyz").status_code == 200
    monkeypatch.setenv("RAGQA_INDEX", "no-such")
    resources.warm_up(Config.from_env(), resources.Paths.from_env()).join(20)
    found = client.get("/readyz")
    assert (found.status_code, found.text) == (503, "not ready: the corpus no-such\n")
    monkeypatch.setenv("RAGQA_SCORING_PROFILE", "odd")
    assert client.get("/readyz").text == "not ready: the settings, see the log\n"


def test_figures_are_for_those_who_know_the_token_wherever_people_sign_in(client, monkeypatch):
    assert client.get("/metrics").status_code == 200  # on localhost nobody signs in
    monkeypatch.setenv("RAGQA_ACCESS", "on")
    assert client.get("/metrics").status_code == 401
    monkeypatch.setenv("RAGQA_METRICS_TOKEN", "right")
    for told in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "right"}, {"Authorization": "Bearer "}):
        found = client.get("/metrics", headers=told)
        assert found.status_code == 401
        assert "# TYPE" not in found.text
    assert "# TYPE" in client.get("/metrics", headers={"Authorization": "Bearer right"}).text
    monkeypatch.delenv("RAGQA_METRICS_TOKEN")
    monkeypatch.setenv("RAGQA_ACCESS", "off")
    found = client.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")


def value(text, name):
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))


def test_a_run_is_counted_by_how_it_ended_and_by_nothing_of_its_words(client, monkeypatch):
    monkeypatch.setenv("RAGQA_ACCESS", "off")
    before = client.get("/metrics").text
    Run(Question("Who must act, planted-question?"), Config(), make_pipeline, "planted-person").wait(20)

    def load():
        raise ModelError("planted-path")

    Run(Question("Who must act?"), Config(), load).wait(20)
    after = client.get("/metrics").text
    assert "planted" not in after
    for name in (
        'ragqa_questions_total{outcome="answered"}',
        'ragqa_questions_total{outcome="failed"}',
        'ragqa_errors_total{kind="ModelError"}',
        'ragqa_stage_seconds_count{stage="scoring"}',
    ):
        assert value(after, name) == value(before, name) + 1, name


@pytest.mark.model
def test_the_server_answers_at_these_addresses_and_still_serves_the_page(tmp_path):
    with running_app(tmp_path, RAGQA_LOG="json") as address:

        def get(path):
            try:
                with urllib.request.urlopen(address + path, timeout=20) as reply:
                    return reply.status, reply.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        assert get("/healthz") == (200, "ok\n")
        pause = threading.Event()
        while get("/readyz")[0] == 503:
            pause.wait(0.2)
        assert get("/readyz") == (200, "ready\n")
        assert "# TYPE ragqa_stage_seconds histogram" in get("/metrics")[1]
        assert "<title>Streamlit" in get("/")[1]
    assert "Traceback" not in (tmp_path / "server.log").read_text()


def test_what_the_server_writes_is_its_owners_alone(tmp_path):
    before = os.umask(0o022)
    try:
        (tmp_path / "home").mkdir(mode=0o755)
        serving.keep_private(tmp_path / "home", new_files=True)
        (tmp_path / "home" / "file").touch()
        assert [path.stat().st_mode & 0o077 for path in (tmp_path / "home", tmp_path / "home" / "file")] == [0, 0]
    finally:
        os.umask(before)


def test_who_waits_for_a_turn_keeps_nobody_else_from_an_answer(monkeypatch):
    monkeypatch.setattr(serving, "_begin", lambda: None)
    monkeypatch.setattr(serving, "_tools", lambda: None)
    monkeypatch.setattr(serving, "keep_private", lambda home, new_files: None)
    their_turn = threading.Event()

    async def run():
        async with serving.lifespan(None), anyio.create_task_group() as programs:
            for _ in range(whole_number("RAGQA_MAX_RUNS") + whole_number("RAGQA_MAX_WAITING")):
                programs.start_soon(anyio.to_thread.run_sync, their_turn.wait)
            await anyio.sleep(0)  # they begin
            try:
                with anyio.fail_after(20):
                    return await anyio.to_thread.run_sync(lambda: "answered")
            finally:
                their_turn.set()

    assert asyncio.run(run()) == "answered"
    forget()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        *((one.name, "many", f"{one.name}: expected a whole number from {one.least}, found 'many'") for one in NUMBERS),
        ("RAGQA_ACCESS", "maybe", "RAGQA_ACCESS: expected on or off, found 'maybe'"),
        ("RAGQA_HOME", __file__, "RAGQA_HOME: expected a folder that can be written, found "),
    ],
)
def test_a_start_that_fails_of_a_setting_says_so_without_a_trace(monkeypatch, caplog, name, value, words):
    monkeypatch.setenv(name, value)
    forget()
    sent = []

    async def receive():
        return {"type": "lifespan.startup"}

    async def send(message):
        sent.append(message)

    app = Starlette(middleware=serving.middleware(), lifespan=serving.lifespan)
    mask = os.umask(0o077)
    os.umask(mask)
    try:
        asyncio.run(app({"type": "lifespan", "app": app}, receive, send))
    finally:
        os.umask(mask)
        forget()
    assert sent[-1]["type"] == "lifespan.startup.failed"
    assert sent[-1]["message"].startswith(words)
    assert "Traceback" not in sent[-1]["message"]
