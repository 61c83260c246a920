"""Follow-ups made to stand alone by rules: what is replaced, what is filled in, what is left as it is."""

import re

import pytest

from ragqa.evaluation.answering.facts import FOLLOW_UPS, QUESTIONS, is_right_rewriting, rows
from ragqa.thread import Turn
from ragqa.thread.rules import rewritten

KEEP = Turn("How long must a firm keep records of transactions?", "At least six years.")
LEND = Turn("May a firm lend Client Money?", "No.")
GOLD = Turn("What is the melting point of gold?", "Gold melts at 1,064 degrees Celsius.")
REPORT = Turn("When must the annual audit report be submitted?", "Within four months of the year end.")


@pytest.mark.parametrize(
    ("turn", "asked", "expected"),
    [
        (KEEP, "And what if they do not?", "What happens if a firm does not keep records of transactions?"),
        (KEEP, "Why?", "Why must a firm keep records of transactions?"),
        (LEND, "and Virtual Assets?", "May a firm lend Virtual Assets?"),
        (LEND, "Not even with consent?", "May a firm lend Client Money with consent?"),
        (LEND, "Are there exceptions?", "Are there exceptions for a firm lending Client Money?"),
        (GOLD, "What about silver?", "What is the melting point of silver?"),
        (GOLD, "And the boiling point?", "What is the boiling point of gold?"),
        (GOLD, "And its density?", "What is gold's density?"),
        (REPORT, "To whom?", "To whom must the annual audit report be submitted?"),
        (REPORT, "Who signs it?", "Who signs the annual audit report?"),
        (REPORT, "What happens if it isn't?", "What happens if the annual audit report isn't submitted?"),
        (REPORT, "Can the deadline be extended?", "Can the deadline of the annual audit report be extended?"),
        (
            Turn("How long must recordings be kept?", "Three years."),
            "and for professional clients?",
            "How long must recordings be kept for professional clients?",
        ),
        (
            Turn("What is the fee for retail clients?", "None."),
            "And for professional clients?",
            "What is the fee for professional clients?",
        ),
        (
            Turn("How many directors must a fund have?", "Two."),
            "Must they be residents?",
            "Must the directors of a fund be residents?",
        ),
        (Turn("When did the Second World War end?", "In 1945."), "And the First?", "When did the First World War end?"),
        (
            Turn("Who discovered penicillin?", "Alexander Fleming."),
            "When?",
            "When did Alexander Fleming discover penicillin?",
        ),
        (
            Turn("Who painted the Mona Lisa?", "Leonardo da Vinci."),
            "Where did he die?",
            "Where did Leonardo da Vinci die?",
        ),
        (
            Turn("Who painted the Mona Lisa?", "Leonardo da Vinci."),
            "When was it finished?",
            "When was the Mona Lisa finished?",
        ),
        (
            Turn("What is the capital of Australia?", "Canberra."),
            "How many people live there?",
            "How many people live in Canberra?",
        ),
        (
            Turn("Does a fund need a custodian?", "Yes."),
            "Does a trust need one too?",
            "Does a trust need a custodian too?",
        ),
    ],
)
def test_what_points_back_is_written_out(turn, asked, expected):
    assert rewritten(asked, [turn]) == expected


@pytest.mark.parametrize("row", [row for row in rows(FOLLOW_UPS) if row["part"] == "open"], ids=lambda row: row["id"])
def test_the_open_follow_ups_are_rewritten_rightly(row):
    assert is_right_rewriting(rewritten(row["follow_up"], [Turn(row["question"], row["answer"])]), row)


def test_what_stands_alone_is_left_as_it_is():
    questions = [row["question"] for row in rows(QUESTIONS) if row["part"] == "open"]
    questions += [row["standalone"] for row in rows(FOLLOW_UPS) if row["part"] == "open"]
    assert [question for question in questions if rewritten(question, [KEEP]) != question] == []


@pytest.mark.parametrize(
    "asked",
    [
        "Is it possible to appeal against a fine?",
        "Must a firm tell its clients that it has moved?",
        "Is there a limit for gifts?",
        "Which IT systems must a firm test?",
        "What must an Authorised Person do when it changes its auditor?",
    ],
)
def test_a_pronoun_that_the_question_itself_explains_is_no_follow_up(asked):
    assert rewritten(asked, [GOLD]) == asked


def test_without_a_thread_nothing_is_changed_and_further_back_is_looked_where_the_last_has_nothing():
    assert rewritten("And why?", []) == "And why?"
    thread = [Turn("Who wrote Hamlet?", "William Shakespeare."), Turn("How high is Mount Everest?", "8,849 metres.")]
    assert rewritten("Where was he born?", thread) in {
        "Where was William Shakespeare born?",
        "Where was Mount Everest born?",  # the rules know no person from a mountain: what is shown can be changed
    }


@pytest.mark.parametrize("text", ["", "???", "it", "and", "¿Y eso?", "ÿ’s they " * 40, "if", "one", "a the of"])
def test_any_text_is_met(text):
    found = rewritten(text, [Turn(text, text), Turn("Who must it?", text), KEEP])
    assert isinstance(found, str)
    assert re.sub(r"\s+", " ", found) == found
