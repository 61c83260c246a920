"""The runs of a server: found by their ids and by nothing else, bounded in number and time."""

import threading

import pytest

from ragqa.server.queue import RunQueue
from ragqa.settings.config import Config
from ragqa.types import Question
from ragqa.ui.state.run import Run, Runs
from tests.support.fakes import FakeGenerator
from tests.support.helpers import ANSWER, make_pipeline

pytestmark = pytest.mark.long


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


def a_run(**changes):
    return Run(Question("Who must act?"), Config(), lambda: make_pipeline(**changes))


def test_a_run_is_found_by_its_id_and_by_no_other():
    runs, run = Runs(), a_run()
    runs.add(run)
    assert runs.find(run.id) is run
    assert len(run.id) >= 22  # 128 bits
    for guess in ("", "0", run.id[:-1], run.id + "0", run.id.swapcase(), "../" + run.id):
        assert runs.find(guess) is None
    assert len({a_run().id for _ in range(10)}) == 10
    run.wait(20)


def test_runs_are_kept_for_a_while_after_they_were_looked_at():
    clock = Clock()
    runs, run, other = Runs(seconds=100, now=clock), a_run(), a_run()
    runs.add(run)
    runs.add(other)
    clock.seconds = 90
    assert runs.find(run.id) is run
    clock.seconds = 150
    assert runs.find(other.id) is None
    assert runs.find(run.id) is run
    clock.seconds = 251
    assert runs.find(run.id) is None
    assert len(runs) == 0
    for one in (run, other):
        one.wait(20)


def test_the_one_that_was_not_looked_at_longest_goes_first_and_is_stopped():
    go_on = threading.Event()

    class Waiting(FakeGenerator):
        def stream(self, question, passages):
            go_on.wait(20)
            return (yield from super().stream(question, passages))

    runs, kept = Runs(most=2), [a_run(generator=Waiting(ANSWER)) for _ in range(3)]
    runs.add(kept[0])
    runs.add(kept[1])
    runs.find(kept[0].id)
    runs.add(kept[2])
    assert [runs.find(run.id) is not None for run in kept] == [True, False, True]
    assert len(runs) == 2
    go_on.set()
    assert "Stopped at your request" in kept[1].wait(20).error
    assert kept[0].wait(20).record_id


def test_of_the_runs_that_have_ended_only_the_latest_are_kept_and_none_at_work_is_let_go():
    go_on = threading.Event()

    class Waiting(FakeGenerator):
        def stream(self, question, passages):
            go_on.wait(20)
            return (yield from super().stream(question, passages))

    runs, at_work, ended = Runs(most_ended=2), a_run(generator=Waiting(ANSWER)), [a_run() for _ in range(3)]
    runs.add(at_work)
    for run in ended:
        run.wait(20)
        runs.add(run)
    assert [runs.find(run.id) is not None for run in (at_work, *ended)] == [True, False, True, True]
    go_on.set()
    assert at_work.wait(20).record_id


def test_the_seconds_of_a_run_stand_still_when_it_has_ended():
    run = a_run()
    run.wait(20)
    assert run.seconds == run.seconds > 0


def test_a_run_waits_for_its_turn_says_so_and_can_be_stopped_there():
    turns, go_on = RunQueue(1, 5), threading.Event()

    def load():
        go_on.wait(20)
        return make_pipeline()

    def asked():
        return Run(Question("Who must act?"), Config(), load, turn=turns.take())

    def until(run, phase):
        while run.view.phase != phase:
            assert run.wait(0.02).running

    first, second, third, fourth = asked(), asked(), asked(), asked()
    until(first, "Loading the models (once)")
    until(second, "Waiting for a turn: you are next")
    until(third, "Waiting for a turn: 1 is before you")
    until(fourth, "Waiting for a turn: 2 are before you")
    third.stop()
    assert "Stopped before its turn" in third.wait(20).error
    until(fourth, "Waiting for a turn: 1 is before you")
    go_on.set()
    assert all(one.wait(20).record_id for one in (first, second, fourth))
    assert (turns.at_work, turns.waiting) == (0, 0)
