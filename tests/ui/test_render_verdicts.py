"""Verdicts on the page: each with its words, its reason and the words that decide; raw ones beside them or instead."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.scoring.repass.explanation import explain
from ragqa.types import Span
from ragqa.ui.html.render import answer_html, mark_of, marked_html
from ragqa.ui.html.scores import (
    gauges_html,
    obligations_html,
    pairs_html,
    sentence_table_html,
    trust_html,
)
from tests.support.verdict_cases import ALL_VERDICTS, REPORT, SOURCES, before_rules, scored_by_hand
from tests.ui.test_render import Tags, assert_harmless, cards_of


@pytest.fixture(scope="module")
def evaluation():
    return scored_by_hand().paper


def answer_of(evaluation, **changes):
    changes = {"verdicts": evaluation.verdicts} | changes
    return answer_html(ALL_VERDICTS, evaluation.sentences, passages=SOURCES, **changes)


def test_each_sentence_of_the_answer_has_its_badge_and_its_reason_on_focus_and_under_the_pointer(evaluation):
    html = answer_of(evaluation)
    assert_harmless(html)
    for number, (kind, words) in enumerate(
        (
            ("good", "<b>supported</b>: Quoted word for word from Harbour 4.1."),
            ("mixed", "<b>sources disagree</b>: Harbour 4.2 says six years, Harbour Guide 2 two years."),
            ("bad", "<b>contradicted</b>: Harbour 4.1 says two hours, the answer six."),
            ("plain", "<b>not supported</b>: No source says this."),
            ("none", "<b>no verdict</b>: In Slovenian, which the model cannot read."),
        )
    ):
        assert f'data-show="s{number}" aria-describedby="rq-why-{number}"' in html
        assert f'id="rq-why-{number}" aria-hidden="true">{words}' in html
        assert html.count(f'class="rq-sentence rq-u-{kind}"') == 1


def test_the_words_that_decide_are_marked_in_the_answer(evaluation):
    html = answer_of(evaluation)
    assert 'Office within <mark class="rq-word rq-mark-bad">six hours</mark>.' in html
    assert 'every spill for <mark class="rq-word rq-mark-mixed">six years</mark>.' in html
    assert html.count("<mark") == 2
    whole = replace(evaluation.verdicts[0], said=(Span(REPORT, 0, len(REPORT)),))  # points at nothing
    assert "<mark" not in answer_of(replace(evaluation, verdicts=(whole,)))


def test_without_verdicts_the_raw_ones_are_shown(evaluation):
    raw = answer_of(before_rules(evaluation))
    assert "<b>contradicted and supported</b>" in raw
    assert "Quoted word for word" not in raw
    assert "RePASs raw" not in "".join(cards_of(before_rules(evaluation), SOURCES).values())


def test_a_verdict_so_far_says_so(evaluation):
    assert "<b>so far contradicted</b>: Harbour 4.1 says two hours, the answer six." in answer_of(evaluation, final={0})
    for html in (
        sentence_table_html(evaluation.sentences, evaluation.verdicts, final={0}),
        cards_of(evaluation, SOURCES, final={0})["s2"],
    ):
        assert "so far contradicted" in html
        assert "says two hours, the answer six." in html


def test_a_card_tells_verdict_and_reason_then_what_decided_and_the_rule_then_the_raw_scores(evaluation):
    html = cards_of(evaluation, SOURCES)["s2"]
    text = assert_harmless(html).text
    places = [
        text.index(words)
        for words in (
            "contradicted",
            "Harbour 4.1 says two hours, the answer six.",
            "Source that contradicts it: Harbour Rules",
            "Decided by: number.",
            "RePASs raw: contradicted",
            "Contradiction 0.850, at or above 0.50; highest against the source sentence above, of [1].",
        )
    ]
    assert places == sorted(places)
    assert 'within <mark class="rq-word rq-mark-bad">two hours</mark>.</mark> The report must' in html
    assert html.count("rq-passage") == 2  # that which decided, and the entailment's: none twice


def test_what_is_not_believed_is_counted(evaluation):
    cards = cards_of(evaluation, SOURCES)
    assert "Rejected by the verdict: 1 source sentence at 0.50 or more" in Tags(cards["s0"]).text
    assert "Rejected by the verdict" not in Tags(cards["s1"]).text


def test_sources_that_disagree_stand_in_one_card_each_with_its_words(evaluation):
    text = Tags(cards_of(evaluation, SOURCES)["s1"]).text
    against, after = text.index("Source that contradicts it"), text.index("Source: Harbour Rules")
    assert against < text.index("two years in the harbour") < after


def test_what_is_not_supported_shows_the_nearest_text_and_what_it_lacks(evaluation):
    lacking = replace(evaluation.verdicts[3], said=(Span("green", 0, 5),))
    verdicts = (*evaluation.verdicts[:3], lacking, *evaluation.verdicts[4:])
    text = Tags(cards_of(replace(evaluation, verdicts=verdicts), SOURCES)["s3"]).text
    assert "Nearest text: Harbour Rules" in text
    assert "Missing there: “green”." in text
    assert "Read in the document" in text


def test_a_citation_shows_what_the_verdict_rests_on_in_that_passage(evaluation):
    cards = cards_of(evaluation, SOURCES)
    assert '<mark class="rq-mark-good">' in cards["s0.1"]
    assert '<mark class="rq-mark-bad">' in cards["s1.3"]


def test_an_obligation_says_what_is_missing_beside_the_raw_margin(evaluation):
    html = obligations_html(evaluation.obligations, SOURCES, 0.7, verdicts=evaluation.obligation_verdicts)
    covered, in_part, uncovered = html.split('<button type="button"')[1:]
    assert "coveredraw P(entailment) 0.900, 0.200 above the threshold" in assert_harmless("<button" + covered).text
    assert "Sentence 1 tells of the report." in in_part
    assert "Decided by: part." in in_part
    assert "Missing:</b> “the estimated volume”." in in_part
    assert in_part.count('<mark class="rq-word rq-mark-mixed">the estimated volume</mark>') == 2
    assert "not covered" in uncovered
    assert "No sentence of the answer says this." in uncovered
    raw = Tags(obligations_html(evaluation.obligations, SOURCES, 0.7)).text
    assert "in part" not in raw
    assert "RePASs raw" not in raw


def test_an_answer_that_only_quotes_is_told_what_its_score_does_not_say(evaluation):
    quoted = trust_html(
        [("quoted", "quoted")] * 2, ["uses 1 of 3 passages"], evaluation.repass, final=True, mode="paper"
    )
    line, _, opened = quoted.partition("</summary>")
    assert Tags(line).text.startswith("2 sentences quoteduses 1 of 3 passagesRePASs .")
    assert "does not say whether it answers" in opened


def test_counts_and_doubt_stand_near_the_scores(evaluation):
    marks = [mark_of(one.verdict, one) for one in evaluation.verdicts]
    line = trust_html(marks, ["covers 1 of 3 obligations"], evaluation.repass, final=True, mode="paper")
    text = assert_harmless(line).text
    for words in (
        "1 sentence supported",
        "1 sentence contradicted",
        "1 sentence not supported",
        "covers 1 of 3 obligations",
    ):
        assert words in text
    assert "RePASs ." in text
    assert "not scored" in trust_html([], [], None, final=True, mode="paper")
    explanation = explain(evaluation, SOURCES)
    gauges = gauges_html(evaluation.repass, final=True, mode="paper", explanation=explanation)
    assert "C 0.550, 0.180 from source sentences" in assert_harmless(gauges).text
    assert 'rq-fill-bad" style="width:37.0%"' in gauges
    assert 'title="rejected by the verdicts" style="width:18.0%"' in gauges
    without = explain(before_rules(evaluation), SOURCES)
    assert "rq-doubt" not in gauges_html(evaluation.repass, final=True, mode="paper", explanation=without)


@pytest.mark.parametrize(("kind", "doubted"), [("contradiction", "0.900"), ("entailment", "0.700")])
def test_a_cell_that_is_not_believed_is_hatched(evaluation, kind, doubted):
    html = pairs_html(evaluation, SOURCES, kind)
    assert html.count("rq-hatched") == 1
    assert f'P({kind}) {doubted}, rejected by the verdict" class="rq-hatched"' in html
    assert "rq-hatched" not in pairs_html(before_rules(evaluation), SOURCES, kind)


spans = st.tuples(st.integers(-3, 12), st.integers(-3, 12)).map(lambda ends: Span("", min(ends), max(ends)))


@given(st.text(max_size=9), st.lists(spans, max_size=4))
def test_whatever_is_marked_the_text_stays_the_same(text, found):
    tags = assert_harmless(marked_html(text, found, "bad"))
    line = text.replace("\n", "")
    assert tags.text.replace("\r", "") == line.replace("\r", "")
