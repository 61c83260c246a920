"""Reads Word documents: python-docx opens the package, and the body is read from its XML to lose no visible text.

python-docx itself skips insertions and content controls, returns hidden text and does not know list numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.docx_formulas import FORMULAS, formula
from ragqa.corpus.documents.docx_numbering import BULLETS, Numbering, W, indent_of
from ragqa.corpus.documents.kinds import members
from ragqa.corpus.documents.labels import NAMED_BOX, is_label
from ragqa.corpus.documents.model import (
    BOLD_LEVEL,
    MAX_BOLD_WORDS,
    OUTERMOST,
    Block,
    Kind,
    Parsed,
    UnreadableError,
    count_words,
)
from ragqa.corpus.documents.sheets import table_text

_SKIPPED: Final = frozenset(
    f"{W}{name}" for name in ("del", "moveFrom", "pPr", "rPr", "instrText", "delText", "sectPr")
)
_WRAPPERS: Final = frozenset(f"{W}{name}" for name in ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag"))
_NOTES: Final = {"footnotes": "footnote", "endnotes": "endnote"}
_FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
# Signs that Word stores as places in a font: those of measures and formulas, and ticks and crosses.
_SIGNS: Final = {
    "symbol": dict(zip(b"\xa3\xb3\xb9\xbb\xb1\xb4\xd7\xb0\xa5\xaeDSabdeglmprs", "≤≥≠≈±×⋅°∞→ΔΣαβδεγλμπρσ", strict=True)),
    "wingdings": dict(zip(b"\xfc\xfe\xfb\xfd\xa8o", "✓☑✗☒☐☐", strict=True)),
}
_MAX_STYLES: Final = 20  # in a chain of styles that are based on each other


def parse_docx(path: Path) -> Parsed:
    """The paragraphs, with the numbers that Word prints, the tables and the footnotes. Raises UnreadableError."""
    from docx import Document
    from docx.opc.exceptions import PackageNotFoundError
    from lxml import etree

    names = {info.filename for info in members(path)}
    try:
        with path.open("rb") as file:
            document = Document(file)
        parts = {str(part.partname).rpartition("/")[2]: part for part in document.part.package.iter_parts()}
        numbering = Numbering(etree.fromstring(parts["numbering.xml"].blob) if "numbering.xml" in parts else None)
        reading = _Reading(document, numbering)
        reading.parsed.words = count_words(_raw(document.element.body))
        for name, tag in _NOTES.items():
            if f"{name}.xml" in parts:
                reading.read_notes(etree.fromstring(parts[f"{name}.xml"].blob), tag)
        reading.read()
    except (PackageNotFoundError, KeyError, ValueError, OSError, etree.XMLSyntaxError) as error:
        why = str(error)[:80]
        msg = f"expected a whole Word document, found a damaged one ({why}); open it in Word and save it again"
        raise UnreadableError(msg) from error
    parsed = reading.parsed
    if any(name.endswith("vbaProject.bin") for name in names):
        parsed.warnings.append("its macros are not read")
    headings = (
        block.text for block in parsed.blocks if block.kind == "heading" and block.level == 0 and not block.label
    )
    parsed.title = next(headings, "") or clean_line(document.core_properties.title or "")
    return parsed


class _Reading:
    """One pass over a document's body. Paragraphs are counted from 1, including those in tables."""

    def __init__(self, document: Any, numbering: Numbering) -> None:  # noqa: ANN401 - docx.document.Document
        self.parsed = Parsed()
        self._body = document.element.body
        self._numbering = numbering
        self._styles = {style.get(f"{W}styleId"): style for style in document.styles.element.findall(f"{W}style")}
        self._n_paragraphs = 0
        self._printed_numbers: dict[Any, str] = {}  # by paragraph, so that each counts once
        self._notes: dict[tuple[str, str], Block] = {}  # notes by kind and id, until the text refers to them
        self._n_notes = dict.fromkeys(_NOTES.values(), 0)

    def read(self) -> None:
        for control in self._body.iter(f"{W}sdt"):
            if _is_contents(control):
                self.parsed.leave_out("table of contents", clean_line(_raw(control)))
        for moved in self._body.iter(f"{W}moveFrom"):
            self.parsed.leave_out("moved away by a tracked change", clean_line(_raw(moved)))
        for run in self._body.iter(f"{W}r"):
            if _is_hidden(run) and run.getparent().tag != f"{W}moveFrom":
                self.parsed.leave_out("hidden text", _raw(run))
        self._walk(self._body)
        for note in self._notes.values():
            self.parsed.add(note)

    def _walk(self, parent: Any) -> None:  # noqa: ANN401
        """Adds the paragraphs and tables of the body or of a cell, each with the notes that it refers to."""
        for element in _children(parent):
            if element.tag == f"{W}p":
                self._paragraph(element)
            elif element.tag == f"{W}tbl":
                self._table(element)
                self._called(element)

    def read_notes(self, root: Any, tag: str) -> None:  # noqa: ANN401
        """Keeps the footnotes, without separators, until the text refers to them."""
        for note in root.findall(f"{W}{tag}"):
            if note.get(f"{W}type") is None:
                text = clean_line(" ".join(_text(paragraph) for paragraph in note.iter(f"{W}p")))
                name = note.get(f"{W}id") or ""
                self._notes[tag, name] = Block(text, "note", name)
                self.parsed.words += count_words(_raw(note))

    def _called(self, element: Any) -> None:  # noqa: ANN401
        """Adds the notes that this text refers to, numbered as Word prints them."""
        for tag in self._n_notes:
            for mark in element.iter(f"{W}{tag}Reference"):
                if note := self._notes.pop((tag, mark.get(f"{W}id") or ""), None):
                    self._n_notes[tag] += 1
                    self.parsed.add(replace(note, label=str(self._n_notes[tag])))

    def _paragraph(self, paragraph: Any) -> None:  # noqa: ANN401
        self._n_paragraphs += 1
        style = _of(paragraph, "pStyle") or ""
        chain = self._chain(style)
        names = [(_of(found, "name") or "").lower() for found in chain]
        text = clean_line(_text(paragraph))
        label, indent, margin = self._number(paragraph, chain)
        if any(re.match(r"toc\b", name) for name in names):
            self.parsed.leave_out("table of contents", text)
            return
        level = self._level(paragraph, chain, names)
        if level is None and label not in {*BULLETS} and self._is_bold(paragraph, chain, text):
            level = BOLD_LEVEL
        kind: Kind = "heading" if level is not None and len(text.split()) <= 30 else "text"
        place = f"paragraph={self._n_paragraphs}"
        for box in paragraph.iter(f"{W}txbxContent"):
            if next(box.iterancestors(_FALLBACK), None) is None:
                for inner in box.findall(f"{W}p"):
                    self._paragraph(inner)
        if text and label in {*BULLETS}:
            text, label = f"{label} {text}", ""
        if text:
            self.parsed.add(Block(text, kind, label, level or 0, indent, place, margin))
        self._called(paragraph)

    def _chain(self, style: str) -> list[Any]:
        """The style and the styles that it is based on."""
        found: list[Any] = []
        while style in self._styles and len(found) < _MAX_STYLES:
            found.append(self._styles[style])
            style = _of(found[-1], "basedOn") or ""
        return found

    def _level(self, paragraph: Any, chain: list[Any], names: list[str]) -> int | None:  # noqa: ANN401
        """The level of a heading, 1 to 9; 0 for the document's title, None for other paragraphs."""
        if "title" in names:
            return 0
        for found in (paragraph, *chain):
            outline = found.find(f"{W}pPr/{W}outlineLvl")
            if outline is not None and (outline.get(f"{W}val") or "9").isdigit():
                number = int(outline.get(f"{W}val"))
                return number + 1 if number < 9 else None
        for name in names:
            if heading := re.fullmatch(r"(?:.*\W)?head(?:ing)?s? ?(\d)?(?:\W.*)?", name):  # also "legal heading 2"
                return int(heading[1] or BOLD_LEVEL)
        return None

    def _is_bold(self, paragraph: Any, chain: list[Any], text: str) -> bool:  # noqa: ANN401
        """Whether the paragraph is a few bold words and no sentence, which is a heading without a level."""
        if len(text.split()) > MAX_BOLD_WORDS or not any(map(str.isalpha, text)) or text.endswith((".", ";", ":", ",")):
            return False
        runs = [run for run in _children(paragraph) if run.tag == f"{W}r" and _text(run).strip()]
        usual = any(_is_on(found, "b") for found in chain)
        return bool(runs) and all(_is_on(run, "b", otherwise=usual) for run in runs)

    def _number(self, paragraph: Any, chain: list[Any]) -> tuple[str, float, float]:  # noqa: ANN401
        """The automatic number, and the left edges of the text and the number, in points."""
        number_id, place = None, None
        for found in (paragraph, *chain):
            number = found.find(f"{W}pPr/{W}numPr")
            if number is not None:
                number_id = number_id or _of(number, "numId", direct=True)
                place = place if place is not None else _of(number, "ilvl", direct=True)
                style = found.get(f"{W}styleId")
                if place is None and style in self._numbering.by_style:
                    place = str(self._numbering.by_style[style][1])
        level = int(place) if place and place.isdigit() else 0
        known = self._numbering.level(number_id, level) if number_id and number_id != "0" else None
        known = None if self._is_gone(paragraph) else known
        indent = next((left for found in (paragraph, *chain) if (left := indent_of(found)) is not None), None)
        if known is None or number_id is None:
            return "", max(indent or 0.0, OUTERMOST), 0.0
        own = indent_of(paragraph)
        left = own if own is not None else known.indent or indent or 0.0
        hangs = indent_of(paragraph, "hanging")
        margin = left - (hangs if hangs is not None else known.hanging)
        if paragraph not in self._printed_numbers:
            self._printed_numbers[paragraph] = self._numbering.next(number_id, level)
        return self._printed_numbers[paragraph], max(left, OUTERMOST), max(margin, 0.0)

    def _is_gone(self, paragraph: Any) -> bool:  # noqa: ANN401
        """Whether a tracked change deletes the paragraph with its mark."""
        marks = (paragraph.find(f"{W}pPr/{W}rPr/{W}{name}") is not None for name in ("del", "moveFrom"))
        return any(marks) and not _text(paragraph).strip()

    def _table(self, table: Any) -> None:  # noqa: ANN401
        rows = [[cell for cell in _children(row) if cell.tag == f"{W}tc"] for row in _rows(table)]
        first = self._n_paragraphs + 1
        texts = self._cells(rows)
        filled = [row for row in texts if any(row)]
        if all(len(row) == 1 for row in rows):
            self._box(rows)
            return
        if filled and all(len(row) == 2 for row in filled) and all(is_label(row[0]) or not row[0] for row in filled):
            for row, cells in zip(texts, rows, strict=True):
                if any(row):
                    self._place_row(row, cells)
            return
        self._n_paragraphs += sum(1 for _ in table.iter(f"{W}p"))
        self.parsed.add(Block(table_text(texts), "table", place=f"paragraph={first}"))

    def _cells(self, rows: list[list[Any]]) -> list[list[str]]:
        """The texts of the cells with numbers; a cell merged with the one above has the same text."""
        texts: list[list[str]] = []
        above: dict[int, str] = {}  # by column of the grid
        for row in rows:
            column, texts = 0, [*texts, []]
            for cell in row:
                paragraphs = (one for one in cell.iter(f"{W}p") if next(one.iterancestors(_FALLBACK), None) is None)
                text = clean_line(" ".join(map(self._printed, paragraphs)))
                merged = cell.find(f"{W}tcPr/{W}vMerge")
                if merged is not None and merged.get(f"{W}val") != "restart" and not text:
                    text = above.get(column, "")
                above[column] = text
                texts[-1].append(text)
                span = cell.find(f"{W}tcPr/{W}gridSpan")
                column += int(span.get(f"{W}val")) if span is not None else 1
        return texts

    def _printed(self, paragraph: Any) -> str:  # noqa: ANN401
        """The number and the words of a paragraph."""
        label = self._number(paragraph, self._chain(_of(paragraph, "pStyle") or ""))[0]
        return f"{'' if label in BULLETS else label} {_text(paragraph)}".strip()

    def _box(self, rows: list[list[Any]]) -> None:
        """Adds text in a frame: a note if it begins with its name, such as "Practice Note: …", else ordinary text."""
        before = len(self.parsed.blocks)
        for [cell] in rows:
            self._walk(cell)
        notes = [block for block in self.parsed.blocks[before:] if block.kind == "note"]
        held = [block for block in self.parsed.blocks[before:] if block.kind != "note"]
        if held and (name := NAMED_BOX.match(held[0].text)) and all(not block.label for block in held):
            text = "\n".join(block.text for block in held)
            self.parsed.blocks[before:] = [Block(text, "note", name[1], 0, 0.0, held[0].place), *notes]

    def _place_row(self, row: list[str], cells: list[Any]) -> None:
        """Adds a row that only places a number beside its text: the number is the label of the first paragraph."""
        self._n_paragraphs += sum(1 for _ in cells[0].iter(f"{W}p"))
        before = len(self.parsed.blocks)
        self._walk(cells[1])
        if not (added := self.parsed.blocks[before:]):
            self.parsed.add(Block("", label=row[0], place=f"paragraph={self._n_paragraphs}"))
        elif not added[0].label:
            self.parsed.blocks[before] = replace(added[0], label=row[0], margin=0.0)


def _is_contents(control: Any) -> bool:  # noqa: ANN401
    gallery = control.find(f"{W}sdtPr/{W}docPartObj/{W}docPartGallery")
    return gallery is not None and gallery.get(f"{W}val") == "Table of Contents"


def _children(element: Any) -> Iterator[Any]:  # noqa: ANN401
    """The child elements, also inside content controls and insertions; without deletions and tables of contents."""
    for child in element:
        if child.tag in _WRAPPERS:
            if not _is_contents(child):
                yield from _children(child)
        elif child.tag not in _SKIPPED:
            yield child


def _raw(body: Any) -> str:  # noqa: ANN401
    """All words in the file, including text boxes; for a drawing that is stored twice, the newer version."""
    pieces = []
    for found in body.iter(f"{W}p", f"{W}t", f"{W}tab", f"{W}br", f"{W}noBreakHyphen"):
        if next(found.iterancestors(_FALLBACK), None) is None:
            pieces.append(found.text or "" if found.tag == f"{W}t" else "-" if found.tag.endswith("Hyphen") else "\n")
    return "".join(pieces)


def _rows(table: Any) -> Iterator[Any]:  # noqa: ANN401
    return (row for row in _children(table) if row.tag == f"{W}tr")


def _text(element: Any) -> str:  # noqa: ANN401
    """The words of a paragraph as printed: with insertions, without deletions and hidden text."""
    pieces = []
    for child in _children(element):
        if child.tag == f"{W}r":
            pieces.append("" if _is_hidden(child) else _text(child))
        elif child.tag == f"{W}t":
            pieces.append(child.text or "")
        elif child.tag in {f"{W}tab", f"{W}br", f"{W}cr"}:
            pieces.append("\t")
        elif child.tag == f"{W}noBreakHyphen":
            pieces.append("-")
        elif child.tag == f"{W}sym":
            pieces.append(_sign(child))
        elif child.tag in FORMULAS:
            pieces.append(formula(child))
        elif child.tag in {f"{W}hyperlink", f"{W}fldSimple", f"{W}dir", f"{W}bdo"}:
            pieces.append(_text(child))
    return "".join(pieces)


def _sign(symbol: Any) -> str:  # noqa: ANN401
    """The sign at this place in a font; "" for a bullet or an ornament."""
    code = re.fullmatch(r"(?:[Ff]0)?0{0,2}([0-9A-Fa-f]{2})", symbol.get(f"{W}char") or "")
    return _SIGNS.get((symbol.get(f"{W}font") or "").lower(), {}).get(int(code[1], 16), "") if code else ""


def _is_hidden(run: Any) -> bool:  # noqa: ANN401
    return _is_on(run, "vanish")


def _is_on(element: Any, name: str, *, otherwise: bool = False) -> bool:  # noqa: ANN401
    """Whether this character property is set; ``otherwise`` if the element does not state it."""
    found = element.find(f"{W}rPr/{W}{name}")
    return otherwise if found is None else found.get(f"{W}val") not in {"0", "false"}


def _of(element: Any, name: str, *, direct: bool = False) -> str | None:  # noqa: ANN401
    found = element.find(f"{W}{name}")
    if found is None and not direct:
        found = element.find(f"{W}pPr/{W}{name}")
    return None if found is None else found.get(f"{W}val")
