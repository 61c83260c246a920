"""Files that lie, are damaged, locked, empty, huge when opened, or want to be run: a clear line or plain text.

All go the way of an upload: past `take`, into the reading process, which has bounded memory and time.
"""

import io
import os
import re
import struct
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.corpus.documents.sheets import parse_xlsx
from ragqa.library import parse_cache
from ragqa.library.collection import make_collection
from ragqa.library.update import MAX_TOKENS
from ragqa.library.upload import take
from tests.support.document_files import rules_pages, write_docx, write_html, write_pdf, write_xlsx

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
LAUGHS = (
    "<!DOCTYPE x [<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10)) + "]>"
)
OUTSIDE = "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"
SENTENCE = "<p>A Ferry Operator must keep one life jacket for each passenger on board."


def made(write, *arguments, **options):
    """The bytes of a file that a writer of files makes."""

    def data(folder):
        path = folder / "made"
        write(path, *arguments, **options)
        return path.read_bytes()

    return data


DOCX, XLSX, PDF = made(write_docx), made(write_xlsx), made(write_pdf, rules_pages())


def packed(members, *, of=None, flags=0, links=()):
    """An archive, or an Office file with some of its parts replaced."""

    def data(folder):
        parts = dict(members)
        if of:
            with zipfile.ZipFile(io.BytesIO(of(folder))) as archive:
                parts = {name: archive.read(name) for name in archive.namelist()} | parts
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in parts.items():
                info = zipfile.ZipInfo(name)
                info.compress_type = zipfile.ZIP_DEFLATED
                if name in links:
                    info.external_attr = 0o120777 << 16
                archive.writestr(info, content)
        found = bytearray(target.getvalue())
        if flags:
            for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
                at = found.find(mark)
                found[at + place] |= flags
        return bytes(found)

    return data


def half(whole):
    return lambda folder: whole(folder)[: len(whole(folder)) // 2]


def raw_pdf(*objects, trailer=""):
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\nstartxref\n{len(body)}\n%%EOF".encode()
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


ROOT = b"<< /Type /Catalog /Pages 2 0 R >>"
LOCKED_PDF = raw_pdf(
    ROOT,
    b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] >>",
    b"<< /Filter /Standard /V 1 /R 2 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> /P -4 >>",
    trailer="/Encrypt 4 0 R /ID [<00><00>]",
)
ZEROS = zlib.compress(b" " * 60_000_000, 9)
PDF_BOMB = raw_pdf(
    ROOT,
    b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R >>",
    b"<< /Filter /FlateDecode /Length %d >>\nstream\n" % len(ZEROS) + ZEROS + b"\nendstream",
)
LOOP = raw_pdf(ROOT, b"<< /Type /Pages /Kids [2 0 R] /Count 9 >>")
MANY = raw_pdf(ROOT, b"<< /Type /Pages /Kids [3 0 R] /Count 90000 >>", b"<< /Type /Page /Parent 2 0 R >>")
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 50) + b"\0" * 90
WIDE = (
    "<worksheet xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><dimension ref='A1:XFD1048576'/>"
    "<sheetData><row r='1048576'><c r='XFD1048576' t='inlineStr'><is><t>far</t></is></c></row></sheetData></worksheet>"
)
SHEET = "xl/worksheets/sheet1.xml"
BODY = "word/document.xml"

REFUSED = {  # by name: the bytes, and words of the line that says why
    "empty.pdf": (b"", "found an empty file"),
    "empty.docx": (b"", "found an empty file"),
    "empty.html": (b"", "found an empty file"),
    "empty.xlsx": (b"", "found an empty file"),
    "empty.csv": (b"", "found an empty file"),
    "empty.txt": (b"", "found an empty file"),
    "empty.zip": (b"", "found an empty file"),
    "lie.pdf": (DOCX, "found a Word file"),
    "lie.docx": (PDF, "found a PDF file"),
    "lie.xlsx": (DOCX, "found a Word file"),
    "lie.html": (PNG, "found a file of bytes"),
    "lie.csv": (b"a,b\n\0\0", "found a file of bytes"),
    "lie.txt": (b"\x7fELF\0\0\0", "found a file of bytes"),
    "lie.zip": (PDF, "found a PDF file"),
    "half.pdf": (b"%PDF-1.4\n1 0 obj\n<<", "found a damaged one"),
    "half.docx": (half(DOCX), "found a damaged one"),
    "half.xlsx": (half(XLSX), "found a damaged one"),
    "half.zip": (half(packed({"a.html": SENTENCE})), "found a damaged one"),
    "locked.docx": (OLE, "protected by a password"),
    "locked.xlsx": (OLE, "protected by a password"),
    "locked.pdf": (LOCKED_PDF, "password"),
    "locked.zip": (packed({"a.html": SENTENCE}, flags=1), "protected by a password"),
    "bomb.zip": (packed({"a.csv": b"0" * 20_000_000}), "packed no closer"),
    "bomb.docx": (packed({BODY: b" " * 20_000_000}, of=DOCX), "packed no closer"),
    "bomb.xlsx": (packed({SHEET: b" " * 20_000_000}, of=XLSX), "packed no closer"),
    "bomb.pdf": (PDF_BOMB, "expected"),
    "laughs.docx": (packed({BODY: f"{LAUGHS}<x>&a9;</x>"}, of=DOCX), "expected"),
    "laughs.xlsx": (packed({SHEET: f"{LAUGHS}<x>&a9;</x>"}, of=XLSX), "expected"),
    "nested.zip": (packed({"in.zip": b"PK"}), "an archive within an archive"),
    "up.zip": (packed({"../../out.html": SENTENCE}), "found none"),
    "programs.zip": (packed({"run.exe": b"MZ"}), "found none"),
    "loop.pdf": (LOOP, "expected"),
    "many.pdf": (MANY, "expected"),
    "old.doc": (OLE, "save it as .docx"),
    "run.exe": (b"MZ", "another kind of file"),
    "scan.pdf": (made(write_pdf, [[], []], picture=True), "recognise its text first"),
    "deep.html": (b"<div>" * 3_000 + SENTENCE.encode(), "found an empty body"),
    "bodiless.html": (b"<html><body><script>load()</script></body></html>", "found an empty body"),
}
READ = {  # by name: the bytes, and words that must not be in what was read
    "macros.docm": (packed({"word/vbaProject.bin": b"Shell evil"}, of=DOCX), "evil"),
    "macros.xlsm": (packed({"xl/vbaProject.bin": b"Shell evil"}, of=XLSX), "evil"),
    "script.html": (f"<script>evil()</script><img src=x onerror=evil()>{SENTENCE}".encode(), "evil"),
    "hidden.html": (f"<p style='display:none'>evil</p>{SENTENCE}".encode(), "evil"),
    "laughs.html": (f"{LAUGHS}<html>{SENTENCE} &a9;".encode(), "haha"),
    "outside.html": (f"{OUTSIDE}<html>{SENTENCE} &e;".encode(), "root:"),
    "formula.csv": (b"Island,Fee\n=cmd|'/C calc'!A0,@SUM(1)\nHvar,9\n", "\0"),
    "quote.csv": (b'a,b\n"' + b"x,y\n" * 20_000, "\0"),
    "absolute.zip": (packed({"/etc/abs.html": SENTENCE}), "\0"),
    "link.zip": (packed({"link.txt": "/etc/passwd"}, links=("link.txt",)), "root:"),
    "na\u202eme\n<b>.html": (f"<html>{SENTENCE}".encode(), "\0"),
}


@pytest.fixture(scope="module")
def reader():
    with Reader(seconds=60) as reader:
        yield reader


def peaks():
    """Kilobytes: the most that each reading process of this test process has taken so far."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            status = (process / "status").read_text()
            is_ours = re.search(rf"^PPid:\t{os.getpid()}$", status, re.MULTILINE)
            if is_ours and b"ragqa.corpus.documents.worker" in (process / "cmdline").read_bytes():
                found += re.findall(r"VmHWM:\s*(\d+) kB", status)
    return [int(one) for one in found]


def outcome(collection, reader, name, data):
    """The lines about what is left out, and the text of what was read."""
    lines, texts = take(collection, name, io.BytesIO(data), reader), []
    for one in collection.read().staged:
        assert not collection.path_of(one).is_symlink()
        try:
            texts += [passage.text for passage in parse_cache.read(collection, one, reader, MAX_TOKENS).passages]
        except UnreadableError as error:
            lines.append(f"{one.name}: {error}")
    assert all(peak < 2 * 2**20 for peak in peaks())
    return lines, "\n".join(texts)


@pytest.mark.parametrize("name", [*REFUSED, *READ])
def test_a_hostile_file_is_a_line_or_plain_text(name, reader, tmp_path):
    data, words = (REFUSED | READ)[name]
    collection = make_collection("drop", tmp_path / "home" / "library")
    lines, text = outcome(collection, reader, name, data if isinstance(data, bytes) else data(tmp_path))
    if name in REFUSED:
        (line,) = lines
        assert words in line
        assert "; " in line
        assert "\n" not in line
        assert len(line) < 350
        assert not text
    else:
        assert lines == []
        assert text.strip()
        assert words not in text
    written = {path.name for path in tmp_path.rglob("*") if path.is_file() and collection.folder not in path.parents}
    assert written <= {"made", ".drop.lock"}
    write_html(tmp_path / "good.html")
    with (tmp_path / "good.html").open("rb") as good:
        assert take(collection, "good.html", good, reader) == []
    assert "Ferry Operator" in outcome(collection, reader, "run.exe", b"")[1]


def test_a_damaged_workbook_is_closed_again(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(packed({"xl/workbook.xml": b"<x"}, of=XLSX)(tmp_path))
    with pytest.raises(UnreadableError) as failed:  # which holds on to where it happened
        parse_xlsx(tmp_path / "a.xlsx")
    opened = {os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()}
    assert str(tmp_path / "a.xlsx") not in opened, failed


def test_a_reading_that_ragqa_did_not_write_is_made_again(reader, tmp_path):
    collection = make_collection("drop", tmp_path / "library")
    assert take(collection, "a.md", io.BytesIO(b"# 1 Rules\n\nFirms must act at once."), reader) == []
    (one,) = collection.read().staged
    found = parse_cache.read(collection, one, reader, MAX_TOKENS)
    (kept,) = (collection.folder / "readings").glob("*.json")
    for told in ("[]", "{}", "null", '{"refused": 1}', '{"title": "", "passages": true}', "[" * 9_000, "\0"):
        kept.write_text(told)
        assert parse_cache.read(collection, one, reader, MAX_TOKENS) == found
