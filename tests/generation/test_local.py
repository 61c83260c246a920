"""The local model's process: started at the first question, asked in turns, ended, killed and started again."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from ragqa.errors import ConfigError, GenerationError, ModelError
from ragqa.generation.llm.client import ChatClient
from ragqa.generation.llm.generator import LlmGenerator
from ragqa.generation.llm.reply import Reply
from ragqa.generation.local import server as local
from ragqa.settings.config import GenerationConfig
from ragqa.types import Passage, Question
from ragqa.types.events.generation import Token, Working
from tests.support.local_child import TEXT
from tests.support.streams import drain

pytestmark = pytest.mark.long

QUESTION = Question("What must a Firm do?")
PASSAGES = [Passage(f"p{number}", "d1", f"A Firm must do thing {number}.", "Conduct Rules") for number in (1, 2, 3)]


@pytest.fixture
def host(monkeypatch, tmp_path):
    """Makes the one host of this process one whose child behaves so; the model is a file of its own."""
    hosts = []

    def make(behaviour, file="own-model.gguf"):
        (tmp_path / file).write_bytes(b"GGUF and no weights")
        hosts.append(local.Host((sys.executable, "-m", "tests.support.local_child", behaviour)))
        monkeypatch.setattr(local, "HOST", hosts[-1])
        return hosts[-1]

    monkeypatch.setenv("RAGQA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(local, "has_library", lambda: True)
    yield make
    for one in hosts:
        one.stop()


def generator(tmp_path, file="own-model.gguf"):
    return LlmGenerator(GenerationConfig(generator="llm", local_model=str(tmp_path / file)), "sk-of-another-server")


def gone(pid):
    """Waits until no process has this id; a zombie's is still ours to reap."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_the_first_question_starts_the_process_and_shows_what_it_does(host, tmp_path):
    running = host("answer")
    asked = generator(tmp_path)
    assert running.pid is None
    events, answered = drain(asked.stream(QUESTION, PASSAGES))
    phases = [event.phase for event in events if isinstance(event, Working)]
    assert phases[0].startswith("Loading the local model own-model")
    assert phases[-3:] == [
        "Reading the prompt: 0 of 128 tokens",
        "Reading the prompt: 64 of 128 tokens, 100 a second",
        "Writing the answer",
    ]
    assert "".join(event.text for event in events if isinstance(event, Token)) == answered.raw == TEXT
    assert (answered.model, asked.model, answered.finish_reason) == ("own-model", "own-model", "stop")
    first = running.pid
    drain(asked.stream(QUESTION, PASSAGES))
    assert running.pid == first
    running.stop()
    assert gone(first)


def test_a_process_killed_during_an_answer_leaves_what_it_wrote_and_the_next_question_works(host, tmp_path):
    running = host("slow")
    asked = generator(tmp_path)
    stream = asked.stream(QUESTION, PASSAGES)
    while not isinstance(next(stream), Token):
        pass
    first = running.pid
    os.kill(first, signal.SIGKILL)
    _, answered = drain(stream)
    assert answered.finish_reason == "interrupted"
    assert answered.raw.startswith("A")
    assert "local model own-model to answer to the end" in answered.note
    assert "signal 9" in answered.note
    assert "ask again" in answered.note
    _, again = drain(asked.stream(QUESTION, PASSAGES))
    assert (again.raw, again.finish_reason) == (TEXT, "stop")
    assert running.pid != first


@pytest.mark.parametrize(
    ("behaviour", "found"),
    [("refuse", "RuntimeError: Failed to init 0.00 E cannot read [key]"), ("die", "the last word")],
)
def test_a_model_that_does_not_load_says_why(host, tmp_path, behaviour, found):
    running = host(behaviour)
    with pytest.raises(GenerationError) as raised:
        drain(generator(tmp_path).stream(QUESTION, PASSAGES))
    assert found in str(raised.value)
    assert "choose a smaller model" in str(raised.value)
    assert running.pid is None


def test_loading_has_an_end(host, tmp_path, monkeypatch):
    host("silent")
    monkeypatch.setattr(local, "LOADING_SECONDS", 0.2)
    with pytest.raises(GenerationError, match="still loading"):
        drain(generator(tmp_path).stream(QUESTION, PASSAGES))


def test_questions_are_answered_in_the_order_of_asking_and_see_how_many_are_before_them(host, tmp_path):
    host("slow")
    asked, phases, done = generator(tmp_path), {}, []

    def work(number):
        events, answered = drain(asked.stream(QUESTION, PASSAGES))
        phases[number] = [event.phase for event in events if isinstance(event, Working)]
        done.append((number, answered.finish_reason))

    threads = []
    for number in range(3):
        threads.append(threading.Thread(target=work, args=(number,)))
        threads[-1].start()
        while len(local.HOST._queue) <= number:
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert done == [(0, "stop"), (1, "stop"), (2, "stop")]
    assert "Waiting for the local model: 2 before this one" in phases[2]
    assert "Waiting for the local model: 1 before this one" in phases[2]


def test_who_stops_gives_the_turn_to_the_next(host, tmp_path):
    host("slow")
    asked = generator(tmp_path)
    with closing(asked.stream(QUESTION, PASSAGES)) as stream:
        next(stream)
    _, answered = drain(asked.stream(QUESTION, PASSAGES))
    assert answered.finish_reason == "stop"


def test_another_process_that_asks_is_waited_for(host, tmp_path):
    host("answer")
    other = local.Lock(tmp_path / "home" / "local-model.lock")
    (tmp_path / "home").mkdir()
    with closing(generator(tmp_path).stream(QUESTION, PASSAGES)) as stream:
        assert other.take()
        assert "another ragqa" in next(stream).phase
        other.release()
        _, answered = drain(stream)
    assert answered.finish_reason == "stop"


def test_another_model_takes_the_place_of_the_one_before(host, tmp_path):
    running = host("answer")
    (tmp_path / "second.gguf").write_bytes(b"GGUF as well")
    drain(generator(tmp_path).stream(QUESTION, PASSAGES))
    first = running.pid
    _, answered = drain(generator(tmp_path, "second.gguf").stream(QUESTION, PASSAGES))
    assert answered.model == "second"
    assert gone(first)


PARENT = """
import sys, time
from pathlib import Path
from ragqa.generation.local.server import Child
child = Child(Path("x.gguf"), "x", (sys.executable, "-m", "tests.support.local_child", "answer"))
while child.address is None: child.check()
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_parent_killed_outright_takes_the_process_along():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert Path(f"/proc/{child}").exists()
        parent.kill()
    assert gone(child)


def test_no_thread_of_ours_is_needed_to_end_with_the_parent():
    """The library holds Python while it loads, so the system itself ends the process with its standard input."""
    code = "import sys, time; from ragqa.generation.local.child import _be_ended_with as end; end(sys.stdin); "
    code += "print('ready', flush=True); time.sleep(600)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        assert process.stdout.readline() == b"ready\n"
        process.stdin.close()
        assert process.wait(60) == -signal.SIGIO


def test_no_file_no_library_no_gguf_are_said_before_anything_starts(host, tmp_path, monkeypatch):
    running = host("answer")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(ModelError, match="begins with b'no m'"):
        generator(tmp_path, "text.gguf")
    with pytest.raises(ModelError, match="the path of a GGUF file"):
        generator(tmp_path, "missing.gguf")
    with pytest.raises(ModelError, match="ragqa models fetch smollm2-135m"):
        LlmGenerator(GenerationConfig(local_model="smollm2-135m"))
    monkeypatch.setattr(local, "has_library", lambda: False)
    with pytest.raises(ConfigError, match="make local"):
        generator(tmp_path)
    assert running.pid is None


def test_the_key_is_the_process_own(host, tmp_path):
    """The key of the configured server is not sent to it, its own stands in no command line and no environment."""
    running = host("answer")
    client = ChatClient(GenerationConfig(local_model=str(tmp_path / "own-model.gguf")), "sk-of-another-server")
    drain(client.write([{"role": "user", "content": "Go."}], Reply()))
    key = running._child.address.key
    seen = b"".join(Path(f"/proc/{running.pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
    assert key.encode() not in seen
    assert key != "sk-of-another-server"


@pytest.mark.slow
def test_a_real_model_writes_an_answer(monkeypatch, tmp_path):
    """The whole path: the library in the child, loading, prompt, stream, end. RAGQA_LOCAL_TEST_MODEL names the file."""
    file = os.environ.get("RAGQA_LOCAL_TEST_MODEL", "")
    if not file:
        pytest.skip("RAGQA_LOCAL_TEST_MODEL names no GGUF file (ragqa models fetch smollm2-135m)")
    if not local.has_library():
        pytest.skip("the library is not installed: make local")
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    asked = LlmGenerator(GenerationConfig(generator="llm", local_model=file, max_tokens=40, timeout_seconds=120.0))
    try:
        events, answered = drain(asked.stream(QUESTION, PASSAGES))
    finally:
        local.HOST.stop()
        asked.close()
    phases = [event.phase for event in events if isinstance(event, Working)]
    assert any(phase.startswith("Reading the prompt") for phase in phases)
    assert phases[-1] == "Writing the answer"
    assert answered.raw.strip()
    assert answered.finish_reason in {"stop", "length"}
    assert answered.usage.prompt_tokens > 100
    assert 0 < answered.usage.completion_tokens <= 40
