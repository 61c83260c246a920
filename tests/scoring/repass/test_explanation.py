"""Why a breakdown says what it says: arithmetic, copying, growth, citations, modes, provenance."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.scoring.repass.attribution import MIN_RUN, copied_share
from ragqa.scoring.repass.explanation import (
    counted,
    doubt_words,
    doubted_contradiction,
    explain,
    mode_differences,
    model_line,
    number,
    provenance,
    verdict_by_index,
    written_out,
)
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.types import ModelInfo
from ragqa.types.scores import NliProbabilities, ScoringMode, Verdict
from ragqa.types.streams import returned
from tests.support.fakes import FakeNli, FakeObligations, answer, passage
from tests.support.helpers import ANSWER, PASSAGES
from tests.support.verdict_cases import SOURCES, before_rules, scored_by_hand

EIGHT = "one two three four five six seven eight"


def scored(given_answer=ANSWER, passages=PASSAGES, table=None, config=None):
    nli = FakeNli(table)
    scorer = RepassScorer(nli, nli, FakeObligations(), config or ScoringConfig())
    return returned(scorer.stream(given_answer, passages))


def explained(given_answer=ANSWER, passages=PASSAGES, mode=ScoringMode.PAPER, **changes):
    evaluation = before_rules(scored(given_answer, passages, **changes).of(mode))
    return evaluation, explain(evaluation, passages)


# Arithmetic ---------------------------------------------------------------------------------------------------------


def test_the_formula_carries_the_numbers_of_the_breakdown():
    evaluation, explanation = explained()
    composite = ((0.9 + 0.1) / 2 - (0.1 + 0.1) / 2 + 1 / 2 + 1) / 3
    assert evaluation.repass.composite == pytest.approx(composite)
    assert explanation.arithmetic.formula == f"(E 0.500 - C 0.100 + OC 0.500 + 1) / 3 = {composite:.3f}"


def test_each_part_says_how_it_came_about():
    e, c, coverage = explained()[1].arithmetic.parts
    assert e == (
        "E = mean of 2 maxima, one per answer sentence, each over 5 source sentences: "
        "(0.900 + 0.100) / 2 = 1.000 / 2 = 0.500"
    )
    assert c.startswith("C = mean of 2 maxima")
    assert coverage == "OC = 1 of 2 obligations covered = 1 / 2 = 0.500"


def test_in_script_mode_five_decimals_are_written_and_said():
    _, explanation = explained(mode=ScoringMode.SCRIPT)
    assert explanation.arithmetic.formula.startswith("(E 0.50000 - C 0.10000 + OC 0.50000 + 1) / 3 = 0.63333")
    assert all(part.endswith("rounded to 5 decimals") for part in explanation.arithmetic.parts)


def test_a_long_sum_is_cut_in_the_middle_and_one_maximum_is_no_sum():
    many = answer("\n".join(f"Sentence {n}." for n in range(40)))
    entailment = explained(many)[1].arithmetic.parts[0]
    assert "0.100 + 0.100 + 0.100 + … + 0.100 + 0.100 + 0.100) / 40 = 4.000 / 40 = 0.100" in entailment
    one = explained(answer("Only this."))[1].arithmetic.parts[0]
    assert one == "E = maximum of the one answer sentence over 5 source sentences = 0.100"


def test_what_is_not_there_is_0_by_definition():
    no_sentence = explained(answer(""))[1].arithmetic.parts
    assert no_sentence[0] == "E = 0 by definition: the answer has no sentence"
    no_passage = explained(ANSWER, ())[1].arithmetic.parts
    assert no_passage[1] == "C = 0 by definition: the passages have no sentence"
    assert no_passage[2] == "OC = 0 by definition: the passages hold no obligation"


def test_numbers_have_the_decimals_of_their_mode():
    assert (number(2 / 3, ScoringMode.PAPER), number(2 / 3, ScoringMode.SCRIPT)) == ("0.667", "0.66667")


# Copying ------------------------------------------------------------------------------------------------------------


def test_a_run_of_eight_words_is_copied_and_one_of_seven_is_not():
    assert MIN_RUN == 8
    copied = copied_share([f"He wrote {EIGHT} yesterday."], [f"Before. {EIGHT} after."])
    assert (copied.n_copied, copied.n_words) == (8, 11)
    assert copied.share == 8 / 11
    seven = EIGHT.removesuffix(" eight")
    assert copied_share([f"He wrote {seven} yesterday."], [f"Before. {seven} after."]).share == 0.0


def test_a_longer_run_counts_each_word_once():
    long = f"{EIGHT} nine ten eleven"
    assert copied_share([f"{long} zero"], [f"zero {long}"]).n_copied == 11


def test_two_runs_in_one_sentence_add_up():
    other = EIGHT.upper()[::-1]
    assert copied_share([f"{EIGHT} and {other}"], [EIGHT, other]).share == 16 / 17


def test_case_white_space_and_punctuation_hide_no_copy():
    assert copied_share(["One two,\n three FOUR (five) six seven eight."], [f"{EIGHT}; nine"]).share == 1.0


def test_a_run_across_two_passages_is_not_copied_from_one():
    assert copied_share([EIGHT], ["one two three four", "five six seven eight"]).share == 0.0


def test_a_short_sentence_is_copied_whole_or_not_at_all():
    copied = copied_share(["It must act.", "It must sleep."], ["Then it must act."])
    assert copied.per_sentence == (1.0, 0.0)
    assert copied.share == 3 / 6


def test_no_words_no_share():
    assert copied_share([], ["text"]).share == 0.0
    assert copied_share(["…", "!"], ["text"]).per_sentence == (0.0, 0.0)
    assert copied_share([EIGHT], []).share == 0.0


@settings(max_examples=100)
@given(st.lists(st.sampled_from("abc"), max_size=24), st.lists(st.sampled_from("abc"), max_size=24))
def test_the_copied_words_are_those_a_slow_search_finds(sentence, source):
    least = min(MIN_RUN, len(sentence))
    text = f" {' '.join(source)} "
    marked = set()
    for start in range(len(sentence)):
        for end in range(start + least, len(sentence) + 1):
            if end > start and f" {' '.join(sentence[start:end])} " in text:
                marked |= set(range(start, end))
    assert copied_share([" ".join(sentence)], [" ".join(source)]).n_copied == len(marked)


# Verdicts -----------------------------------------------------------------------------------------------------------


def test_c_of_sentences_decided_by_what_is_not_believed_is_added_up():
    evaluation = scored_by_hand().paper  # C: .9 doubted, .8 and .85 believed, twice .1 of neither
    assert doubted_contradiction(evaluation) == pytest.approx(0.9 / 5)
    assert evaluation.repass.contradiction == pytest.approx((0.9 + 0.8 + 0.85 + 0.1 + 0.1) / 5)
    words = "C 0.550, 0.180 from source sentences that the verdicts reject."
    assert doubt_words(evaluation) == explain(evaluation, SOURCES).doubt == words
    assert doubt_words(scored_by_hand().script).startswith("C 0.55000, 0.18000 from")


def test_a_doubted_premise_that_did_not_decide_c_takes_nothing_from_it():
    evaluation = scored_by_hand().paper
    elsewhere = replace(evaluation.verdicts[0], doubted=(evaluation.verdicts[0].deciding,))
    evaluation = replace(evaluation, verdicts=(elsewhere, *evaluation.verdicts[1:]))
    assert doubted_contradiction(evaluation) == 0.0
    assert "none of it from" in doubt_words(evaluation)


def test_without_verdicts_nothing_is_doubted_and_nothing_said():
    evaluation = before_rules(scored_by_hand().paper)
    assert (doubt_words(evaluation), explain(evaluation, SOURCES).doubt) == ("", "")
    assert ("verdicts by", "none: raw verdicts, from a record without rules") in provenance(evaluation)
    by_hand = scored_by_hand().paper
    assert ("verdicts by", "rules by hand") in provenance(by_hand)
    read_by = replace(by_hand, verdict_model=ModelInfo("reader", "0" * 64, "fp32"))
    assert dict(provenance(read_by))["verdicts by"].startswith("rules by hand and reader")


def test_verdicts_are_counted_in_words_and_stand_for_the_raw_ones():
    evaluation = scored_by_hand().paper
    found = verdict_by_index(evaluation.sentences, evaluation.verdicts[1:])
    assert found[0] is evaluation.sentences[0].verdict is Verdict.DISPUTED  # no verdict on it: the raw one
    assert found[1] is Verdict.DISAGREEING
    both = [Verdict.UNSUPPORTED, Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    assert counted(both) == ((Verdict.SUPPORTED, "1 supported"), (Verdict.UNSUPPORTED, "2 unsupported"))
    assert {verdict for verdict, _ in counted(Verdict)} == set(Verdict)


# Growth -------------------------------------------------------------------------------------------------------------


def test_e_and_c_grow_with_the_passages_and_end_at_the_breakdown():
    clash = ("It must not sleep.", "A firm must act at once.")
    evaluation, explanation = explained(table={clash: NliProbabilities(0.8, 0.1, 0.1)})
    first, second, third = explanation.growth
    assert [step.n_premises for step in explanation.growth] == [2, 4, 5]
    assert first.contradiction == pytest.approx((0.05 + 0.1) / 2, abs=0.03)
    assert second.contradiction == pytest.approx((0.8 + 0.1) / 2)
    assert (first.n_obligations, second.n_obligations) == (1, 2)
    assert (first.obligation_coverage, second.obligation_coverage) == (1.0, 0.5)
    repass = evaluation.repass
    assert (third.entailment, third.contradiction) == (repass.entailment, repass.contradiction)
    assert (third.obligation_coverage, third.composite) == (repass.obligation_coverage, repass.composite)


@pytest.mark.parametrize("mode", ScoringMode)
def test_more_passages_never_lower_a_maximum(mode):
    evaluation, explanation = explained(mode=mode)
    for before, after in zip(explanation.growth, explanation.growth[1:], strict=False):
        assert after.entailment >= before.entailment
        assert after.contradiction >= before.contradiction
    assert explanation.growth[-1].composite == evaluation.repass.composite


def test_without_passages_or_sentences_nothing_grows():
    assert explained(ANSWER, ())[1].growth == ()
    assert {step.entailment for step in explained(answer(""))[1].growth} == {0.0}


# Obligations --------------------------------------------------------------------------------------------------------


def test_the_next_best_answer_sentence_of_each_obligation_is_named():
    table = {("The moon is green.", "A firm must act at once."): NliProbabilities(0.3, 0.4, 0.3)}
    explanation = explained(table=table)[1]
    assert (explanation.runners_up[0].answer_index, explanation.runners_up[0].probability) == (1, 0.4)
    assert explained(answer("Only this."))[1].runners_up == (None, None)


def test_a_record_of_version_1_has_no_next_best():
    evaluation = replace(scored().paper, looked_at=(), coverage_matrix=())
    assert explain(evaluation, PASSAGES).runners_up == (None, None)


# Modes --------------------------------------------------------------------------------------------------------------


def differences(*arguments, **changes):
    both = scored(*arguments, **changes)
    return " ".join(mode_differences(both.paper, both.script))


def test_who_may_cover_is_counted_and_what_it_costs_is_named():
    lines = answer("We act now.\nA firm must act at once.")
    table = {("We act now.", "It must not sleep."): NliProbabilities(0.1, 0.8, 0.1)}
    text = differences(lines, table=table)
    assert "script lets 1 of 2 answer sentences cover an obligation" in text
    assert "obligations that lose their cover by it: number 2." in text
    assert "no obligation loses its cover" in differences(lines)
    assert "changes nothing here: all answer sentences are" in differences(answer("A firm must act at once."))


def test_joined_passages_are_counted_and_the_sentences_they_move_are_named():
    heads = (passage("a", "Duties of firms"), passage("b", "must be met. The end."))
    joined = "Duties of firms must be met."
    table = {(joined, "Firms have duties."): NliProbabilities(0.05, 0.9, 0.05)}
    text = differences(answer("Nothing.\nFirms have duties."), heads, table=table)
    assert "source sentences 2 instead of 3, of which 1 cut otherwise" in text
    assert "moves E or C of 1 of 2 answer sentences (number 2)" in text
    assert "no answer sentence's E or C moves" in differences(answer("Nothing."), heads)


def test_equal_modes_are_explained_too():
    text = differences()
    assert "changes nothing here: source sentences 5 in both modes, the same" in text


def test_obligations_that_run_together_by_joining_are_counted():
    same = (passage("a", "Firms"), passage("b", "must pay. They must run."))
    assert "obligations found" not in differences(answer("They must run."), same)  # two in both modes
    together = (passage("a", "They must sign"), passage("b", "and must pay."))
    assert "obligations found among these source sentences: script 1, paper 2." in differences(ANSWER, together)


def test_a_low_threshold_shows_the_rule_of_the_likeliest_label():
    table = {("A firm must act at once.", "It must not sleep."): NliProbabilities(0.1, 0.4, 0.5)}
    text = differences(table=table, config=ScoringConfig(coverage_threshold=0.3))
    assert "likeliest label too; obligations that lose their cover by it: 1." in text
    assert "(those that are obligations); no obligation loses its cover by it." in text  # each loss has one cause
    assert "likeliest label" not in differences(table=table)


def test_rounding_is_said_with_how_far_it_moves_the_composite():
    table = {(text, "The moon is green."): NliProbabilities(0.1, 1 / 7, 0.7) for text in ("The sky is blue.",)}
    exact = (0.9 + 1 / 7) / 2
    moved = (round(exact, 5) - exact) / 3
    assert f"that moves RePASs by {moved:+.7f}" in differences(table=table)
    assert "decimals: that moves nothing here" in differences()


def test_an_empty_answer_has_no_word_on_who_may_cover():
    assert "answer sentences cover" not in differences(answer(""))


# Provenance ---------------------------------------------------------------------------------------------------------


def test_every_number_carries_its_models_mode_splitter_and_pairs():
    evaluation = replace(
        scored().paper, coverage_model=ModelInfo("other-nli", "abcdef0123456789", "int8"), sentence_splitter="nupunkt 9"
    )
    facts = dict(provenance(evaluation))
    assert facts["E and C by"] == "fake-nli (fp32, weights 111111111111)"
    assert facts["coverage by"] == "other-nli (int8, weights abcdef012345)"
    assert facts["definition"] == "paper mode"
    assert facts["sentences split by"] == "nupunkt 9"
    assert facts["thresholds"] == "verdict at 0.50 or more, covered above 0.70"
    assert facts["compared"].endswith("2 answer sentences, 5 source sentences, 2 obligations")
    assert dict(provenance(scored().paper))["coverage by"] == "the same model"
    assert model_line(evaluation.obligation_model) == facts["obligations found by"]


def test_explaining_changes_nothing_and_gives_no_number_outside_its_range():
    evaluation = scored().paper
    before = repr(evaluation)
    explanation = explain(evaluation, PASSAGES)
    assert repr(evaluation) == before
    assert written_out(evaluation) == explanation.arithmetic
    for step in explanation.growth:
        values = (step.entailment, step.contradiction, step.obligation_coverage, step.composite)
        assert all(math.isfinite(value) and 0 <= value <= 1 for value in values)
