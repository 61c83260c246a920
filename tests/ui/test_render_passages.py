"""The passage table: matched words, snippets, ranks, neighbours; and which words count as matched."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.english.words import ANALYSERS, Analyser
from ragqa.filtering import select
from ragqa.fusion import fuse, led_by
from ragqa.library.related import Related
from ragqa.records.view import WEAK_COSINE, View, weak_match
from ragqa.retrieval.analysis import matched_words
from ragqa.settings.config import Config, FilteringConfig, FusionConfig, IndexingConfig
from ragqa.types import Question, Ranking, ScoredPassage
from ragqa.ui.html.passages import passage_cards_html, passage_table_html
from ragqa.ui.html.reader import leaf_html, rule_html
from tests.support.fakes import passage
from tests.ui.test_render import HOSTILE, Tags, assert_harmless

PLAIN = Analyser()
LONG = (
    "The first words say nothing of it. " * 6
    + "A dealer must keep client money apart from its own. "
    + "More follows. " * 9
)


def table(*texts, matcher=None, neighbours=None):
    rows = [
        passage(f"1:{number}", text, title="Rules", number=f"{number}") for number, text in enumerate(texts, start=1)
    ]
    bm25 = Ranking.of("bm25", [ScoredPassage(row, 9.0 - n) for n, row in enumerate(rows)])
    dense = Ranking.of("dense", [ScoredPassage(rows[-1], 0.5)])
    selection = select(fuse((bm25, dense), FusionConfig()), FilteringConfig())
    return passage_table_html(selection, 9, matcher) + passage_cards_html(selection, 9, matcher, neighbours)


def words(text, question, analyser=PLAIN):
    return [span.text for span in matched_words(text, question, analyser)]


def test_words_match_by_their_stem_and_stop_words_never():
    assert words("The firms' obligations, and an OBLIGATION of a firm.", "What is the firm obliged to do?") == [
        "firms",
        "obligations",
        "OBLIGATION",
        "firm",
    ]
    assert words("Nothing here.", "What must a firm do?") == []


def test_numbers_of_rules_match_whole():
    assert words("See 4.3.1 and 4.3.2.", "What does 4.3.1 say?", ANALYSERS["regulation"]) == ["4.3.1"]


def test_inflected_words_match_by_half_their_pieces():
    found = words("Izpuščaji na koži otrok", "Zakaj nastanejo kožni izpuščaj in srbenje?", ANALYSERS["characters"])
    assert found == ["Izpuščaji"]


@settings(max_examples=60)
@given(st.text(max_size=200), st.text(max_size=60))
def test_spans_are_slices_in_order(text, question):
    spans = matched_words(text, question, ANALYSERS["regulation"])
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert [span.start for span in spans] == sorted(span.start for span in spans)


def test_matched_words_are_marked_and_the_snippet_shows_most_of_them():
    html = table(LONG, matcher=lambda text: matched_words(text, "Must a dealer keep client money apart?", PLAIN))
    snippet = html.split('class="rq-snippet">')[1].split("</span>")[0]
    assert snippet.count("<mark>") == 6
    assert snippet.startswith("…")
    assert Tags(html).text.count("client money apart") == 2
    assert LONG in Tags(html.split('class="rq-passage">')[1]).text


def test_without_a_match_the_snippet_is_the_beginning():
    snippet = Tags(table(LONG).split('class="rq-snippet">')[1].split("</span>")[0]).text
    assert LONG.startswith(snippet.removesuffix("…"))
    assert len(snippet) <= 81


@settings(max_examples=60)
@given(st.text(max_size=300), st.text(max_size=40))
def test_any_text_comes_back_as_itself(text, question):
    html = table(text or "x", matcher=lambda shown: matched_words(shown, question, PLAIN))
    assert_harmless(html)
    if "\n" not in text and "\r" not in text and "\x00" not in text and text.strip():
        assert text in Tags(html).text


def test_hostile_text_matched_or_beside_stays_text():
    beside = passage("1:0", HOSTILE, number=HOSTILE)
    html = table(HOSTILE, matcher=lambda text: matched_words(text, HOSTILE, PLAIN), neighbours=lambda _: (beside, None))
    assert "alert" in assert_harmless(html).text


def test_each_list_says_its_rank_and_where_it_did_not_find_the_passage():
    rows = table("one", "two").split("<tbody>")[1].split("</tbody>")[0].split("<tr ")[1:]
    by_text = {("one" if ">one" in row else "two"): Tags(row).text for row in rows}
    assert "#1 · 1.00" in by_text["one"]
    assert by_text["one"].endswith("–")
    assert "#2 · 0.00" in by_text["two"]
    assert "#1 · 1.00" in by_text["two"]


def test_neighbours_open_and_are_cut():
    before, after = passage("1:0", "long " * 400, number="0"), passage("1:2", "Short.", number="2")
    html = table("one", neighbours=lambda _: (before, after))
    around = Tags(html.split('class="rq-around"')[1]).text
    assert "before: 0" in around
    assert "after: 2" in around
    assert "Short." in around
    assert around.count("long") < 150
    assert "rq-around" not in table("one", neighbours=lambda _: (None, None))


@pytest.mark.parametrize(("cosine", "expected"), [(WEAK_COSINE - 0.01, True), (WEAK_COSINE, False)])
def test_a_weak_best_match_is_told(cosine, expected):
    dense = Ranking.of("dense", [ScoredPassage(passage("a"), cosine)])
    bm25 = replace(dense, retriever="bm25")
    view = View(Question("Who?"), Config(), rankings=(bm25, dense), encoder=IndexingConfig().encoder)
    assert (weak_match(view) is not None) == expected
    assert weak_match(replace(view, rankings=(bm25,))) is None
    assert weak_match(replace(view, rankings=(replace(dense, hits=()),))) is None
    assert weak_match(replace(view, encoder="voyage:voyage-law-2")) is None  # whose scale nobody measured
    by_number = led_by(dense, [dense.hits[0].passage])
    assert weak_match(replace(view, selection=select(by_number, FilteringConfig()))) is None


def test_a_passage_that_cites_another_names_it_as_it_is_cited():
    of = ScoredPassage(
        passage("1:1", title="Rules", number="1"), 9.0, note="cited by CHAPTER V.Section I.Article 28.8. (rank 1)"
    )
    html = passage_table_html(select(fuse((Ranking.of("bm25", [of]),), FusionConfig()), FilteringConfig()), 5)
    assert "cited by Article 28(8) (rank 1)" in Tags(html).text
    long = "Regulation (EU) 2022/2554 of the European Parliament on digital operational resilience"
    hits = [
        ScoredPassage(passage("2:28", title=long, number="28"), 9.0),
        ScoredPassage(of.passage, 8.0, note=f"cites {long} CHAPTER V.Section I.Article 28.8. (rank 1)"),
    ]
    html = passage_table_html(select(fuse((Ranking.of("bm25", hits),), FusionConfig()), FilteringConfig()), 5)
    assert "cites Regulation (EU) 2022/2554 Article 28(8) (rank 1)" in Tags(html).text


def test_each_figure_stands_below_its_heading_though_a_rule_asked_for_by_number_was_not_retrieved():
    rule, other = passage("1:1", number="1"), passage("1:2", number="2")
    fused = fuse((Ranking.of("bm25", [ScoredPassage(other, 9.0)]), Ranking.of("dense", [])), FusionConfig())
    html = passage_table_html(select(led_by(fused, (rule,)), FilteringConfig()), 5)
    counts = [row.count("<th") + row.count("<td") for row in html.split("<tr")[1:]]
    assert counts == [6, 6, 6]
    assert html.count("not in this list") == 3


def test_a_number_of_several_documents_is_a_choice_by_full_titles_before_the_rule():
    titles = [
        "Friendly Societies - Capital Requirements of Old",
        "Zoo Rules",
        "Friendly Societies - Capital Requirements",
    ]
    shown, *others = (
        passage(f"{n}:2.1", "A firm must act.", document_id=f"{n}", title=title, number="2.1")
        for n, title in enumerate(["Aviaries", *titles, "Zoo Rules"])
    )
    html = rule_html([shown], others, Related((), (), ()), "pets", "")
    assert "Which document do you mean?" in html
    assert html.index("Which document") < html.index("<b>Aviaries</b>") < html.index("A firm must act.</")
    links = [html.index(f">{title} 2.1</a>") for title in (titles[2], titles[0], "Zoo Rules (2)", "Zoo Rules (4)")]
    assert links == sorted(links)
    assert "<details open>" in html
    item = replace(shown, number="3.1", text="Keep:\n(a)\tdogs;", items="10 15 3.1.(a)")
    html = rule_html([item], (), Related((), (), ()), "pets", "Rule 3.1(a)")
    assert '">dogs;</mark>' in html
    assert "(a) is part of 3.1, shown whole with it marked." in html
    assert "3.1 has no (z): it is shown whole." in rule_html([item], (), Related((), (), ()), "pets", "Rule 3.1(z)")
    assert "<details>" in rule_html([shown], others * 3, Related((), (), ()), "pets", "")
    assert "Which one" not in rule_html([shown], (), Related((), (), ()), "pets", "")


def test_an_article_is_headed_once():
    number, name = "CHAPTER IV.Article 33", "Telling the keeper"
    texts = ((number, name), (f"{number}.1.", "Tell it."), (f"{number}.2.", "Tell it twice."))
    shown = [passage(f"1:{n}", text, number=n, section=f"CHAPTER IV Ducks › Article 33 {name}") for n, text in texts]
    html = leaf_html(shown, lambda one: one.passage_id, f"1:{number}")
    assert html.count(name) == 1
    assert f'<h3 id="rq-place" aria-current="location">Article 33 {name}</h3>' in html
    assert html.index(name) < html.index("Tell it.") < html.index("Tell it twice.")
