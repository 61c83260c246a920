"""What is read for a sentence: alone, an item after its lead-in, with neighbours, a short passage whole; titles."""

from ragqa.english.reading import read
from ragqa.english.sentences import taken_apart
from ragqa.scoring.repass.breakdown import source_premises
from ragqa.scoring.verdicts.windows import LONG, Windows, covers
from ragqa.types.scores import ScoringMode
from tests.support.fakes import passage

FIRMS, BANKS, DUCKS = "Firms keep records.", "Banks lend money to firms.", "Ducks swim on ponds."
LISTING = (
    "A Firm must: (a) keep a register of all the gifts that its staff accept; (b) tell the Commission of each breach, "
    "and of (i) its cause; and (ii) its remedy; (c) train its staff once a year in all that this Chapter asks of them; "
    "and (d) have its accounts audited by an independent auditor who is a member of a recognised body of accountants."
)


def windows(text, *passages, without=frozenset()):
    return Windows(source_premises(passages, ScoringMode.PAPER), passages).of(text, without)


def test_the_nearest_sentence_alone_and_in_its_passage():
    first, *others = windows("Firms keep their records.", passage("a", f"{DUCKS} {FIRMS} {BANKS}"))
    assert (first.text, first.positions) == (FIRMS, (1,))
    assert {one.text for one in others} == {f"{DUCKS} {FIRMS} {BANKS}", f"{FIRMS} {BANKS}"}
    assert all(one.positions[0] == 1 for one in others)


def test_a_long_passage_is_read_around_the_nearest_sentence():
    around = [f"Clause {n} is about the number {n} and nothing else at all." for n in range(40)]
    found = windows("Firms keep their records.", passage("a", " ".join([*around[:20], FIRMS, *around[20:]])))
    assert max(len(one.positions) for one in found) == 3
    assert len(found) == 3


def test_the_two_nearest_passages_are_read_and_no_more_than_five_windows():
    passages = [passage(str(n), f"{FIRMS[:-1]} {n}. {DUCKS} {BANKS}") for n in range(4)]
    found = windows("Firms keep records 3.", *passages)
    assert len({one.positions[0] for one in found}) == 2
    assert found[0].text == "Firms keep records 3."
    assert len(found) <= 5


def test_a_title_stands_before_the_words_and_is_no_evidence():
    (found,) = windows("Firms keep records.", passage("a", FIRMS, title="Rules of 2020"))
    assert (found.text, found.evidence) == (f"Rules of 2020: {FIRMS}", FIRMS)


def test_an_item_of_a_long_listing_is_read_after_its_lead_in():
    assert len(LISTING) >= LONG
    first, *others = windows("A Firm must tell the Commission of the cause of a breach.", passage("a", LISTING))
    assert first.text == "A Firm must tell the Commission of each breach, and of its cause" or first.item
    assert LISTING[first.item.start : first.item.end] == first.item.text
    assert [one.text for one in others] == [LISTING]


def test_some_source_sentences_may_be_left_out_and_no_words_have_no_window():
    assert windows("Firms keep records.", passage("a", FIRMS), without=frozenset({0})) == ()
    assert windows("…", passage("a", FIRMS)) == ()
    assert windows("Firms keep records.") == ()


def test_rare_words_count_more_and_no_words_cover_nothing():
    known = [read(text).stems for text in ("firms lend gold", "firms keep records", "firms lend")]
    gold, records, lend = covers("Firms lend gold.", known)
    assert gold == 1.0
    assert records < lend < gold
    assert covers("...", known) == [0.0] * 3
    assert covers("Firms lend gold.", []) == []


# Listings


def test_items_are_told_with_their_marks_and_after_their_lead_in():
    listing = taken_apart(LISTING)
    assert listing.lead.text == "A Firm must"
    assert [item.mark for item in listing.items] == ["(a)", "(b)", "(b)(i)", "(b)(ii)", "(c)", "(d)"]
    cause = listing.items[2]
    assert cause.after(listing.lead) == "A Firm must tell the Commission of each breach, and of its cause"
    assert all(LISTING[item.span.start : item.span.end] == item.span.text for item in listing.items)


def test_letters_go_on_after_h_and_references_are_no_items():
    letters = " ".join(f"({letter}) thing {letter};" for letter in "abcdefghij")
    assert [item.mark for item in taken_apart(f"It lists: {letters}").items] == [f"({one})" for one in "abcdefghij"]
    for text in ("Rule 3 (a) and Rule 4 (b) apply.", "It has six (6) members.", "One (a) alone.", "", "(s) (t)"):
        assert taken_apart(text).items == ()
