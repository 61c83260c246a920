"""Verdicts on the page: each with its words, its reason and the words that decide; raw ones beside them or instead."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.repass.explanation import explain, verdict_by_index
from ragqa.types import Span, Verdict
from ragqa.ui.charts import heat_map
from ragqa.ui.render import answer_html, marked_html
from ragqa.ui.render_scores import gauges_html, ledger_html, sentence_table_html
from ragqa.ui.render_verdicts import counts_html, disagreements_html
from tests.support.verdict_cases import ALL_VERDICTS, REPORT, SIX, SOURCES, TWO, before_rules, scored_by_hand
from tests.ui.test_render import Tags, assert_harmless


@pytest.fixture(scope="module")
def evaluation():
    return scored_by_hand().paper


def answer_of(evaluation, **changes):
    return answer_html(ALL_VERDICTS, SOURCES, evaluation.sentences, verdicts=evaluation.verdicts, **changes)


def table_of(evaluation, **changes):
    shown = {"verdicts": evaluation.verdicts, "premises": evaluation.premises} | changes
    return sentence_table_html(evaluation.sentences, SOURCES, 0.5, **shown)


def row_of(html, number):
    return html.split('<details class="rq-row')[number]


def test_each_sentence_of_the_answer_has_its_badge_and_its_reason_on_focus_and_under_the_pointer(evaluation):
    html = answer_of(evaluation)
    marked, legend = html.split("Underline:")
    for kind, words in (
        ("good", "supported: Quoted word for word from [1]."),
        ("mixed", "sources disagree: [2] says six years, [3] two years."),
        ("bad", "contradicted: [1] says two hours, the answer six."),
        ("plain", "unsupported: No source says this."),
        ("none", "no verdict: In Slovenian, which the model cannot read."),
    ):
        assert f'tabindex="0" role="group" aria-label="{words}"' in marked
        assert marked.count(f'class="rq-sentence rq-u-{kind}"') == 1
    assert marked.count('<span class="rq-tip" aria-hidden="true">') == 5
    assert "sources disagree, no verdict" in assert_harmless(legend).text


def test_the_words_that_decide_are_marked_in_the_answer(evaluation):
    html = answer_of(evaluation)
    assert 'Office within <mark class="rq-word rq-mark-bad">six hours</mark>.' in html
    assert 'every spill for <mark class="rq-word rq-mark-mixed">six years</mark>.' in html
    assert html.count("<mark") == 2
    whole = replace(evaluation.verdicts[0], said=(Span(REPORT, 0, len(REPORT)),))  # points at nothing
    assert "<mark" not in answer_of(replace(evaluation, verdicts=(whole,)))


def test_without_verdicts_the_raw_ones_are_shown(evaluation):
    raw = answer_of(before_rules(evaluation))
    assert 'aria-label="contradicted and supported"' in raw
    assert "Quoted word for word" not in raw
    assert "contradicted and supported" in raw.split("Underline:")[1]
    assert "RePASs raw" not in table_of(before_rules(evaluation), verdicts=())


def test_a_verdict_so_far_says_so(evaluation):
    html = answer_of(evaluation, final={0})
    assert 'aria-label="so far contradicted: [1] says two hours, the answer six."' in html
    row = row_of(table_of(evaluation, final={0}), 3)
    assert "so far contradicted" in row
    assert "[1] says two hours, the answer six." in row


def test_a_row_tells_verdict_reason_and_rule_then_what_decided_then_the_raw_scores(evaluation):
    html = row_of(table_of(evaluation), 3)
    text = assert_harmless(html).text
    places = [
        text.index(words)
        for words in (
            "contradicted",
            "RePASs raw: E 0.100",
            "C 0.850",
            "[1] says two hours, the answer six.",
            "Decided by the rule “number”.",
            "Says otherwise: characters 0 to 83 of [1] Harbour Rules",
            "RePASs raw: contradicted",
            "Contradiction 0.850, at or above 0.50; highest against the source sentence above, of [1].",
        )
    ]
    assert places == sorted(places)
    assert 'within <mark class="rq-word rq-mark-bad">two hours</mark>.</mark> The report must' in html
    assert html.count("rq-passage") == 2  # that which decided, and the entailment's: none twice


def test_what_is_not_believed_is_counted(evaluation):
    text = Tags(row_of(table_of(evaluation), 1)).text
    assert "Not believed: 1 source sentence whose raw probability of entailment or contradiction reaches 0.50" in text
    assert "Not believed" not in Tags(row_of(table_of(evaluation), 2)).text


def test_sources_that_disagree_stand_side_by_side_with_their_numbers(evaluation):
    html = disagreements_html(evaluation.verdicts, evaluation.sentences, evaluation.premises, SOURCES)
    text = assert_harmless(html).text
    assert html.count("rq-notice") == 1
    assert f"Sources disagree on sentence 2: {SIX}" in text
    assert text.index("[2] says so") < text.index(SIX, text.index("[2] says so")) < text.index("[3] says otherwise")
    assert text.index("[3] says otherwise") < text.index(TWO)
    assert '<mark class="rq-word rq-mark-bad">two years</mark>' in html
    agreeing = [one for one in evaluation.verdicts if one.verdict is not Verdict.DISAGREEING]
    assert disagreements_html(agreeing, evaluation.sentences, evaluation.premises, SOURCES) == ""


def test_the_ledger_says_what_is_missing_beside_the_raw_margin(evaluation):
    html = ledger_html(evaluation.obligations, SOURCES, 0.7, verdicts=evaluation.obligation_verdicts)
    covered, in_part, uncovered = (assert_harmless(row_of(html, number)).text for number in (1, 2, 3))
    assert "coveredraw: best 0.900margin +0.200" in covered
    assert "covered in part" in in_part
    assert "Sentence 1 tells of the report." in in_part
    assert "Decided by the rule “part”.Missing: “the estimated volume”." in in_part
    assert row_of(html, 2).count('<mark class="rq-word rq-mark-mixed">the estimated volume</mark>') == 2
    assert "not covered" in uncovered
    assert "No sentence of the answer says this." in uncovered
    raw = Tags(ledger_html(evaluation.obligations, SOURCES, 0.7)).text
    assert "in part" not in raw
    assert "RePASs raw" not in raw


def test_counts_and_doubt_stand_near_the_scores(evaluation):
    verdicts = verdict_by_index(evaluation.sentences, evaluation.verdicts).values()
    text = assert_harmless(counts_html(verdicts, what="Verdicts")).text
    assert text == "Verdicts: 1 supported 1 contradicted 1 where sources disagree 1 unsupported 1 without verdict"
    assert counts_html([], what="Verdicts") == ""
    explanation = explain(evaluation, SOURCES)
    gauges = gauges_html(evaluation.repass, final=True, mode="paper", explanation=explanation)
    assert "C 0.550, of which 0.180 rests on source sentences" in assert_harmless(gauges).text
    without = explain(before_rules(evaluation), SOURCES)
    assert "rq-doubt" not in gauges_html(evaluation.repass, final=True, mode="paper", explanation=without)


@pytest.mark.parametrize(("kind", "doubted"), [("contradiction", (1, 0.9)), ("entailment", (4, 0.7))])
def test_a_cell_that_is_not_believed_is_hatched_and_zero_is_the_background(evaluation, kind, doubted):
    spec = heat_map(evaluation, kind).to_dict()
    (rows,) = spec["datasets"].values()
    assert [(row["answer"], row["probability"]) for row in rows if row["verdict"]] == [doubted]
    filled, hatched = spec["layer"]
    assert filled["encoding"]["color"]["scale"]["range"][0].endswith(", 0)")  # transparent
    assert "not believed" in hatched["transform"][0]["filter"]
    assert len(hatched["layer"]) > 2
    (rows,) = heat_map(before_rules(evaluation), kind).to_dict()["datasets"].values()
    assert not [row for row in rows if row["verdict"]]


spans = st.tuples(st.integers(-3, 12), st.integers(-3, 12)).map(lambda ends: Span("", min(ends), max(ends)))


@given(st.text(max_size=9), st.lists(spans, max_size=4))
def test_whatever_is_marked_the_text_stays_the_same(text, found):
    tags = assert_harmless(marked_html(text, found, "bad"))
    line = text.replace("\n", "")
    assert tags.text.replace("\r", "") == line.replace("\r", "")
