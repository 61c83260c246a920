"""Follow-ups made to stand alone by rules: what is replaced, what is filled in, what is left as it is."""

import re

import pytest

from ragqa.conversation import Turn
from ragqa.conversation.rules import rewritten
from ragqa.evaluation.benchmarks.expected_facts.facts import (
    FOLLOW_UPS,
    FURTHER_FOLLOW_UPS,
    QUESTIONS,
    is_right_rewriting,
    rows,
)
from tests.support.effort import grows_no_faster

KEEP = Turn("How long must a firm keep records of transactions?", "At least six years.")
LEND = Turn("May a firm lend Client Money?", "No.")
GOLD = Turn("What is the melting point of gold?", "Gold melts at 1,064 degrees Celsius.")
OUTSOURCE = Turn("Is a firm allowed to outsource internal audit?", "Yes, but not to its Auditor.")
CANALS = Turn("Which canals link the Volga with other waters?", "The Volga-Don Canal and the Moscow Canal.")
SUEZ = Turn("When did the Suez Canal open?", "On 17 November 1869.")
CLAUSES = Turn("How many clauses does the charter have?", "63.")
CAPITAL = Turn("How much capital does a Category 3A firm need?", "HMD 500,000.")
KNOWN_THREADS = [row for name in (FOLLOW_UPS, FURTHER_FOLLOW_UPS) for row in rows(name) if row["part"] != "sealed"]
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
        (OUTSOURCE, "and if so, who pays?", "Who pays if a firm is allowed to outsource internal audit?"),
        (LEND, "or else?", "What happens if a firm does not lend Client Money?"),
        (LEND, "why?", "Why may a firm not lend Client Money?"),
        (LEND, "and pledge it?", "May a firm pledge Client Money?"),
        (LEND, "who decides?", "Who decides whether a firm may lend Client Money?"),
        (LEND, "even if the client agrees", "May a firm lend Client Money even if the client agrees?"),
        (LEND, "who enforces this ban?", "Who enforces the ban on lending Client Money?"),
        (LEND, "no, i meant virtual assets", "May a firm lend virtual assets?"),
        (REPORT, "only in writing?", "Must the annual audit report be submitted only in writing?"),
        (REPORT, "and published?", "When must the annual audit report be published?"),
        (CANALS, "when was the second one opened", "When was the Moscow Canal opened?"),
        (CLAUSES, "are any still in force?", "Are any of the clauses of the charter still in force?"),
        (SUEZ, "who owned it then?", "Who owned the Suez Canal on 17 November 1869?"),
        (SUEZ, "how long is the canal?", "How long is the Suez Canal?"),
        (CAPITAL, "what about 3B?", "How much capital does a Category 3B firm need?"),
    ],
)
def test_what_points_back_is_written_out(turn, asked, expected):
    assert rewritten(asked, [turn]) == expected


@pytest.mark.parametrize("row", KNOWN_THREADS, ids=lambda row: row["id"])
def test_the_follow_ups_that_are_not_sealed_are_rewritten_rightly(row):
    assert is_right_rewriting(rewritten(row["follow_up"], [Turn(row["question"], row["answer"])]), row)


def test_what_stands_alone_is_left_as_it_is():
    questions = [row["question"] for row in rows(QUESTIONS) if row["part"] == "open"]
    questions += [row["standalone"] for row in KNOWN_THREADS]
    turns = [KEEP, LEND, *(Turn(row["question"], row["answer"]) for row in KNOWN_THREADS[::9])]
    found = [(one, rewritten(one, [turn])) for one in questions for turn in turns]
    assert [pair for pair in found if pair[0].lower().rstrip("?") != pair[1].lower().rstrip("?")] == []


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


def test_a_backslash_in_the_question_before_is_a_letter():
    thread = [Turn(r"May a firm lend \Wmoney of \1 clients?", "No.")]
    assert rewritten("Can it do so?", thread) == r"Can a firm lend \Wmoney of \1 clients?"


@pytest.mark.parametrize(
    "turn", [Turn("Must a firm s' pay?"), Turn("Which s' has it?"), Turn("Who pays?", "The s' pay.")]
)
@pytest.mark.parametrize("asked", ["And branches?", "Is it valid?", "any?"])
def test_a_possessive_ending_alone_is_no_thing(turn, asked):
    assert rewritten(asked, [turn]).endswith("?")


@pytest.mark.parametrize("asked", ["Is it valid?", "Who decides?"])
def test_a_question_of_lines_alone_has_nothing_to_point_back_to(asked):
    assert rewritten(asked, [Turn("___?", "Gold was fixed at 35 dollars.")]) == asked


@pytest.mark.parametrize("chain", ["A ", "A, "])
def test_a_long_answer_takes_little_longer_than_its_length(chain):
    thread = "What may a firm lend?"
    assert grows_no_faster(lambda n: rewritten("the other one?", [Turn(thread, chain * n)]), 1_800)
