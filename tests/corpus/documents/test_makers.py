"""How other makers set numbers, terms, headings and tables: each read by structure, with no word lost."""

import pytest
from docx import Document
from docx.oxml import OxmlElement

from ragqa.corpus.documents.conservation import lost_words
from ragqa.corpus.documents.counting import doubtful
from ragqa.corpus.documents.docx import parse_docx
from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.labels import read_label
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.pdf import parse_pdf
from ragqa.corpus.documents.structure import build
from ragqa.corpus.documents.titles import leave_out_contents
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


def test_numbers_in_square_brackets_are_told_where_they_count_on(tmp_path):
    assert numbers(tmp_path, "".join(f"<p>[{n}] {text}</p>" for n, text in enumerate(BOATS, start=1)))["2"] == BOATS[1]


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


def test_a_part_that_begins_below_a_table_is_no_row_of_it(tmp_path):
    rows = [("ARC", "Alien record card"), ("ATM", "Automated teller machine"), ("", "Part B"), ("", "LAMPS")]
    drawn = [(60 + 160 * k, 90 + 18 * n, 11, cell) for n, row in enumerate(rows) for k, cell in enumerate(row) if cell]
    drawn += [(60, 72, 11, "ABC"), (220, 72, 11, "Account of boats carried")]
    found = pdf_of(tmp_path, [*drawn, *((60, 200 + 30 * n, 11, f"{n + 1}) {text}") for n, text in enumerate(BOATS))])
    assert found["Part B.2)"].text == BOATS[1]


def test_a_note_stands_with_the_paragraph_that_calls_it(tmp_path):
    body = [(60, 90 + 40 * n, 11, f"{n + 1}. {text}") for n, text in enumerate(BOATS)]
    mark = (210, 86, 6, "1")
    write_pdf(tmp_path / "a.pdf", [[*body, mark, (60, 700, 8, "1 Those that float on the water of the port.")]])
    found = passages(parse_pdf(tmp_path / "a.pdf"))
    assert [one.number for one in found if "float" in one.text] == ["1.note 1"]


def pdf_of(tmp_path, *pages):
    write_pdf(tmp_path / "a.pdf", pages)
    return {one.number: one for one in passages(parse_pdf(tmp_path / "a.pdf"))}


def test_three_columns_are_read_one_after_the_other(tmp_path):
    said = "counts boats and lamps by day and night".split()
    columns = [
        (40 + 180 * k, 100 + 14 * n, 10, f"{k + 1}.{n + 1} {who} {' '.join(said[n % 3 :][:4])}.")
        for n in range(9)
        for k, who in enumerate(("A keeper", "A master", "A pilot"))
    ]
    found = pdf_of(tmp_path, columns)
    assert list(found) == [f"{k}.{n}" for k in (1, 2, 3) for n in range(1, 10)]
    assert found["2.4"].text == "A master counts boats and lamps."


def test_small_print_in_a_margin_is_the_heading_of_the_rule_that_begins_beside_it_or_a_note(tmp_path):
    rules = [(150, 90 + 40 * n, 11, f"{n + 1}. {text}") for n, text in enumerate(3 * BOATS)]
    found = pdf_of(
        tmp_path, [*rules, (40, 130, 7, "Lamps of"), (40, 138, 7, "the port."), (40, 220, 7, "Act 12 of 2001")]
    )
    assert found["2."].text == BOATS[1]
    assert found["2."].section == "Lamps of the port."
    assert found["4."].text == "Act 12 of 2001"  # the note, which is read after its rule


def test_footnotes_that_begin_further_out_than_the_text_are_none_in_a_margin(tmp_path):
    rules = [(150, 90 + 40 * n, 11, f"{n + 1}. {text}") for n, text in enumerate(3 * BOATS)]
    note = "Boats float on the water of the port and on that of the lake behind it."
    found = pdf_of(tmp_path, [*rules, (60, 700, 8, f"1 {note}"), (60, 709, 8, "Always.")])
    assert [one.text for one in found.values() if "float" in one.text] == [f"{note} Always."]


def test_headings_that_stand_alike_on_many_pages_are_no_running_heads(tmp_path):
    pages = [
        [(60, 60, 18, f"{n} Application"), (60, 110, 10, f"{n}.1 {text}")] for n, text in enumerate(BOATS, start=1)
    ]
    found = pdf_of(tmp_path, *pages)
    assert [found[f"{n}.1"].section for n in (1, 2, 3)] == [f"{n} Application" for n in (1, 2, 3)]
    pages = [[(60, 60, 10, f"Annexure-B{n}"), (60, 110, 10, f"{n}. {text}")] for n, text in enumerate(BOATS, start=1)]
    assert {"Annexure-B1.1.", "Annexure-B2.2.", "Annexure-B3.3."} <= pdf_of(tmp_path, *pages).keys()
    heads = [[(60, 60, 10, f"Chapter 3 Boats {n + 16}"), *page[1:]] for n, page in enumerate(pages)]
    assert {"1.", "2.", "3."} <= pdf_of(tmp_path, *heads).keys()  # one chapter, with the numbers of its pages
    pages = [[(60, 60, 10, "Annexure-B1"), *page[1:]] for page in pages]
    assert {"1.", "2.", "3."} <= pdf_of(tmp_path, *pages).keys()


def test_numbers_that_elements_or_styles_set_before_texts_are_theirs(tmp_path):
    rules = "".join(
        f"<h2><span>{n}</span><span>Boats</span></h2><div><p><span>(1)</span><span>{text}</span></p></div>"
        for n, text in enumerate(BOATS, start=1)
    )
    assert numbers(tmp_path, rules)["3.(1)"] == BOATS[2]
    style = "<style>li::before { content: attr(data-rule) ' ' }</style>"
    rules = "".join(f"<li data-rule='4.{n}'>{text}" for n, text in enumerate(BOATS, start=1))
    assert numbers(tmp_path, f"{style}<ol>{rules}</ol>")["4.2"] == BOATS[1]
    assert numbers(tmp_path, f"<p><span>1</span>st {BOATS[0]}</p>")[""].startswith("1st A keeper")


def test_a_note_beside_a_rule_stands_with_it_and_apart(tmp_path):
    rules = "".join(
        f"<div><aside class='sidenote'>See {n}</aside><div><b>2.{n}</b> <p>{text}</p></div></div>"
        for n, text in enumerate(BOATS, start=1)
    )
    path = tmp_path / "a.html"
    path.write_text(f"<html><body><h1>Book</h1>{rules}</body></html>", encoding="utf-8")
    found = [(one.number, one.text) for one in passages(parse_html(path))][1:]
    assert found == [
        pair for n, text in enumerate(BOATS, start=1) for pair in ((f"2.{n}", text), (f"2.{n}", f"See {n}"))
    ]


def test_letters_and_bold_words_that_number_parts_are_learned_and_captions_are_not(tmp_path):
    asked = "".join(
        f"<p><b>Q 3.{n}</b> Who counts {n} boats?</p><p>A {text}</p>" for n, text in enumerate(BOATS, start=1)
    )
    assert numbers(tmp_path, f"<h2>3. Boats</h2>{asked}")["Q 3.2"] == f"A {BOATS[1]}"
    named = "".join(f"<p><b>Principle {n}: Boats</b></p><p>{text}</p>" for n, text in enumerate(BOATS, start=1))
    assert numbers(tmp_path, named)["Principle 3"] == BOATS[2]
    titled = "".join(f"<p>SEC. 10{n}. BOATS.</p><p>(a) {text}</p>" for n, text in enumerate(BOATS, start=1))
    assert numbers(tmp_path, titled)["SEC. 102.(a)"] == BOATS[1]
    others = "".join(f"<p><b>Boats of sort {name}</b></p><p>They float.</p>" for name in "ABCD")
    shown = named.replace("Principle", "Figure")
    assert "Figure 2" not in numbers(tmp_path, others + shown)


def test_inserted_numbers_chapters_numbered_with_a_nought_and_a_line_in_capitals(tmp_path):
    recitals = "".join(f"<p>({n}) {text}</p>" for n, text in enumerate(BOATS, start=1))
    rules = "".join(
        f"<p>{n}. {text}</p>" for n, text in zip(("1", "2", "2a", "3"), (*BOATS, "A cook cooks."), strict=True)
    )
    found = numbers(tmp_path, f"{recitals}<p>HAVE AGREED AS FOLLOWS:</p><p>Article 1</p><p>Boats</p>{rules}")
    assert (found["(3)"], found["Article 1.2a."]) == (BOATS[2], BOATS[2])
    path = tmp_path / "b.html"
    body = "".join(f"<h2>{n}.0 Boats</h2><p>{n}.1 {text}</p>" for n, text in enumerate(BOATS, start=1))
    path.write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    root = build(parse_html(path).blocks)
    rules = {one.number: one.section for one in passages_of(root, "d", "D", 128)}
    assert [rules[f"{n}.1"] for n in (1, 2, 3)] == [f"{n}.0 Boats" for n in (1, 2, 3)]
    assert not doubtful(root)


def test_paragraphs_begin_where_first_lines_are_set_in_or_a_title_is_in_capitals(tmp_path):
    wide = "A keeper of a lighthouse must count the boats in the harbour each evening before"
    lines = (
        (60, f"SUMMARY: {wide}"), (60, "the lamps are lit."),
        (72, f"On Sundays {wide}"), (60, "noon and again before dusk."),
        (72, f"In winter {wide}"), (60, "the bell, under Order 2018–"), (60, "51 of the master."),
        (60, f"DATES: {wide}"),
        (60, "May."),
    )  # fmt: skip
    pages = [[(x, 100 + 12 * n, 10, text.replace("–", "-")) for n, (x, text) in enumerate(lines)]]
    write_pdf(tmp_path / "a.pdf", pages)
    texts = [block.text for block in parse_pdf(tmp_path / "a.pdf").blocks]
    assert [text.split()[0] for text in texts] == ["SUMMARY:", "On", "In", "DATES:"]
    assert texts[2].endswith("under Order 2018-51 of the master.")


def test_a_heading_on_the_next_page_is_no_part_of_the_one_above_a_table(tmp_path):
    def page(title, start):
        rows = [
            (60 + 200 * k, 160 + 24 * n, 10, f"{name} {start + n}") for n in range(4) for k, name in enumerate("AB")
        ]
        return [(60, 100, 14, title), *rows]

    write_pdf(tmp_path / "a.pdf", [page("Heavy lamps", 1), page("Light lamps", 5)])
    found = [(block.kind, block.text.split("\n")[0]) for block in parse_pdf(tmp_path / "a.pdf").blocks]
    assert found == [
        ("heading", "Heavy lamps"),
        ("table", "A 1 | B 1"),
        ("heading", "Light lamps"),
        ("table", "A 5 | B 5"),
    ]


def test_dashes_and_signs_of_ordinals_in_numbers_are_read(tmp_path):
    title = "<title>Law Library - § 1–1001.18. Lamps of quays.</title><h1>§ 1–1001.18. Lamps of quays.</h1>"
    found = numbers(tmp_path, f"<p>(a) {BOATS[1]}</p><p>(b) {BOATS[2]}</p>", title)
    assert found["§ 1–1001.18.(b)"] == BOATS[2]
    assert parse_html(tmp_path / "a.html").title == "§ 1–1001.18. Lamps of quays."
    items = "".join(f"<p>{n}° to {name};</p>" for n, name in enumerate(("boats", "lamps", "bells"), start=1))
    found = numbers(tmp_path, f"<h2>PART 2 OIL</h2><p>3. This Act does not apply</p>{items}<p>4. {BOATS[0]}</p>")
    assert found["PART 2.3.2°"] == "to lamps;"
    assert found["PART 2.4."] == BOATS[0]


def test_a_note_at_the_top_of_a_page_numbers_nothing(tmp_path):
    rules = "".join(f"<h3>{n} Oil {n}</h3><p>(1) {text}</p>" for n, text in enumerate(BOATS, start=1))
    found = numbers(tmp_path, f"<h2>Note</h2><p>This version is of today.</p><h2>Contents</h2>{rules}")
    assert found["2.(1)"] == BOATS[1]


def test_a_defined_term_with_a_list_holds_its_items(tmp_path):
    terms = "".join(
        f"<p>“{term}” means a keeper who —</p><p>(a) has {term}s; or</p><p>(b) sells them;</p>"
        f"<p>“{term} house” means a house;</p>"
        for term in ("lamp", "boat")
    )
    found = numbers(tmp_path, f"<p>2.—(1) In this Act —</p>{terms}<p>(2) {BOATS[0]}</p><p>3.—(1) {BOATS[1]}</p>")
    assert found["2.(1).boat.(b)"] == "sells them;"
    assert found["2.(1).boat"].startswith("“boat” means a keeper who —\n(a)\thas boats; or")
    assert found["2.(1).lamp house"] == "“lamp house” means a house;"
    assert (found["2.(2)"], found["3.(1)"]) == BOATS[:2]


def test_a_number_beside_a_dash_and_the_first_paragraph_is_one_number(tmp_path):
    cell = "<table><tr><td>and bells.</td></tr></table>"
    rules = "".join(
        f"<p><strong>{n}.</strong><span>—(1) {text}{cell}</span></p><p>(2) {text}</p>"
        for n, text in enumerate(BOATS, 1)
    )
    found = numbers(tmp_path, rules)
    assert found["1.(1)"].startswith(BOATS[0])
    assert found["3.(2)"] == BOATS[2]


def test_sources_at_the_end_of_texts_are_set_apart_where_several_are(tmp_path):
    rules = "".join(f"<p>{n}. {text} 2004, c. 3, Sched. A, s. {n} (1).</p>" for n, text in enumerate(BOATS, 1))
    found = numbers(tmp_path, rules)
    assert [found[f"{n}."] for n in (1, 2, 3)] != [*BOATS]  # the last passage with the number is its source
    texts = [one.text for one in passages(parse_html(tmp_path / "a.html"))]
    assert set(BOATS) < set(texts)
    assert "2004, c. 3, Sched. A, s. 2 (1)." in texts


def test_editors_brackets_marks_and_struck_out_wordings_number_nothing(tmp_path):
    mark = "<span class='note'><sup><a href='{}'>{}</a></sup></span>"
    items = "".join(
        f"{mark.format(n, n)}[ ({letter}) {text}]<div>&nbsp;</div>"
        for n, (letter, text) in enumerate(zip("abc", BOATS, strict=True), 4)
    )
    found = numbers(
        tmp_path, f"<p>2. A keeper acts so:</p><div>{items}</div><p><s>3. An old rule.</s></p><p>3. {BOATS[0]}</p>"
    )
    assert found["2.(b)"] == f"5[ {BOATS[1]}]"
    assert found["3."] == BOATS[0]


def test_articles_before_sentences_paragraph_signs_and_dashed_numbers_are_read(tmp_path):
    items = "".join(
        f"<p>{number} - o {name};</p>"
        for number, name in zip(("I", "II", "III"), ("óleo", "barco", "sino"), strict=True)
    )
    rules = "".join(
        f"<p>Art. {n}º O guarda acende:</p>{items}<p>§ 1º {text}</p><p>§ 2º {text}</p>"
        for n, text in enumerate(BOATS, 1)
    )
    found = numbers(tmp_path, rules)
    assert found["Art. 2º.II."] == "o barco;"
    assert found["Art. 3º.§ 2º"] == BOATS[2]


def test_a_number_with_its_section_before_it_is_not_said_twice(tmp_path):
    rules = "".join(
        f"<h2>Art. {n} Oil {n}</h2><p>{n}.1 {text}</p><p>{n}.2 {text}</p>" for n, text in enumerate(BOATS, 1)
    )
    found = numbers(tmp_path, rules)
    assert found["2.1"] == BOATS[1]


def test_an_item_whose_first_line_is_set_in_goes_on_behind_a_line_that_ends_with_or(tmp_path):
    lines = (
        "A keeper counts each boat that is moored at the quay and writes into the book the lamps and",
        "bells of each boat or",
        "ropes that the master of the boat has brought on shore for the use of others who are there.",
    )
    drawn = [(130, 100, 11, "(a)"), *((170 if not n else 60, 100 + 14 * n, 11, line) for n, line in enumerate(lines))]
    found = pdf_of(
        tmp_path, [(60, 80, 11, "1. A keeper acts so:"), *drawn, (130, 150, 11, "(b)"), (170, 150, 11, BOATS[0])]
    )
    assert "has brought on shore" in next(text for name, text in found["1."].places() if name == "1.(a)")


def test_articles_with_a_title_in_capitals_are_counted_beside_headings_of_the_same_look(tmp_path):
    heads = [(60, 80 + 100 * n, 14, f"Of lamps {n}") for n in range(4)]
    rules = [
        (60, 110 + 100 * n, 14 if n % 2 else 10, f"ARTICLE {n + 1}. BOATS {'AB'[n % 2]}. {BOATS[0]}") for n in range(4)
    ]
    body = [(60, 125 + 100 * n, 10, f"{text} {text}") for n, text in enumerate((*BOATS, BOATS[0]))]
    found = pdf_of(tmp_path, sorted([*heads, *rules, *body], key=lambda one: one[1]))
    assert {f"ARTICLE {n}" for n in (1, 2, 3, 4)} <= set(found)


def test_codes_of_a_book_number_rules_and_contents_with_their_titles_are_left_out(tmp_path):
    names = ("Boats of keepers", "Lamps of masters", "Bells of pilots")
    contents = "".join(f"<p>ORS {n}.010 {name}.</p>" for n, name in enumerate(names, 1))
    rules = "".join(
        f"<p>ORS {n}.010 {name}. {text}</p><p>1. {text}</p>"
        for n, (name, text) in enumerate(zip(names, BOATS, strict=True), 1)
    )
    found = numbers(tmp_path, f"{contents}<hr><h2>RULES</h2>{rules}")
    assert found["ORS 2.010.1."] == BOATS[1]
    assert found["ORS 3.010"] == f"Bells of pilots. {BOATS[2]}"
    parsed = parse_html(tmp_path / "a.html")
    leave_out_contents(parsed)
    assert [block.text for block in parsed.blocks[:2]] == ["Book", "RULES"]


def test_titles_before_a_colon_are_titles_if_each_is_another(tmp_path):
    names = ("Boats (new)", "Lamps (old)", "Bells (all)", "Ropes (all)")
    rules = "".join(
        f"<p>1.2.{n} {name}: {text.replace(' ', ' must ', 2)}</p>"
        for n, (name, text) in enumerate(zip(names, (*BOATS, BOATS[0]), strict=True), 1)
    )
    numbers(tmp_path, rules)
    second = passages(parse_html(tmp_path / "a.html"))[2]
    assert [*second.places()] == [("1.2.2", BOATS[1].replace(" ", " must ", 2))]
    assert second.section == "Book › 1.2.2 Lamps (old)"


def test_a_link_beside_a_heading_is_no_part_of_it(tmp_path):
    found = numbers(
        tmp_path, f"<h3><a href='x' target='_blank'>PDF</a>RCW <a href='y'>19.3.040</a></h3><p>(1) {BOATS[0]}</p>"
    )
    assert found["RCW 19.3.040.(1)"] == BOATS[0]


def test_a_title_without_a_space_and_a_number_with_hyphens_before_a_title_in_a_text(tmp_path):
    found = numbers(tmp_path, f"<h2>Subdivision 1.Oil.</h2><p>{BOATS[0]}</p><h2>Subd. 2.Ropes.</h2><p>{BOATS[1]}</p>")
    assert (found["Subdivision 1"], found["Subd. 2"]) == BOATS[:2]
    found = numbers(tmp_path, f"<p>TITLE 18</p><p>18-40. Degrees of oil. (a) {BOATS[0]}</p><p>(b) {BOATS[1]}</p>")
    assert found["TITLE 18.18-40.(b)"] == BOATS[1]


def test_sections_that_count_anew_in_each_article_are_below_it(tmp_path):
    texts = "".join(f"<b>Section {n}.</b> {text}<br>" for n, text in enumerate(BOATS, start=1))
    names = zip(("I", "II", "III"), ("Boats", "Lamps", "Bells"), strict=True)
    found = numbers(tmp_path, "".join(f"<p><u>ARTICLE {number} - {name}</u><br>{texts}</p>" for number, name in names))
    assert [found[f"ARTICLE III.Section {n}"] for n in (1, 2, 3)] == [*BOATS]
    inside = (
        "<h2>Chapter {0}</h2><h3>Section 1</h3><h4>Article {1}</h4><p>Oil.</p><h3>Section 2</h3><h4>Article {2}</h4>"
    )
    found = numbers(tmp_path, "".join(inside.format(n, 2 * n - 1, 2 * n) + f"<p>{BOATS[n - 1]}</p>" for n in (1, 2, 3)))
    assert found["Chapter 2.Section 2.Article 4"] == BOATS[1]


def test_titles_of_sections_stand_above_their_texts_in_a_row_that_holds_the_page(tmp_path):
    names = ("Place of the Boats", "Lamps", "Ringing")
    texts = "".join(
        f"<p>Section 2.{n}{'.' if n > 1 else ''} {name}.</p><p>{text}</p>"
        for n, (name, text) in enumerate(zip(names, BOATS, strict=True), start=1)
    )
    inner = f"<table><tr><th>Home</th><td><h2>Article II Boats</h2>{texts}{'<p>Oil is kept.</p>' * 4}</td></tr></table>"
    found = numbers(tmp_path, f"<table><td>{inner}</td></table>")
    assert [found[f"Section 2.{n}"].partition("\n")[0] for n in (1, 2, 3)] == [*BOATS]


def test_numbers_that_are_spelled_count(tmp_path):
    inner = "<p>First, to count boats.</p><p>Second, to light lamps.</p>"
    found = numbers(
        tmp_path,
        f"<p>FIRST: {BOATS[0]}</p><p>SECOND: The aims are:</p>{inner}<p>THIRD: {BOATS[1]}</p>"
        f"<h2>ARTICLE ONE</h2><p>{BOATS[2]}</p><h2>ARTICLE TWO</h2><p>Section one says so.</p>",
    )
    assert found["SECOND.Second"] == "to light lamps."
    assert found["THIRD"] == BOATS[1]
    assert found["ARTICLE ONE"] == BOATS[2]
    assert found["ARTICLE TWO"] == "Section one says so."
    assert "First" not in numbers(tmp_path, f"<p>First, {BOATS[0]}</p><p>{BOATS[1]}</p>")
