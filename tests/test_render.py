"""The page's HTML: everything is escaped, every state has words as well as colours."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.config import FilteringConfig
from ragqa.events import Scored, Selected
from ragqa.filtering import select
from ragqa.records import RecordSummary
from ragqa.types import Question, Ranking, RePASs
from ragqa.ui.charts import heat_map, score_curve
from ragqa.ui.render import (
    answer_html,
    notice_html,
    passage_table_html,
    record_link_html,
    records_html,
    seconds_html,
    text_html,
)
from ragqa.ui.render_scores import gauges_html, ledger_html, modes_html, sentence_table_html

from .fakes import answer, passage, ranking
from .helpers import ANSWER, PASSAGES, make_pipeline

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&[x](javascript:alert(1))"
ALLOWED = {
    *("div", "span", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "p", "b", "strong", "mark"),
    *("br", "a"),
}


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.names, self.attributes, self.text = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.text += data


def assert_harmless(html):
    tags = Tags(html)
    assert set(tags.names) <= ALLOWED
    assert not [name for name in tags.attributes if name.startswith("on")]
    return tags


@pytest.fixture(scope="module")
def finished():
    events = list(make_pipeline().run(Question("Who must act?")))
    selection = next(event.selection for event in events if isinstance(event, Selected))
    return selection, next(event for event in events if isinstance(event, Scored))


def test_hostile_text_stays_text_everywhere(finished):
    _, scored = finished
    bad = passage("1:1", HOSTILE, title=HOSTILE, section=HOSTILE, number=HOSTILE)
    selection = select(Ranking.of("fused", list(ranking("fused", {"a": 1.0}).hits)), FilteringConfig())
    hostile_hit = selection.kept[0].hit.__class__(bad, 1.0)
    selection = select(Ranking("fused", (hostile_hit,)), FilteringConfig())
    html = "".join(
        [
            passage_table_html(selection, 5),
            answer_html(answer(HOSTILE, [(1,)]), [bad]),
            notice_html(HOSTILE),
            records_html([RecordSummary(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, None)]),
            record_link_html(HOSTILE),
            sentence_table_html(scored.paper.sentences, [bad] * 3, 0.5),
            ledger_html(scored.paper.obligations, [bad] * 3, 0.7),
        ]
    )
    assert "alert(1)" in assert_harmless(html).text


@settings(max_examples=60)
@given(st.text(max_size=80))
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


def test_the_answer_marks_verdicts_and_opens_citations(finished):
    selection, scored = finished
    before = answer_html(ANSWER, selection.passages)
    after = answer_html(ANSWER, selection.passages, scored.paper.sentences)
    assert before.count("rq-u-pending") == 2
    marked, legend = after.split("Underline:")
    assert marked.count("rq-u-good") == 1
    assert marked.count("rq-u-plain") == 1
    assert "contradicted" in legend
    assert PASSAGES[0].text in Tags(after).text
    assert after.count("<details") == 2


def test_a_sentence_row_shows_the_deciding_premise_marked_in_its_passage(finished):
    selection, scored = finished
    html = sentence_table_html(scored.paper.sentences, selection.passages, 0.5)
    assert "supported" in Tags(html).text
    assert "unsupported" in Tags(html).text
    assert '<mark class="rq-mark-good">A firm must act at once.</mark> The sky is blue.' in html
    assert "at or above 0.50" in html
    assert "below 0.50" in html


def test_the_ledger_says_covered_by_which_sentence_with_what_margin(finished):
    selection, scored = finished
    text = Tags(ledger_html(scored.paper.obligations, selection.passages, 0.7)).text
    assert "covered" in text
    assert "not covered" in text
    assert f"margin {0.9 - 0.7:+.3f}" in text
    assert "answer sentence 1" in text


def test_gauges_write_the_formula_out():
    text = Tags(gauges_html(RePASs(0.5, 0.1, 0.25), final=True, mode="paper")).text
    assert f"(0.500 − 0.100 + 0.250 + 1) / 3 = {(0.5 - 0.1 + 0.25 + 1) / 3:.3f}" in text
    assert "provisional" in gauges_html(RePASs(0.5, 0.1, 0.25), final=False, mode="paper")


def test_both_modes_stand_side_by_side(finished):
    _, scored = finished
    text = Tags(modes_html(scored.paper, scored.script)).text
    assert text.count("paper") == 2
    assert text.count("script") == 2


def test_seconds_in_the_order_of_the_work():
    text = Tags(seconds_html({"scoring": 2.5, "retrieval": 0.0421})).text
    assert text.index("retrieval 42 ms") < text.index("scoring 2.5 s")


def test_the_score_curve_draws_threshold_and_drop(finished):
    selection, _ = finished
    spec = score_curve(selection, FilteringConfig(), 30).to_dict()
    assert "threshold 0.70" in str(spec)
    with_drop = select(ranking("fused", {"a": 1.0, "b": 0.7, "c": 0.0}), FilteringConfig(threshold=0.5))
    assert "drop 0.30" in str(score_curve(with_drop, FilteringConfig(threshold=0.5), 30).to_dict())


def test_the_heat_map_has_a_cell_per_pair_with_both_sentences(finished):
    _, scored = finished
    evaluation = scored.paper
    for kind in ("entailment", "contradiction"):
        spec = heat_map(evaluation, kind).to_dict()
        (rows,) = spec["datasets"].values()
        assert len(rows) == len(evaluation.premises) * len(evaluation.sentences)
        assert rows[0]["source sentence"] == evaluation.premises[0].text
        assert rows[0]["answer sentence"] == evaluation.sentences[0].sentence.text
