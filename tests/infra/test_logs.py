"""Logs as JSON: one object a line whatever is logged, with the run it is about and without any secret."""

import json
import logging
import subprocess
import sys
import threading

import pytest

from ragqa.infra import logs
from ragqa.infra.logs import SECRETS, JsonLines


def line(message, *args, exc_info=None):
    made = JsonLines().format(logging.LogRecord("ragqa.odd", logging.ERROR, "", 1, message, args, exc_info))
    assert "\n" not in made
    return json.loads(made)


def test_a_line_has_its_time_its_words_and_what_it_is_about():
    with logs.about(run="abc"), logs.about(record="r1"):
        found = line('two\nlines, "quoted" %s', "ünïcode\u2028")
    assert found.pop("time").endswith("+00:00")
    assert found == {
        "level": "error",
        "logger": "ragqa.odd",
        "message": 'two\nlines, "quoted" ünïcode\u2028',
        "run": "abc",
        "record": "r1",
    }
    assert "run" not in line("after it")


def test_a_thread_of_another_run_says_nothing_of_this_one():
    found = []
    with logs.about(run="abc"):
        thread = threading.Thread(target=lambda: found.append(line("there")))
        thread.start()
        thread.join()
    assert "run" not in found[0]


@pytest.mark.parametrize("name", SECRETS)
def test_planted_secrets_are_not_in_a_line_nor_in_its_trace(monkeypatch, name):
    planted = 'pl"anted\\5ecret'
    monkeypatch.setenv(name, planted)
    try:
        raise ValueError(f"called with {planted}, https://user:pass-word@host/v1, Bearer abcdefgh, sk-1234567890")
    except ValueError:
        found = line("the key %s", planted, exc_info=sys.exc_info())
    text = json.dumps(found)
    for secret in (planted, json.dumps(planted)[1:-1], "5ecret", "pass-word", "abcdefgh", "sk-1234567890"):
        assert secret not in text, secret
    assert "ValueError" in found["trace"]


CODE = """
import logging, warnings, sys
other = logging.getLogger("streamlit.odd")
other.propagate = False
other.addHandler(logging.StreamHandler())
from ragqa.infra import logs
logs.set_up()
logs.set_up()
other.warning("of another")
logging.getLogger("ragqa.some").info("of ours")
logging.getLogger("bm25s").setLevel(logging.DEBUG)
logging.getLogger("bm25s").debug("too much")
warnings.warn("warned")
"""


@pytest.mark.long
def test_everything_that_a_process_logs_is_json():
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, env={"RAGQA_LOG": "json"}, capture_output=True, text=True, check=True)
    found = [json.loads(line)["message"] for line in done.stderr.splitlines()]
    assert found[:2] == ["of another", "of ours"]
    assert "warned" in found[2]
    assert len(found) == 3


@pytest.mark.long
def test_another_word_is_refused():
    command = [sys.executable, "-m", "ragqa", "records", "list"]
    done = subprocess.run(command, env={"RAGQA_LOG": "xml"}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "expected text or json, found 'xml'" in done.stderr
