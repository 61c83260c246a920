"""The terminal's words about a breakdown: what decided, what is copied, what is cited wrongly, why the modes differ."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from ragqa.cli.benchmarks import comparison_table
from ragqa.cli.tables import answer_panel, passage_name, passage_table, scores_group
from ragqa.evaluation.report import Comparison, Line
from ragqa.filtering import select
from ragqa.fusion import fuse
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import FilteringConfig, FusionConfig, ScoringConfig
from ragqa.types import Answer, Ranking, ScoredPassage
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import NliProbabilities, ScoringMode, Verdict
from ragqa.types.streams import returned
from tests.support.fakes import FakeNli, FakeObligations, answer, passage
from tests.support.helpers import PASSAGES
from tests.support.verdict_cases import SOURCES, before_rules, scored_by_hand

LINES = "A firm must act at once.\nA firm may wait.\nThe moon is green."


def printed(renderable, width=200):
    console = Console(width=width, file=io.StringIO(), markup=False, highlight=False, emoji=False)
    console.print(renderable)
    return console.file.getvalue()


def both_modes(given_answer=None, passages=PASSAGES, table=None):
    nli = FakeNli(table)
    given_answer = given_answer or answer(LINES, [(1,), (1,)])
    scorer = RepassScorer(nli, nli, FakeObligations(), ScoringConfig())
    both = returned(scorer.stream(given_answer, passages))
    return Scored(before_rules(both.paper), before_rules(both.script))


def test_the_arithmetic_is_written_out_with_how_each_part_came_about():
    text = printed(scores_group(both_modes().paper))
    composite = ((0.9 + 0.9 + 0.1) / 3 - 0.1 + 1 / 2 + 1) / 3
    assert f"RePASs (paper mode) = (E 0.633 - C 0.100 + OC 0.500 + 1) / 3 = {composite:.3f}" in text
    assert "E = mean of 3 maxima" in text
    assert "OC = 1 of 2 obligations covered" in text


def test_without_passages_nothing_is_said_of_them():
    text = printed(scores_group(both_modes().paper))
    for part in ("Copied:", "Citations checked", "From the best passage"):
        assert part not in text


def test_with_passages_copying_growth_and_citations_that_do_not_hold_are_named():
    text = printed(scores_group(both_modes().paper, PASSAGES))
    assert f"Copied: {10 / 14:.0%} of the answer's words (10 of 14)" in text
    assert ".947 to .973" in " ".join(text.split())
    assert f"From the best passage alone to all 3: E {(0.9 + 0.1 + 0.1) / 3:.3f} to {(0.9 + 0.9 + 0.1) / 3:.3f}" in text
    words = " ".join(text.split())
    assert "Citations checked: 1 of 3 sentences cite what supports them" in words
    assert "sentence 2 corrected: [1] → [2]" in words
    assert "sentence 3 missing: nothing → nothing" in words


def test_one_passage_cannot_grow():
    assert "From the best passage" not in printed(scores_group(both_modes(passages=PASSAGES[:1]).paper, PASSAGES[:1]))


@pytest.mark.parametrize("mode", ScoringMode)
def test_both_modes_are_shown_with_why_they_differ(mode):
    both = both_modes()
    other = both.script if mode is ScoringMode.PAPER else both.paper
    text = printed(scores_group(both.of(mode), PASSAGES, other))
    assert "RePASs (paper mode) = " in text
    assert "RePASs (script mode) = " in text
    assert "script lets 1 of 3 answer sentences cover an obligation" in text
    assert text.index(f"RePASs ({mode} mode)") < text.index(f"RePASs ({other.mode} mode)")


def test_each_obligation_names_its_sentence_its_margin_and_the_next_best():
    table = {("A firm may wait.", "It must not sleep."): NliProbabilities(0.1, 0.65, 0.25)}
    text = printed(scores_group(both_modes(table=table).paper, PASSAGES))
    assert "Obligations: 1 of 2 covered (P(entailment) > 0.70)" in text
    assert f"{0.65 - 0.7:+.3f}" in text
    assert f"{0.9 - 0.7:+.3f}" in text
    assert "2 (0.100)" in text  # next best for the first, after answer sentence 1
    silent = both_modes(answer("The moon is green.")).script
    assert "none" in printed(scores_group(silent, PASSAGES))


def test_a_contradicted_sentence_shows_the_premise_that_contradicts_it():
    clash = {("It must not sleep.", "The moon is green."): NliProbabilities(0.8, 0.1, 0.1)}
    evaluation = both_modes(table=clash).paper
    assert evaluation.sentences[2].verdict is Verdict.CONTRADICTED
    assert "[2] 17–35: It must not sleep." in printed(scores_group(evaluation, PASSAGES))


def test_verdicts_stand_in_the_table_with_their_reasons_and_the_premise_that_decided():
    text = printed(scores_group(scored_by_hand().paper, SOURCES), 220)
    assert "RePASs raw" in text
    for words in (
        "sources disagree",
        "[2] says six years, [3] two years.",
        "[3] 0–64: Records of spills are kept for two years",  # what contradicts decides
        "Quoted word for word from [1].",
        "no verdict",
        "Obligations: 1 of 3 covered, 1 in part",
        "Missing: “the estimated volume”.",
        "Verdicts: 1 supported, 1 contradicted, 1 where sources disagree, 1 unsupported, 1 without verdict.",
        "C 0.550, 0.180 from source sentences that the verdicts reject.",
        "verdicts by: rules by hand",
    ):
        assert words in text, words
    assert "contradicted and supported" not in text


def test_a_breakdown_from_before_the_rules_says_that_its_verdicts_are_raw():
    text = printed(scores_group(before_rules(scored_by_hand().paper), SOURCES), 220)
    assert "Raw verdicts, from a record without rules: 1 supported, 1 contradicted, 2 contradicted and" in text
    assert "reject" not in text


def test_every_number_carries_model_weights_mode_and_splitter():
    text = printed(scores_group(both_modes().paper))
    assert "E and C by: fake-nli (fp32, weights 111111111111)" in text
    assert "obligations found by: fake-obligations" in text
    assert "sentences split by: nupunkt" in text
    assert "distinct pairs" in text


def test_an_empty_answer_and_passages_without_obligations_have_their_words():
    empty = both_modes(Answer("", (), "fake", "")).paper
    assert "E = 0 by definition: the answer has no sentence" in printed(scores_group(empty, PASSAGES))
    plain = (passage("a", "Nothing here obliges."),)
    text = printed(scores_group(both_modes(passages=plain).paper, plain))
    assert "OC = 0 by definition" in text
    assert "Obligations:" not in text


def test_control_characters_of_a_passage_never_reach_the_terminal():
    bad = (passage("a", "A firm \x1b[31mmust act."),)
    text = printed(scores_group(both_modes(passages=bad).paper, bad))
    assert "\x1b" not in text


PAGE = passage("8:3.3.3", "A firm that outsources a function remains responsible for it.", document_id="8")
PAGE = replace(PAGE, title="Outsourcing and Operational Resilience Rules", number="3.3.3")


@pytest.mark.parametrize("width", [60, 72, 80, 100])
@pytest.mark.parametrize("n_retrievers", [1, 2, 5])
def test_a_narrow_terminal_leaves_columns_out_instead_of_breaking_words(width, n_retrievers):
    names = ("bm25", "dense", "context", "splade", "document")[:n_retrievers]
    rankings = tuple(Ranking(name, (ScoredPassage(PAGE, 12.345),)) for name in names)
    selection = select(fuse(rankings, FusionConfig()), FilteringConfig())
    text = printed(passage_table(selection), width)
    assert max(map(len, text.splitlines())) <= width
    for word in ("Outsourcing", "Operational", "Resilience", "responsible", "decision", "3.3.3", "kept"):
        assert word in text
    assert "8:3.3.3" not in text
    if width == 60 and n_retrievers == 5:
        assert "Columns hidden at this width:" in text
    if width == 100 and n_retrievers == 1:
        assert "Left out" not in text
        assert "BM25" in text


def test_a_passage_that_is_there_for_a_citation_says_so():
    hits = (ScoredPassage(PAGE, 0.5, note="cited by 3.2.1 (rank 2)", via="8:3.2.1"),)
    rankings = (Ranking("bm25", (ScoredPassage(PAGE, 2.0),)), Ranking("citations", hits, bounds=(0.0, 1.0)))
    text = printed(passage_table(select(fuse(rankings, FusionConfig()), FilteringConfig())))
    assert "3.3.3 cited by 3.2.1 (rank 2)" in " ".join(text.split())


@pytest.mark.parametrize("width", [70, 80, 200])
def test_sentences_and_obligations_fit_the_terminal(width):
    text = printed(scores_group(both_modes().paper, PASSAGES), width)
    assert max(map(len, text.splitlines())) <= width
    for word in ("supported", "covered", "obligation", "verdict"):
        assert word in text


def test_a_passage_is_named_by_title_and_number():
    assert passage_name(PAGE) == "Outsourcing and Operational Resilience Rules 3.3.3"
    long = replace(PAGE, title="Outsourcing and Operational Resilience Rules of the Harrowmere Commission")
    assert passage_name(long) == "Outsourcing and Operational Resilience Rules… 3.3.3"
    assert passage_name(replace(PAGE, title="", number="")) == "8"


def test_a_refusal_has_no_sentences_and_is_printed_all_the_same():
    note = "Probability of an answer 0.10 (0.50 needed)."
    refusal = Answer("The corpus does not answer [it].", (), "direct", "", note=note, is_refusal=True)
    text = printed(answer_panel(refusal, ()))
    assert "The corpus does not answer [it]." in text
    assert note in text


def test_what_a_vague_question_may_mean_is_asked_back():
    vague = Answer("Fees are due.", (), "direct", "", choices=("Fees, under [A]?", "Fees, under B?"))
    assert "Which one do you mean? Fees, under [A]? · Fees, under B?" in printed(answer_panel(vague, ()))


def test_a_wide_comparison_leaves_figures_out_in_a_narrow_terminal_and_says_which():
    headings = ("R@10", "MAP@10", "nDCG@10", "MRR@10", "hit rate@1", "R@100", "Δ R@10 (p)", "Δ MAP@10 (p)", "ms")
    cells = (".780", ".636", ".690", ".716", ".634", ".895", "-.034 (.001)", "-.042 (.001)", "1.3")
    table = comparison_table(Comparison(headings, (Line("BM25 0.6 + dense 0.4", cells),), "A caption.", "A title"))
    narrow, wide = printed(table, 80), printed(table)
    assert "Columns hidden at this width: " in narrow
    assert "nDCG@10" in narrow
    assert "…" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    assert "ms" in wide
    assert "Left out" not in wide
