"""A real OpenAI-compatible server, `transformers serve`, with a tiny model: the whole way through the real client."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.support.server import free_port
from tests.support.tiny_chat import VOCABULARY, write_chat_model

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """(address, model) of a running `transformers serve` that may fetch nothing."""
    home = tmp_path_factory.mktemp("serve")
    model = write_chat_model(home / "tiny-chat")
    (home / "hub").mkdir()
    port = free_port()
    command = [Path(sys.executable).with_name("transformers"), "serve", str(model), "--device", "cpu"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--default-seed", "1"]
    env = {**os.environ, "HF_HUB_CACHE": str(home / "hub"), "HF_HUB_OFFLINE": "1"}
    with (home / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(f"http://127.0.0.1:{port}/health", process, home / "serve.log")
            yield f"http://127.0.0.1:{port}/v1", str(model)
        finally:
            process.terminate()
            process.wait(20)


def _wait(address, process, log, seconds=180):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(log.read_text(errors="replace")[-2000:])


def ask(server, home, *options):
    base_url, model = server
    env = {**os.environ, "OPENAI_BASE_URL": base_url, "RAGQA_MODEL": model, "RAGQA_HOME": str(home)}
    command = [sys.executable, "-c", "from ragqa.cli import main; main()", "ask", "What records must a dealer keep?"]
    command += ["--json", *options]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout), done.stderr


@pytest.mark.slow  # 65 s: a server that loads transformers
@pytest.mark.parametrize("generator", ["vrr", "loc"])
def test_every_generator_completes_end_to_end(server, tmp_path, generator):
    small = ("--candidates", "2", "--rounds", "1", "--tries", "1", "--max-calls", "5", "--top-k", "2")
    record, told = ask(server, tmp_path, "--generator", generator, *small)
    answer = record["answer"]
    assert answer["model"] == f"{server[1]}@main"  # as the server reports it, with the revision
    assert answer["sentences"]
    assert {word for word in answer["text"].split() if word.isalpha()} <= set(VOCABULARY)
    for mode in ("paper", "script"):
        assert 0 <= record["scored"][mode]["repass"]["entailment"] <= 1
    assert answer["usage"]["completion_tokens"] > 0
    if generator == "vrr":
        assert "of a budget of 5" in " ".join(told.split())
        assert sum(event["kind"] == "candidate scored" for event in record["trace"]) == 2
