"""Verdicts on sentences: the order of the rules, the gate of the subject, disagreement, language, odd inputs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.types import AnswerSentence
from ragqa.types.scores import Verdict
from tests.support.effort import grows_no_faster
from tests.support.fakes import passage
from tests.support.judging import CLOSE, judge_of, sentence, verdict_of

MERCURY = passage("m", "Its melting point is -38.83 degrees Celsius.", title="Mercury (element)")
GOLD = passage("g", "Gold has the atomic number 79 and is dense.", title="Gold (element)")
KEEP = "A Firm must keep its records for six years."
SLOVENIAN = "Banka mora hraniti evidenco o vseh poslih najmanj šest let po koncu poslovnega leta."


# What is said of the same thing


def test_a_clash_contradicts_and_names_the_words():
    verdict = verdict_of("A Firm must keep its records for two years.", "Nothing here.", KEEP, entailment=0.9)
    assert (verdict.verdict, verdict.rule) == (Verdict.CONTRADICTED, "number")
    assert (verdict.contradicting, verdict.supporting, verdict.doubted) == ((1,), (), (0, 1))
    assert verdict.reason == "[2] says six years, the answer two years."
    assert [span.text for span in (*verdict.said, *verdict.found)] == ["two years", "six years"]


def test_the_word_of_the_model_contradicts_where_strength_differs():
    said = "A Firm must not keep its records for six years."
    verdict = verdict_of(said, KEEP, contradiction=0.8)
    assert (verdict.verdict, verdict.rule, verdict.contradicting) == (Verdict.CONTRADICTED, "contradiction", (0,))
    assert (verdict.said, verdict.found, verdict.doubted) == ((), (), ())
    assert verdict_of(said, KEEP, contradiction=0.2).verdict is not Verdict.CONTRADICTED


def test_what_says_the_same_supports():
    verdict = verdict_of("Records stay with a Firm for six years.", KEEP, entailment=0.95, backwards=0.9)
    assert (verdict.verdict, verdict.rule, verdict.supporting) == (Verdict.SUPPORTED, "entailment", (0,))
    assert verdict.reason == "[1] says the same in other words (entailment 0.95, similarity 0.80)."


def test_a_contradiction_that_the_model_sees_takes_a_support_away():
    said = "Records stay with a Firm for six years."
    verdict = verdict_of(said, KEEP, entailment=0.95, backwards=0.9, contradiction=0.84)
    assert (verdict.verdict, verdict.doubted) == (Verdict.UNSUPPORTED, (0,))


def test_a_condition_left_out_takes_a_support_away_and_is_told():
    source = "A Firm may outsource its functions only if the contract permits it."
    verdict = verdict_of("A Firm is free to outsource its functions.", source, entailment=0.95, backwards=0.9)
    assert (verdict.verdict, verdict.rule) == (Verdict.UNSUPPORTED, "condition")
    assert "“only if the contract permits it”" in verdict.reason
    assert (verdict.supporting, verdict.doubted, verdict.found) == ((), (0,), ())


def test_nothing_said_names_the_nearest():
    verdict = verdict_of("Ducks swim.", KEEP, "Ships sail.")
    assert (verdict.verdict, verdict.rule) == (Verdict.UNSUPPORTED, "nothing")
    assert verdict.reason == "No source sentence says this; the nearest is in [1]."


# What is said of something else


def test_another_element_contradicts_nothing_whatever_the_model_says():
    """The case of the issue: gold's atomic number "contradicted" by mercury's melting point."""
    said = "Gold has the atomic number 79."
    verdict = verdict_of(said, MERCURY, contradiction=0.95, cosine=0.9)
    assert (verdict.verdict, verdict.contradicting, verdict.doubted) == (Verdict.UNSUPPORTED, (), (0,))
    both = verdict_of(said, MERCURY, GOLD, contradiction=[0.95, 0.01], entailment=[0.01, 0.97], backwards=0.9)
    assert (both.verdict, both.supporting, both.doubted) == (Verdict.SUPPORTED, (1,), (0,))


def test_the_same_frame_about_another_lake_contradicts_nothing():
    victoria = passage("v", "Lake Victoria has an area of 68,800 square kilometres.", title="Lake Victoria")
    superior = passage("s", "Lake Superior has an area of 82,100 square kilometres.", title="Lake Superior")
    said = "The surface of Lake Superior measures 82,100 square kilometres."
    verdict = verdict_of(said, victoria, superior, contradiction=[0.97, 0.05], entailment=[0.01, 0.9], backwards=0.9)
    assert (verdict.verdict, verdict.supporting, verdict.contradicting) == (Verdict.SUPPORTED, (1,), ())
    alone = verdict_of(said, victoria, superior, contradiction=[0.97, 0.05])
    assert alone.verdict is Verdict.UNSUPPORTED


def test_a_distant_sentence_contradicts_nothing():
    said = "A Firm must keep its records for two years."
    assert verdict_of(said, KEEP, contradiction=0.99, cosine=0.3).verdict is Verdict.UNSUPPORTED


# Sources that disagree


def test_a_source_that_says_otherwise_beside_a_quotation_is_a_finding():
    other = "A Firm must keep its records for two years."
    verdict = verdict_of(KEEP, KEEP, other, cosine=0.95)
    assert (verdict.verdict, verdict.rule) == (Verdict.DISAGREEING, "number")
    assert (verdict.supporting, verdict.contradicting) == ((0,), (1,))
    assert verdict.reason == "Quoted word for word from [1], but [2] says two years, the answer six years."
    assert [span.text for span in (*verdict.said, *verdict.found)] == ["six years", "two years"]


def test_a_source_that_clearly_says_it_outweighs_one_that_says_otherwise_of_something_near():
    red, blue = "The red lake in the park is 5 metres deep.", "The blue lake in the park is 7 metres deep."
    said = "In the park the red lake is all of 5 metres deep."
    shares = {"entailment": [0.95, 0.0], "contradiction": [0.0, 0.95], "cosine": 0.9}
    verdict = verdict_of(said, red, blue, backwards=0.95, **shares)
    assert (verdict.verdict, verdict.supporting, verdict.doubted) == (Verdict.SUPPORTED, (0,), (1,))
    unclear = shares | {"entailment": 0.1}
    assert verdict_of(said, red, blue, backwards=0.05, **unclear).verdict is Verdict.CONTRADICTED
    edited = said.replace("5", "7")
    assert verdict_of(edited, red, blue, backwards=0.95, **shares).verdict is Verdict.CONTRADICTED


def test_what_says_it_in_other_words_may_be_disagreed_with_too():
    other = "In the park the red lake has a depth of 7 metres."
    said = other.replace("7", "5")
    verdict = verdict_of(
        said,
        "The red lake in the park is 5 metres in depth.",
        other,
        entailment=[0.95, 0.0],
        contradiction=[0.0, 0.95],
        backwards=0.95,
        cosine=0.9,
    )
    assert (verdict.verdict, verdict.supporting, verdict.contradicting) == (Verdict.DISAGREEING, (0,), (1,))
    assert verdict.reason.endswith("similarity 0.90), but [2] says 7 metres, the answer 5 metres.")


@pytest.mark.parametrize("other", ["A Bank must tell its clients of two funds.", KEEP, "Ducks swim."])
def test_sources_do_not_disagree_on_different_things(other):
    assert verdict_of(KEEP, KEEP, other, cosine=0.95).verdict is Verdict.SUPPORTED


# Languages


def test_another_language_is_supported_word_for_word_and_else_not_judged():
    verdict = verdict_of(SLOVENIAN, SLOVENIAN, contradiction=0.99)
    assert (verdict.verdict, verdict.rule) == (Verdict.SUPPORTED, "quotation")
    other = SLOVENIAN.replace("šest", "pet")
    for entailment, contradiction in ((0.99, 0.0), (0.0, 0.99)):
        verdict = verdict_of(other, SLOVENIAN, entailment=entailment, contradiction=contradiction)
        assert (verdict.verdict, verdict.rule) == (Verdict.NONE, "language")
        assert (verdict.supporting, verdict.contradicting, verdict.doubted) == ((), (), (0,))
        assert "cannot read this language (sl)" in verdict.reason


def test_sources_in_another_language_support_and_contradict_nothing():
    said = "A bank keeps its records for at least six years."
    for kind in ("entailment", "contradiction"):
        alone = verdict_of(said, SLOVENIAN, backwards=0.99, **{kind: 0.99})
        assert (alone.verdict, "(sl)" in alone.reason) == (Verdict.NONE, True)
        beside = verdict_of(said, SLOVENIAN, "Ducks swim.", **{kind: [0.99, 0.0]})
        assert (beside.verdict, beside.doubted) == (Verdict.UNSUPPORTED, (0,))


# While pairs are unknown


def test_so_far_quotations_are_certain_and_the_rest_is_what_the_model_says():
    judge = judge_of(KEEP, SLOVENIAN)
    assert judge.so_far(0, sentence(KEEP), [0.0, 0.0]).rule == "quotation"
    assert judge.so_far(0, sentence(" ".join(SLOVENIAN.split()[:-2])), [0.9, 0.9]).rule == "quotation"
    assert judge.so_far(0, sentence(SLOVENIAN.replace("šest", "pet")), [0.9, 0.9]).verdict is Verdict.NONE
    supported = judge.so_far(3, sentence("Firms keep records."), [0.7, 0.2])
    assert (supported.index, supported.verdict, supported.supporting) == (3, Verdict.SUPPORTED, (0,))
    assert supported.reason == "So far [1] supports this (entailment 0.70)."
    assert judge.so_far(0, sentence("Firms keep records."), [0.4, 0.2]).verdict is Verdict.UNSUPPORTED
    assert judge_of().so_far(0, sentence("Firms keep records."), []).verdict is Verdict.UNSUPPORTED


def test_second_looks_are_the_likely_pairs_both_ways_round():
    judge = judge_of("Ducks swim. Ships sail. Rain falls. Suns rise. Firms keep books.", KEEP)
    said = sentence("Firms keep records.")
    looks = judge.second_looks(said)
    assert len(looks) == 8
    assert looks[:2] == [(KEEP, said.text), (said.text, KEEP)]
    assert all(said.text in pair for pair in looks)
    assert judge.second_looks(sentence(KEEP)) == []  # a quotation
    assert judge.second_looks(sentence(SLOVENIAN)) == []
    assert judge_of(KEEP, cosine=None).second_looks(said) == []  # nothing compares sentences


def test_without_an_encoder_words_in_common_decide():
    said = "A Firm must keep its records for two years."
    assert verdict_of(said, KEEP, cosine=None).verdict is Verdict.CONTRADICTED
    assert verdict_of("Its records for six years a Firm must keep.", KEEP, entailment=0.95, cosine=None).supporting


# Odd inputs


@pytest.mark.parametrize("text", ["", "…", " \n\t", "()", "?!", "\u200e"])
def test_a_sentence_without_words_is_not_judged_by_the_model(text):
    for sources in ((), (KEEP,), ("...",)):
        verdict = verdict_of(text, *sources, entailment=0.99, contradiction=0.99)
        assert (verdict.verdict, verdict.supporting, verdict.contradicting) == (Verdict.UNSUPPORTED, (), ())


def test_without_source_sentences_nothing_is_supported():
    verdict = verdict_of(KEEP)
    assert (verdict.verdict, verdict.rule) == (Verdict.UNSUPPORTED, "nothing")
    assert verdict_of(KEEP, passage("a", "  ")).verdict is Verdict.UNSUPPORTED


SENTENCES = st.lists(
    st.sampled_from(
        "The Firm Bank Commission must may not keep lend records for 5 six days years USD 20 % only if unless in 1897 "
        "January Kranj , ; it all some said".split()
    ),
    max_size=12,
).map(lambda words: " ".join(words) + ".")
SHARES = st.sampled_from([0.0, 0.3, 0.6, 0.95])


@settings(deadline=None)
@given(SENTENCES, st.lists(SENTENCES, max_size=3), SHARES, SHARES, SHARES, SHARES)
def test_spans_are_slices_and_positions_are_of_premises(said, sources, entailment, contradiction, backwards, cosine):
    verdict = verdict_of(
        said, *sources, entailment=entailment, contradiction=contradiction, backwards=backwards, cosine=cosine
    )
    premises = judge_of(*sources).premises
    assert all(said[span.start : span.end] == span.text != "" for span in verdict.said)
    if verdict.found:
        text = premises[verdict.contradicting[0]].text
        assert all(text[span.start : span.end] == span.text != "" for span in verdict.found)
    assert bool(verdict.said) == bool(verdict.found)
    assert not set(verdict.supporting) & set(verdict.contradicting)
    assert {*verdict.supporting, *verdict.contradicting, *verdict.doubted} <= set(range(len(premises)))
    assert (verdict.verdict in {Verdict.SUPPORTED, Verdict.DISAGREEING}) == bool(verdict.supporting)
    assert (verdict.verdict in {Verdict.CONTRADICTED, Verdict.DISAGREEING}) == bool(verdict.contradicting)
    assert verdict.reason.endswith(".")


HOSTILE = {
    "letters": "a" * 8,
    "words": "only if ",
    "conditions": "unless the firm lends, ",
    "numbers": "12 ",
    "years": "in 1999, ",
    "months": "January, ",
    "names": "Ana, Berta ",
    "capitals": "Ana ",
    "denials": "and not the Ana ",
    "quotes": "''\"\"(((",
    "apostrophes": "a'a’",
    "spaces": " \n\t",
    "marks": "(1) ",
    "periods": "every 6 months, ",
    "times": "twice a year once in 5 years ",
    "bans": "no firm may must not cannot ",
    "scales": "million hundred and ",
    "shares": "a third of ",
    "deadlines": "by the end of by no later than before the ",
    "dots": "1.1.",
    "parts": "Firm Bank ",
}


@pytest.mark.long
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_takes_no_more_than_its_length(text):
    turn = iter(range(1_000_000))

    def work(size: int) -> None:
        long = f"{text * size}{next(turn)}"  # never read before
        said, half = f"{long[: len(long) // 2]} end", f"x {long} y"
        judge = judge_of(long, half)
        judge.sentence(0, AnswerSentence(said, 0, len(said)), [0.6] * len(judge.premises), [0.6] * len(judge.premises))

    assert grows_no_faster(work, 200)


@pytest.mark.long
def test_a_passage_of_20_000_words_is_read_once_and_no_pair_of_its_sentences_is_compared():
    asked = []

    def similarity(text, others):
        asked.append(len(others))
        return [CLOSE] * len(others)

    judge = judge_of(" ".join(f"Firm {n} must keep {n} records for {n % 9} years." for n in range(2_000)))
    judge._similarity = similarity
    said = sentence("Firm 7 must keep 7 records for 3 years.")
    zeros = [0.0] * len(judge.premises)
    assert judge.sentence(0, said, zeros, zeros).verdict is Verdict.CONTRADICTED
    assert len(judge.second_looks(said)) == 8
    assert asked == [24]
