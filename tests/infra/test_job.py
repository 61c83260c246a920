"""Work in a thread: seen, stopped, and ended whatever happens."""

import logging
import threading
from dataclasses import dataclass, replace

import pytest

from ragqa.errors import ConfigError
from ragqa.infra.job import Job


@dataclass(frozen=True)
class View:
    done: int = 0
    error: str = ""
    running: bool = True


class Counting(Job[View]):
    """Counts until it is stopped, or raises what it is given."""

    def __init__(self, error=None):
        super().__init__(View(), "counting", "count again")
        self.error, self.counted, self.has_ended, self.raised = error, threading.Event(), 0, []
        self.start()

    def work(self):
        if self.error:
            raise self.error
        while not self.stopped.wait(0.001):
            self.view = replace(self.view, done=self.view.done + 1)
            self.counted.set()
        self.view = replace(self.view, running=False)

    def failed(self, words, error):
        self.raised.append(error)
        self.view = replace(self.view, error=words, running=False)

    def ended(self):
        self.has_ended += 1


def test_it_is_seen_at_work_and_stopped():
    job = Counting()
    assert job.counted.wait(10)
    assert job.wait(0.01).running
    assert not job.is_stopping
    job.stop()
    view = job.wait(10)
    assert (view.running, view.error, job.has_ended) == (False, "", 1)
    assert view.done > 0
    assert not job.is_stopping
    assert job.seconds == job.seconds > 0


def test_an_error_of_ours_is_told_in_its_words():
    error = ConfigError("expected a, found b; do c")
    job = Counting(error)
    assert job.wait(10) == View(0, "expected a, found b; do c", running=False)
    assert (job.raised, job.has_ended) == ([error], 1)


def test_another_is_told_without_a_trace_and_logged_with_one(caplog):
    with caplog.at_level(logging.ERROR):
        job = Counting(ZeroDivisionError("secret"))
        view = job.wait(10)
    reference = view.error.split("Reference ")[1].split()[0]
    assert view.error == (
        f"Something failed inside ragqa. Reference {reference} in the server's log says what; count again."
    )
    assert f"counting failed, reference {reference}" in caplog.text
    assert "ZeroDivisionError: secret" in caplog.text
    assert (job.raised, job.has_ended) == ([None], 1)


def test_who_derives_says_what_to_do():
    with pytest.raises(TypeError, match="abstract"):
        Job(View(), "nothing")
