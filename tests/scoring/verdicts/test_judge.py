"""Verdicts on sentences: quoted, edited, what the verifier reads; disagreement, language, odd inputs."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.loading import load_nli
from ragqa.types import AnswerSentence
from ragqa.types.scores import NliProbabilities, Verdict
from tests.support.effort import grows_no_faster
from tests.support.fakes import passage
from tests.support.judging import CLOSE, NO, NOTHING, YES, judge_of, saying, sentence, verdict_of

CLAUSES = Path(__file__).parents[2] / "fixtures" / "checked" / "clauses.jsonl"
KEEP = "A Firm must keep its records for six years."
SLOVENIAN = "Banka mora hraniti evidenco o vseh poslih najmanj šest let po koncu poslovnega leta."


# What the verifier says


def test_what_the_verifier_reads_decides_and_is_shown_with_its_probability():
    verdict = verdict_of("Records stay with a Firm for six years.", "Ducks swim.", KEEP, said=saying("Firm", YES))
    assert (verdict.verdict, verdict.rule, verdict.supporting) == (Verdict.SUPPORTED, "entailment", (1,))
    assert (verdict.quoted, verdict.unsure, verdict.evidence) == (False, False, KEEP)
    assert verdict.reason == f"[2] says the same in other words (probability {verdict.probability:.2f})."
    against = verdict_of("Firms throw records away.", KEEP, said=NO)
    assert (against.verdict, against.rule, against.contradicting) == (Verdict.CONTRADICTED, "contradiction", (0,))
    assert (against.supporting, against.said, against.found) == ((), (), ())
    neither = verdict_of("Ducks swim.", KEEP, "Ships sail.")
    assert (neither.verdict, neither.rule) == (Verdict.UNSUPPORTED, "nothing")
    chance = f"(probability {neither.probability:.2f})"
    assert neither.reason == f"No source sentence says this {chance}. The nearest: [1]."


def test_a_contradiction_by_the_verifier_names_the_numbers_that_differ():
    for said, source, words in (
        (
            "We destroy the logs after 96 hours.",
            "Logs must be kept for 72 hours.",
            "says 72 hours, this sentence 96 hours",
        ),
        ("We destroy the logs at once.", "Logs must be kept.", "is on the same matter and says otherwise"),
    ):
        verdict = verdict_of(said, source, said=NO)
        assert verdict.reason == f"[1] {words} (probability {verdict.probability:.2f})."


def test_a_verdict_near_the_line_is_not_sure():
    shares = [verdict_of("Firms keep.", KEEP, said=NliProbabilities(0.02, n / 50, 0.98 - n / 50)) for n in range(50)]
    assert [one.unsure for one in shares if one.verdict is Verdict.SUPPORTED][-1] is False
    assert any(one.unsure for one in shares)
    assert all("not sure" in one.reason for one in shares if one.unsure)
    supported = [one.verdict is Verdict.SUPPORTED for one in shares]
    assert supported == sorted(supported)  # the more is entailed, the sooner it is supported


def test_raw_probabilities_decide_nothing_and_are_named_where_they_are_not_believed():
    verdict = verdict_of("Ducks swim.", KEEP, raw=(0.9, 0.0))
    assert (verdict.verdict, verdict.doubted) == (Verdict.UNSUPPORTED, (0,))
    assert verdict_of(KEEP, KEEP, raw=(0.9, 0.0)).doubted == ()


def test_a_distant_window_contradicts_nothing():
    said = "A Firm keeps its records for six whole years."
    verdict = verdict_of(said, KEEP, "Ducks swim in ponds.", said=saying("Ducks", NO))
    assert verdict.verdict is not Verdict.CONTRADICTED


# An edited copy


def test_another_number_in_a_copy_contradicts_whatever_the_verifier_says():
    verdict = verdict_of("A Firm must keep its records for two years.", "Nothing here.", KEEP, said=YES)
    assert (verdict.verdict, verdict.rule) == (Verdict.CONTRADICTED, "number")
    assert (verdict.contradicting, verdict.supporting) == ((1,), ())
    assert verdict.reason == "[2] says six years, this sentence two years."
    assert [span.text for span in (*verdict.said, *verdict.found)] == ["two years", "six years"]


def test_another_number_in_free_words_is_the_verifiers_to_judge():
    said = "No record of a Firm may be destroyed before its fifth year is over, or later in two cases."
    assert verdict_of(said, KEEP, said=YES).verdict is Verdict.SUPPORTED


# Sources that disagree


def test_a_source_that_says_otherwise_beside_a_quotation_is_a_finding():
    other = "A Firm must keep its records for two years."
    verdict = verdict_of(KEEP, KEEP, other)
    assert (verdict.verdict, verdict.rule, verdict.quoted) == (Verdict.DISAGREEING, "number", True)
    assert (verdict.supporting, verdict.contradicting) == ((0,), (1,))
    assert verdict.reason == "Quoted word for word from [1], but [2] says two years, this sentence six years."
    assert [span.text for span in (*verdict.said, *verdict.found)] == ["six years", "two years"]


@pytest.mark.parametrize("other", ["A Bank must tell its clients of two funds.", KEEP, "Ducks swim."])
def test_sources_do_not_disagree_on_different_things(other):
    assert verdict_of(KEEP, KEEP, other).verdict is Verdict.SUPPORTED


# Languages


def test_another_language_is_supported_word_for_word_and_else_not_judged():
    verdict = verdict_of(SLOVENIAN, SLOVENIAN, raw=(0.0, 0.99))
    assert (verdict.verdict, verdict.rule, verdict.quoted) == (Verdict.SUPPORTED, "quotation", True)
    other = verdict_of(SLOVENIAN.replace("šest", "pet"), SLOVENIAN, raw=(0.99, 0.0))
    assert (other.verdict, other.rule) == (Verdict.NONE, "language")
    assert (other.supporting, other.contradicting, other.doubted) == ((), (), (0,))
    assert "cannot read this language (sl)" in other.reason


def test_sources_in_another_language_support_and_contradict_nothing():
    said = "A bank keeps its records for at least six years."
    alone = verdict_of(said, SLOVENIAN, said=YES)
    assert (alone.verdict, "(sl)" in alone.reason) == (Verdict.NONE, True)
    beside = verdict_of(said, SLOVENIAN, "Ducks swim.", said=saying("Banka", YES), raw=(0.99, 0.0))
    assert (beside.verdict, beside.doubted) == (Verdict.UNSUPPORTED, (0, 1))


# While pairs are unknown


def test_so_far_quotations_are_certain_and_the_rest_is_what_the_model_says():
    judge = judge_of(KEEP, SLOVENIAN)
    assert judge.so_far(0, sentence(KEEP), [0.0, 0.0]).rule == "quotation"
    assert judge.so_far(0, sentence(SLOVENIAN.replace("šest", "pet")), [0.9, 0.9]).verdict is Verdict.NONE
    supported = judge.so_far(3, sentence("Firms keep records."), [0.7, 0.2])
    assert (supported.index, supported.verdict, supported.supporting) == (3, Verdict.SUPPORTED, (0,))
    assert supported.reason == "So far [1] supports this (entailment 0.70)."
    assert judge.so_far(0, sentence("Firms keep records."), [0.4, 0.2]).verdict is Verdict.UNSUPPORTED
    assert judge_of().so_far(0, sentence("Firms keep records."), []).verdict is Verdict.UNSUPPORTED


def test_second_looks_are_the_windows_of_what_needs_them():
    judge = judge_of("Ducks swim. Ships sail. Rain falls. Suns rise. Firms keep books.", KEEP)
    said = sentence("Firms keep records.")
    looks = judge.second_looks(said)
    assert looks[0] == (KEEP, said.text)
    forth = [pair for pair in looks if pair[1] == said.text]
    assert len(forth) == len(set(forth)) <= 5
    assert [pair for pair in looks if pair not in forth] == [(said.text, text) for text, _ in forth]  # and back
    assert judge.second_looks(sentence(KEEP)) == []  # a quotation
    assert judge.second_looks(sentence(SLOVENIAN)) == []
    assert judge_of(KEEP, cosine=None).second_looks(said) == [(KEEP, said.text), (said.text, KEEP)]


# Odd inputs


@pytest.mark.parametrize("text", ["", "…", " \n\t", "()", "?!", "\u200e"])
def test_a_sentence_without_words_is_not_judged_by_the_model(text):
    for sources in ((), (KEEP,), ("...",)):
        verdict = verdict_of(text, *sources, said=YES, raw=(0.99, 0.99))
        assert (verdict.verdict, verdict.supporting, verdict.contradicting) == (Verdict.UNSUPPORTED, (), ())


def test_without_source_sentences_nothing_is_supported():
    verdict = verdict_of(KEEP)
    assert (verdict.verdict, verdict.rule) == (Verdict.UNSUPPORTED, "nothing")
    assert verdict_of(KEEP, passage("a", "  ")).verdict is Verdict.UNSUPPORTED


SENTENCES = st.lists(
    st.sampled_from(
        "The Firm Bank Commission must may not keep lend records for 5 six days years USD 20 % only if unless in 1897 "
        "January Kranj , ; it all some said (a) (b)".split()
    ),
    max_size=12,
).map(lambda words: " ".join(words) + ".")
SHARES = st.sampled_from([0.0, 0.3, 0.6, 0.95])


@settings(deadline=None)
@given(SENTENCES, st.lists(SENTENCES, max_size=3), SHARES, SHARES, SHARES)
def test_spans_are_slices_and_positions_are_of_premises(said, sources, entailment, contradiction, cosine):
    share = NliProbabilities(contradiction * 0.5, entailment * 0.5, 1 - contradiction * 0.5 - entailment * 0.5)
    verdict = verdict_of(said, *sources, said=share, raw=(entailment, contradiction), cosine=cosine)
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
    "numbers": "12 ",
    "years": "in 1999, ",
    "months": "January, ",
    "names": "Ana, Berta ",
    "capitals": "Ana ",
    "quotes": "''\"\"(((",
    "apostrophes": "a'a’",
    "spaces": " \n\t",
    "marks": "(1) ",
    "items": "(a) (b) ; (i) ",
    "periods": "every 6 months, ",
    "times": "twice a year once in 5 years ",
    "scales": "million hundred and ",
    "shares": "a third of ",
    "dots": "1.1.",
}


@pytest.mark.long
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_takes_no_more_than_its_length(text):
    turn = iter(range(1_000_000))

    def work(size: int) -> None:
        long = f"{text * size}{next(turn)}"  # never read before
        said, half = f"{long[: len(long) // 2]} end", f"x {long} y"
        judge, one = judge_of(long, half), AnswerSentence(said, 0, len(said))
        table = dict.fromkeys(judge.second_looks(one), NOTHING)
        judge.sentence(0, one, [0.6] * len(judge.premises), [0.6] * len(judge.premises), table)

    assert grows_no_faster(work, 200)


@pytest.mark.long
def test_a_passage_of_20_000_words_is_read_once_and_few_of_its_sentences_are_compared():
    asked = []

    def similarity(text, others):
        asked.append(len(others))
        return [CLOSE] * len(others)

    judge = judge_of(" ".join(f"Firm {n} must keep {n} records for {n % 9} years." for n in range(2_000)))
    judge._windows._similarity = similarity
    said = sentence("Firm 7 must keep 7 records for 3 years.")
    zeros = [0.0] * len(judge.premises)
    table = dict.fromkeys(judge.second_looks(said), NOTHING)
    assert judge.sentence(0, said, zeros, zeros, table).verdict is Verdict.CONTRADICTED
    assert 1 <= len(table) <= 10
    assert asked == [24]


# Clauses


def test_the_one_clause_that_no_source_says_or_that_one_denies_is_named():
    source = "A Firm must keep a log and review it each year."
    said = "A Firm must keep a log and sell it to ducks."

    def reads(pairs, of_clause):
        table = dict.fromkeys(pairs, NOTHING)
        return table | {
            pair: of_clause if "sell" in pair[1] else YES for pair in pairs if pair[1] not in (said, source)
        }

    judge = judge_of(source)
    pairs = judge.second_looks(sentence(said))
    assert (source, "A Firm must sell it to ducks") in pairs
    verdict = judge.sentence(0, sentence(said), [0.1], [0.1], reads(pairs, NOTHING))
    assert verdict.verdict is Verdict.UNSUPPORTED
    assert [span.text for span in verdict.said] == ["sell it to ducks"]
    assert "No source sentence says “sell it to ducks” (probability" in verdict.reason
    judge = judge_of(source)
    neither = judge.sentence(0, sentence(said), [0.1], [0.1], dict.fromkeys(pairs, NOTHING))
    assert neither.said == ()  # both clauses fail: the sentence as a whole does
    whole = {pair: NO for pair in pairs if said in pair}
    denied = judge_of(source).sentence(0, sentence(said), [0.1], [0.1], reads(pairs, NO) | whole)
    assert (denied.verdict, [span.text for span in denied.said]) == (Verdict.CONTRADICTED, ["sell it to ducks"])
    assert denied.reason.startswith("[1] says otherwise than “sell it to ducks”")


@pytest.mark.model
def test_failing_clauses_are_named_by_the_shipped_verifier():
    """Sixteen invented sentences; the half "held" was read once, after the code was written: eight of eight."""
    rows = [json.loads(row) for row in CLAUSES.read_text(encoding="utf-8").splitlines()]
    verifier, named = load_nli("verifier-minilm-l6"), []
    for row in rows:
        judge, said = judge_of(row["source"]), sentence(row["said"])
        pairs = judge.second_looks(said)
        nothing = [0.1] * len(judge.premises)
        verdict = judge.sentence(0, said, nothing, nothing, dict(zip(pairs, verifier.predict(pairs), strict=True)))
        assert verdict.verdict is not Verdict.SUPPORTED
        named.append([span.text for span in verdict.said] == [row["fails"]])
    assert sum(named) >= 15
