"""Writes a memo as Markdown, HTML, DOCX (in a template's styles), or PDF by LibreOffice where that is installed.

All text is escaped: no word of a corpus, a question or a model becomes a link, a field or markup.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

from ragqa.english.words import cut
from ragqa.errors import ConfigError, RecordError
from ragqa.infra.cleaning import without_controls, writable
from ragqa.infra.files import replacing
from ragqa.records.memo import Block, Grid, Memo, MemoSection, Paragraph, Points, Quotation

_ALIVE: Final = re.compile(r"[\\`*_\[\]<>|~&$@]|:(?=//)|(?<=[wW]{3})\.")  # the last two prevent links
_AT_BEGIN: Final = re.compile(r"\A(\d*)([#+=.)-])")
PDF_SECONDS: Final = 180  # the time limit of LibreOffice
_LONGEST_PROPERTY: Final = 200  # characters of the title property of an Office document
_STYLE: Final = (
    "body{font:11pt/1.45 Georgia,serif;max-width:48em;margin:2em auto;padding:0 1em}h1,h2,h3,th{font-family:sans-serif}"
    "table{border-collapse:collapse;width:100%}td,th{border:1px solid #999;padding:.3em .5em;text-align:left;"
    "vertical-align:top;overflow-wrap:anywhere}blockquote{margin:.3em 0 1em 1.5em}"
    "cite{font-style:normal;font-weight:bold}"
    ".form td{height:2.5em}@media print{.new{break-before:page}tr{break-inside:avoid}}"
)


def write_memo(memo: Memo, path: Path, template: Path | None = None) -> None:
    """Writes the memo in the format of the file's suffix. Raises as `memo_bytes`, and OSError."""
    data = memo_bytes(memo, path.suffix.lower(), template)
    with replacing(path) as beside:
        beside.write_bytes(data)


def check_kind(kind: str) -> None:
    """Raises ConfigError for a suffix that no memo is written with."""
    if kind not in FORMATS:
        msg = f"expected a file that ends in {', '.join(FORMATS)}, found {kind or 'no ending'!r}; name another"
        raise ConfigError(msg)


def memo_bytes(memo: Memo, kind: str, template: Path | None = None) -> bytes:
    """The memo as ``.md``, ``.html``, ``.docx`` or ``.pdf``; ``template`` is a DOCX file that gives styles and page.

    Raises ConfigError for another suffix, for a template that is not used or cannot be read, and where LibreOffice is
    not installed. Raises RecordError where LibreOffice makes no PDF.
    """
    check_kind(kind)
    if template and kind not in {".docx", ".pdf"}:
        msg = f"a template has the styles of .docx and .pdf, found {kind}; leave it out or name another file"
        raise ConfigError(msg)
    return FORMATS[kind](memo, template)


# Markdown and HTML --------------------------------------------------------------------------------------------------


def _markdown(memo: Memo, _: Path | None) -> bytes:
    return without_controls("\n\n".join([f"# {_line(memo.title)}", *map(_markdown_block, memo.blocks)]) + "\n").encode()


def _markdown_block(block: Block) -> str:
    match block:
        case MemoSection(text, level):
            return f"{'#' * (level + 1)} {_line(text)}"
        case Paragraph(text, is_strong):
            words = _lines(text, "\\\n")
            return f"**{words}**" if is_strong and words else words
        case Points(texts):
            return "\n".join(f"- {_line(text)}" for text in texts)
        case Quotation(text, source):
            return f"**{_line(source)}**\n\n> " + _lines(text, "\\\n> ")
        case Grid(heads, rows, widths):
            lines = [heads or ("",) * len(widths), ("---",) * len(widths)]
            cells = [[_lines(cell, "<br>") for cell in row] for row in (lines[0], *rows)]
            written = [f"| {' | '.join(row)} |" for row in (cells[0], lines[1], *cells[1:])]
            return "\n".join(written)


def _line(text: str) -> str:
    """The text on one line, with Markdown's marks escaped by backslashes."""
    return _AT_BEGIN.sub(r"\1\\\2", _ALIVE.sub(r"\\\g<0>", " ".join(text.split())))


def _lines(text: str, between: str) -> str:
    """The text's lines, escaped and joined by ``between``, a line break in Markdown."""
    return between.join(_line(line) for line in text.split("\n") if line.strip())


def _html(memo: Memo, _: Path | None) -> bytes:
    title = escape(memo.title)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>{title}</h1>"
    )
    return without_controls("\n".join([head, *map(_html_block, memo.blocks), "</body></html>\n"])).encode()


def _html_block(block: Block) -> str:
    match block:
        case MemoSection(text, level, new_page):
            return f"<h{level + 1}{_class('new', given=new_page)}>{escape(text)}</h{level + 1}>"
        case Paragraph(text, is_strong):
            return f"<p><b>{_broken(text)}</b></p>" if is_strong else f"<p>{_broken(text)}</p>"
        case Points(texts):
            return f"<ul>{''.join(f'<li>{_broken(text)}</li>' for text in texts)}</ul>"
        case Quotation(text, source):
            return f"<cite>{escape(source)}</cite><blockquote>{_broken(text)}</blockquote>"
        case Grid(heads, rows, widths, is_form):
            columns = "".join(f'<col style="width:{width}%">' for width in widths)
            return (
                f"<table{_class('form', given=is_form)}><colgroup>{columns}</colgroup>"
                f"{_row(heads, 'th') if heads else ''}{''.join(_row(row, 'td') for row in rows)}</table>"
            )


def _class(name: str, *, given: bool) -> str:
    return f' class="{name}"' if given else ""


def _row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_broken(cell)}</{tag}>' for cell in cells)}</tr>"


def _broken(text: str) -> str:
    return escape(text).replace("\n", "<br>")


# DOCX and PDF -------------------------------------------------------------------------------------------------------


def _docx(memo: Memo, template: Path | None) -> bytes:
    from docx import Document
    from docx.opc.exceptions import PackageNotFoundError
    from docx.shared import Mm

    try:
        document = Document(str(template) if template else None)
    except (PackageNotFoundError, BadZipFile, zlib.error, SyntaxError, ValueError, KeyError, OSError) as error:
        msg = f"expected a Word document (.docx) as the template, found {template}; save it as .docx"
        raise ConfigError(msg) from error
    page = document.sections[-1]
    if template is None:
        page.page_width, page.page_height = Mm(210), Mm(297)
        page.left_margin = page.right_margin = Mm(25)
    own = document.core_properties
    own.title, own.author, own.comments = cut(writable(memo.title), _LONGEST_PROPERTY), "", ""
    own.created = own.modified = datetime.now(UTC).replace(tzinfo=None)
    width = (page.page_width or Mm(210)) - (page.left_margin or 0) - (page.right_margin or 0)
    writer = _Docx(document, width)
    writer.words(memo.title, "Title")
    for block in memo.blocks:
        writer.add(block)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


class _Docx:
    """Adds blocks to a python-docx document, in its styles where they exist; ``width`` is that of a line, in EMU."""

    def __init__(self, document: Any, width: int) -> None:  # noqa: ANN401 - python-docx has no types
        from docx.enum.style import WD_STYLE_TYPE

        self._document, self._width = document, width
        self._styles = {(style.type, style.name) for style in document.styles}
        self._of_text, self._of_table = WD_STYLE_TYPE.PARAGRAPH, WD_STYLE_TYPE.TABLE

    def words(self, text: str, style: str = "Normal", *, bold: bool = False) -> Any:  # noqa: ANN401
        """Adds a paragraph in this style, or in the default style where the document does not have it."""
        paragraph = self._document.add_paragraph(style=style if (self._of_text, style) in self._styles else None)
        paragraph.add_run(writable(text)).bold = bold or None
        return paragraph

    def add(self, block: Block) -> None:
        """Adds this block at the end of the document."""
        match block:
            case MemoSection(text, level, new_page):
                self.words(text, f"Heading {level}").paragraph_format.page_break_before = new_page or None
            case Paragraph(text, is_strong):
                self.words(text, bold=is_strong)
            case Points(texts):
                for text in texts:
                    self.words(text, "List Bullet")
            case Quotation(text, source):
                self.words(source, bold=True).paragraph_format.keep_with_next = True
                self.words(text, "Quote")
            case Grid():
                self._grid(block)

    def _grid(self, grid: Grid) -> None:
        from docx.oxml import OxmlElement
        from docx.shared import Mm

        table = self._document.add_table(0, len(grid.widths))
        if (self._of_table, "Table Grid") in self._styles:
            table.style = "Table Grid"
        table.autofit = False
        widths = [self._width * share // 100 for share in grid.widths]
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
        for cells in ((grid.heads,) if grid.heads else ()) + grid.rows:
            row = table.add_row()
            row.height = Mm(14) if grid.is_form else None
            for cell, text, width in zip(row.cells, cells, widths, strict=True):
                cell.width = width
                cell.paragraphs[0].add_run(writable(text)).bold = (cells is grid.heads) or None
            properties = row._tr.get_or_add_trPr()
            properties.append(OxmlElement("w:cantSplit"))
            if cells is grid.heads:  # repeated at the top of every page
                properties.append(OxmlElement("w:tblHeader"))
        self._document.add_paragraph()  # else Word would join the next table to this one


def _pdf(memo: Memo, template: Path | None) -> bytes:
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        raise ConfigError(
            "a PDF is made by LibreOffice, found no soffice on PATH; install LibreOffice Writer, or choose a file that "
            "ends in .docx, .html or .md"
        )
    with tempfile.TemporaryDirectory(prefix="ragqa-memo-") as folder:
        source, profile = Path(folder, "memo.docx"), Path(folder, "profile").as_uri()
        source.write_bytes(_docx(memo, template))
        command = [office, f"-env:UserInstallation={profile}", "--headless", "--convert-to", "pdf", "--outdir", folder]
        try:
            done = subprocess.run(  # noqa: S603 - no text of others in the command
                [*command, str(source)], capture_output=True, timeout=PDF_SECONDS, check=False
            )
            return source.with_suffix(".pdf").read_bytes()
        except subprocess.TimeoutExpired as error:
            msg = f"LibreOffice made no PDF within {PDF_SECONDS} seconds; try again, or choose a .docx"
            raise RecordError(msg) from error
        except FileNotFoundError as error:
            said = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
            msg = f"LibreOffice made no PDF ({said or f'exit code {done.returncode}'}); choose a .docx"
            raise RecordError(msg) from error


FORMATS: Final[dict[str, Callable[[Memo, Path | None], bytes]]] = {
    ".md": _markdown,
    ".html": _html,
    ".docx": _docx,
    ".pdf": _pdf,
}
