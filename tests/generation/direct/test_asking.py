"""What a question asks for, and whether a sentence has it."""

import pytest

from ragqa.english.reading import read
from ragqa.generation.direct.asking import Asked, parts_of


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did it sink?", Asked.DATE),
        ("What year did they move?", Asked.DATE),
        ("How many rivets are in the tower?", Asked.QUANTITY),
        ("At what temperature does gold melt?", Asked.QUANTITY),
        ("Who pays when the Commission asks for a report?", Asked.PERSON),
        ("When staff complain, who gets the report?", Asked.PERSON),
        ("What happens to an employee who clicks on a link?", Asked.OTHER),
        ("Where did Turing study?", Asked.PLACE),
        ("What is graphene?", Asked.DEFINITION),
        ("Ring of Fire, what's that?", Asked.DEFINITION),
        ("Which account books did he describe?", Asked.LIST),
        ("May we count it as liquid?", Asked.YES_NO),
        ("Why does iron rust?", Asked.REASON),
        ("everest without oxygen again", Asked.OTHER),
    ],
)
def test_the_kind_of_answer_is_told_from_the_question_word(question, kind):
    assert [part.kind for part in parts_of(question)] == [kind]


def test_parts_have_question_words_of_their_own_and_borrow_what_they_speak_of():
    first, second = parts_of("Where did Turing take his doctorate, and in what year?")
    assert (first.kind, second.kind) == (Asked.PLACE, Asked.DATE)
    assert second.content == first.content  # "in what year" alone names nothing
    first, second = parts_of("Who led the team that purified penicillin, and what year did they try it on mice?")
    assert "penicillin" in first.content & second.borrowed
    assert len(parts_of("Is it salt and pepper?")) == 1


@pytest.mark.parametrize(
    ("question", "has", "lacks"),
    [
        ("How long is the bridge?", "It is 300 metres long.", "It was opened in 1957 by 300 people."),
        ("How many moons does Saturn have?", "It has 82 moons.", "It has 7 rings."),
        ("When did it sink?", "It sank on 15 April 1912.", "It sank at once."),
        ("Who wrote the poem?", "It was written by Emma Lazarus.", "It was written long ago."),
        ("Where was it built?", "It was built in Paris.", "It was built of iron."),
        ("Why does it shine?", "It shines because it is hot.", "It shines."),
        ("What is a troy ounce?", "A troy ounce is a weight of 31 grams.", "Gold is sold by troy ounces."),
        ("Must a firm report?", "A firm must report.", "A firm reports."),
    ],
)
def test_a_sentence_with_the_kind_of_answer_fits_better(question, has, lacks):
    (part,) = parts_of(question)
    assert part.fit(read(has)) > part.fit(read(lacks))


def test_no_question_is_without_a_part():
    for text in ("", "?", "and when?", "why", "how how how"):
        assert parts_of(text or "?")


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Who must be told of a breach, how soon, and whose duty is it?",
            ("Who must be told of a breach", "how soon", "whose duty is it?"),
        ),
        ("If a firm is late, what happens?", ("If a firm is late, what happens?",)),
        (
            "When a client complains, how soon must the firm answer?",
            ("When a client complains, how soon must the firm answer?",),
        ),
        ("What is kept, and how long?", ("What is kept", "how long?")),
        ("How soon must we report it, and can we act first?", ("How soon must we report it", "can we act first?")),
        ("If a client has paid, and is it late, may we sue?", ("If a client has paid, and is it late, may we sue?",)),
        (
            "What must a firm that has no clients, and is small, file?",
            ("What must a firm that has no clients, and is small, file?",),
        ),
    ],
)
def test_a_part_begins_at_a_question_word_and_not_after_a_condition(question, parts):
    assert tuple(part.text for part in parts_of(question)) == parts


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("Volga or Danube, which one is longer?", ("Volga: which one is longer?", "Danube: which one is longer?")),
        (
            "Retail or professional: who hears more often?",
            ("Retail: who hears more often?", "Professional: who hears more often?"),
        ),
        (
            "How do retail and professional clients differ?",
            ("How does retail clients differ?", "How does professional clients differ?"),
        ),
        ("If a bank or insurer is late, what happens?", ()),
        ("How do firms identify and manage different risks?", ()),
        ("In which cases may the Regulator suspend, vary or cancel a licence?", ()),
        ("How are complaints recorded and reported under different rules?", ()),
        ("How do I compare the length of the Volga and the Danube?", ()),
        ("What must firms keep between signing a different contract and ending it?", ()),
        ("What applies if a firm, bank or broker fails?", ()),
        ("Sooner or later, what happens to stars?", ()),
        ("Sooner or later, who pays more?", ()),
        ("Which payments must an employer, agent or trustee report?", ()),
        ("How do I know whether the Volga and the Danube differ?", ()),
        ("How does the fee differ from 2019 to 2020?", ()),
        ("What fees are due for the first year, for renewal and for a later change?", ()),
        ("How do firms show retail and professional clients differ?", ()),
        ("Which peak is higher: " + ", ".join(f"Peak{n}" for n in "ABCDEFGH") + " or Mount Z?", ()),
        ("Which " + "very " * 200 + "long river is longer, Aare or Rhine?", ()),
        ("Which metal is denser, gold or lead?", ("Gold: which metal is denser?", "Lead: which metal is denser?")),
        ("Do Bern and Chur have the same river?", ("Does Bern have the same river?", "Does Chur have the same river?")),
        ("How are gold and lead different?", ("How are gold different?", "How are lead different?")),
    ],
)
def test_each_thing_that_a_question_compares_is_a_part_that_borrows_nothing_from_the_other(question, sides):
    parts = parts_of(question)
    assert tuple(part.text for part in parts if part.is_side) == sides
    assert not any(part.borrowed for part in parts)
