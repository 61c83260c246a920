"""Word for word: the whole of a source sentence, a part that nothing limits, several in a run."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.scoring.verdicts.quotations import position_in
from ragqa.types.scores import Verdict
from tests.support.fakes import passage
from tests.support.judging import verdict_of

KEEP = "A Firm must keep its records for six years."


def quoted(text: str, *sources: str) -> bool:
    """Whether the rule of quotations supports it: the model says contradiction .99."""
    return verdict_of(text, *sources, contradiction=0.99).rule == "quotation"


def test_a_whole_sentence_is_supported_whatever_the_model_says():
    verdict = verdict_of(KEEP, "Nothing here.", KEEP, contradiction=1.0, entailment=0.0)
    assert verdict.verdict is Verdict.SUPPORTED
    assert (verdict.rule, verdict.supporting, verdict.doubted) == ("quotation", (1,), (0, 1))
    assert verdict.reason == "Quoted word for word from [2]."


def test_case_white_space_and_punctuation_hide_no_quotation():
    assert quoted("a firm must keep  its\nrecords — for six years", KEEP)


def test_a_short_sentence_is_quoted_whole_and_not_in_part():
    assert quoted("Firms lend.", "Firms lend.")
    assert not quoted("Firms lend money.", "Firms lend money to banks.")


def test_a_part_is_quoted():
    verdict = verdict_of("A Firm must keep its records", f"{KEEP[:-1]}, and books for ten years.", contradiction=0.99)
    assert verdict.verdict is Verdict.SUPPORTED
    assert verdict.reason == "Part of a sentence of [1], word for word."


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("A Firm may outsource its records", "A Firm may outsource its records only if the contract permits it."),
        ("A Firm may outsource its records", "A Firm may outsource its records unless the Commission objects."),
        ("A Firm must not lend to a Client", "A Firm must not lend to a Client unless it can lend safely."),
        ("A Firm must keep all records", "A Firm must keep all records except those of Clients."),
        ("A Firm must keep all records", "Where it holds money, a Firm must keep all records."),
        ("funds may be held by banks", "Such funds may be held by banks only."),
        ("the Firm must keep records", "The rule does not say that the Firm must keep records."),
        ("a Firm may lend to anybody", "It is not the case that a Firm may lend to anybody."),
        ("the lake is very deep", "A newspaper claimed that the lake is very deep."),
        ("Firms may lend their clients money", "Firms may lend their clients money in no circumstances."),
        ("a Firm must keep its records", "Before 2010 began, a Firm must keep its records."),
    ],
)
def test_a_part_is_no_quotation_where_what_limits_it_is_left_out(part, source):
    assert not quoted(part, source)
    assert quoted(source, source)


def test_several_sentences_in_a_run_are_quoted():
    first, second, third = "Firms keep records.", "Banks lend money to firms.", "Clients pay."
    verdict = verdict_of(f"{first} {second}", KEEP, f"{first} {second} {third}", contradiction=0.99)
    assert (verdict.rule, verdict.supporting) == ("quotation", (1,))
    assert verdict.reason == "Sentences of [2], word for word."
    assert verdict_of(f"{second} {third}", f"{first} {second} {third}").supporting == (1,)
    assert not quoted(f"{first} {third}", f"{first} {second} {third}")
    assert not quoted("records. Banks lend money to", f"{first} {second} {third}")  # no whole sentences
    assert not quoted(f"{first} {second}", first, second)  # of two passages


def test_whole_ones_come_before_parts():
    part = "A Firm must keep its records for six years and pay."
    assert verdict_of(KEEP, part, KEEP).supporting == (1, 0)


@pytest.mark.parametrize("text", ["", "…", " \n", "()."])
def test_no_words_are_no_quotation(text):
    assert not quoted(text, "...", KEEP)


@given(st.lists(st.sampled_from("ab"), max_size=12), st.lists(st.sampled_from("ab"), max_size=4))
def test_the_position_is_that_of_a_slow_search(words, run):
    places = [n for n in range(len(words)) if run and words[n : n + len(run)] == run]
    assert position_in(tuple(words), tuple(run)) == (places[0] if places else None)


SENTENCES = st.lists(
    st.sampled_from("firms keep lend not 5 days if The Bank only".split()), min_size=1, max_size=9
).map(lambda words: " ".join(words).capitalize() + ".")


@settings(deadline=None)
@given(st.lists(SENTENCES, min_size=1, max_size=4), st.data())
def test_every_source_sentence_is_supported_by_itself(sources, data):
    text = data.draw(st.sampled_from(sources))
    verdict = verdict_of(text, *(passage(str(n), source) for n, source in enumerate(sources)), contradiction=0.99)
    assert verdict.verdict in {Verdict.SUPPORTED, Verdict.DISAGREEING}
    assert sources[verdict.supporting[0]] == text
