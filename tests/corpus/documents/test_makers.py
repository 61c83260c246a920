"""How other makers set numbers, terms, headings and tables: each read by structure, with no word lost."""

import pytest
from docx import Document
from docx.oxml import OxmlElement

from ragqa.corpus.documents.conservation import lost_words
from ragqa.corpus.documents.docx import parse_docx
from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.labels import read_label
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.pdf import parse_pdf
from ragqa.corpus.documents.structure import build
from tests.support.document_files import write_pdf

BOATS = ("A keeper counts every boat.", "A master lights every lamp.", "A pilot rings every bell.")


def passages(parsed):
    found = passages_of(build(parsed.blocks), "d", "D", 128)
    assert not lost_words(parsed, found)
    return found


def numbers(tmp_path, body, title="<h1>Book</h1>"):
    """Number -> text of a page's passages, and of what has a number within them."""
    path = tmp_path / "a.html"
    path.write_text(f"<html><body>{title}{body}</body></html>", encoding="utf-8")
    found = passages(parse_html(path))
    return {name: text for one in found for name, text in (*one.places(), (one.number, one.text))}


def test_a_number_in_a_column_stays_where_what_it_numbers_has_columns_of_its_own(tmp_path):
    items = "".join(f"<div><div>({n})</div><div>{text}</div></div>" for n, text in enumerate(BOATS, start=1))
    found = numbers(tmp_path, f"<div><div>1.3</div><div>{items}</div></div>")
    assert [found[f"1.3.({n})"] for n in (1, 2, 3)] == [*BOATS]


def test_numbers_of_lists_are_those_that_a_style_gives_them(tmp_path):
    inner = "<ol style='list-style-type: lower-roman'><li>a bell,</li><li>a rope.</li></ol>"
    found = numbers(tmp_path, f"<ol start=4><li>It has:<ol style=list-style:upper-alpha><li>any of:{inner}</li></ol>")
    assert found["4.A.ii."] == "a rope."


def test_terms_and_numbers_of_definition_lists_stand_with_their_texts(tmp_path):
    found = numbers(
        tmp_path,
        "<dl><dt>12</dt><dd>A keeper counts:<dl><dt>(a)</dt><dd>boats;</dd><dt>(b)</dt><dd>lamps.</dd></dl></dd></dl>"
        "<h2>Terms</h2><dl><dt>“boat”</dt><dd>means what floats.</dd><dt>“lamp”</dt><dd>means what burns.</dd></dl>",
    )
    assert found["12.(b)"] == "lamps."
    assert found[""].startswith("“boat” means what floats.")


def test_columns_of_numbers_and_headings_are_known_by_what_their_zone_holds(tmp_path):
    rows = "".join(
        f"<div class='no'>{n}01</div><div class='name'>{name}</div><div class='text'><p>{text}</p></div>"
        for n, (name, text) in enumerate(zip(("Boats", "Lamps", "Bells"), BOATS, strict=True), start=1)
    )
    found = numbers(tmp_path, f"<div class='rules'>{rows}</div>")
    assert [found[f"{n}01"] for n in (1, 2, 3)] == [*BOATS]
    side = "".join(f"<p class='side'>On {n}</p><p>{n}. {text}</p>" for n, text in zip("ABC", BOATS, strict=True))
    (tmp_path / "b.html").write_text(f"<html><body><h1>Book</h1>{side}</body></html>", encoding="utf-8")
    assert [one.section for one in passages(parse_html(tmp_path / "b.html"))][-1] == "Book › On C"


def test_a_page_within_one_form_is_read_and_headings_that_are_buttons_too(tmp_path):
    parts = "".join(
        f"<h2><button>Standard {n}: Boats of kind {n}</button></h2><p>{n}&nbsp; {text}</p>"
        for n, text in enumerate(BOATS, start=1)
    )
    body = f"<form><input name='q'><h1>Book</h1><div id='footer'>Write to us</div>{parts}</form>"
    found = numbers(tmp_path, body, title="")
    assert found["Standard 2.2"] == BOATS[1]
    assert not any("Write" in text for text in found.values())


@pytest.mark.parametrize(
    ("text", "steps", "rest"),
    [
        ("14.—(1) A keeper", ["14.", "(1)"], "A keeper"),
        ("§ 12.4 Lamps", ["§ 12.4"], "Lamps"),
        ("§ 5 Lamps", ["§ 5"], "Lamps"),
        ("(ba) a rope", ["(ba)"], "a rope"),
    ],
)
def test_labels_of_statutes_and_codes(text, steps, rest):
    found, behind = read_label(text)
    assert ([step.printed for step in found], behind) == (steps, rest)
    assert [step.printed for step in read_label("PRIN 2.1.1", bare=True)[0]] == ["PRIN 2.1.1"]


def test_words_that_number_parts_are_learned_with_their_titles_and_before_sentences(tmp_path):
    parts = "".join(
        f"<h2>Topic {n} – Boats</h2><h3>Question {n}.1</h3><p>{text}</p>" for n, text in enumerate(BOATS, 1)
    )
    assert numbers(tmp_path, parts)["Topic 2.Question 2.1"] == BOATS[1]
    articles = "".join(f"<p>Article {n} {text}</p>" for n, text in enumerate(BOATS, start=1))
    assert numbers(tmp_path, articles)["Article 3"] == BOATS[2]


def test_points_that_were_inserted_are_in_order(tmp_path):
    points = "".join(f"<p>({label}) a boat of kind {label};</p>" for label in ("a", "aa", "b", "ba", "c"))
    found = numbers(tmp_path, f"<p>2. A keeper counts:</p>{points}")
    assert [found[f"2.({label})"] for label in ("aa", "b", "ba", "c")] == [
        f"a boat of kind {label};" for label in ("aa", "b", "ba", "c")
    ]


def numbered(paragraph):
    properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()
    properties.get_or_add_ilvl().val = 0
    properties.get_or_add_numId().val = 5
    return paragraph


def test_word_counts_numbers_in_cells_and_none_of_paragraphs_that_a_change_took_out(tmp_path):
    document = Document()
    gone = numbered(document.add_paragraph())
    mark = OxmlElement("w:rPr")
    mark.append(OxmlElement("w:del"))
    gone._p.get_or_add_pPr().append(mark)
    table = document.add_table(rows=2, cols=2)
    for row, text in zip(table.rows, BOATS, strict=False):
        numbered(row.cells[0].paragraphs[0])
        row.cells[1].text = text
    numbered(document.add_paragraph(BOATS[2]))
    merged = document.add_table(rows=2, cols=2)
    merged.cell(0, 0).merge(merged.cell(1, 0)).text = "Boats"
    merged.cell(0, 1).text, merged.cell(1, 1).text = "in spring", "in autumn"
    document.save(tmp_path / "a.docx")
    blocks = parse_docx(tmp_path / "a.docx").blocks
    labels = [block.label for block in blocks if block.text in BOATS]
    assert labels == ["1.", "2.", "3."]
    assert blocks[-1].text == "Boats | in spring\nBoats | in autumn"


def test_tables_without_lines_are_read_by_the_white_space_between_their_columns(tmp_path):
    rows = [("Boat", "Fee", "When"), ("Ferry", "3 coins", "each day"), ("Barge", "5 coins", "each week")]
    page = [(60, 90, 11, "1. A keeper collects what the table says."), (60, 300, 11, "2. A keeper writes it down.")]
    page += [(60 + 150 * k, 130 + 30 * n, 11, cell) for n, row in enumerate(rows) for k, cell in enumerate(row)]
    page += [(210, 204, 11, "or a rope")]
    write_pdf(tmp_path / "a.pdf", [page])
    parsed = parse_pdf(tmp_path / "a.pdf")
    passages(parsed)
    table = next(block.text for block in parsed.blocks if block.kind == "table")
    assert table.split("\n")[1:] == ["Ferry | 3 coins | each day", "Barge | 5 coins or a rope | each week"]


def test_a_note_stands_with_the_paragraph_that_calls_it(tmp_path):
    body = [(60, 90 + 40 * n, 11, f"{n + 1}. {text}") for n, text in enumerate(BOATS)]
    mark = (210, 86, 6, "1")
    write_pdf(tmp_path / "a.pdf", [[*body, mark, (60, 700, 8, "1 Those that float on the water of the port.")]])
    found = passages(parse_pdf(tmp_path / "a.pdf"))
    assert [one.number for one in found if "float" in one.text] == ["1.note 1"]
