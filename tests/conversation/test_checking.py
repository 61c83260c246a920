"""A rewriting that says more than its thread, or mangles it, is not used: the question is read with the one before."""

import pytest

from ragqa.conversation import rewrite
from ragqa.conversation.checking import parses_back
from ragqa.conversation.history import Turn
from ragqa.generation.direct.asking import parts_of
from ragqa.types import Question
from tests.support.effort import grows_no_faster

THREAD = (Turn("How soon must a firm acknowledge a complaint?", "Within three Business Days."),)


@pytest.mark.parametrize(
    ("rewritten", "asked", "is_right"),
    [
        ("When does a firm have to answer a complaint?", "And when does it have to answer?", True),
        ("What happens if besides a complaint's late?", "And if besides it's late?", False),
        ("When does a firm have to answer a regulator?", "And when does it have to answer?", False),
        ("What is the the complaint?", "What is it?", False),
        ("What is the firm's complaint?", "What is its complaint?", True),
    ],
)
def test_words_and_possessives_are_the_threads(rewritten, asked, is_right):
    assert parses_back(rewritten, asked, THREAD) is is_right


def test_what_cannot_be_rewritten_is_asked_as_it_was_with_the_question_before():
    found = rewrite("And if besides it's late?", THREAD)
    assert (found.rewritten, found.context) == (found.asked, THREAD[0].question)
    assert found.note == "Read together with the question before: How soon must a firm acknowledge a complaint?"
    question = Question(found.rewritten, follow_up=found)
    assert question.query == f"{THREAD[0].question}\nAnd if besides it's late?"
    assert len(parts_of(question.query)) == 1
    assert Question("Is a late firm fined?", follow_up=found).context == ""  # the reader's own words stand alone


def test_a_long_chain_of_hyphens_takes_little_longer_than_its_length():
    assert grows_no_faster(lambda n: parses_back("Is it?", "Is it?", [Turn("x-" * n)]), 1_000)
