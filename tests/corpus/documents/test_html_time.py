"""Web pages that are written to keep the reader busy: twice the page takes about twice the time, whatever its shape."""

import time

import pytest

from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.model import UnreadableError

SHAPES = {
    "headings": "<h2>Heading</h2><p>A firm must act.</p>",
    "headings before notes": '<h2>Notes</h2><ul><li class="footnote">1 A note.</li></ul>',
    "names of classes": "<p class='" + "a_" * 14 + "'>1. x</p>",
    "lists in lists": "<ol><li>" * 40 + "word" + "</li></ol>" * 40,
    "words in words": "<p>" + "<span>" * 100 + "word" + "</span>" * 100 + "</p>",
    "letters that begin again": "".join(f"<p>({chr(97 + n)}) text.</p>" for n in range(26)),
    "brackets": "<p>(a)</p>" * 10 + "(a)" * 50,
    "styles": "<style>.a{font-weight:bold}</style><p class=a>1. x</p>",
    "styles of their own": "".join(
        f"<style>.a{{font-weight:bold;x:{n}}}</style><p class='a b{n}'>1. x</p>" for n in range(60)
    ),
    "tables in tables": "<table><tr><td>" * 30 + "word" + "</td></tr></table>" * 30,
}


def seconds(body, folder):
    path = folder / "a.html"
    path.write_text(f"<html><body><p>A firm must act.</p>{body}</body></html>")
    began = time.process_time()
    parse_html(path)
    return time.process_time() - began


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_twice_the_page_takes_twice_the_time(tmp_path, shape):
    seconds(shape, tmp_path)
    bodies = (shape * (size // len(shape)) for size in (20_000, 160_000))
    short, long = (min(seconds(body, tmp_path) for _ in range(2)) for body in bodies)  # what else runs disturbs one
    assert long < 3 * 8 * max(short, 0.01)
    assert long < 15


def test_one_name_of_a_class_that_fills_the_page_is_no_name(tmp_path):
    assert seconds("<div class='" + "a_" * 200_000 + "'><p class='" + "a_" * 40 + "'>1. x</p></div>", tmp_path) < 2


def test_cells_that_span_everything_are_refused(tmp_path):
    rows = "<tr><td rowspan=9999 colspan=250>word</td><td>b</td></tr>" * 5_000
    with pytest.raises(UnreadableError, match="cells"):
        seconds(f"<table>{rows}</table>", tmp_path)


@pytest.mark.parametrize(
    "sheet",
    [
        "a" * 400_000,
        ".a{" + "content:" * 50_000 + "}",
        "p{" + "counter-increment:" + " ".join(f"a{n}" for n in range(50_000)) + "}",
        "p:before{content:" + "counter(a)" * 40_000 + "}p{counter-increment:a 99999999999}",
        ",".join(f"p.a{n}" for n in range(40_000)) + "{counter-increment:a}",
    ],
    ids=["no rule", "one content", "many counters", "many numbers", "many selectors"],
)
def test_a_style_sheet_that_fills_the_page_is_read_in_time(tmp_path, sheet):
    body = f"<style>{sheet}</style>" + "".join(f"<p class='a{n}'>A firm must act. {n}</p>" for n in range(1_000))
    assert seconds(body, tmp_path) < 5


def test_a_style_that_fills_an_attribute_is_read_in_time(tmp_path):
    assert seconds("<ol style='" + "list-style:" * 40_000 + "'><li>A firm must act.</li></ol>", tmp_path) < 5


def test_links_to_the_pages_beside_are_sought_near_them_only(tmp_path):
    links = "<a rel=next href=b.html>Next</a> " * 30
    assert seconds(f"{'<div>' * 60}{links}{'next ' * 20_000}{'</div>' * 60}", tmp_path) < 5


def test_terms_without_a_note_and_titles_of_a_table_are_read_in_time(tmp_path):
    terms = "<dt>1</dt>" * 20_000
    titles = "<tr><td colspan=2>Title of it</td></tr>" * 5_000
    body = f"<dl class=footnote>{terms}<dd>A note.</dd></dl><table>{titles}<tr><td>a<td>b</tr></table>"
    assert seconds(body, tmp_path) < 4
