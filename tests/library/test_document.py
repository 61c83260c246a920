"""A document is read as a whole: outline, leaves, search, places; what it shows is escaped; a record that is stale."""

import re
from types import SimpleNamespace

import pytest

from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.corpus.documents.model import Block, places_of
from ragqa.corpus.documents.places import pages_of, place_words
from ragqa.library.changes import stale, stale_words
from ragqa.library.document import document_at, documents_of, marks_of, search, search_corpus, section_question
from ragqa.library.related import Referred, Related
from ragqa.ui.html.library import marked_difference, plain_markdown
from ragqa.ui.html.reader import Mark, beside_html, leaf_html, passage_text_html, read_address
from ragqa.ui.html.render import in_corpus, read_link_html
from tests.support.document_files import rules_pages, write_pdf
from tests.support.fakes import passage
from tests.support.hostile import hostile_texts


def held(passages):
    return SimpleNamespace(passages=passages, position_of={one.passage_id: place for place, one in enumerate(passages)})


@pytest.fixture
def index():
    long = [
        passage(
            f"long:{n}", f"Rule {n} of client money.", section=f"Part {n // 100} › Section {n // 10}", number=str(n)
        )
        for n in range(300)
    ]
    return held([passage("a:1", "First."), *long, passage("z:1", "Last.")])


def test_a_document_has_an_outline_and_leaves_that_begin_where_sections_do(index):
    document = document_at(index, 150)
    assert (document.document_id, document.start, document.stop) == ("long", 1, 301)
    assert len(document.outline) == 3 + 30
    assert document.outline[0].text == "Part 0"
    assert [document.leaf(n) for n in range(len(document.leaves))][1] == range(41, 81)
    assert all((place - 1) % 10 == 0 for place in document.leaves)
    assert sum(len(document.leaf(n)) for n in range(len(document.leaves))) == 300
    assert document.leaf_of(41) == 1
    assert len(document.branch(150, most=10)) <= 10
    assert documents_of(index) == {"a": (0, ""), "long": (1, ""), "z": (301, "")}


def test_a_search_takes_words_their_beginnings_and_phrases(index):
    document = document_at(index, 1)
    assert [hit.passage.number for hit in search(index, document, '"rule 25 of" mon')] == ["25"]
    assert len(search(index, document, "client")) == 200
    assert search(index, document, "absent") == ()
    assert search(index, document, '  "" ') == ()
    assert [span.text for span in marks_of("Monies and money.", "mon")] == ["Monies", "money"]
    assert marks_of("a (b", "(b")


def test_the_whole_corpus_is_searched_by_words_and_phrases(index):
    index.bm25s = SimpleNamespace(
        retrieve=lambda words, most: SimpleNamespace(
            hits=[SimpleNamespace(passage=one) for one in index.passages if "money" in one.text][:most]
        )
    )
    hits = search_corpus(index, "client money")
    assert (len(hits), hits[0].position, hits[0].spans[0].text) == (50, 1, "client")
    assert [hit.passage.number for hit in search_corpus(index, '"Rule 7 of" money')] == ["7"]


def test_a_section_is_asked_about_by_its_heading():
    one = passage("a:1", "Text.", section="Part 1 › 1.2 Boats at sea › 1.2.1", number="1.2.1.(1)", title="Harbours")
    assert section_question(one) == "What does “1.2 Boats at sea” (Harbours) say?"
    assert section_question(passage("a:2", "Text.", number="7", title="")) == "What does “7” say?"
    assert section_question(passage("a:3", "Text.", title="")) == ""


def test_a_long_title_and_text_that_is_no_heading_are_not_asked_about():
    title = "DIRECTIVE 2026/7/EU OF THE COUNCIL of 3 May 2026 on harbours in which boats lie at night"
    section = "Article 7 Boats at night › No boat may carry:"
    assert section_question(passage("a:1", title=title, section=section)) == (
        "What does “Article 7 Boats at night” (Directive 2026/7/EU) say?"
    )
    told = section_question(passage("a:2", title="", section="Harbours " * 40))
    assert told.endswith("Harbours…” say?")


def test_places_are_told_and_others_are_none():
    assert [(one.page, one.boxes) for one in pages_of("page=3&box=1,2,3,4;page=4&box=5,6,7,8.5")] == [
        (3, ((1.0, 2.0, 3.0, 4.0),)),
        (4, ((5.0, 6.0, 7.0, 8.5),)),
    ]
    assert pages_of("page=x&box=1") == pages_of("anchor=a") == ()
    assert place_words("page=3&box=1,2,3,4;page=4&box=5,6,7,8") == "pages 3–4"
    assert place_words("paragraph=118") == "paragraph 118"
    assert place_words("sheet=Fees&row=12") == "sheet Fees, row 12"
    assert place_words("anchor=r4") == ""


def test_a_leaf_shows_headings_once_tables_as_tables_and_marks_what_is_cited():
    passages = [
        passage("d:1", "Application", number="1.1", section="1. RULES"),
        passage("d:2", "Fee | Due\n12 | now", number="1.1.1", section="1. RULES › 1.1 Application"),
        passage("d:3", "Pay at once. Or not.", number="1.1.2", section="1. RULES › 1.1 Application"),
    ]
    html = leaf_html(passages, lambda one: read_address("c", one.passage_id), "d:3", (0, 12))
    assert html.count("1.1 Application") == 1
    assert "<tr><td>Fee</td><td>Due</td></tr><tr><td>12</td><td>now</td></tr>" in html
    assert '<mark class="rq-mark-good">Pay at once.</mark> Or not.' in html
    assert html.count('id="rq-place"') == 1
    assert passage_text_html("a | bc", [Mark(4, 6, "mixed")]).count("<mark") == 1


def test_a_chapter_is_named_once_above_its_sections():
    passages = [
        passage("d:1", "LICENSING", number="1."),
        passage("d:2", "Scope", number="1.1", section="1. LICENSING"),
        passage("d:3", "A firm must ask.", number="1.1.1", section="1. LICENSING › 1.1 Scope"),
        passage("d:4", "Terms", number="1.2", section="1. LICENSING"),
        passage("d:5", "A firm must wait.", number="1.2.1", section="1. LICENSING › 1.2 Terms"),
        passage("d:6", "All of this is law.", number="1.3", section="1. LICENSING"),
    ]
    found = re.findall(r"<h3>(.*?)</h3>", leaf_html(passages, lambda one: ""))
    assert found == ["1. LICENSING", "1.1 Scope", "1.2 Terms", "1. LICENSING"]  # the last: what belongs to no section


def test_hostile_texts_stay_texts(index):
    for text in hostile_texts():
        one = passage("d:1", text, number=text, section=text, title=text)
        pieces = [
            leaf_html([one], lambda p: read_address(p.text, p.text), "d:1", (0, 3), lambda t: marks_of(t, "a")),
            in_corpus(read_link_html(passage(text, "x")), text),
            beside_html(Related((Referred(text, (one,)), Referred(text, (), text)), (one,), ()), text),
            "".join(marked_difference(text, f"{text} x")),
            plain_markdown(text).replace("\\<", ""),
        ]
        for html in pieces:
            assert "<script" not in html.lower()
            assert "<img" not in html.lower()
    assert in_corpus(read_link_html(passage("a:1(2)", "x"), (3, 5)), "c d") == (
        '<a class="rq-read" href="read?corpus=c%20d&amp;passage=a%3A1%282%29&amp;from=3&amp;to=5" target="_blank">'
        "Read in the document</a>"
    )


def test_a_page_is_drawn_with_its_box_and_a_page_that_is_not_there_is_said(tmp_path):
    write_pdf(tmp_path / "a.pdf", rules_pages())
    with Reader() as reader:
        plain = reader.picture(tmp_path / "a.pdf", 1, ())
        boxed = reader.picture(tmp_path / "a.pdf", 1, ((90, 200, 500, 260),))
        with pytest.raises(UnreadableError, match="expected a page from 1 to 2, found 9"):
            reader.picture(tmp_path / "a.pdf", 9, ())
    assert plain.startswith(b"\x89PNG")
    assert plain != boxed


def test_a_record_that_cites_what_has_changed_or_gone_is_told_of():
    kept = (passage("d:1", "Two hours."), passage("d:2", "Stays."), passage("d:3", "Moves."), passage("d:4", "Goes."))
    sentences = [SimpleNamespace(citations=(1, 2)), SimpleNamespace(citations=(3, 4))]
    record = SimpleNamespace(kept=kept, passages=kept, answer=SimpleNamespace(sentences=sentences))
    now = held([passage("d:1", "One hour."), passage("d:2", "Stays."), passage("d:9", "Moves.")])
    found = stale(record, now)
    assert [(one.passage_id, one.what) for one in found] == [("d:1", "changed"), ("d:4", "gone")]
    assert stale_words(found).startswith("The source has changed since: d:1 (changed), d:4 (gone).")
    assert stale(record, held(list(kept))) == ()
    assert stale_words(()) == ""


def test_the_place_in_a_sheet_has_its_whole_name():
    place = places_of([Block("Fee | 5", "table", place="sheet=P&L; rows = 2&row=12")])
    assert place_words(place) == "sheet P&L; rows = 2, row 12"
    assert place_words("sheet=P&L") == "sheet P&L, row ?"
