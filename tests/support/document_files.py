"""Small documents of every kind, made by the tests; a PDF writer of thirty lines among them."""

import zipfile

from docx import Document
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from openpyxl import Workbook

RULES = [
    ("1.", "GENERAL RULES", 0),
    ("1.1", "Application", 0),
    ("1.1.1", "These Rules apply to every Ferry Operator that carries passengers between islands for a fee.", 0),
    ("1.1.2", "A Ferry Operator must not carry more passengers than its Licence allows on any one journey.", 0),
    ("(1)", "A Ferry Operator must keep on board, for every journey that it makes:", 1),
    ("(a)", "one life jacket for each passenger; and", 2),
    ("(b)", "a radio that reaches the nearest harbour.", 2),
    ("(2)", "Rule 1.1.2(1) does not apply to a journey of less than five minutes on a lake.", 1),
    ("2.", "REPORTING", 0),
    ("2.1.1", "The Master must report any collision to the Harbour Office within two hours of its happening.", 0),
]


def write_html(path, rows=RULES, head="", before="", after=""):
    body = "".join(
        f"<h2 id='r{n}'>{label} {text}</h2>" if text.isupper() else f"<p id='r{n}'>{label} {text}</p>"
        for n, (label, text, _) in enumerate(rows)
    )
    path.write_text(f"<html><head><title>Ferry Rules</title>{head}</head><body>{before}{body}{after}</body></html>")


def _level(format, text):
    level = OxmlElement("w:lvl")
    for name, value in (("start", "1"), ("numFmt", format), ("lvlText", text)):
        child = OxmlElement(f"w:{name}")
        child.set(qn("w:val"), value)
        level.append(child)
    return level


def write_docx(path, rows=RULES):
    """The numbers are Word's own: they are nowhere in the text."""
    document = Document()
    root = document.part.numbering_part.element
    abstract = OxmlElement("w:abstractNum")
    abstract.set(qn("w:abstractNumId"), "77")
    formats = [
        ("decimal", "%1."),
        ("decimal", "%1.%2"),
        ("decimal", "%1.%2.%3"),
        ("decimal", "(%4)"),
        ("lowerLetter", "(%5)"),
    ]
    for place, (format, text) in enumerate(formats):
        level = _level(format, text)
        level.set(qn("w:ilvl"), str(place))
        abstract.append(level)
    root.insert(0, abstract)
    number = OxmlElement("w:num")
    number.set(qn("w:numId"), "77")
    child = OxmlElement("w:abstractNumId")
    child.set(qn("w:val"), "77")
    number.append(child)
    root.append(number)
    for label, text, _ in rows:
        place = 3 if label[1:2].isdigit() and label[0] == "(" else 4 if label[0] == "(" else label.strip(".").count(".")
        paragraph = document.add_paragraph(text)
        properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()
        properties.get_or_add_ilvl().val = place
        properties.get_or_add_numId().val = 77
    document.save(path)


def write_pdf(path, pages, *, picture=False, turned=False):
    """``pages``: of each the texts to draw, (x, y from the top, size, text); 600 by 800 points.

    If ``turned``, the pages lie on their side, 800 by 600 points, and are shown turned to the right.
    """
    turn = "/Rotate 90 " if turned else ""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    kids = []
    for texts in pages:
        lines = [
            f"BT /F1 {size} Tf {f'0 1 -1 0 {y} {x}' if turned else f'1 0 0 1 {x} {800 - y}'} Tm ({escaped}) Tj ET"
            for x, y, size, text in texts
            for escaped in [text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")]
        ]
        if picture:
            lines.append("q 600 0 0 800 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \xff EI Q")
        stream = "\n".join(lines)
        kids.append(len(objects) + 1)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] {turn}/Resources << /Font << /F1 {font} >> >> "
            f"/Contents {len(objects) + 2} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] /Count {len(kids)} >>"
    data, offsets = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{text}\nendobj\n".encode("latin-1")
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer << /Size {len(objects) + 1} /Root 1 0 R >>\n"
    )
    path.write_bytes(data + f"{end}startxref\n{len(data)}\n%%EOF\n".encode())


def rules_pages(rows=RULES, width=60):
    """The rows as lines of a page, numbers hanging before the text, under a running header, with page numbers."""
    pages, y = [[]], 120
    for label, text, indent in rows:
        words, lines = text.split(), [""]
        for word in words:
            if len(lines[-1]) + len(word) > width:
                lines.append("")
            lines[-1] = f"{lines[-1]} {word}".strip()
        if y > 330:
            pages.append([])
            y = 120
        pages[-1].append((60 + 30 * indent, y, 14 if text.isupper() else 10, label))
        for line in lines:
            pages[-1].append((105 + 30 * indent, y, 14 if text.isupper() else 10, line))
            y += 13
        y += 10
    for number, page in enumerate(pages, start=1):
        page += [(60, 40, 8, "Ferry Rules, in force from 1 May"), (300, 770, 8, str(number))]
    return pages


def write_xlsx(path, rows=(("Island", "Fee"), ("Brač", 12.0), ("Hvar", 9.5))):
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
