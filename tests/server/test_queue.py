"""The line of those who ask: nobody overtakes, nobody is forgotten, and it ends somewhere."""

import threading

import pytest

from ragqa.errors import BusyError, ConfigError
from ragqa.server.queue import RunQueue


def test_who_came_first_is_first_and_places_are_told():
    turns, order, told = RunQueue(2, 10), [], {n: [] for n in range(6)}
    taken = [turns.take() for _ in range(6)]
    assert (turns.at_work, turns.waiting) == (2, 4)
    assert [turns.place(one) for one in taken] == [0, 0, 1, 2, 3, 4]
    heard = threading.Semaphore(0)

    def work(n):
        def tell(place):
            told[n].append(place)
            heard.release()

        assert taken[n].wait(tell)
        order.append(n)
        taken[n].leave()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 6)]
    for one in threads:
        one.start()
    for _ in threads:
        assert heard.acquire(timeout=20)
    taken[0].leave()
    taken[0].leave()
    for one in threads:
        one.join(20)
    taken[1].leave()
    assert sorted(order) == [2, 3, 4, 5]
    assert {n: places[0] for n, places in told.items() if places} == {2: 1, 3: 2, 4: 3, 5: 4}
    assert all(places == sorted(places, reverse=True) for places in told.values())
    assert (turns.at_work, turns.waiting) == (0, 0)


def test_never_more_at_work_than_may_be():
    turns, lock, now, most = RunQueue(3, 100), threading.Lock(), [0], [0]

    def work():
        turn = turns.take()
        assert turn.wait(lambda _: None)
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        with lock:
            now[0] -= 1
        turn.leave()

    threads = [threading.Thread(target=work) for _ in range(60)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert 1 <= most[0] <= 3
    assert (turns.at_work, turns.waiting) == (0, 0)


def test_the_line_ends_and_says_so():
    turns = RunQueue(1, 1)
    first, second = turns.take(), turns.take()
    with pytest.raises(BusyError, match="1 questions running, 1 waiting.*ask again"):
        turns.take()
    second.give_up()
    assert not second.wait(lambda _: None)
    turns.take()
    first.give_up()  # at work: it goes on
    assert turns.place(first) == 0


def test_a_closed_line_lets_those_at_work_go_on():
    turns = RunQueue(1, 5)
    first, second = turns.take(), turns.take()
    turns.close("The server stops.")
    assert first.wait(lambda _: None)
    assert not second.wait(lambda _: None)
    with pytest.raises(BusyError, match="The server stops"):
        turns.take()


@pytest.mark.parametrize("wrong", ["0", "-1", "many", "1.5", "9999999", "٣"])
def test_a_wrong_number_is_refused(monkeypatch, wrong):
    monkeypatch.setenv("RAGQA_MAX_RUNS", wrong)
    with pytest.raises(ConfigError, match="RAGQA_MAX_RUNS: expected a whole number from 1"):
        RunQueue.from_env()


def test_nine_tabs_of_one_person_do_not_refuse_the_next(monkeypatch):
    turns = RunQueue(1, 7)
    mine = [turns.take("ann") for _ in range(4)]
    for _ in range(5):
        with pytest.raises(BusyError, match="4 of your questions"):
            turns.take("ann")
    other = turns.take("bob")
    assert [turns.place(one) for one in (*mine, other)] == [0, 2, 3, 4, 1]
    third = turns.take("bob")
    assert [turns.place(one) for one in (*mine, other, third)] == [0, 2, 4, 5, 1, 3]
    mine[0].leave()
    assert turns.place(other) == 0


def test_who_is_nobody_in_particular_waits_in_order_and_fills_the_line():
    turns = RunQueue(1, 3)
    assert [turns.place(turns.take()) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(BusyError, match="run queue is full"):
        turns.take()


def test_who_does_not_want_its_turn_any_more_leaves_the_line():
    turns = RunQueue(1, 5)
    turns.take()
    waiting, asked = turns.take(), []

    def still_wanted():
        asked.append(turns.place(waiting))
        if len(asked) == 2:
            raise BusyError("gone")

    with pytest.raises(BusyError, match="gone"):
        waiting.wait(lambda _: None, still_wanted)
    assert (asked, turns.waiting) == ([1, 1], 0)
