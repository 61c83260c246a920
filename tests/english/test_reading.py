"""Words and names of a sentence; whether both speak of the same thing; which language it is in."""

import sys
from itertools import pairwise
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.english.reading import read
from ragqa.english.words import language_of, stem, words_of


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
