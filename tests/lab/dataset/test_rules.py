"""Questions by rules: which kinds a passage offers, what a question must not have, what several passages give."""

import random

import pytest

from ragqa.lab.dataset.checks import COPIED, copied_run, problem, reworded, without_references
from ragqa.lab.dataset.pseudo_queries import duty_questions
from ragqa.lab.dataset.rules import heading_of, is_plural, kinds_in, question
from tests.support.fakes import passage

RECORDS = "An Authorised Firm must retain the records of each complaint for at least six years."
LOAN = "A Fund Manager must not obtain a loan for the Fund Property unless the Prospectus permits it."
CASE = "Where a Client holds a joint account, a Custodian must obtain the consent of every holder."
TERM = 'In these Rules, "Cold Wallet" means a device that keeps private keys without a connection.'
VAGUE = "It must do so within that period."


def asked(text, kind, form="question", persona="professional", **fields):
    found = {question([passage("1:1", text, **fields)], kind, persona, form, random.Random(n)) for n in range(12)}
    return {one for one in found if one}


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (RECORDS, "deadline", "For how long must an Authorised Firm retain the records of each complaint?"),
        (LOAN, "exception", "In what exceptional cases may a Fund Manager get a loan for the Fund Property?"),
        (LOAN, "obligation", "Is a Fund Manager allowed to get a loan for the Fund Property?"),
        (CASE, "condition", "What must a Custodian do where a Client holds a joint account?"),
        (TERM, "definition", "What does the term Cold Wallet mean?"),
    ],
)
def test_a_sentence_becomes_the_question_that_it_answers(text, kind, words):
    assert kind in kinds_in(passage("1:1", text))
    found = asked(text, kind)
    assert words in found or words.replace(" get ", " obtain ") in found


def test_a_scenario_tells_the_case_first():
    assert "Suppose that a Client holds a joint account. What must a Custodian do?" in asked(
        CASE, "condition", "scenario"
    )
    assert not asked(RECORDS, "deadline", "scenario") - asked(RECORDS, "deadline")


def test_what_points_nowhere_gives_nothing():
    assert kinds_in(passage("1:1", VAGUE)) == ()
    assert not asked("The Regulator may impose this requirement on any such person under Rule 3.2.1.", "permission")


@pytest.mark.parametrize("subject", ["“ “", '" "', "( ("])
def test_a_duty_whose_subject_is_lost_gives_nothing(subject):
    text = f"{subject} must keep records of every sale that it makes to a Client."
    assert kinds_in(passage("1:1", text)) == ()
    assert duty_questions(text, random.Random(1)) == []


def test_a_ban_with_items_is_not_asked_as_a_duty():
    text = "In particular, an Employee must not: (a) trade on it; or (b) tell others."
    found = asked(text, "obligation", section="2 › 2.1 Inside information")
    assert not [one for one in found if "must an Employee do" in one]


def test_a_list_without_words_of_its_own_is_asked_about_by_its_heading():
    text = "A Relevant Person must: (a) assess its risks; and (b) record the outcome."
    assert asked(text, "obligation", section="2. AML › 2.1 Business risk assessment") == {
        "What must a Relevant Person do with regard to business risk assessment?"
    }
    assert not asked(text, "obligation", section="2. General")


@pytest.mark.parametrize(
    ("section", "heading"),
    [
        ("8. FUNDS › 8.4 Notification of a Foreign Fund", "Notification of a Foreign Fund"),
        ("3 › 3.5 CLIENT ASSETS", "client assets"),
        ("3 › 3.5 General", ""),
        ("", ""),
    ],
)
def test_headings_lose_their_numbers(section, heading):
    assert heading_of(passage("1:1", "text", section=section)) == heading


@pytest.mark.parametrize(
    ("subject", "many"),
    [("Fund Managers", True), ("a Fund Manager", False), ("the process", False), ("Issuers of Shares", True)],
)
def test_plurals(subject, many):
    assert is_plural(subject) is many


def test_personas_ask_in_their_own_way_and_chance_repeats():
    for persona in ("newcomer", "auditor"):
        assert all(": " in one for one in asked(RECORDS, "deadline", persona=persona))
    one = passage("1:1", LOAN)
    assert question([one], "obligation", "professional", "question", random.Random(3)) == question(
        [one], "obligation", "professional", "question", random.Random(3)
    )


def test_several_passages_are_all_in_the_question():
    first, second = (
        passage("1:1", "A Custodian must keep client keys offline."),
        passage("1:2", CASE.split(", ")[1].replace("a C", "A C")),
    )
    joined = question([first, second], "cross-reference", "professional", "question", random.Random(1))
    assert joined == "Must a Custodian keep client keys offline, and must it obtain the consent of every holder?"
    third = passage("1:3", "A Custodian must report losses of keys.")
    of_three = question([first, second, third], "obligation", "professional", "question", random.Random(1))
    assert all(words in of_three for words in ("keys offline", "every holder", "report losses"))
    other = passage("1:4", "An Auditor must inspect client keys.")
    compared = question([first, other], "comparison", "professional", "question", random.Random(1))
    assert compared.startswith("How does the duty of a Custodian to keep")
    assert not question([first, passage("1:5", VAGUE)], "comparison", "professional", "question", random.Random(1))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What must a Fund Manager do under Rule 3.2.1 about its records?", "number of a rule"),
        ("What must a Fund Manager do under paragraph (a) about its records?", "number of a rule"),
        ("What must a Fund Manager do about these records of its Clients?", "points at"),
        ("What does the passage about funds say a Fund Manager must do about its records?", "points at"),
        ("What must a Fund Manager do about its records", "question mark"),
        ("Must it do so?", "says too little"),
        ("What must a Fund Manager (do about the records of its Clients?", "bracket"),
        ("What must a Fund Manager do about the records of its Clients?", ""),
    ],
)
def test_what_may_not_be_asked(text, found):
    assert found in problem(text, [])
    assert bool(found) == bool(problem(text, []))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Must a firm report losses under Rule 3.2.1(a)?", "Must a firm report losses?"),
        ("What must it do, according to Rule 3.3.1, and when?", "What must it do, and when?"),
        (
            "Is it bound to the same duties as Rule 3, including audits?",
            "Is it bound to the same duties, including audits?",
        ),
        ("What does a firm owe clients as required by Section 12?", "What does a firm owe clients?"),
        ("Must a firm under stress report to Rule-makers?", "Must a firm under stress report to Rule-makers?"),
    ],
)
def test_a_question_may_lose_the_rule_it_refers_to(text, expected):
    assert without_references(text) == expected


def test_no_eight_words_in_a_row_are_a_passages():
    text = "A firm must, prior to the date, notify the Regulator of every change of its auditors."
    copied = "Must a firm notify the Regulator of every change of its auditors?"
    assert copied_run(copied, [text]).split() == "notify the regulator of every change of its".split()
    assert len(copied_run(copied, [text]).split()) == COPIED
    mended = reworded(copied, [text])
    assert not copied_run(mended, [text]) or mended == copied
    assert reworded("Must a firm notify it of each change?", [text]) == "Must a firm notify it of each change?"
