"""Words and names of a sentence; whether both speak of the same thing; which language it is in."""

import sys
from itertools import pairwise
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.english.language import language_of
from ragqa.english.reading import read
from ragqa.english.words import stem, words_of
from ragqa.scoring.verdicts.subject import covers, headings_of, is_elsewhere, knows_subject, unknown_names
from tests.support.fakes import passage


def names(text: str) -> list[str]:
    return [name.span.text for name in read(text).names]


# Words and names


def test_a_possessive_ending_is_no_part_of_a_word():
    assert [word.lower for word in words_of("The Firm’s books, the firms' don't 1,000.5")] == [
        "the",
        "firm",
        "books",
        "the",
        "firms",
        "don't",
        "1,000.5",
    ]


@settings(deadline=None)
@given(st.text(max_size=60))
def test_every_word_is_a_slice_of_the_text_in_order(text):
    words = words_of(text)
    assert all(word.end > word.start and word.lower for word in words)
    assert all(one.end <= other.start for one, other in pairwise(words))
    reading = read(text)
    assert reading.content <= reading.stems
    assert all(text[name.span.start : name.span.end] == name.span.text for name in reading.names)


def test_threads_that_stem_at_once_get_the_same_stems():
    given_words = [f"regulat{ending}{n}" for n in range(3_000) for ending in ("ion", "ed", "ing")]
    expected = [stem.__wrapped__(word) for word in given_words]
    found, interval = [], sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [Thread(target=lambda: found.append([stem.__wrapped__(w) for w in given_words])) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    finally:
        sys.setswitchinterval(interval)
    assert found == [expected] * 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Bank of England was founded in London.", ["Bank of England", "London"]),
        ("Firms keep records.", []),  # the first word may be any word
        ("An Authorised Firm keeps records.", ["Authorised Firm"]),
        ("In July it was 5 degrees Celsius in Ljubljana for 2 Business Days.", ["Ljubljana"]),
        ("It said: Records are kept by Jean-Luc Picard, Riker.", ["Jean-Luc Picard", "Riker"]),
        ("He read Of Mice and Men.", ["Mice", "Men"]),
        ("", []),
    ],
)
def test_names_are_runs_of_capitals(text, expected):
    assert names(text) == expected


# Subjects

MERCURY = passage("m", "Its melting point is -38.83 degrees Celsius.", title="Mercury (element)")
GOLD = passage("g", "Gold has the atomic number 79.", title="Gold (element)")


def test_special_are_the_words_of_a_title_that_fewest_titles_have():
    mercury, gold = headings_of([MERCURY, GOLD])
    assert (mercury.special, gold.special) == ({"mercuri"}, {"gold"})
    (alone,) = headings_of([passage("x", title="Lake Bled")])
    assert alone.special == {"lake", "bled"}
    assert headings_of([]) == ()
    assert headings_of([passage("x")])[0].special == frozenset()


def test_a_sentence_about_its_title_is_elsewhere_for_an_answer_that_does_not_name_it():
    above, _ = headings_of([MERCURY, GOLD])
    its = read(MERCURY.text)
    assert is_elsewhere(read("Gold has the atomic number 79."), its, above)
    assert not is_elsewhere(read("Mercury melts at -38.83 degrees Celsius."), its, above)
    assert not is_elsewhere(read("Gold has the atomic number 79."), read("Many elements melt."), above)


def test_names_are_known_to_a_sentence_or_its_headings():
    above, _ = headings_of([MERCURY, GOLD])
    said = read("The metal Mercury was used in Almadén.")
    assert knows_subject(said, read("It was mined."), above)
    assert unknown_names(said, read("It was mined."), above) == 1
    assert not knows_subject(read("The metal Gallium melts."), read("It was mined."), above)
    assert knows_subject(read("it melts"), read("It was mined."), above)


def test_rare_words_count_more_and_no_words_cover_nothing():
    known = [read(text).stems for text in ("firms lend gold", "firms keep records", "firms lend")]
    gold, records, lend = covers(read("Firms lend gold."), known)
    assert gold == 1.0
    assert records < lend < gold
    assert covers(read("..."), known) == [0.0] * 3
    assert covers(read("Firms lend gold."), []) == []


# Languages

SLOVENIAN = "Banka mora hraniti evidenco o vseh poslih najmanj šest let po koncu poslovnega leta."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SLOVENIAN, "sl"),
        ("Die Bank muss alle Aufzeichnungen mindestens sechs Jahre lang nach dem Ende des Jahres aufbewahren.", "de"),
        ("La banque doit conserver tous les documents pendant au moins six ans après la fin de l'exercice.", "fr"),
        ("Firms must keep records of all orders for at least six years after the end of the year.", "en"),
        ("Firms keep records; banks lend money; clients pay interest on loans every month.", "en"),
        ("Ljubljana, Kranj, Celje", "en"),  # too short to tell
        ("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", "en"),
        ("", "en"),
    ],
)
def test_another_language_is_told_where_that_is_sure(text, expected):
    assert language_of(text) == expected


def test_an_english_title_makes_no_sentence_english():
    text = "Knjigo The Lord of the Rings je napisal pisatelj, ki je dolgo predaval na univerzi v Oxfordu."
    assert language_of(text) == "sl"
