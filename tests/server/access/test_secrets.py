"""Secrets that are planted in every place they are read from, searched for in all that ragqa writes and says."""

import logging
from dataclasses import replace

import pytest

from ragqa.errors import RagqaError
from ragqa.generation.fanout.model import FanOutLlmGenerator
from ragqa.generation.llm.generator import LlmGenerator
from ragqa.generation.vrr import VrrGenerator
from ragqa.infra.logs import JsonLines
from ragqa.infra.metrics import METRICS
from ragqa.records.store import RecordStore
from ragqa.scoring.repass.verifier import RepassVerifier
from ragqa.settings.config import Config, GenerationConfig
from ragqa.types import Question
from tests.support.helpers import make_pipeline
from tests.support.openai_server import OpenAIServer, answer, page, status

KEY = "sk-planted-0123456789abcdef"
PLANTED = {
    "OPENAI_API_KEY": KEY,
    "VOYAGE_API_KEY": "pa-planted-0123456789",
    "RAGQA_JUDGE_KEY": "sk-planted-judge-01234",
    "FANOUTQA_OPENAI_API_KEY": "sk-planted-fan-out-01234",
}
USER, PASSWORD = "planted-user", "planted-password"
SERVERS = {
    "answers": answer("A firm must act at once [1]."),
    "refuses, with the key": status(401, f"Incorrect API key provided: {KEY}. Planted: {PASSWORD}"),
    "fails, with the key": status(500, f"while calling with Authorization: Bearer {KEY}"),
    "sends a page with the key": page(f"<p>{KEY}</p>"),
    "answers with the key": answer(f"The key is {KEY}, firms must act [1]."),
}
WRITERS = {
    "llm": lambda config, scorer: LlmGenerator(config, KEY),
    "vrr": lambda config, scorer: VrrGenerator(config, RepassVerifier(scorer), KEY),
    "fan-out-llm": lambda config, scorer: FanOutLlmGenerator(config, Config().filtering, KEY),
}


def logged(caplog):
    """What was logged as text and as JSON, and the figures."""
    as_json = "\n".join(map(JsonLines().format, caplog.records))
    return {"logs": caplog.text, "logs as JSON": as_json, "figures": METRICS.text()}


@pytest.mark.long
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("server", SERVERS)
def test_no_planted_secret_is_written_or_said(tmp_path, monkeypatch, caplog, capfd, server, writer):
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    caplog.set_level(logging.DEBUG)
    store = RecordStore(tmp_path / "records.sqlite3")
    said = []
    with OpenAIServer(SERVERS[server]) as there:
        address = there.base_url.replace("://", f"://{USER}:{PASSWORD}@")
        config = GenerationConfig(
            generator=writer, base_url=address, model="tiny", max_retries=0, candidates=2, rounds=1
        )
        whole = make_pipeline(config=replace(Config(), generation=config), records=store)
        generator = WRITERS[writer](config, whole.scorer)
        try:
            for event in replace(whole, generator=generator).run(Question("Who must act?")):
                said.append(repr(event))
        except RagqaError as error:
            said += [str(error), repr(error), repr(error.__cause__)]
        finally:
            generator.close()
        assert there.requests[0].headers["authorization"].startswith("Basic ")  # the login is still sent
    out, err = capfd.readouterr()
    places = {
        "what was yielded": "\n".join(said) if server != "answers with the key" else "",
        **logged(caplog),
        "output": out + err,
        "files": "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()),
    }
    if server == "answers with the key":  # a model that says it has been told it: what it writes is its own
        places = logged(caplog)
    for place, text in places.items():
        for secret in (*PLANTED.values(), PASSWORD):
            assert secret not in text, (place, text[max(0, text.find(secret) - 200) : text.find(secret) + 60])
