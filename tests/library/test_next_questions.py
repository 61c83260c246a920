"""Questions that follow from the rules of an answer."""

from __future__ import annotations

import pytest

from ragqa.library.definitions import Definition, Use
from ragqa.library.next_questions import next_questions, timed_question
from ragqa.library.register import register
from ragqa.library.related import Referred, Related
from tests.support.fakes import passage

RULE = passage("a:4.1", "A keeper must light the lamp under rule 5.1.", title="Lamp Rules", number="4.1")
TARGET = passage("a:5.1", "A keeper must clean the harbour lamp within two days.", title="Lamp Rules", number="5.1")
DENIAL = passage("a:6.1", "Rule 4.1 does not apply if the moon is full.", title="Lamp Rules", number="6.1")
PARAGRAPHS = tuple(passage(f"a:8.1.{n}", title="Lamp Rules", number=f"8.1.({n})") for n in (1, 2))
CHAPTER = tuple(passage(f"a:4.{n}", title="Lamp Rules", number=f"4.{n}") for n in (2, 3))
LAMP = Use(0, 0, Definition("harbour lamp", "a:1", "a", "“harbour lamp” means the lamp of a harbour.", 0))
NOTHING = Related((), (), ())


@pytest.mark.parametrize(
    ("found", "questions"),
    [
        (NOTHING, ()),
        (Related((), (DENIAL,), ()), ("When does Lamp 4.1 not apply?",)),
        (Related((), (passage("a:7", "Rule 9.1 does not apply."),), ()), ()),  # of another rule
        (Related((), (passage("a:7", "Rule 4.1 does not limit the keeper."),), ()), ()),
        (Related((), (), (LAMP,)), ("What does “harbour lamp” mean?",)),
        (Related((Referred("rule 5.1", (TARGET,)),), (DENIAL,), (LAMP, LAMP)), (
            "When does Lamp 4.1 not apply?", "By when must a keeper clean the harbour lamp?",
            "What does “harbour lamp” mean?", "What does Lamp 5.1 say?",
        )),
        (Related((Referred("rule 8", PARAGRAPHS),), (), ()), ("What does Lamp 8.1 say?",)),
        (Related((Referred("chapter 4", (CHAPTER)),), (), ()), ()),  # a chapter is no rule
    ],
)  # fmt: skip
def test_an_answer_leads_to_what_its_rules_except_limit_define_and_cite_each_once(found, questions):
    assert next_questions([RULE], [found], "Must the harbour lamp be lit?") == questions


def test_what_is_said_or_defined_in_the_answer_is_not_asked_again():
    assert next_questions([TARGET], [NOTHING], "It must be clean within two days.") == ()
    assert next_questions([RULE], [Related((), (), (LAMP,))], "Must it be lit?") == ()
    own = Use(0, 0, Definition("harbour lamp", "a:4.1", "a", "", 0))
    assert next_questions([RULE], [Related((), (), (own,))], "Must the harbour lamp be lit?") == ()


@pytest.mark.parametrize(("text", "question"), [
    ("Each keeper must inspect the lamp every month.", "How often must each keeper inspect the lamp?"),
    ("A keeper must keep the log for six years.", "How long must a keeper keep the log?"),
    ("A keeper shall tell the Harbour Board within one day.", "By when must a keeper tell the Harbour Board?"),
    ("A keeper must trim the lamp at least every month.", ""),
    ("However, a keeper must tell the Board within one day.", ""),
    ("It must be lit within one day.", ""),
    ("A keeper must light, trim and clean the lamp within one day.", ""),
    ("A keeper must not light the lamp within one day of a storm.", ""),
    ("A keeper must light the lamp.", ""),
    ("A keeper may light the lamp within one day.", ""),
])  # fmt: skip
def test_a_time_limit_is_asked_for(text, question):
    asked = [timed_question(row) for row in register([passage("a:1", text)])]
    assert asked == ([question] if asked else [])
    assert asked or not question
