"""A little of `make prove-fuzz`: each of its targets meets its good inputs and a few changed ones."""

import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragqa.errors import RagqaError
from tests.benchmarks.fuzz import changed
from tests.support.fuzzed import TARGETS, emptied, met, writes_outside

SLOW = {"question", "reply"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) for name in TARGETS])
def test_what_anybody_may_send_is_a_value_or_a_clear_line(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(emptied(tmp_path / "tmp")))
    target, kinds = TARGETS[name], {"value", *(one.__name__ for one in every(RagqaError))}
    seeds = target.seeds(emptied(tmp_path / "seeds"))[:20]

    @settings(max_examples=5 if name in SLOW else 20, suppress_health_check=list(HealthCheck), database=None)
    @given(changed(seeds) | st.sampled_from(seeds))
    def meet(data):
        assert met(target, data, emptied(tmp_path / "input")) in kinds

    with writes_outside((tmp_path.parents[1],)) as outside:
        meet()
    assert not {one for one in outside if ".hypothesis" not in one}


@pytest.mark.model
@pytest.mark.parametrize("text", ["[", "C:\\Windows 2\\..\\.."])  # no sentence; only a number finds rule 2
def test_the_record_of_an_odd_text_opens(text, tmp_path):
    assert met(TARGETS["question"], b"\1" + text.encode(), emptied(tmp_path / "input")) == "value"


def every(kind):
    return {kind}.union(*map(every, kind.__subclasses__()))


def test_a_file_written_elsewhere_is_seen(tmp_path):
    (tmp_path / "in").mkdir()
    with writes_outside((tmp_path / "in",)) as outside:
        (tmp_path / "in" / "a").write_text("x")
        (tmp_path / "b").write_text("x")
    assert outside == {f"open {tmp_path / 'b'}"}
