"""The page's HTML: everything is escaped, every state has words as well as colours."""

from dataclasses import astuple, replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.filtering import select
from ragqa.records.differences import Difference
from ragqa.records.record import RecordSummary
from ragqa.records.view import Shown, View, advance
from ragqa.scoring.repass.explanation import explain, mode_differences, provenance
from ragqa.settings.config import Config, FilteringConfig
from ragqa.types import Answer, Question, Ranking, ScoredPassage
from ragqa.types.events.pipeline import Selected
from ragqa.types.events.scoring import PartRelevance, Relevance, Scored
from ragqa.types.scores import RePASs
from ragqa.ui.html.answer import panes_of
from ragqa.ui.html.cards import sentence_cards
from ragqa.ui.html.charts import growth_chart
from ragqa.ui.html.curve import curve_html
from ragqa.ui.html.passages import passage_cards_html, passage_table_html
from ragqa.ui.html.render import RENDER, answer_html, notice_html, seconds_html
from ragqa.ui.html.scores import (
    gauges_html,
    growth_html,
    modes_html,
    obligations_html,
    pairs_html,
    provenance_html,
    sentence_table_html,
)
from ragqa.ui.html.template import text_html
from tests.support.fakes import FakeGenerator, answer, passage, ranking
from tests.support.helpers import ANSWER, PASSAGES, make_pipeline
from tests.support.verdict_cases import before_rules

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&[x](javascript:alert(1))"
ALLOWED = {
    *("div", "span", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "p", "b", "strong", "mark"),
    *("br", "a", "ul", "li", "del", "ins", "button", "h2", "i", "form", "input"),
}


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.names, self.attributes, self.pairs, self.text = [], [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.pairs += attrs

    def handle_data(self, data):
        self.text += data


def assert_harmless(html):
    tags = Tags(html)
    assert set(tags.names) <= ALLOWED
    assert not [name for name in tags.attributes if name.startswith("on")]
    return tags


def cards_of(evaluation, passages, explanation=None, **changes):
    """The cards of a breakdown's sentences, by the id that shows them."""
    found = Shown(
        evaluation.mode,
        evaluation,
        explanation,
        evaluation.sentences,
        evaluation.obligations,
        evaluation.verdicts,
        evaluation.obligation_verdicts,
    )
    return sentence_cards(found, passages, 0.5, **changes)


@pytest.fixture(scope="module")
def finished():
    events = list(make_pipeline().run(Question("Who must act?")))
    selection = next(event.selection for event in events if isinstance(event, Selected))
    both = next(event for event in events if isinstance(event, Scored))
    return selection, Scored(before_rules(both.paper), before_rules(both.script))


def test_hostile_text_stays_text_everywhere(finished):
    _, scored = finished
    bad = passage("1:1", HOSTILE, title=HOSTILE, section=HOSTILE, number=HOSTILE)
    selection = select(Ranking.of("fused", list(ranking("fused", {"a": 1.0}).hits)), FilteringConfig())
    hostile_hit = selection.kept[0].hit.__class__(bad, 1.0)
    selection = select(Ranking("fused", (hostile_hit,)), FilteringConfig())
    html = "".join(
        [
            passage_table_html(selection, 5),
            passage_cards_html(selection, 5),
            curve_html(selection, 5),
            RENDER.changed(HOSTILE, [Difference(HOSTILE, HOSTILE, HOSTILE, HOSTILE)]),
            answer_html(answer(HOSTILE, [(1,)]), passages=PASSAGES[:1]),
            notice_html(HOSTILE),
            RENDER.records([RecordSummary(*[HOSTILE] * 6, None)], results={HOSTILE: HOSTILE}),
            RENDER.records(
                [RecordSummary(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, None)], (), HOSTILE[:9]
            ),
            RENDER.actions(HOSTILE),
            obligations_html(scored.paper.obligations, [bad] * 3, 0.7),
            *cards_of(scored.paper, [bad] * 3).values(),
        ]
    )
    assert "alert(1)" in assert_harmless(html).text


@settings(max_examples=60)
@given(st.text(max_size=80))
@pytest.mark.long
def test_any_text_comes_back_as_itself(text):
    html = text_html(text)
    tags = assert_harmless(html)
    assert set(tags.names) <= {"br"}
    assert "<script" not in html.lower()


def test_the_passage_table_names_every_score_and_decision(finished):
    selection, _ = finished
    text = assert_harmless(passage_table_html(selection, 10)).text
    for word in ("BM25", "cosine", "fused", "relevance", "kept", "below threshold", "General Rules › 1.1"):
        assert word in text
    assert "no passage" in Tags(passage_table_html(select(Ranking("fused", ()), FilteringConfig()), 5)).text.lower()


def test_the_answer_marks_verdicts_and_each_citation_shows_its_passage(finished):
    selection, scored = finished
    assert answer_html(ANSWER, passages=PASSAGES).count("rq-u-pending") == 2
    after = assert_harmless(answer_html(ANSWER, scored.paper.sentences, passages=PASSAGES))
    cards = cards_of(scored.paper, selection.passages)
    assert {value for name, value in after.pairs if name == "data-show"} == set(cards)
    assert PASSAGES[0].text in Tags(cards["s0.1"]).text


def test_the_card_of_a_sentence_has_the_deciding_premise_marked_in_its_passage(finished):
    selection, scored = finished
    html = "".join(cards_of(scored.paper, selection.passages).values())
    assert "not supported" in Tags(html).text
    assert '<mark class="rq-mark-good">A firm must act at once.</mark> The sky is blue.' in html
    assert "at or above 0.50" in html
    assert "below 0.50" in html


def test_the_ledger_says_covered_by_which_sentence_with_what_margin(finished):
    selection, scored = finished
    text = Tags(obligations_html(scored.paper.obligations, selection.passages, 0.7)).text
    assert "covered" in text
    assert "not covered" in text
    assert f"{0.9 - 0.7:.3f} above the threshold" in text
    assert "answer sentence 1" in text


def test_gauges_write_the_formula_out():
    text = Tags(gauges_html(RePASs(0.5, 0.1, 0.25), final=True, mode="paper")).text
    assert f"(0.500 − 0.100 + 0.250 + 1) / 3 = {(0.5 - 0.1 + 0.25 + 1) / 3:.3f}" in text
    assert "provisional" in gauges_html(RePASs(0.5, 0.1, 0.25), final=False, mode="paper")


def test_both_modes_stand_side_by_side(finished):
    _, scored = finished
    reasons = mode_differences(scored.paper, scored.script)
    text = assert_harmless(modes_html(scored.paper, scored.script, reasons)).text
    for evaluation in (scored.paper, scored.script):
        assert f"{evaluation.mode}{evaluation.repass.entailment:.3f}" in text
    assert all(reason in text for reason in reasons)
    assert len(reasons) == 3


def test_the_gauges_say_how_each_part_came_about_and_what_is_copied(finished):
    selection, scored = finished
    explanation = explain(scored.paper, selection.passages)
    text = assert_harmless(gauges_html(scored.paper.repass, final=True, mode="paper", explanation=explanation)).text
    assert explanation.arithmetic.formula.replace(" - ", " − ") in text
    assert all(part in text for part in explanation.arithmetic.parts)
    assert f"Copied: {6 / 10:.0%} of the answer’s words (6 of 10)" in text
    assert ".947 to .973" in text


def test_a_provisional_row_says_so_in_words_and_names_no_final_number(finished):
    selection, scored = finished
    scores, obligations = scored.paper.sentences, scored.paper.obligations
    html = sentence_table_html(scores, final={0})
    html += obligations_html(obligations, selection.passages, 0.7, final=())
    text = assert_harmless(html).text
    assert html.count("rq-provisional") == 1 + 2
    assert "so far not supported" in text
    assert "E at least 0.100" in text
    assert "E 0.900" in text
    assert "so far covered" in text
    assert "so far not covered" in text
    answer_so_far = answer_html(ANSWER, scores, passages=PASSAGES, final={0})
    assert "<b>so far not supported</b>" in answer_so_far
    assert "<b>supported</b>" in answer_so_far
    assert "still to be compared" in cards_of(scored.paper, selection.passages, final={0})["s1"]


def recited(scored, citations):
    """The breakdown with other citations written behind its first sentence."""
    first = scored.paper.sentences[0]
    first = replace(first, sentence=replace(first.sentence, citations=citations))
    return replace(scored.paper, sentences=(first, scored.paper.sentences[1]))


def test_a_citation_that_another_passage_earns_is_corrected_in_the_table_and_in_the_answer(finished):
    selection, scored = finished
    evaluation = recited(scored, (2,))
    explanation = explain(evaluation, selection.passages)
    cards = cards_of(evaluation, selection.passages, explanation)
    assert_harmless(cards["s0"])
    assert "which it does not support" in cards["s0.2"]
    assert "which it supports" in cards["s0.1"]
    written = replace(ANSWER, sentences=tuple(score.sentence for score in evaluation.sentences))
    shown = answer_html(written, passages=PASSAGES, checks=explanation.citations)
    assert "<del>General 1.2</del>" in shown
    assert "<ins>General 1.1</ins>" in shown
    assert 'title="General Rules › 1.2, cited but does not support this"' in shown
    assert "⚑ citation corrected: General 1.2 → General 1.1" in assert_harmless(shown).text


def test_citations_that_hold_are_shown_as_they_were_written(finished):
    selection, scored = finished
    explanation = explain(scored.paper, selection.passages)
    first = [explanation.citations[0]]
    assert answer_html(ANSWER, passages=PASSAGES, checks=first) == answer_html(ANSWER, passages=PASSAGES)


def test_a_sentence_that_cites_nothing_gets_the_passage_that_entails_it(finished):
    selection, scored = finished
    evaluation = recited(scored, ())
    explanation = explain(evaluation, selection.passages)
    written = replace(ANSWER, sentences=tuple(score.sentence for score in evaluation.sentences))
    shown = Tags(answer_html(written, passages=PASSAGES, checks=explanation.citations)).text
    assert "⚑ citation added: General 1.1" in shown


def test_a_sentence_that_no_passage_entails_stays_and_is_marked(finished):
    selection, scored = finished
    explanation = explain(scored.paper, selection.passages)
    shown = answer_html(ANSWER, passages=PASSAGES, checks=explanation.citations)
    assert "The moon is green." in shown
    assert "<del>General 1.2</del>" in shown
    assert "⚑ citation removed: General 1.2, no passage supports this" in shown


def test_a_card_carries_passage_offsets_and_the_share_copied(finished):
    selection, scored = finished
    card = cards_of(scored.paper, selection.passages, explain(scored.paper, selection.passages))["s0"]
    premise = scored.paper.sentences[0].entailment_premise
    assert f'title="characters {premise.start} to {premise.end}">General Rules' in card


def test_the_ledger_names_the_near_miss_and_the_next_best(finished):
    selection, scored = finished
    explanation = explain(scored.paper, selection.passages)
    text = Tags(obligations_html(scored.paper.obligations, selection.passages, 0.7, explanation=explanation)).text
    assert "Covered by answer sentence 1; P(entailment) 0.900 is 0.200 above the threshold 0.70" in text
    assert "Best near miss: answer sentence 1; P(entailment) 0.100 is 0.600 short of the threshold 0.70" in text
    assert "Next best: answer sentence 2 with 0.100." in text


def test_growth_is_told_in_words_and_drawn(finished):
    selection, scored = finished
    growth = explain(scored.paper, selection.passages).growth
    text = assert_harmless(growth_html(growth)).text
    assert "With the best passage alone E is 0.500 and C" in text
    assert f"with all {len(growth)} kept" in text
    assert "only one kept" in Tags(growth_html(growth[:1])).text
    assert "No passage was kept" in Tags(growth_html(())).text
    spec = growth_chart(growth).to_dict()
    (rows,) = spec["datasets"].values()
    assert {(row["step"], row["part"]) for row in rows} >= {("1", "Entailment E"), ("2", "Contradiction C")}


def test_provenance_names_models_weights_and_splitter(finished):
    _, scored = finished
    text = assert_harmless(provenance_html(provenance(scored.paper))).text
    assert "fake-nli (fp32, weights 111111111111)" in text
    assert scored.paper.sentence_splitter in text


def test_seconds_in_the_order_of_the_work():
    text = Tags(seconds_html({"scoring": 2.5, "retrieval": 0.0421})).text
    assert text.index("retrieval 42 ms") < text.index("scoring 2.5 s")


@pytest.mark.parametrize("kind", ["entailment", "contradiction"])
def test_every_pair_has_a_cell_and_every_source_sentence_a_card(finished, kind):
    selection, scored = finished
    evaluation = scored.paper
    tags = assert_harmless(pairs_html(evaluation, selection.passages, kind))
    assert tags.names.count("td") == len(evaluation.premises) * len(evaluation.sentences)
    titles = [value for name, value in tags.pairs if name == "title" and not value.startswith("P(")]
    labels = [one.sentence.text for one in evaluation.sentences] + [one.text for one in evaluation.premises]
    assert titles[: len(labels)] == labels
    values = [value for row in scored.paper.entailment_matrix for value in row]
    if kind == "entailment":  # written out from .3, by a scale
        assert sum("rq-unseen" in (value or "") for _, value in tags.pairs) == sum(value < 0.3 for value in values)
        assert "written out from 0.30" in tags.text
    cards = [value for name, value in tags.pairs if name == "data-card"]
    assert cards == [f"m{row}" for row in range(len(evaluation.premises))]


def test_the_headline_names_the_parts_that_are_not_found():
    view = View(
        Question("Who must act, and <b>when</b>?"), Config(), answer=replace(ANSWER, not_found=("<b>when</b>",))
    )
    view = replace(view, selection=select(make_pipeline().search("Who must act?"), FilteringConfig()))
    panes = panes_of(view, Config(), "x")
    shown = " ".join(str(value) for value in astuple(panes))
    assert "Partly answered" in shown
    assert "&lt;b&gt;when" in shown
    noted = replace(view, answer=replace(view.answer, not_found=("when",), note="As of today. Not found: when."))
    panes = panes_of(noted, Config(), "x")
    assert "Not answered: “when?”" in panes.head
    assert "Not found" not in panes.notes
    assert "As of today." in panes.notes
    assert "<b>when" not in shown
    assert panes_of(replace(view, answer=ANSWER), Config(), "x") != panes
    quoted = replace(ANSWER, generator="direct, no language model", model="")
    assert "Quoted from the passages, no language model." in panes_of(replace(view, answer=quoted), Config(), "x").notes


@pytest.mark.parametrize(("value", "is_read", "headline"), [
    (0.79, True, "Possibly answered"), (0.8, True, "Answered"), (0.1, False, "Answered"),
])  # fmt: skip
def test_an_answer_is_only_possible_where_the_selector_is_unsure_of_it(value, is_read, headline):
    part = PartRelevance("Who?", "who", value, 0.5, 0.5, 0.5, 0, "Sentence 1 answers.", is_read)
    view = View(Question("Who must act?"), Config(), answer=ANSWER, answer_relevance=Relevance(value, (part,)))
    view = replace(view, selection=select(make_pipeline().search("Who must act?"), FilteringConfig()))
    panes = panes_of(view, Config(), "x")
    assert f"<b>{headline}</b>" in panes.head
    assert ("answers the question is 0.79" in panes.notes) == (headline == "Possibly answered")


def test_an_answer_keeps_the_lines_of_its_source_and_is_copied_with_short_names():
    title = "REGULATION (EU) 2026/7 OF THE COUNCIL of 3 May 2026 on ferries that leave in the night"
    text = "A ferry carries:\n(a)\tlamps,\n\noars and ropes\nhooks"
    source = passage("1:1", f"{text}. It has a bell.", title=title, number="CHAPTER I.Article 7.1.")
    said = answer("A ferry carries: (a) lamps, oars and ropes hooks", [(1,)])
    assert "carries:<br>(a) lamps,<br>oars and ropes<br>hooks" in answer_html(said, passages=[source])
    hits = Ranking.of("fused", [ScoredPassage(source, 1.0)])
    view = View(Question("What?"), Config(), answer=said, selection=select(hits, FilteringConfig()))
    copied = "A ferry carries:\n(a) lamps,\noars and ropes\nhooks [Regulation (EU) 2026/7 Article 7(1)]"
    assert f'data-text="{copied}"' in panes_of(view, Config(), "x").scores


def test_a_refusal_links_the_passages_that_it_names_and_nothing_else():
    ferries, bells = (passage(f"{n}:1", title=name, number=n) for n, name in (("1", "Ferries"), ("11", HOSTILE[:25])))
    html = answer_html(
        Answer(f"None. Nearest to it: Ferries 1; Ferries 12; {HOSTILE[:25]} 11.", (), "direct", "", is_refusal=True),
        passages=[ferries, bells],
    )
    assert [one for one in assert_harmless(html).pairs if one[0] == "href"] == [
        ("href", "read?passage=1%3A1"),
        ("href", "read?passage=11%3A1"),
    ]


def test_a_reader_is_told_of_one_sentence_in_the_singular():
    view = View(Question("Who must act?"), Config())
    for event in make_pipeline(generator=FakeGenerator(answer("A firm must act at once.", [(1,)]))).run(view.asked):
        view = advance(view, event)
    assert panes_of(view, Config(), "x").status.startswith("Finished: 1 sentence, RePASs ")
