"""The library chosen to read each format beside others: numbers, cells and words that come back, and seconds.

    python -m tests.benchmarks.readers --documents ../shared/data/obliqa/documents --out OUT [--only 4 9] [--more MORE]

Rules that are known, rendered by `tests.benchmarks.layouts` (OUT may be its own; rendered once) with numbers that Word
or the browser counts, running headers and page numbers; their tables also as a workbook. Each reader gives lines of
text, a table's row as a line with bars. Shares: of numbered units, those whose number stands right before their first
three words; of tables' cells, those that stand in one line with their row's, parted; of runs of five words, those that
are found. ``--more`` is a folder with packages to compare with (``pip install --target MORE html-to-markdown mammoth
trafilatura lxml_html_clean python-calamine pypdf``); what is not installed is said and left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from ragqa.corpus.documents.docx import parse_docx
from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.pdf import parse_pdf
from ragqa.corpus.documents.sheets import parse_xlsx
from tests.benchmarks.layouts import Line, lines_of, render

LAYOUT = "counted"


def ours(parse) -> Callable[[Path], str]:  # type: ignore[no-untyped-def]
    return lambda path: "\n".join(f"{block.label} {block.text}" for block in parse(path).blocks)


def bars(rows: Iterable[Iterable[object]]) -> str:
    return "\n".join(" | ".join("" if cell is None else str(cell) for cell in row) for row in rows)


def by_pdfplumber(path: Path) -> str:
    import pdfplumber

    with pdfplumber.open(path) as document:
        pages = [(page.extract_text(), [bars(rows) for rows in page.extract_tables()]) for page in document.pages]
    return "\n".join("\n".join([text, *tables]) for text, tables in pages)


def by_pypdf(path: Path) -> str:
    from pypdf import PdfReader

    return "\n".join(page.extract_text() for page in PdfReader(path).pages)


def by_html_to_markdown(path: Path) -> str:
    from html_to_markdown import convert

    found = convert(path.read_text(encoding="utf-8"))
    return str(getattr(found, "content", found))


def by_trafilatura(path: Path) -> str:
    from trafilatura import extract

    return extract(path.read_text(encoding="utf-8"), include_tables=True) or ""


def by_mammoth(path: Path) -> str:
    """Its HTML, read by our walk: Word's lists become lists."""
    import mammoth

    with path.open("rb") as file, tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as made:
        made.write(f"<html><body>{mammoth.convert_to_html(file).value}</body></html>")
        made.flush()
        return ours(parse_html)(Path(made.name))


def by_python_docx(path: Path) -> str:
    import docx

    document = docx.Document(path)
    tables = [bars([cell.text for cell in row.cells] for row in table.rows) for table in document.tables]
    return "\n".join([*(paragraph.text for paragraph in document.paragraphs), *tables])


def by_calamine(path: Path) -> str:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(path)
    return "\n".join(bars(book.get_sheet_by_name(name).to_python()) for name in book.sheet_names)


READERS: dict[str, dict[str, Callable[[Path], str]]] = {
    "pdf": {"pypdfium2, ours": ours(parse_pdf), "pdfplumber": by_pdfplumber, "pypdf": by_pypdf},
    "docx": {"python-docx, ours": ours(parse_docx), "mammoth": by_mammoth, "python-docx": by_python_docx},
    "html": {"lxml, ours": ours(parse_html), "html-to-markdown": by_html_to_markdown, "trafilatura": by_trafilatura},
    "xlsx": {"openpyxl, ours": ours(parse_xlsx), "python-calamine": by_calamine},
}


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def runs(text: str) -> Counter[tuple[str, ...]]:
    found = words(text)
    return Counter(zip(*(found[n:] for n in range(5)), strict=False))


def numbered(lines: list[Line], text: str) -> tuple[int, int]:
    """Of the units with a number and text: those whose number stands before their words, and all."""
    said = f" {' '.join(words(text))} "
    wanted = [[*words(line.label), *words(line.text)[:3]] for line in lines if line.label and len(words(line.text)) > 2]
    return sum(f" {' '.join(one)} " in said for one in wanted), len(wanted)


def cells(rows: list[tuple[str, ...]], text: str) -> tuple[int, int]:
    """Of the cells of these rows: those that stand in one line with their row's, and all."""
    held = {
        tuple(" ".join(words(cell)) for cell in re.split(r"[|\t]", line) if words(cell)) for line in text.split("\n")
    }
    wanted = [tuple(" ".join(words(cell)) for cell in row if words(cell)) for row in rows]
    return sum(len(row) for row in wanted if row in held), sum(map(len, wanted))


def measured(read: Callable[[Path], str], paths: dict[Path, list[Line]]) -> dict[str, object]:
    began = time.process_time()
    texts = {path: read(path) for path in paths}
    seconds = time.process_time() - began
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for path, lines in paths.items():
        text, rows = texts[path], [row for line in lines for row in line.rows]
        given = runs("\n".join(f"{line.label} {line.text} {' '.join(map(' '.join, line.rows))}" for line in lines))
        counts = {
            "numbers": numbered(lines, text),
            "cells": cells(rows, text),
            "words": ((given & runs(text)).total(), given.total()),
        }
        for name, (n_found, of) in counts.items():
            found[name] += n_found
            total[name] += of
    shares = {name: round(found[name] / total[name], 3) for name in total if total[name]}
    return {**shares, "seconds": round(seconds, 1)}


def write_workbook(path: Path, lines: list[Line]) -> list[Line]:
    """The tables of these lines as a workbook; the lines that are tables."""
    import openpyxl

    tables = [line for line in lines if line.rows]
    book = openpyxl.Workbook()
    for line in tables:
        for row in line.rows:
            book.active.append(row)
    book.save(path)
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="names of documents")
    parser.add_argument("--more", type=Path)
    options = parser.parse_args()
    if options.more:
        sys.path.append(str(options.more))
    if not (options.out / LAYOUT).is_dir():
        render(options.documents, options.out, 10**6)
    known = {
        source.stem: list(lines_of(json.loads(source.read_text(encoding="utf-8"))))
        for source in sorted(options.documents.glob("*.json"))
        if not options.only or source.stem in options.only
    }
    (options.out / "xlsx").mkdir(exist_ok=True)
    for kind, readers in READERS.items():
        paths = {options.out / LAYOUT / kind / f"{name}.{kind}": lines for name, lines in known.items()}
        if kind == "xlsx":
            books = {options.out / "xlsx" / f"{name}.xlsx": lines for name, lines in known.items()}
            paths = {path: tables for path, lines in books.items() if (tables := write_workbook(path, lines))}
        for name, read in readers.items():
            try:
                print(kind, name, json.dumps(measured(read, paths)), flush=True)
            except ImportError as error:
                print(kind, name, f"is not installed ({error})", flush=True)


if __name__ == "__main__":
    main()
