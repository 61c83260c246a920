"""Documents of every kind become the same passages; what cannot be read is one line, and the rest is indexed."""

import struct
import zipfile
import zlib

import pytest

from ragqa.corpus.documents import DOCUMENT_FORMATS, Reader, UnreadableError
from ragqa.corpus.documents.model import Block
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.structure import build
from ragqa.corpus.formats import detect_format, open_stream
from ragqa.index import build_events, open_index
from ragqa.settings.config import IndexingConfig
from tests.support.document_files import (
    RULES,
    rules_pages,
    write_docx,
    write_html,
    write_pdf,
    write_xlsx,
    write_zip,
)

NUMBERS = ["1.", "1.1", "1.1.1", "1.1.2", "1.1.2.(1)", "1.1.2.(2)", "2.", "2.1.1"]


@pytest.fixture(scope="module")
def reader():
    with Reader() as reader:
        yield reader


def read(reader, path, kind):
    return reader.read(path, kind, "d", 128)


def write_all(folder):
    write_html(folder / "a.html", before="<nav>Home</nav><div class='cookie-banner'>We use cookies</div>")
    write_docx(folder / "b.docx")
    write_pdf(folder / "c.pdf", rules_pages())


def test_the_same_rules_come_out_of_each_kind(tmp_path, reader):
    write_all(tmp_path)
    found = {
        kind: read(reader, tmp_path / name, kind).passages
        for kind, name in {"HTML": "a.html", "Word": "b.docx", "PDF": "c.pdf"}.items()
    }
    for kind, passages in found.items():
        assert [passage.number for passage in passages] == NUMBERS, kind
        assert [passage.text for passage in passages] == [passage.text for passage in found["HTML"]], kind
        assert passages[4].text.endswith(
            ":\n(a)\tone life jacket for each passenger; and\n(b)\ta radio that reaches the nearest harbour."
        )
        assert passages[4].section == "1. GENERAL RULES › 1.1 Application"
    places = {kind: passages[4].place for kind, passages in found.items()}
    assert places["HTML"] == "anchor=r4"
    assert places["Word"] == "paragraph=5"
    assert places["PDF"].startswith("page=1&box=90,")


def test_furniture_goes_and_is_counted(tmp_path, reader):
    write_all(tmp_path)
    assert dict(read(reader, tmp_path / "a.html", "HTML").dropped) == {
        "navigation, form or embedded object": 1,
        "banner or menu": 1,
    }
    assert dict(read(reader, tmp_path / "c.pdf", "PDF").dropped) == {"header or footer": 2, "page number": 2}


def test_the_order_of_drawing_and_columns_do_not_matter(tmp_path, reader):
    page = [drawn for drawn in rules_pages(RULES[:5])[0] if 50 < drawn[1] < 760]
    write_pdf(tmp_path / "drawn.pdf", [sorted(page, key=lambda drawn: drawn[0])])
    assert [p.number for p in read(reader, tmp_path / "drawn.pdf", "PDF").passages] == NUMBERS[:5]
    columns = [
        (60 + 260 * side, 100 + 14 * n, 10, f"Side {side} line {n} with words enough to be text")
        for n in range(12)
        for side in (0, 1)
    ]
    write_pdf(tmp_path / "columns.pdf", [columns])
    text = " ".join(p.text for p in read(reader, tmp_path / "columns.pdf", "PDF").passages)
    assert text.index("Side 0 line 11") < text.index("Side 1 line 0")


def test_tables_stay_tables(tmp_path, reader):
    write_xlsx(tmp_path / "fees.xlsx")
    (tmp_path / "fees.csv").write_text("Island;Fee\nBrač;12\nHvar;9.5\n", encoding="utf-8")
    write_html(
        tmp_path / "fees.html", [], before="<table><tr><th>Island<th>Fee<tr><td>Brač<td>12<tr><td>Hvar<td>9.5</table>"
    )
    for name, kind in {"fees.xlsx": "Excel", "fees.csv": "CSV", "fees.html": "HTML"}.items():
        assert [p.text for p in read(reader, tmp_path / name, kind).passages] == ["Island | Fee\nBrač | 12\nHvar | 9.5"]


def test_list_numbers_of_a_page_are_those_a_browser_shows(tmp_path, reader):
    rows = "<ol type=a start=3><li>A third duty stands here.</li><li>(d) A fourth says its own number.</li></ol>"
    write_html(tmp_path / "list.html", [("2.", "DUTIES", 0)], after=rows)
    assert [p.number for p in read(reader, tmp_path / "list.html", "HTML").passages] == ["2.", "2.c.", "2.c.(d)"]


def test_a_list_item_that_begins_with_what_it_cites_keeps_its_number(tmp_path, reader):
    items = "Chapter 2 says who reports.", "Note that reports are kept.", "(a) A list has its own marks here."
    path = tmp_path / "page.html"
    listed = "".join(f"<ol start={n}><li>{item}</li></ol>" for n, item in enumerate(items, start=1))
    path.write_text(f"<html><body><h1>1.1 Notes</h1><h2>Guidance</h2>{listed}</body></html>")
    found = read(reader, path, "HTML").passages
    assert [one.number for one in found][-3:-1] == ["1.1.Guidance.1.", "1.1.Guidance.2."]
    assert found[-2].text == items[1]
    assert found[-1].number.endswith("(a)")


def cut(*lines):
    """Number and text of the passages that these paragraphs make; a heading is in capitals."""
    blocks = [Block(line, "heading" if line.isupper() or line == "Guidance" else "text") for line in lines]
    return [(p.number, p.text.split("\n")[0]) for p in passages_of(build(blocks), "d", "D", 128)]


def test_guidance_below_a_rule_with_items_is_a_passage_of_its_own():
    found = cut("4. DUTIES", "4.2.2 A keeper must:", "(a) count the boats; and", "(b) log the count.", "Guidance",
                "A count of one harbour may serve another.")  # fmt: skip
    assert found[1:] == [
        ("4.2.2", "A keeper must:"),
        ("4.2.2.Guidance", "A count of one harbour may serve another."),
    ]
    assert cut("4.2.3 A keeper may do so.", "Guidance", "A keeper should look at:", "(a) wind; and", "(b) tide.")[
        1:
    ] == [("4.2.3.Guidance", "A keeper should look at:")]


def test_rules_after_numbered_guidance_do_not_hang_below_it():
    found = cut("2. BOATS", "2.1.1 Boats are counted each day.", "Guidance", "1. Counting takes a morning.",
                "2. The count is kept in a log.", "2.1.2 Logs are kept for a year.")  # fmt: skip
    assert [number for number, _ in found[1:]] == ["2.1.1", "2.1.1.Guidance.1.", "2.1.1.Guidance.2.", "2.1.2"]


def test_a_chapter_follows_rules_whose_own_chapter_has_no_heading():
    assert [number for number, _ in cut("4.8.1 Boats are counted.", "5. LOGS", "5.1.1 Logs are kept.")] == [
        "4.8.1", "5.", "5.1.1"]  # fmt: skip
    assert cut("SCHEDULE", "PART 1 WORDS", "1. A boat is a thing that floats on water.")[-1][0] == "SCHEDULE.PART 1.1."


def test_a_number_that_begins_a_wrapped_line_of_a_pdf_is_cited_not_counted(tmp_path, reader):
    lines = ["(a) The keeper of a harbour counts all of the boats that are moored there, as section",
             "64(3) of the harbour law and the rules made by the island council under Rule",
             "8.6.1. of the same say, and the log is kept for at least three years after that day."]  # fmt: skip
    page = [(60, 100, 10, "3.1 Counting the boats of a harbour")]
    page += [(90 + (24 if n else 0), 130 + 13 * n, 10, line) for n, line in enumerate(lines)]
    write_pdf(tmp_path / "wrapped.pdf", [page])
    found = read(reader, tmp_path / "wrapped.pdf", "PDF").passages
    assert [p.number for p in found] == ["3.1", "3.1.(a)"]
    assert "as section 64(3) of the harbour law" in found[1].text


def flat_png(size):
    row = b"\0" * (size + 1)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", size) + zlib.compress(row * size)


LAUGHS = (
    "<!DOCTYPE x [<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10)) + "]>"
)


def write_hostile(folder):
    """Files that cannot be read, by name: a part of the line that says so."""
    write_docx(folder / "plain.docx")
    data = (folder / "plain.docx").read_bytes()
    (folder / "lie.pdf").write_bytes(data)
    (folder / "lie.docx").write_bytes(b"%PDF-1.4 no")
    (folder / "lie.html").write_bytes(flat_png(50))
    (folder / "empty.pdf").write_bytes(b"")
    (folder / "damaged.pdf").write_bytes(b"%PDF-1.4\n1 0 obj\n<<")
    (folder / "damaged.docx").write_bytes(data[: len(data) // 2])
    (folder / "locked.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)
    (folder / "bodiless.html").write_text("<html><body><script>load()</script></body></html>")
    (folder / "old.doc").write_bytes(b"x")
    write_pdf(folder / "scan.pdf", [[], []], picture=True)
    write_zip(folder / "bomb.zip", {"zeros.csv": b"0" * 40_000_000})
    write_zip(folder / "inner.zip", {"in.zip": b"PK"})
    write_xlsx(folder / "plain.xlsx")
    for kind, part in {"docx": "word/document.xml", "xlsx": "xl/workbook.xml"}.items():
        with zipfile.ZipFile(folder / f"plain.{kind}") as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        write_zip(folder / f"laughs.{kind}", parts | {part: f"{LAUGHS}<x>&a9;</x>"})
    (folder / "plain.xlsx").unlink()
    write_zip(folder / "up.zip", {"../../out.html": "<html><p>Outside."})
    (folder / "plain.docx").unlink()
    return {
        "lie.pdf": "expected a PDF file by its name, found a Word file",
        "lie.docx": "expected a Word file by its name, found a PDF file",
        "lie.html": "found a file of bytes",
        "empty.pdf": "found an empty file",
        "damaged.pdf": "found a damaged one",
        "damaged.docx": "found a damaged one",
        "locked.docx": "protected by a password",
        "bodiless.html": "found an empty body",
        "old.doc": "save it as .docx",
        "scan.pdf": "a scan; recognise its text first",
        "bomb.zip": "packed no closer than 1 to 200",
        "inner.zip/in.zip": "an archive within an archive",
        "laughs.docx": "found",
        "laughs.xlsx": "found",
        "up.zip": "found none",
    }


@pytest.mark.long
def test_a_mixed_folder_is_indexed_and_what_cannot_be_read_is_said(tmp_path):
    source = tmp_path / "in"
    (source / "a_files").mkdir(parents=True)
    write_html(source / "a_files" / "frame.html")
    write_all(source)
    (source / "note.md").write_text("# Note\n\nFerries run daily.")
    expected = write_hostile(source)
    assert detect_format(source) == "documents"
    messages = []
    events = build_events(
        "mixed", source, indexes=tmp_path / "indexes", config=IndexingConfig(encoder="none"), encoder=None
    )
    for event in events:
        messages += [event.message] if event.message else []
    for name, words in expected.items():
        (line,) = [line for line in messages if line.startswith(f"{name}: ")]
        assert words in line
        assert "; " in line
        assert len(line) < 350
    [summary] = [line for line in messages if line.startswith("left out: ")]
    assert "banner or menu (1)" in summary
    [choice] = [line for line in messages if line.startswith("analyser ")]
    assert "--analyser chooses another" in choice
    assert len(messages) == len(expected) + 2
    index = open_index("mixed", tmp_path / "indexes")
    assert {passage.document_id for passage in index.passages} == {"a", "b", "c", "note"}
    assert not list(tmp_path.rglob("out.html"))
    assert any(passage.place.startswith("page=") for passage in index.passages)


def test_one_kind_alone_and_the_same_from_any_document_on(tmp_path):
    write_all(tmp_path)
    stream = open_stream(tmp_path, "pdf")
    assert [passages[0].document_id for _, passages in stream.articles()] == ["c"]
    stream = open_stream(tmp_path)
    assert list(stream.articles(1)) == list(stream.articles())[1:]
    assert stream.identity() != open_stream(tmp_path, "documents", 64).identity()
    assert set(DOCUMENT_FORMATS) == {"documents", "pdf", "docx", "html", "sheets"}


def test_a_reader_that_takes_too_long_is_ended_and_the_next_one_reads(tmp_path):
    write_html(tmp_path / "a.html")
    with Reader(seconds=0.01) as reader:
        with pytest.raises(UnreadableError, match="one that takes longer; split it"):
            read(reader, tmp_path / "a.html", "HTML")
        reader._seconds = 60
        assert read(reader, tmp_path / "a.html", "HTML").passages


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_an_archive_holds_twice_is_read_once(tmp_path):
    write_html(tmp_path / "a.html")
    with zipfile.ZipFile(tmp_path / "rules.zip", "w") as archive:
        for text in ("<html><p>Old.", (tmp_path / "a.html").read_text()):
            archive.writestr("a.html", text)
    (tmp_path / "a.html").unlink()
    [(_, passages)] = open_stream(tmp_path).articles()
    assert [passage.number for passage in passages] == NUMBERS


def test_a_file_named_after_another_with_its_suffix_has_an_id_of_its_own(tmp_path):
    for name in ("a.html", "a.docx", "a.docx.html"):
        (write_docx if name.endswith(".docx") else write_html)(tmp_path / name)
    ids = [passages[0].document_id for _, passages in open_stream(tmp_path).articles()]
    assert ids == ["a.docx", "a.docx.html", "a.html"]
