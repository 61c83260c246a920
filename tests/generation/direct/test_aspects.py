"""What a question asks of its subject, and sentences on the same subject that do not say it."""

import pytest

from ragqa.english.reading import read
from ragqa.generation.direct.aspects import LONGEST, Unsaid, head_of, unsaid

IRON = "Iron melts at 1,538 degrees Celsius."


@pytest.mark.parametrize(
    ("asked", "sentence", "otherwise", "lacking"),
    [
        ("At what temperature does iron melt?", IRON, (), ()),
        ("At what temperature does iron boil?", IRON, ("boil",), ()),
        ("At what temperature does iron boil?", "Above 770 degrees Celsius iron is no magnet.", (), ("boil",)),
        ("When did she marry?", "She was born in London on 23 June 1912.", ("marry",), ()),
        ("How wide is the lake?", "The lake is about 636 kilometres long.", ("wide",), ("How wide",)),
        ("How long is it open?", "It is open for three hours a day.", (), ()),
        (
            "How long is the period for a Professional Client?",
            "A Retail Client has 24 hours.",
            ("Professional Client",),
            (),
        ),
        ("What does the tower cost?", "The tower is 330 metres high.", (), ("cost",)),
        ("What does a late return cost?", "A late return attracts HMD 500.", (), ()),
        ("How many people sit on the panel?", "The panel sends a decision within 28 days.", (), ("How many people",)),
        ("How many members has the panel?", "The panel has three members.", (), ()),
        ("How many hours did it take?", "It was done on 8 August 1786.", (), ("How many hours",)),
        ("Who stole the picture?", "The picture was stolen in August 1911.", (), ("by whom",)),
        ("Who stole the picture?", "The picture was stolen by a glazier.", (), ()),
        ("What is the half-life of tritium?", "Uranium has a half-life of 4.5 billion years.", (), ("tritium",)),
        ("Why was it declared void?", "It was declared void in August 1215.", (), ("Why",)),
        ("Why was it declared void?", "It was declared void because it was forced.", (), ()),
    ],
)
def test_what_is_not_said_is_named_in_the_words_of_the_question(asked, sentence, otherwise, lacking):
    assert unsaid(asked, read(sentence)) == Unsaid(otherwise, lacking)


def test_a_title_or_heading_says_it_as_well():
    assert not unsaid("What is the density of gold?", read("The density is 19.3 grams."), "Gold")


def test_a_long_story_need_not_be_repeated_word_for_word():
    story = "Our customer died last week " + "and we do not know what is to be done " * 2
    assert len(story.split()) > LONGEST
    assert not unsaid(story, read("The firm must tell the heirs."))
    assert head_of(f"Which newspaper {story}") == ()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("In which newspaper must it be published?", ["newspaper", "must"]),
        ("Who was the captain of the Beagle?", ["captain"]),
        ("What is the average density of helium?", ["density"]),
        ("In which year did it open?", []),  # any year will do, the word need not stand there
        ("Which metal is denser, gold or uranium?", []),
        ("Does it rust?", []),
    ],
)
def test_the_thing_that_is_asked_for_by_name(asked, words):
    assert [word.lower for word in head_of(asked)] in (words, words[:1])
