"""Whether an answer covers an obligation, and what it leaves out."""

import pytest

from ragqa.types.scores import Cover, ObligationVerdict
from tests.support.judging import judge_of, obligation_of, sentence

NOTIFY = "A Firm must notify the Commission of a breach within 72 hours if clients are harmed."
SLOVENIAN = "Banka mora hraniti evidenco o vseh poslih najmanj šest let po koncu poslovnega leta."


def cover_of(obligation: str, *said: str, entailment: float = 0.1) -> ObligationVerdict:
    sentences = [(n, sentence(text)) for n, text in enumerate(said)]
    return judge_of(obligation).obligation(5, obligation_of(obligation), sentences, [entailment] * len(said))


def test_word_for_word_is_covered():
    cover = cover_of(NOTIFY, "Nothing here.", NOTIFY.lower())
    assert (cover.index, cover.cover, cover.rule, cover.answer_index) == (5, Cover.COVERED, "quotation", 1)
    assert cover.reason == "Sentence 2 says it word for word."
    assert cover_of(NOTIFY, f"By Rule 3, {NOTIFY}").rule == "quotation"


@pytest.mark.parametrize("said", ["It is not true that {}", "A lawyer claimed that {}"])
def test_what_is_denied_or_reported_is_not_covered_by_its_words(said):
    assert cover_of("A Firm must keep its records.", said.format("a Firm must keep its records.")).rule == "nothing"


def test_other_words_cover_where_the_model_says_so_and_nothing_is_missing():
    said = "If clients are harmed by a breach, 72 hours are what a Firm has to tell the Commission."
    cover = cover_of(NOTIFY, said, entailment=0.9)
    assert (cover.cover, cover.rule) == (Cover.COVERED, "entailment")
    assert cover_of(NOTIFY, said, entailment=0.7).cover is not Cover.COVERED  # not above the threshold


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("A Firm must notify the Commission of a breach within 72 hours.", ["if clients are harmed"]),
        ("A Firm must notify the Commission of a breach if clients are harmed.", ["72 hours"]),
        ("A Firm must notify the Commission of a breach.", ["if clients are harmed", "72 hours"]),
    ],
)
def test_a_part_names_what_is_missing(said, missing):
    for entailment in (0.1, 0.99):
        cover = cover_of(NOTIFY, said, entailment=entailment)
        assert (cover.cover, cover.answer_index) == (Cover.IN_PART, 0)
        assert [span.text for span in cover.missing] == missing
        assert all(NOTIFY[span.start : span.end] == span.text for span in cover.missing)
        assert all(f"“{words}”" in cover.reason for words in missing)


def test_other_sentences_cover_nothing():
    cover = cover_of(NOTIFY, "Ducks swim.", "A Bank lends money to a Client.")
    assert (cover.cover, cover.answer_index, cover.missing) == (Cover.NOT_COVERED, None, ())
    assert cover_of(NOTIFY).cover is Cover.NOT_COVERED
    assert cover_of(NOTIFY, "").cover is Cover.NOT_COVERED
    assert cover_of("...", "...").cover is Cover.NOT_COVERED


def test_in_another_language_only_words_cover():
    assert cover_of(SLOVENIAN, SLOVENIAN).cover is Cover.COVERED
    other = cover_of(SLOVENIAN, SLOVENIAN.replace("šest", "pet"), entailment=0.99)
    assert (other.cover, other.rule) == (Cover.NOT_COVERED, "language")
