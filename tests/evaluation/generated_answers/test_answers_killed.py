"""`ragqa eval answers` killed with SIGKILL at random moments and run again: no answer lost, none paid twice."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer, answer

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
OUTPUTS = ("answers.json", "ranking.run")


def start(command, **environ):
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **environ}
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(command, **environ):
    process = start(command, **environ)
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    return out, err


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    return process.returncode == -signal.SIGKILL  # False: it had finished before


def kept(folder):
    """Whole lines in the journal."""
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    return sum(line.endswith(b"\n") for line in lines)


def number_of(request):
    return int(re.search(r"item (\d+) of the questions", request.prompt)[1])


def reply(request):
    n = number_of(request)
    return f"A firm must act at once on {n} [1]. The moon is {n} miles off [2]. Nothing else matters."


def write_questions(tmp_path, count):
    file = tmp_path / "questions.json"
    rows = [{"QuestionID": f"q{n}", "Question": f"What of item {n} of the questions?"} for n in range(1, count + 1)]
    file.write_text(json.dumps(rows))
    return file


def command_for(file, pause="0.004", parallel=1, generator="llm"):
    options = ["--questions", str(file), "--generator", generator, "--parallel", str(parallel), "--out"]
    return [sys.executable, "-m", "tests.support.answers_entry", pause, "eval", "answers", *options]


def entries(folder):
    return [json.loads(line)["entry"]["item"] for line in (folder / "journal.jsonl").read_text().splitlines()]


def killed_and_run_again(tmp_path, n_questions, n_kills, parallel, generator="llm"):
    """The folder after that many kills and a last run, the server that was asked, and how far each kill let it come."""
    file, folder = write_questions(tmp_path, n_questions), tmp_path / "out"
    command = command_for(file, parallel=parallel, generator=generator)
    moments = random.Random(11)
    with OpenAIServer(answer(reply, seconds_per_piece=0.001)) as server:
        environ = {"OPENAI_BASE_URL": server.base_url}
        finish([*command, str(tmp_path / "expected")], **environ)
        expected = list(server.requests)
        n_entries = kept(tmp_path / "expected")
        server.requests.clear()
        counts = []
        while len(counts) < n_kills:
            process = start([*command, str(folder)], **environ)
            process.stdout.readline()  # "Ready"
            reached = kept(folder) + moments.randrange(n_entries // n_kills)
            while kept(folder) < reached and process.poll() is None:
                time.sleep(0.0005)
            time.sleep(moments.uniform(0.0, 0.02))
            assert kill(process), "it ended before it was killed: give it more questions"
            counts.append(kept(folder))
        _, err = finish([*command, str(folder)], **environ)
        requests = list(server.requests)
    assert "continuing:" in err
    return folder, requests, counts, expected


def assert_none_lost_and_none_paid_twice(tmp_path, folder, requests, n_questions, n_kills, parallel):
    for name in OUTPUTS:
        assert (folder / name).read_bytes() == (tmp_path / "expected" / name).read_bytes()
    found = entries(folder)
    numbers = list(range(1, n_questions + 1))
    for step in ("solved", "scored"):
        assert sorted(entry["number"] for entry in found if entry["step"] == step) == numbers
    steps = {n: [entry["step"] for entry in found if entry["number"] == n] for n in numbers}
    for of_question in steps.values():  # asked again only while there was no answer
        assert "begun" not in of_question[of_question.index("solved") :]
    asked = Counter(map(number_of, requests))
    begun = {n: of_question.count("begun") for n, of_question in steps.items()}
    assert all(1 <= asked[n] <= begun[n] for n in numbers)
    undisturbed = [n for n in numbers if begun[n] == 1]
    assert all(asked[n] == 1 for n in undisturbed)
    assert sum(begun.values()) - n_questions <= n_kills * parallel  # at most what was under way at each kill


def test_killed_once_and_run_again(tmp_path):
    folder, requests, _, expected = killed_and_run_again(tmp_path, 20, 1, 2)
    assert len(expected) == 20
    assert_none_lost_and_none_paid_twice(tmp_path, folder, requests, 20, 1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("parallel", [1, 3])
def test_killed_twenty_times_and_run_again(tmp_path, parallel):
    folder, requests, counts, expected = killed_and_run_again(tmp_path, 100, 20, parallel)
    assert len(expected) == 100
    assert_none_lost_and_none_paid_twice(tmp_path, folder, requests, 100, 20, parallel)
    assert len(set(counts)) > 10  # it was killed at many different places


@pytest.mark.slow
def test_vrr_killed_twenty_times_asks_again_only_for_what_was_still_being_written(tmp_path):
    """Five candidates and some corrections a question: what had been received is in the journal, call by call."""
    folder, requests, counts, expected = killed_and_run_again(tmp_path, 30, 20, 1, "vrr")
    assert len(expected) > 30 * 5
    for name in OUTPUTS:
        assert (folder / name).read_bytes() == (tmp_path / "expected" / name).read_bytes()
    calls_at_once = 4
    assert len(expected) <= len(requests) <= len(expected) + 20 * calls_at_once
    wanted, asked = (Counter(request.prompt for request in sent) for sent in (expected, requests))
    assert wanted.keys() == asked.keys()  # the refinement went the same way
    received = Counter(entry["request"] for entry in entries(folder) if entry["step"] == "reply")
    assert sum(received.values()) == len(expected)  # every completion was received once, and none twice
    assert len(set(counts)) > 10


def test_ctrl_c_keeps_the_answer_under_way_and_says_how_to_go_on(tmp_path):
    file, folder = write_questions(tmp_path, 40), tmp_path / "out"
    with OpenAIServer(answer(reply, seconds_per_piece=0.02)) as server:
        command = [*command_for(file, parallel=2), str(folder)]
        process = start(command, OPENAI_BASE_URL=server.base_url)
        while kept(folder) < 5 and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        n_asked = len(server.requests)
    assert process.returncode == 130, err
    assert "Traceback" not in out + err
    assert "stopping after the requests in progress" in " ".join(err.split())
    found = [entry["step"] for entry in entries(folder)]
    assert found.count("solved") == found.count("begun") == n_asked < 40
