"""What each reader must see: notes, bullets, columns of terms, run-in headings, frames; no word is lost unsaid."""

from collections import Counter

import pytest
from docx import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import qn
from openpyxl import Workbook

from ragqa.corpus.documents import _short
from ragqa.corpus.documents.conservation import check_words, lost_words
from ragqa.corpus.documents.docx import parse_docx
from ragqa.corpus.documents.docx_numbering import W
from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.labels import read_label
from ragqa.corpus.documents.model import BOLD_LEVEL, Block, Parsed, UnreadableError
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.pdf import parse_pdf
from ragqa.corpus.documents.pdf_lines import Word, lines_of
from ragqa.corpus.documents.pdf_tables import whole_tables
from ragqa.corpus.documents.sheets import parse_csv, parse_xlsx
from ragqa.corpus.documents.structure import build
from ragqa.corpus.documents.titles import leave_out_contents
from ragqa.corpus.documents.worker import read_document
from tests.support.document_files import write_pdf

TITLE = (60, 30, 8, "Book of Harbours")


def pdf_blocks(path, *pages):
    write_pdf(path, list(pages))
    parsed = parse_pdf(path)
    assert not lost_words(parsed, passages_of(build(parsed.blocks), "d", "D", 128))
    return parsed


def lines(x, y, *texts, size=11):
    return [(x, y + 13 * n, size, text) for n, text in enumerate(texts)]


def test_notes_with_numbers_of_their_own_are_no_footers(tmp_path):
    pages = [
        [TITLE, *lines(60, 150, f"{n}. A keeper of harbour {n} counts the boats each morning and each night."),
         (60, 760, 8, f"{n + n // 3} Circular Letter No. {n * n % 7} of 20{20 + n * n % 3}"),
         (300, 785, 8, f"Page {n}")]
        for n in range(1, 6)
    ]  # fmt: skip
    parsed = pdf_blocks(tmp_path / "a.pdf", *pages)
    assert [block.label for block in parsed.blocks if block.kind == "note"] == ["1", "2", "4", "5", "6"]
    assert parsed.dropped == {"header or footer": 5, "page number": 5}


def test_a_bullet_begins_a_paragraph_and_a_term_stands_beside_its_text(tmp_path):
    page = lines(60, 90, "A keeper lights", "- the pier,", "- the gate.")
    for n, term in enumerate(("Lamp", "Bell", "Rope")):
        page += [
            (60, 200 + 40 * n, 11, term),
            *lines(200, 200 + 40 * n, f"what every boat of kind {n} carries", "at night."),
        ]
    texts = [block.text for block in pdf_blocks(tmp_path / "a.pdf", page).blocks]
    assert texts[1:3] == ["- the pier,", "- the gate."]
    assert "Bell | what every boat of kind 1 carries at night." in texts


def test_a_list_of_contents_without_leaders_goes(tmp_path):
    names = "Lamps Bells Ropes Keepers Boats Fees".split()
    contents = [
        entry
        for n, name in enumerate(names)
        for entry in ((60, 100 + 20 * n, 11, name), (400, 100 + 20 * n, 11, str(n + 2)))
    ]
    further = [lines(60, 90, f"{name} are kept by the harbour in good order.") for name in names]
    parsed = pdf_blocks(tmp_path / "a.pdf", contents, *further)
    assert parsed.dropped["table of contents"] == len(names)
    assert len(parsed.blocks) == len(names)


def test_a_heading_that_runs_in_to_its_text():
    blocks = [
        Block("24. Counting boats at night.- (1) In counting, no boat is counted twice."),
        Block("(2) Count again."),
    ]
    [heading, first, second] = passages_of(build(blocks), "d", "D", 128)
    assert (heading.number, heading.text) == ("24.", "Counting boats at night")
    assert (first.number, first.text) == ("24.(1)", "In counting, no boat is counted twice.")
    assert second.section == "24. Counting boats at night"


def test_numbers_with_a_letter_before_them_behind_a_word():
    [step], rest = read_label("REGULATION R-4 Lamps")
    assert (step.printed, rest) == ("REGULATION R-4", "Lamps")


def test_headings_without_numbers_begin_a_count_anew():
    names = ("Boats", 0.0), ("1. Size", 90.0), ("2. Age", 90.0), ("Keepers", 0.0), ("1. Duties", 90.0)
    blocks = [Block(name, "heading", indent=indent) for name, indent in names] + [Block("Many.")]
    assert passages_of(build(blocks), "d", "D", 128)[-1].number == "1."


def test_a_note_between_items_stands_beside_them():
    blocks = [Block("2. A keeper must:"), Block("(a) count; and"), Block("As of old.", "note", "7"), Block("(b) log.")]
    [rule, note] = passages_of(build(blocks), "d", "D", 128)
    assert rule.text == "A keeper must:\n(a)\tcount; and\n(b)\tlog."
    assert (note.number, note.text) == ("2.note 7", "As of old.")


def test_a_frame_in_word_is_a_note_with_its_name_and_no_table(tmp_path):
    document = Document()
    document.add_heading("Lamps", 1)
    document.add_table(1, 1).rows[0].cells[0].text = "Practice Note: lamps burn at night."
    document.add_table(1, 1).rows[0].cells[0].text = "Lamps are lit by hand."
    document.save(tmp_path / "a.docx")
    parsed = parse_docx(tmp_path / "a.docx")
    assert [(block.kind, block.text) for block in parsed.blocks[1:]] == [
        ("note", "Practice Note: lamps burn at night."), ("text", "Lamps are lit by hand.")]  # fmt: skip
    assert not lost_words(parsed, passages_of(build(parsed.blocks), "d", "D", 128))


def test_hidden_sheets_are_left_out_by_name_with_all_their_words(tmp_path):
    book = Workbook()
    book.active.append(["Island", "Name of its keeper"])
    book.active.append(["Brač", "Ana"])
    hidden = book.create_sheet("Old")
    hidden.append(["Secret lamp"])
    hidden.sheet_state = "hidden"
    book.save(tmp_path / "a.xlsx")
    parsed = parse_xlsx(tmp_path / "a.xlsx")
    assert "secret" in parsed.words
    assert not lost_words(parsed, passages_of(build(parsed.blocks), "d", "D", 128))


def test_a_reading_that_loses_much_is_refused_and_one_that_parts_words_elsewhere_is_not():
    words = "shall not sail at night without a lamp".split()
    parsed = Parsed(blocks=[Block("shallnot sail at night without a lamp")], words=Counter(words))
    passages = passages_of(build(parsed.blocks), "d", "D", 128)
    assert not lost_words(parsed, passages)
    parsed.words["rope"] += 1
    check_words(parsed, passages)
    assert "1 words of the file are in no passage" in parsed.warnings[0]
    parsed.words["rope"] += 40
    with pytest.raises(UnreadableError, match="found 41 of 49 in none"):
        check_words(parsed, passages)


def test_what_stands_in_the_place_of_a_running_head_is_one_whatever_it_says(tmp_path):
    sections = "Ropes", "Anchors", "Sails and masts", "Oars", "Keels", "Bells"
    pages = [
        [(60, 30, 10, f"Guide to boats > {name}"),
         *lines(60, 110, f"The keeper looks at each of the {name.lower()} before a boat leaves.", "He writes it down."),
         *lines(60, 160, "What is worn out is replaced the same day.")]
        for name in sections
    ]  # fmt: skip
    parsed = pdf_blocks(tmp_path / "a.pdf", *pages)
    assert parsed.dropped == {"header or footer": 6}
    unlike = [[*lines(60, 60, f"{name} come first on this page, and more", f"{name} twice.")] for name in sections]
    assert not pdf_blocks(tmp_path / "b.pdf", *unlike).dropped


def test_a_list_goes_on_where_the_texts_of_its_items_begin(tmp_path):
    page = [
        TITLE, *lines(60, 100, "1. A boat may leave where:"),
        (80, 113, 11, "I."), (120, 113, 11, "its keeper is on board;"),
        *lines(120, 126, "II. its sails are dry; and", "III. its anchor is up."),
        *lines(60, 200, "2. The harbour lists: i.) boats."), *lines(60, 213, "ii.) keepers."),
    ]  # fmt: skip
    texts = [(block.label, block.text) for block in pdf_blocks(tmp_path / "a.pdf", page).blocks]
    assert ("I.", "its keeper is on board;") in texts
    assert ("", "II. its sails are dry; and") in texts
    assert ("", "III. its anchor is up.") in texts
    assert ("", "ii.) keepers.") in texts


def test_a_word_that_is_set_wide_is_one_word(tmp_path):
    page = [*lines(60, 100, "D U T I E S"), *lines(60, 150, "A keeper rings the bell.")]
    assert pdf_blocks(tmp_path / "a.pdf", page).blocks[0].text == "DUTIES"


def test_letters_of_a_word_that_is_set_wide_are_kept_and_a_letter_beside_it_is_lost():
    words = Counter("d u t i e s ring a bell daily".split())
    parsed = Parsed(blocks=[Block("DUTIES"), Block("Ring bell daily.")], words=words)
    assert lost_words(parsed, passages_of(build(parsed.blocks), "d", "D", 128)) == {"a": 1}


def test_entries_of_contents_that_wrap_go_with_them(tmp_path):
    contents = [
        (60, 60, 11, "Contents"), *lines(60, 90, "Boats ......... 2", "Anchors, ropes and what", "holds ......... 3"),
        *lines(60, 140, "Sails .............. 4"),
    ]  # fmt: skip
    parsed = pdf_blocks(tmp_path / "a.pdf", contents, [*lines(60, 200, "A keeper counts the boats.")])
    assert [block.text for block in parsed.blocks] == ["A keeper counts the boats."]
    assert parsed.dropped == {"table of contents": 5}


def test_a_schedule_of_fees_with_dots_is_no_table_of_contents(tmp_path):
    fees = ["Boat ......... 250", "Barge ......... 900", "Raft ......... 40", "Oar ......... 15", "Buoy ......... 300"]
    parsed = pdf_blocks(tmp_path / "a.pdf", lines(60, 60, "The fees of the harbour in pounds are", *fees))
    text = " ".join(block.text for block in parsed.blocks)
    assert all(one in text for one in fees)
    assert not parsed.dropped

    parsed = Parsed(blocks=[Block("The fees in pounds."), *map(Block, fees), Block("A keeper takes them.")])
    leave_out_contents(parsed)
    assert [block.text for block in parsed.blocks[1:-1]] == fees


def test_a_table_goes_on_on_the_next_page_and_its_head_is_said_once():
    first = Block("Boat | Keeper\nTern | Ann", "table", place="page=1&box=0,0,9,9")
    again = Block("Boat | Keeper\n | and Bo\nGull | Cy", "table", place="page=2&box=0,0,9,9")
    other = Block("Rope | Length | Colour", "table", place="page=3&box=0,0,9,9")
    parsed = Parsed()
    whole, apart = whole_tables([first, again, other], parsed)
    assert whole.text == "Boat | Keeper\nTern | Ann and Bo\nGull | Cy"
    assert apart == other
    assert list(parsed.left_out) == [("head of a table on a further page", "Boat | Keeper")]


def test_bullets_and_dashes_below_them_are_places_by_their_count():
    texts = "A keeper:", "• counts", "• notes", "– boats", "– ropes", "• rests", "A guest:", "• pays"
    blocks = [Block("Duties", "heading"), *(Block(text) for text in texts)]
    (_, passage) = passages_of(build(blocks), "d", "D", 128)
    places = dict(passage.places())
    assert places["second bullet"] == "notes"
    assert places["second bullet.second dash"] == "ropes"
    assert places["third bullet"] == "rests"
    assert places["second paragraph"] == "A guest:"


def test_a_text_in_a_doubtful_encoding_is_said(tmp_path):
    said = {}
    for name, words in (
        ("good", "Café – ‘côté’, naïve, Ängste"),
        ("bad", "cafÃ© and boatâ€™s keeper"),
        ("lost", "caf\ufffd"),
    ):
        path = tmp_path / f"{name}.html"
        path.write_text(f"<meta charset=utf-8><p>A keeper says {words} each day.</p>", encoding="utf-8")
        said[name] = [
            warning for warning in read_document(path, "HTML", name, 128)["warnings"] if "encoding" in warning
        ]
    assert not said["good"]
    assert said["bad"][0].startswith("2 places")
    assert said["lost"][0].startswith("1 places")


def test_a_picture_that_is_described_keeps_its_heading(tmp_path):
    links = "<ul class=links><li><a href=a>Print</a></li><li><a href=b>Export</a></li></ul>"
    text = "<div class=text><h5>Map</h5><p><img alt='harbour walls'></p></div>"
    body = f"<p>A keeper counts boats.</p><div class=row>{text}{links}</div>"
    (path := tmp_path / "a.html").write_text(f"<body>{body}</body>")
    assert {"Map", "harbour walls"} <= {block.text for block in parse_html(path).blocks}


def test_a_bullet_of_the_left_column_goes_on_in_its_next_line(tmp_path):
    left = [
        text
        for n in range(8)
        for text in (f"- Boat {n} has a lamp upon its mast that", "shines for all who sail the wide sea")
    ]
    page = [(60 + 12 * (n % 2), 90 + 13 * n, 11, text) for n, text in enumerate(left)]
    page += lines(330, 90, *(["Every keeper of a harbour counts it all"] * 16))
    texts = [block.text for block in pdf_blocks(tmp_path / "a.pdf", page).blocks]
    assert "- Boat 3 has a lamp upon its mast that shines for all who sail the wide sea" in texts


def test_headings_in_word_are_known_by_the_name_of_a_style_of_their_maker(tmp_path):
    document = Document()
    for name, text in (("Port Heading 2", "Lamps"), ("Port Head", "Oil"), ("Port Header", "A lamp burns oil")):
        document.styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH)
        document.add_paragraph(text, name)
    document.save(tmp_path / "a.docx")
    blocks = parse_docx(tmp_path / "a.docx").blocks
    assert [(block.kind, block.level) for block in blocks] == [("heading", 2), ("heading", BOLD_LEVEL), ("text", 0)]


def test_raised_and_lowered_letters_are_part_of_the_word_before_them_in_both_readings(tmp_path):
    (path := tmp_path / "a.html").write_text(
        "<p>A fee is the <em>rate<sub>I</sub></em> of boats and rateI of oars.</p>"
    )
    parsed = parse_html(path)
    assert parsed.blocks[0].text == "A fee is the rateI of boats and rateI of oars."
    assert parsed.words["ratei"] == 2


def test_lists_and_bold_lines_in_word_are_bullets_and_headings(tmp_path):
    document = Document()
    document.add_paragraph().add_run("Lamps").bold = True
    document.add_paragraph("A keeper:")
    for text, style in (("counts", "List Bullet"), ("notes", "List Bullet"), ("boats", "List Bullet 2")):
        document.add_paragraph(text, style)
    document.add_paragraph().add_run("He rests.").bold = True
    document.save(tmp_path / "a.docx")
    blocks = parse_docx(tmp_path / "a.docx").blocks
    assert [(block.kind, block.text[2:] if "•" in block.text else block.text) for block in blocks] == [
        ("heading", "Lamps"), ("text", "A keeper:"), ("text", "counts"), ("text", "notes"), ("text", "boats"),
        ("text", "He rests.")]  # fmt: skip
    assert blocks[0].level == 7
    assert blocks[2].text == "• counts"


def test_a_paragraph_that_links_back_to_its_mark_is_a_footnote(tmp_path):
    note = "<a name='n1'></a><p>(<a href='#m1'> 1 </a>) See the Lamps Act.</p>"
    entry = "<p><a href='#top'>2</a> Lamps are lit by hand.</p>"
    text = "<p>A keeper lights lamps.<a name='m1'></a> (<a href='#n1'>1</a>)</p>"
    (tmp_path / "a.html").write_text(f"<html><body><h1 id='top'>Lamps</h1>{text}{entry}{note}</body></html>")
    blocks = parse_html(tmp_path / "a.html").blocks
    assert [(block.kind, block.label) for block in blocks] == [
        ("heading", ""),
        ("text", ""),
        ("text", ""),
        ("note", "(1)"),
    ]
    assert blocks[-1].text == "See the Lamps Act."


def test_print_says_how_high_headings_stand(tmp_path):
    page = [
        (60, 60, 16, "LAMPS"),
        *lines(60, 90, "All boats have lamps."),
        (60, 120, 14, "Section 5 Oil"),
        *lines(60, 150, "Oil burns.", "Keep it dark."),
        (60, 200, 14, "Wax"),
        *lines(60, 230, "Wax melts."),
        (60, 260, 16, "BELLS"),
        *lines(60, 290, "All boats have bells."),
    ]
    found = passages_of(build(pdf_blocks(tmp_path / "a.pdf", page).blocks), "d", "D", 128)
    sections = {passage.text.split("\n")[0]: (passage.number, passage.section) for passage in found}
    assert sections["All boats have bells."] == ("", "BELLS")
    assert sections["Wax melts."] == ("Section 5", "LAMPS › Section 5 Oil › Wax")


def test_a_text_further_out_than_a_number_is_none_of_its_item(tmp_path):
    lists = [*lines(90, 90, "1. The master counts the boats."), *lines(90, 110, "2. The master notes the boats.")]
    page = [*lines(60, 60, "A master does this each night in every harbour:"), *lists,
            *lines(60, 140, "Nobody else counts any boats in any harbour.")]  # fmt: skip
    found = passages_of(build(pdf_blocks(tmp_path / "a.pdf", page).blocks), "d", "D", 128)
    assert "2." not in [passage.number for passage in found if "Nobody" in passage.text]


def test_a_note_in_word_stands_where_it_is_called(tmp_path):
    document = Document()
    called = document.add_paragraph("Lamps burn.")
    document.add_paragraph("Bells ring.")
    mark = OxmlElement("w:footnoteReference")
    mark.set(qn("w:id"), "7")
    called.add_run()._r.append(mark)
    space = "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'"
    notes = (
        f"<w:footnotes {space}><w:footnote w:id='7'><w:p><w:r><w:t>Of oil.</w:t></w:r></w:p></w:footnote></w:footnotes>"
    )
    name, kind = PackURI("/word/footnotes.xml"), "application/xml"
    document.part.relate_to(Part(name, kind, notes.encode(), document.part.package), RELATIONSHIP_TYPE.FOOTNOTES)
    document.save(tmp_path / "a.docx")
    blocks = parse_docx(tmp_path / "a.docx").blocks
    assert [(block.kind, block.label, block.text) for block in blocks] == [
        ("text", "", "Lamps burn."), ("note", "1", "Of oil."), ("text", "", "Bells ring.")]  # fmt: skip


def test_what_each_row_ends_in_is_no_part_of_its_name_and_a_bullet_may_name_those_below():
    rows = (
        "Kind | Use",
        *(f"{name} lamp Low Mid High | {name} is seen from far away at night" for name in ("Oil", "Wax", "Gas")),
    )
    names = [passage.places() for passage in passages_of(build([Block("\n".join(rows), "table")]), "d", "D", 128)]
    assert {number for number, _ in names[0]} == {"row Oil lamp", "row Wax lamp", "row Gas lamp"}
    listed = [Block("• Odd lamps, such as"), Block("– red ones."), Block("– blue ones.")]
    [passage] = passages_of(build(listed), "d", "D", 128)
    assert dict(passage.places())["Odd lamps.second dash"] == "blue ones."


def test_a_label_needs_no_space_before_a_capital_and_a_cited_section_is_no_label():
    assert read_label("vii)Seizure of boats")[0][0].printed == "vii)"
    assert read_label("(a)The lamp")[0][0].printed == "(a)"
    assert read_label("3.4.1.Use")[1] == "Use"
    assert not read_label("(a)bc")[0]
    cited = Block("of the Lamps Act rules boats.", label="Section 5")
    [passage] = passages_of(build([cited]), "d", "D", 128)
    assert (passage.number, passage.text) == ("", "Section 5 of the Lamps Act rules boats.")


def test_a_raised_mark_belongs_to_the_letter_before_it():
    act = Word("Act", 60, 80, 90, 100, 98, 11, False)
    mark, end = Word("1", 80, 83, 88, 94, 94, 7, False), Word("2.", 86, 96, 90, 100, 98, 11, False)
    [line] = lines_of([act, mark, end], 1)
    assert line.text == "Act¹ 2."


def test_contents_go_on_over_pages_and_do_not_stand_over_the_rules(tmp_path):
    names = "Lamps Bells Ropes Keepers Boats Fees Oars Nets".split()
    entries = [(n, name, n // 3 + 3) for n, name in enumerate(names, start=1)]
    front = [(60, 50, 16, "Table of Contents"),
             *(one for n, name, page in entries for one in (
                 (60, 60 + 20 * n, 11, f"{n}. {name}"), (400, 60 + 20 * n, 11, str(page))))]  # fmt: skip
    last = [(60, 60, 11, "9. Sails"), (400, 60, 11, "6"), (300, 785, 8, "2")]
    rules = [
        (60, 60, 14, "1. Lamps"),
        *lines(60, 90, "Lamps burn."),
        (60, 200, 14, "2. Bells"),
        *lines(60, 230, "Ring."),
    ]
    parsed = pdf_blocks(tmp_path / "a.pdf", front, last, rules, *(lines(60, 90, f"Page {n}.") for n in range(4, 7)))
    assert parsed.dropped["table of contents"] == 10
    found = passages_of(build(parsed.blocks), "d", "D", 128)
    assert [(one.number, one.section) for one in found if one.text == "Lamps burn."] == [("1.", "1. Lamps")]


def test_a_number_further_out_begins_a_paragraph_though_the_one_before_has_no_full_stop(tmp_path):
    page = [*lines(90, 60, "a. Count all the boats in the harbour each night"), *lines(60, 73, "4. Note the boats")]
    assert [block.text for block in pdf_blocks(tmp_path / "a.pdf", page).blocks][-1].endswith("Note the boats")


def test_long_names_of_files_are_short_in_a_summary():
    assert len(_short(f"{'harbour-' * 20}.html")) == 41
    assert _short("lamps.html") == "lamps.html"


def test_a_table_of_twenty_rows_is_one_block_and_its_head_alone_is_none(tmp_path):
    rows = "".join(f"Isle {n},{n}\n" for n in range(20))
    (tmp_path / "a.csv").write_text(f"Island,Fee\n{rows}")
    [block] = parse_csv(tmp_path / "a.csv").blocks
    assert block.text.startswith("Island | Fee\nIsle 0 | 0\n")
    assert block.text.endswith("\nIsle 19 | 19")
    (tmp_path / "a.csv").write_text("Island,Fee\n")
    assert [one.text for one in parse_csv(tmp_path / "a.csv").blocks] == ["Island | Fee"]


def test_a_quote_far_down_in_a_table_does_not_cut_its_cell(tmp_path):
    rows = "".join(f'R-{n},"Keep lamps, oil and bells ready",Ann\n' for n in range(1000))
    (tmp_path / "a.csv").write_text(f'Id,Rule,Owner\n{rows}R-1000,"Say ""no"", then leave",Bob\n')
    last = parse_csv(tmp_path / "a.csv").blocks[-1].text.split("\n")[-1]
    assert last == 'R-1000 | Say "no", then leave | Bob'


def test_the_encoding_of_a_script_is_not_that_of_the_page(tmp_path):
    page = (
        "<html><head><script charset='utf-8' src='a.js'></script></head><body><p>A “café” costs 5 €.</p></body></html>"
    )
    (path := tmp_path / "a.html").write_text(page, encoding="utf-8")
    assert [block.text for block in parse_html(path).blocks] == ["A “café” costs 5 €."]


def test_a_list_may_count_from_nought_or_down(tmp_path):
    oil, bells = "<li>Oil is kept.</li><li>Lamps burn.</li>", "<li>Bells ring.</li><li value=0>Horns sound.</li>"
    (path := tmp_path / "a.html").write_text(f"<ol start='0'>{oil}</ol><ol reversed>{bells}</ol>")
    numbers = [(block.label, block.text) for block in parse_html(path).blocks]
    assert numbers == [("0.", "Oil is kept."), ("1.", "Lamps burn."), ("2.", "Bells ring."), ("0.", "Horns sound.")]
    path.write_text(f"<ol start='0' type='a'>{oil}</ol>")  # a browser shows a number that has no letter as it is
    assert [block.label for block in parse_html(path).blocks] == ["0.", "a."]


def test_a_page_that_lies_on_its_side_is_read_as_it_is_shown(tmp_path):
    rows = [(60, 120 + 30 * n, 11, f"{n}.1 A keeper must keep {n} litres of oil.") for n in range(1, 4)]
    read = []
    for turned in (False, True):
        write_pdf(tmp_path / "a.pdf", [rows], turned=turned)
        parsed = parse_pdf(tmp_path / "a.pdf")
        assert not parsed.left_out
        read.append([(block.text, block.place) for block in parsed.blocks])
    assert read[0] == read[1]
    assert [text for text, _ in read[0]] == [text for *_, text in rows]


def test_a_formula_in_word_is_read_in_one_line(tmp_path):
    space = "xmlns:m='http://schemas.openxmlformats.org/officeDocument/2006/math'"

    def said(text):
        return f"<m:r><m:t>{text}</m:t></m:r>"

    square = f"<m:sSup><m:e>{said('r')}</m:e><m:sup>{said('2')}</m:sup></m:sSup>"
    above, below = f"<m:num>{said('loan + fee')}</m:num>", f"<m:den>{square}</m:den>"
    root = f"<m:rad><m:radPr><m:degHide m:val='1'/></m:radPr><m:deg/><m:e>{said('12')}</m:e></m:rad>"
    bracket = f"<m:d><m:e>{said('1 − d')}</m:e></m:d>"
    document = Document()
    paragraph = document.add_paragraph("The share is ")
    paragraph._p.append(parse_xml(f"<m:oMath {space}><m:f>{above}{below}</m:f>{said(' ≤ 80%')}</m:oMath>"))
    paragraph.add_run(" of the house.")
    alone = f"<m:oMathPara {space}><m:oMath>{root}{bracket}</m:oMath></m:oMathPara>"
    document.add_paragraph()._p.append(parse_xml(alone))
    document.save(tmp_path / "a.docx")
    assert [block.text for block in parse_docx(tmp_path / "a.docx").blocks] == [
        "The share is (loan + fee)/(r^2) ≤ 80% of the house.", "√12(1 − d)"]  # fmt: skip


def test_signs_that_word_takes_from_a_font_are_read(tmp_path):
    document = Document()
    run = document.add_paragraph().add_run("A store of ")._r
    for font, code in (("Symbol", "F0B3"), ("Symbol", "F0B7"), ("Wingdings", "F0FC")):
        symbol = OxmlElement("w:sym")
        symbol.set(qn("w:font"), font)
        symbol.set(qn("w:char"), code)
        run.append(symbol)
    document.save(tmp_path / "a.docx")
    assert [block.text for block in parse_docx(tmp_path / "a.docx").blocks] == ["A store of ≥✓"]


def test_a_text_box_in_a_cell_is_read_once(tmp_path):
    document = Document()
    table = document.add_table(2, 2)
    for cell, text in zip((*table.rows[0].cells, *table.rows[1].cells), "Isle Fee Vis 7".split(), strict=True):
        cell.text = text
    w, mc = W.strip("{}"), "http://schemas.openxmlformats.org/markup-compatibility/2006"
    box = "<w:txbxContent><w:p><w:r><w:t>euros</w:t></w:r></w:p></w:txbxContent>"
    twice = f"<mc:Choice Requires='wps'>{box}</mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
    run = table.rows[1].cells[1].paragraphs[0].add_run()._r
    run.append(parse_xml(f"<mc:AlternateContent xmlns:w='{w}' xmlns:mc='{mc}'>{twice}</mc:AlternateContent>"))
    document.save(tmp_path / "a.docx")
    assert [block.text for block in parse_docx(tmp_path / "a.docx").blocks] == ["Isle | Fee\nVis | 7 euros"]


def test_shares_of_a_sheet_are_in_per_cent_as_it_shows_them(tmp_path):
    book = Workbook()
    for row in (("Loan", "Most"), ("House", 0.8), ("Boat", 0.0725), ("Lamp", 2), ("Oil", True), ("Bell", None)):
        book.active.append(row)
    for n, shown in enumerate(("0%", "0.00%", "0%;[Red]-0%", "0%", "0%"), start=2):
        book.active[f"B{n}"].number_format = shown
    book.save(tmp_path / "a.xlsx")
    [table] = parse_xlsx(tmp_path / "a.xlsx").blocks
    assert table.text == "Loan | Most\nHouse | 80%\nBoat | 7.25%\nLamp | 200%\nOil | True\nBell"
