"""Word for word: the whole of a source sentence, or several in a run."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.scoring.verdicts.copies import position_in
from ragqa.types.scores import Verdict
from tests.support.fakes import passage
from tests.support.judging import NO, verdict_of

KEEP = "A Firm must keep its records for six years."


def quoted(text: str, *sources: str) -> bool:
    """Whether it is a quotation: the verifier says that all contradicts it."""
    return verdict_of(text, *sources, said=NO).quoted


def test_a_whole_sentence_is_supported_whatever_the_model_says():
    verdict = verdict_of(KEEP, "Nothing here.", KEEP, said=NO, raw=(0.0, 1.0))
    assert (verdict.verdict, verdict.quoted, verdict.evidence) == (Verdict.SUPPORTED, True, KEEP)
    assert (verdict.rule, verdict.supporting, verdict.doubted) == ("quotation", (1,), (0, 1))
    assert verdict.reason == "Quoted word for word from [2]."


def test_case_white_space_and_punctuation_hide_no_quotation():
    assert quoted("a firm must keep  its\nrecords — for six years", KEEP)


def test_a_part_is_no_quotation():
    assert quoted("Firms lend.", "Firms lend.")
    assert not quoted("A Firm may outsource its records", "A Firm may outsource its records only if nobody objects.")


def test_several_sentences_in_a_run_are_quoted():
    first, second, third = "Firms keep records.", "Banks lend money to firms.", "Clients pay."
    verdict = verdict_of(f"{first} {second}", KEEP, f"{first} {second} {third}", said=NO)
    assert (verdict.rule, verdict.supporting) == ("quotation", (1,))
    assert verdict.reason == "Sentences of [2], word for word."
    assert verdict_of(f"{second} {third}", f"{first} {second} {third}").supporting == (1,)
    assert not quoted(f"{first} {third}", f"{first} {second} {third}")
    assert not quoted("records. Banks lend money to", f"{first} {second} {third}")  # no whole sentences
    assert not quoted(f"{first} {second}", first, second)  # of two passages


def test_of_a_very_long_list_an_item_with_its_lead_in_is_quoted():
    long = " ".join(["in the ordinary course of its business"] * 14)
    items = f"(a) keep its records {long};\n(b) weigh its gold {long}; and\n(c) sell no lead {long}."
    source = f"A Firm must:\n{items}"
    verdict = verdict_of(f"A Firm must […] weigh its gold {long}", KEEP, source, said=NO)
    assert (verdict.rule, verdict.quoted, verdict.supporting) == ("quotation", True, (1,))
    assert verdict.reason == "A whole item or row of [2], word for word."
    assert not quoted(f"Weigh its gold {long}", source)  # without its lead-in
    assert not quoted("A Firm must […] weigh its gold", source)  # not the whole item
    assert not quoted(
        "A Firm must […] weigh its gold", "A Firm must: (a) weigh its gold; (b) sell no lead, if told to."
    )


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
    verdict = verdict_of(text, *(passage(str(n), source) for n, source in enumerate(sources)), said=NO)
    assert verdict.verdict in {Verdict.SUPPORTED, Verdict.DISAGREEING}
    assert sources[verdict.supporting[0]] == text
