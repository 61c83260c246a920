"""What a question asks for, part by part."""

import pytest

from ragqa.generation.direct.asking import parts_of


def test_parts_borrow_what_they_speak_of_and_are_read_after_the_question_where_they_need_it():
    question = "Where did Turing take his doctorate, and in what year?"
    first, second = parts_of(question)
    assert second.content == first.content  # "in what year" alone names nothing
    assert (first.asked, second.asked) == (first.text, "Turing, his doctorate: in what year?")
    first, second = parts_of("Who led the team that purified penicillin, and what year did they try it on mice?")
    assert "penicillin" in first.content & second.borrowed
    assert len(parts_of("Is it salt and pepper?")) == 1
    whole = "When was the bridge opened to cars, and where was the tunnel under the river dug?"
    assert parts_of(whole)[1].asked == "where was the tunnel under the river dug?"


def test_a_question_may_be_read_with_the_one_before():
    (part,) = parts_of("And if it is late?", "How soon must a firm acknowledge a complaint?")
    assert part.asked == "How soon must a firm acknowledge a complaint: And if it is late?"
    assert "complaint" in part.borrowed


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
        ("What is kept? How long?", ("What is kept?", "How long?")),
    ],
)
def test_a_part_begins_at_a_question_word_and_not_after_a_condition(question, parts):
    assert tuple(part.text for part in parts_of(question)) == parts
