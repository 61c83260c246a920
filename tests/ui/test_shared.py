"""What all sessions share, and what a stranger's message does to it."""

import threading
import time
import urllib.error
import urllib.request

import pytest
import streamlit as st
from streamlit.proto.BackMsg_pb2 import BackMsg

from ragqa.library.jobs import Jobs
from ragqa.settings.paths import Paths
from ragqa.ui.shared import shared
from ragqa.ui.state import resources
from tests.support.server import wait_until_ready
from tests.support.visitor import Visitor


def counted(**options):
    computed = []

    @shared(**options)
    def value(name, _aside=None):
        computed.append(name)
        return [name]

    return value, computed


def test_a_value_is_computed_once_by_its_arguments_and_not_by_those_left_aside():
    value, computed = counted()
    assert value("a", 1) is value("a", 2) is value(name="a")
    assert value("b") == ["b"]
    assert computed == ["a", "b"]
    value.clear()
    value("a")
    assert computed == ["a", "b", "a"]


def test_of_more_than_most_the_one_asked_for_longest_ago_goes():
    value, computed = counted(most=2)
    for name in "abaca":
        value(name)
    assert computed == ["a", "b", "c"]
    value("b")
    assert computed == ["a", "b", "c", "b"]


def test_a_value_grows_old():
    value, computed = counted(seconds=0.05)
    value("a")
    value("a")
    time.sleep(0.06)
    value("a")
    assert computed == ["a", "a"]


def test_of_many_threads_one_computes_and_what_it_raises_is_not_kept():
    computed, fails = [], [True]

    @shared()
    def value():
        computed.append(1)
        time.sleep(0.05)
        if fails.pop() if fails else False:
            raise ValueError("no")
        return object()

    with pytest.raises(ValueError, match="no"):
        value()
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(value())) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(computed) == 2
    assert len(set(map(id, seen))) == 1


def test_what_clear_cache_empties_holds_nothing_of_ours():
    before = resources.runs(), resources.turns(), resources.library_jobs(Paths.from_env())
    st.cache_data.clear()  # all that the message does
    st.cache_resource.clear()
    assert before == (resources.runs(), resources.turns(), resources.library_jobs(Paths.from_env()))
    assert isinstance(before[-1], Jobs)


@pytest.mark.long
@pytest.mark.model
def test_clear_cache_from_anybody_leaves_the_server_ready(guarded):
    wait_until_ready(guarded)
    visitor = Visitor(guarded)
    with visitor.opened() as session:  # who has not signed in
        told = BackMsg()
        told.clear_cache = True
        session._socket.send(told.SerializeToString())
        session.run()
        try:
            with urllib.request.urlopen(guarded + "/readyz", timeout=60) as reply:
                assert reply.read() == b"ready\n"
        except urllib.error.HTTPError as error:
            pytest.fail(error.read().decode())
    visitor.close()
