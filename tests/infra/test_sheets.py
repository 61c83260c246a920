"""Sheets that somebody edited: what cannot be read is refused in words."""

import zipfile

import pytest

from ragqa.errors import CorpusError
from ragqa.infra.sheets import Sheet, read_lines, write_sheets


def torn(content):
    return content[:10] + b"\xff" * 20 + content[30:]


@pytest.fixture
def sheet(tmp_path):
    path = tmp_path / "a.xlsx"
    write_sheets(path, [Sheet("Rows", ("id", "note"), [[f"r{n}", f"note {n}"] for n in range(50)])])
    return path


def repacked(path, name, change):
    """The workbook with the bytes of this member, as they are packed, changed."""
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    content = bytearray(path.read_bytes())
    start = info.header_offset + 30 + len(info.filename)
    content[start : start + info.compress_size] = change(content[start : start + info.compress_size])
    path.write_bytes(content)


def rewritten(path, name, text):
    with zipfile.ZipFile(path) as archive:
        held = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for one, content in (held | {name: text}).items():
            archive.writestr(one, content)


@pytest.mark.parametrize("name", ["xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/styles.xml"])
def test_a_workbook_with_torn_bytes_is_refused_in_words(sheet, name):
    repacked(sheet, name, torn)
    with pytest.raises(CorpusError, match=r"a\.xlsx cannot be read as a sheet"):
        read_lines(sheet)


def test_a_workbook_whose_sheet_ends_early_is_refused_in_words(sheet):
    rewritten(sheet, "xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row")
    with pytest.raises(CorpusError, match=r"a\.xlsx cannot be read as a sheet"):
        read_lines(sheet)


def test_a_workbook_without_a_sheet_is_refused_in_words(sheet):
    with zipfile.ZipFile(sheet) as archive:
        book = archive.read("xl/workbook.xml")
    start, end = book.index(b"<sheets>"), book.index(b"</sheets>")
    rewritten(sheet, "xl/workbook.xml", book[: start + len(b"<sheets>")] + book[end:])
    with pytest.raises(CorpusError, match=r"a\.xlsx cannot be read as a sheet"):
        read_lines(sheet)


def test_a_workbook_that_claims_all_of_excels_cells_takes_no_more_than_it_holds(sheet):
    cell = '<c r="{}" t="inlineStr"><is><t>{}</t></is></c>'
    cells = [cell.format(f"XFD{n}", "x") + cell.format(f"A{n}", text) for n, text in ((1, "id"), (400, "r1"))]
    rows = f'<row r="1">{cells[0]}</row><row r="400">{cells[1]}</row>'
    name = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    text = f'<worksheet xmlns="{name}"><dimension ref="A1:XFD1048576"/><sheetData>{rows}</sheetData></worksheet>'
    rewritten(sheet, "xl/worksheets/sheet1.xml", text)
    lines = read_lines(sheet)
    assert [line[0] for line in lines if line[0]] == ["id", "r1"]
    assert sum(map(len, lines)) < 1_000


def test_rows_are_as_long_as_they_were_written(sheet):
    assert read_lines(sheet)[:2] == [["id", "note"], ["r0", "note 0"]]
