"""Whether an answer covers an obligation, part by part, what it leaves out and what it says otherwise."""

import pytest

from ragqa.types.scores import Cover
from tests.support.judging import NO, NOTHING, YES, cover_of, covered_by, saying

NOTIFY = "A Firm must notify the Commission of a breach within 72 hours."
LISTING = "A Firm must: (a) keep a register of gifts; (b) train its staff once a year; and (c) publish its accounts."
SLOVENIAN = "Banka mora hraniti evidenco o vseh poslih najmanj šest let po koncu poslovnega leta."


def everything(_text):
    return YES


def test_word_for_word_is_covered():
    cover = cover_of(NOTIFY, "Nothing here.", NOTIFY.lower(), said=lambda _: NOTHING)
    assert (cover.index, cover.cover, cover.rule, cover.answer_index) == (5, Cover.COVERED, "quotation", 1)
    assert cover.reason == "Sentence 2 says it word for word."


@pytest.mark.parametrize("said", ["It is not true that {}", "A lawyer claimed that {}"])
def test_what_is_denied_or_reported_is_not_covered_by_its_words(said):
    answer = said.format("a Firm must keep its records.")
    assert cover_of("A Firm must keep its records.", answer, said=lambda _: NOTHING).rule == "nothing"


def test_every_part_told_is_covered():
    said = "Gifts stand in a register, staff are trained each year and a Firm shows its accounts to all."
    cover = cover_of(LISTING, said, said=everything)
    assert (cover.cover, cover.rule, cover.answer_index, cover.missing) == (Cover.COVERED, "entailment", 0, ())


def test_a_part_that_is_not_told_is_named_in_its_own_words():
    cover = cover_of(
        LISTING,
        "A Firm trains its staff once a year and keeps a register of gifts.",
        said=saying("accounts", NOTHING, YES),
    )
    assert (cover.cover, [span.text for span in cover.missing]) == (Cover.IN_PART, ["publish its accounts"])
    assert "“publish its accounts”" in cover.reason
    assert all(LISTING[span.start : span.end] == span.text for span in cover.missing)


def test_a_period_that_the_answer_does_not_have_is_missing():
    cover = cover_of(NOTIFY, "A Firm must notify the Commission of a breach.", said=everything)
    assert (cover.cover, [span.text for span in cover.missing]) == (Cover.IN_PART, ["72 hours"])
    assert NOTIFY[cover.missing[0].start : cover.missing[0].end] == "72 hours"


def test_a_part_that_is_said_otherwise_is_in_conflict():
    cover = cover_of(LISTING, "No register of gifts is kept by a Firm.", said=saying("register", NO, YES))
    assert (cover.cover, cover.rule, cover.answer_index) == (Cover.IN_CONFLICT, "contradiction", 0)
    assert [span.text for span in cover.missing] == ["keep a register of gifts"]


def test_what_contradicts_the_obligation_is_in_conflict_with_it():
    policy = "Breaches are told to the Commission within ten days."
    cover = cover_of(NOTIFY, "We are careful.", policy, said=saying(policy, NO))  # the verifier reads no part as denied
    assert (cover.cover, cover.rule, cover.answer_index) == (Cover.IN_CONFLICT, "contradiction", 1)
    assert cover.reason.startswith("Sentence 2 contradicts")
    changed = cover_of(NOTIFY, NOTIFY.replace("72", "96"), said=lambda _: NOTHING)
    assert (changed.cover, changed.rule, [span.text for span in changed.missing]) == (
        Cover.IN_CONFLICT,
        "number",
        ["72 hours"],
    )


EXIT = "A Firm must write its plans for an exit down, test them with its staff and review them every 12 months."


@pytest.mark.parametrize(
    ("back", "cover", "missing"),
    [
        (NOTHING, Cover.IN_PART, ["A Firm must write its plans for an exit down", "test them with its staff"]),
        (YES, Cover.IN_PART, ["12 months"]),
    ],
)
def test_a_duty_that_alone_supports_a_sentence_is_not_missed(back, cover, missing):
    policy = "We review them in some months."  # the answer as a whole is not read as saying the duty
    answer = ("Ducks swim.", policy)

    def said(premise, hypothesis):
        return YES if hypothesis == policy else back if (premise, hypothesis) == (policy, EXIT) else NOTHING

    found = covered_by(EXIT, *answer, said=said)
    assert (found.cover, found.answer_index, [span.text for span in found.missing]) == (cover, 1, missing)
    assert covered_by(EXIT, *answer, said=lambda *_: NOTHING).cover is Cover.NOT_COVERED


def test_a_duty_that_a_sentence_repeats_in_other_words_is_covered():
    duty, policy = "A Firm must write its plans for an exit down.", "We have exit plans on paper."

    def said(premise, hypothesis):
        return YES if {premise, hypothesis} == {policy, duty} else NOTHING

    assert covered_by(duty, "Ducks swim.", policy, said=said).cover is Cover.COVERED


def test_other_sentences_cover_nothing():
    cover = cover_of(NOTIFY, "Ducks swim.", "A Bank lends money to a Client.", said=lambda _: NOTHING)
    assert (cover.cover, cover.answer_index, cover.missing) == (Cover.NOT_COVERED, None, ())
    for nothing in ((), ("",), ("...",)):
        assert cover_of(NOTIFY, *nothing, said=lambda _: NOTHING).cover is Cover.NOT_COVERED


def test_in_another_language_only_words_cover():
    assert cover_of(SLOVENIAN, SLOVENIAN, said=everything).cover is Cover.COVERED
    other = cover_of(SLOVENIAN, SLOVENIAN.replace("šest", "pet"), said=everything)
    assert (other.cover, other.rule) == (Cover.NOT_COVERED, "language")
