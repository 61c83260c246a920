"""The NLI model with a memory: what a key is made of, memory before disk before model, threads, failures."""

import math
import sqlite3
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.errors import ScoringError
from ragqa.scoring.repass.nli import KEY_BYTES, RememberingNli, pair_key
from ragqa.types import ModelInfo
from ragqa.types.scores import NliProbabilities
from tests.support.fakes import FakeNli

INFO = ModelInfo("some-model", "a" * 64, "fp32")
PAIRS = [("Ships sail.", f"Ship {n} sails.") for n in range(6)]


class CountingNli(FakeNli):
    """Thirds that no decimal number is equal to, different for each model."""

    def __init__(self, info=INFO):
        super().__init__()
        self.info = info
        self.calls = 0

    def predict(self, pairs):
        self.calls += 1
        return super().predict(pairs)

    def _default(self, premise, hypothesis):
        entailment = (len(self.info.precision) + len(hypothesis) + ord(hypothesis[5])) % 7 / 21
        return NliProbabilities(1 / 3, entailment, 1 - 1 / 3 - entailment)


# Keys


def test_equal_pairs_of_one_model_have_one_key():
    assert pair_key(INFO, "a", "b") == pair_key(replace(INFO), "a", "b")
    assert len(pair_key(INFO, "a", "b")) == KEY_BYTES


@pytest.mark.parametrize(
    "other",
    [
        (replace(INFO, fingerprint="b" * 64), "ab", "c"),
        (replace(INFO, precision="bf16"), "ab", "c"),
        (replace(INFO, precision="fp32, joined input"), "ab", "c"),
        (replace(INFO, name="other-model"), "ab", "c"),
        (INFO, "a", "bc"),
        (INFO, "c", "ab"),
        (INFO, "ab", ""),
        (INFO, "", "abc"),
        (INFO, "ab ", "c"),
        (INFO, "AB", "c"),
        (INFO, "ab\x00", "c"),
        (INFO, "ab", "\x00c"),
    ],
)
def test_what_differs_has_another_key(other):
    assert pair_key(*other) != pair_key(INFO, "ab", "c")


def test_text_without_a_utf8_form_has_a_key():
    assert pair_key(INFO, "\ud800", "b") != pair_key(INFO, "\ud801", "b")


@given(st.tuples(*[st.text("ab\x00\x01", max_size=3)] * 5), st.tuples(*[st.text("ab\x00\x01", max_size=3)] * 5))
def test_no_two_contents_share_a_key(one, other):
    keys = [pair_key(ModelInfo(n, f, p), a, b) for f, p, n, a, b in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


# Memory, then disk, then the model


def test_results_are_the_models_in_the_order_asked_and_computed_once():
    model = CountingNli()
    remembering = RememberingNli(model)
    expected = CountingNli().predict([*PAIRS, PAIRS[0]])
    assert remembering.predict([*PAIRS, PAIRS[0]]) == expected
    assert remembering.predict(PAIRS[::-1]) == expected[5::-1]
    assert model.pairs == PAIRS
    assert model.calls == 1
    assert remembering.predict([]) == []
    assert remembering.info is model.info


def test_only_new_pairs_are_computed():
    model = CountingNli()
    remembering = RememberingNli(model)
    remembering.predict(PAIRS[:2])
    assert remembering.known(PAIRS) == dict(zip(PAIRS[:2], CountingNli().predict(PAIRS[:2]), strict=True))
    remembering.predict(PAIRS)
    assert model.pairs == PAIRS


def test_without_a_file_only_the_most_recent_pairs_are_remembered():
    model = CountingNli()
    remembering = RememberingNli(model, remembered=3)
    remembering.predict(PAIRS)
    assert list(remembering.known(PAIRS)) == PAIRS[3:]


def test_the_disk_serves_the_next_process_bit_for_bit(tmp_path):
    first, second = CountingNli(), CountingNli()
    computed = RememberingNli(first, tmp_path / "pairs.sqlite3").predict(PAIRS)
    read = RememberingNli(second, tmp_path / "pairs.sqlite3").predict(PAIRS)
    assert read == computed
    assert second.calls == 0


def test_what_was_read_from_disk_is_then_in_memory(tmp_path):
    file = tmp_path / "pairs.sqlite3"
    RememberingNli(CountingNli(), file).predict(PAIRS)
    remembering = RememberingNli(CountingNli(), file)
    remembering.predict(PAIRS)
    remembering.close()
    connection = sqlite3.connect(file)
    connection.execute("DELETE FROM pairs")
    connection.commit()
    connection.close()
    assert len(remembering.known(PAIRS)) == len(PAIRS)


@pytest.mark.parametrize(
    "change", [{"fingerprint": "b" * 64}, {"precision": "bf16"}, {"precision": "fp32, joined"}, {"name": "x"}]
)
def test_models_that_differ_share_a_file_and_no_result(tmp_path, change):
    file = tmp_path / "pairs.sqlite3"
    RememberingNli(CountingNli(), file).predict(PAIRS)
    other = CountingNli(replace(INFO, **change))
    assert RememberingNli(other, file).predict(PAIRS) == CountingNli(other.info).predict(PAIRS)
    assert other.pairs == PAIRS


def test_no_text_is_on_disk(tmp_path):
    file = tmp_path / "pairs.sqlite3"
    remembering = RememberingNli(CountingNli(), file)
    remembering.predict(PAIRS)
    remembering.close()
    assert b"Ship" not in file.read_bytes()
    assert b"some-model" not in file.read_bytes()


def test_a_file_that_cannot_be_used_changes_nothing(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    remembering = RememberingNli(CountingNli(), tmp_path / "file" / "pairs.sqlite3")
    for _ in range(3):
        assert remembering.predict(PAIRS) == CountingNli().predict(PAIRS)
    assert len(caplog.records) == 1


# What goes wrong


def test_what_is_no_probability_is_handed_on_and_not_remembered(tmp_path):
    model = CountingNli()
    model.table[PAIRS[0]] = NliProbabilities(math.nan, 0.5, 0.5)
    remembering = RememberingNli(model, tmp_path / "pairs.sqlite3")
    assert math.isnan(remembering.predict(PAIRS[:2])[0].contradiction)
    assert list(remembering.known(PAIRS)) == [PAIRS[1]]


def test_a_failure_passes_and_leaves_nothing_behind():
    class FailingOnce(CountingNli):
        def predict(self, pairs):
            if self.calls == 0:
                self.calls = 1
                raise ScoringError("once")
            return super().predict(pairs)

    remembering = RememberingNli(FailingOnce())
    with pytest.raises(ScoringError, match="once"):
        remembering.predict(PAIRS)
    assert remembering.predict(PAIRS) == CountingNli().predict(PAIRS)


def test_what_was_computed_is_held_nowhere_but_in_the_memory():
    model = CountingNli()
    remembering = RememberingNli(model, remembered=0)
    for _ in range(2):
        remembering.predict(PAIRS[:2])
    assert model.pairs == PAIRS[:2] * 2


def test_too_few_results_are_refused_and_leave_nothing_behind():
    class Short(CountingNli):
        def predict(self, pairs):
            return super().predict(pairs)[1:]

    remembering = RememberingNli(Short())
    for _ in range(2):
        with pytest.raises(ValueError, match="shorter"):
            remembering.predict(PAIRS)
    assert remembering.known(PAIRS) == {}


# Several threads at once


class WaitingNli(CountingNli):
    """Computes when it is told to."""

    def __init__(self, error=None):
        super().__init__()
        self.begun, self.go, self.error = threading.Event(), threading.Event(), error

    def predict(self, pairs):
        error, self.error = self.error, None  # the first call's, whichever thread goes on first
        self.begun.set()
        assert self.go.wait(10)
        if error:
            raise error
        return super().predict(pairs)


def in_thread(work):
    found = []

    def run():
        try:
            found.append(work())
        except ScoringError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def test_two_that_want_the_same_pairs_have_them_computed_once():
    model = WaitingNli()
    remembering = RememberingNli(model)
    first, one = in_thread(lambda: remembering.predict(PAIRS[:4]))
    assert model.begun.wait(10)
    second, other = in_thread(lambda: remembering.predict(PAIRS[:4]))
    time.sleep(0.05)
    model.go.set()
    for thread in (first, second):
        thread.join(10)
    assert one == other == [CountingNli().predict(PAIRS[:4])]
    assert model.pairs == PAIRS[:4]


def test_one_that_waits_in_vain_computes_for_itself():
    model = WaitingNli(error=ScoringError("only the first"))
    remembering = RememberingNli(model)
    first, one = in_thread(lambda: remembering.predict(PAIRS[:4]))
    assert model.begun.wait(10)
    second, other = in_thread(lambda: remembering.predict(PAIRS[2:]))
    time.sleep(0.05)
    model.go.set()
    for thread in (first, second):
        thread.join(10)
    assert [str(error) for error in one] == ["only the first"]
    assert other == [CountingNli().predict(PAIRS[2:])]


def test_threads_with_overlapping_wishes_all_finish(tmp_path):
    model = CountingNli()
    remembering = RememberingNli(model, tmp_path / "pairs.sqlite3", remembered=5)
    pairs = [(f"Ship {n} sails.", f"Ship {m} sails.") for n in range(10) for m in range(10)]
    expected = CountingNli().predict(pairs)
    results = [None] * 8

    def work(n):
        order = pairs[n * 7 :] + pairs[: n * 7]
        found = [r for start in range(0, 100, 9) for r in remembering.predict(order[start : start + 9])]
        results[n] = found[100 - n * 7 :] + found[: 100 - n * 7]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [expected] * 8
