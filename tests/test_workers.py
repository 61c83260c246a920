import threading
import time

import pytest

from ragqa.inference.workers import FairWorkers


def test_results_come_in_the_order_of_the_batches():
    def slow_first(batch):
        time.sleep(0.02 if batch == 0 else 0)
        return 10 * batch

    assert list(FairWorkers(slow_first, 3).map(range(7))) == [0, 10, 20, 30, 40, 50, 60]
    assert list(FairWorkers(slow_first, 2).map([])) == []


def test_as_many_batches_are_computed_at_once_as_there_are_threads_and_no_more():
    now, most, lock = 0, 0, threading.Lock()

    def compute(batch):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1
        return batch

    assert list(FairWorkers(compute, 2).map(range(8))) == list(range(8))
    assert most == 2


def test_a_session_with_many_batches_does_not_keep_another_waiting():
    served = []

    def compute(batch):
        time.sleep(0.01)
        served.append(batch)
        return batch

    workers = FairWorkers(compute, 2)
    greedy = threading.Thread(target=lambda: list(workers.map([f"many {n}" for n in range(40)])))
    greedy.start()
    time.sleep(0.05)
    assert list(workers.map(["few 0", "few 1"])) == ["few 0", "few 1"]
    before = len([batch for batch in served if batch.startswith("many")])
    greedy.join()
    assert before < 20


def test_an_error_is_raised_where_its_result_would_stand_and_the_threads_go_on():
    workers = FairWorkers(lambda batch: 1 / batch, 2)
    results = workers.map([1, 2, 0, 4])
    assert [next(results), next(results)] == [1.0, 0.5]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(workers.map([4])) == [0.25]
