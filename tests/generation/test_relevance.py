"""Whether an answer answers what was asked, part by part; beside RePASs."""

import math
from dataclasses import replace

import pytest

from ragqa.generation.direct.weighing import SCALE
from ragqa.generation.relevance import LINE, READ, relevance
from ragqa.types import Question
from tests.support.fakes import FakeEncoder, FakeSelector, answer, passage
from tests.support.helpers import make_pipeline

GOLD = passage("gold", "Gold is a soft metal. Gold melts at 1,064 degrees Celsius.", title="Gold")
ASKED = "At what temperature does gold melt?"
MELTS = "Gold melts at 1,064 degrees Celsius."


def measured(question, said, passages=(GOLD,), selector=None, **fields):
    cited = tuple((1,) for _ in said.split("\n"))
    return relevance(Question(question), answer(said, cited, **fields), passages, FakeEncoder(), selector)


def test_it_is_the_selectors_probability_of_the_likeliest_sentence_under_the_heading_of_what_it_cites():
    selector = FakeSelector(melts=4.0)
    (part,) = measured(ASKED, f"Gold is a soft metal.\n{MELTS}", selector=selector).parts
    assert part.value == pytest.approx(1 / (1 + math.exp(-4.0 * SCALE)))
    assert part.index == 1
    assert part.reason.startswith("Sentence 2 answers: probability 0.88")
    assert (part.asked, part.text) == ("a number", ASKED)
    assert set(selector.read) == {(ASKED, "Gold: Gold is a soft metal."), (ASKED, f"Gold: {MELTS}")}


def test_a_sentence_that_does_not_answer_is_said_to_with_the_words_that_are_not_spoken_of():
    (part,) = measured(ASKED, "Silver is dear.", selector=FakeSelector()).parts
    assert part.value < LINE
    assert part.reason.startswith("Sentence 1 may not answer: probability 0.00")
    assert "“gold”" not in part.reason  # it is in the title of what is cited
    assert "“melt”" in part.reason


def test_each_part_of_the_question_is_measured_and_the_mean_counts():
    found = measured("At what temperature does gold melt, and who found it?", MELTS, selector=FakeSelector(melts=4.0))
    first, second = found.parts
    assert found.value == pytest.approx((first.value + second.value) / 2)
    assert [part.text for part in found.parts] == ["At what temperature does gold melt", "who found it?"]


def test_of_a_long_answer_the_nearest_sentences_are_read():
    selector = FakeSelector(melts=4.0)
    said = [f"Ducks number {n} swim." for n in range(40)]
    assert measured(ASKED, "\n".join([*said, MELTS]), selector=selector).value >= LINE
    assert len(selector.read) == READ


def test_in_other_languages_and_without_a_selector_nearness_and_words_decide():
    slovenian = "Pri kateri temperaturi se tali zlato in kdo je zlato našel v rudniku?"
    selector = FakeSelector()
    assert measured(slovenian, "Zlato se tali pri 1.064 stopinjah.", selector=selector) == measured(
        slovenian, "Zlato se tali pri 1.064 stopinjah."
    )
    assert selector.read == []
    assert measured(ASKED, MELTS).value > measured(ASKED, "Silver is dear.").value


def test_only_a_value_that_the_selector_measured_is_marked_as_read():
    assert all(one.is_read for one in measured(ASKED, MELTS, selector=FakeSelector(melts=4.0)).parts)
    assert not any(one.is_read for one in measured(ASKED, MELTS).parts)


def test_a_rule_that_is_asked_for_by_its_number_alone_has_none():
    rule = replace(GOLD, title="Metals", number="3.1.1")
    assert measured("What does rule 3.1.1 say?", MELTS, (rule,)) is None
    assert measured("At what temperature does gold melt under rule 3.1.1?", MELTS, (rule,)) is not None
    assert measured("What does rule 9.9.9 say?", MELTS, (rule,)) is not None


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
