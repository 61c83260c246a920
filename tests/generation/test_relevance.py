"""Whether an answer answers what was asked, part by part; beside RePASs."""

import pytest

from ragqa.generation.relevance import LINE, relevance
from ragqa.types import Question
from tests.support.fakes import FakeEncoder, answer, passage
from tests.support.helpers import make_pipeline

GOLD = passage("gold", "Gold is a soft metal. Gold melts at 1,064 degrees Celsius.", title="Gold")
ASKED = "At what temperature does gold melt?"


def measured(question, said, passages=(GOLD,), **fields):
    cited = tuple((1,) for _ in said.split("\n"))
    return relevance(Question(question), answer(said, cited, **fields), passages, FakeEncoder())


def test_an_answer_that_says_it_is_above_one_that_says_something_else():
    right = measured(ASKED, "Gold melts at 1,064 degrees Celsius.")
    beside = measured(ASKED, "Gold is a soft metal.")
    assert right.value >= LINE > beside.value
    assert "does not say what is asked for (a number)" in beside.parts[0].reason
    assert beside.parts[0].fit == 0.0


def test_the_sentence_that_answers_is_named_wherever_it_stands():
    (part,) = measured(ASKED, "Gold is a soft metal.\nGold melts at 1,064 degrees Celsius.").parts
    assert part.index == 1
    assert part.reason.startswith("Sentence 2 answers")
    assert (part.asked, part.text) == ("a number", ASKED)


def test_each_part_of_the_question_is_measured_and_the_mean_counts():
    found = measured("At what temperature does gold melt, and who found it?", "Gold melts at 1,064 degrees Celsius.")
    first, second = found.parts
    assert first.value > second.value
    assert found.value == pytest.approx((first.value + second.value) / 2)


def test_a_nearer_sentence_that_is_left_out_is_named():
    (part,) = measured(ASKED, "Silver is dear.").parts
    assert "“Gold melts at 1,064 degrees Celsius.”" in part.reason
    assert "“gold”" not in part.reason  # it is in the title of what is cited
    assert "“melt”" in part.reason


def test_a_refusal_and_an_empty_answer_have_none():
    assert measured(ASKED, "The passages do not say.", is_refusal=True) is None
    assert measured(ASKED, "") is None
    assert measured("", "Gold is a soft metal.") is None


@pytest.mark.parametrize("question", ["?", "Kje je zlato?", "gold", "why " * 300])
def test_any_question_and_no_passage_have_a_value(question):
    found = measured(question, "Zlato.", ())
    assert 0.0 <= found.value <= 1.0


def test_the_record_holds_it(tmp_path):
    from ragqa.records.record import AnswerRecord
    from ragqa.records.store import RecordStore
    from ragqa.types.events.pipeline import Recorded

    store = RecordStore(tmp_path / "records.sqlite3")
    events = list(make_pipeline(records=store).run(Question("Who must act?")))
    record = store.load(next(event.record_id for event in events if isinstance(event, Recorded)))
    assert record.answer_relevance is not None
    assert record.scored is not None
    assert AnswerRecord.from_json(record.to_json()) == record
