"""Reads Markdown with numbered headings as a web page, into which markdown-it (CommonMark and tables) renders it.

So numbers, lists, tables and HTML in the text are read as on pages, and links and emphasis as words. Other Markdown is
cut into verbatim slices by `ragqa.corpus.text`.
"""

from __future__ import annotations

import re
from html import escape
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ragqa.corpus.chunking import front_matter
from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.labels import MARKED, split_label
from ragqa.corpus.documents.model import Parsed, UnreadableError
from ragqa.corpus.documents.plain import is_numbered
from ragqa.corpus.text import MARKDOWN, read_text

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

_MARK = re.compile(r"\s*\(\w{1,5}\)\s")  # "(a) " at the start of a line begins a line on the page, too
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+)", re.MULTILINE)


def is_rules(path: Path) -> bool:
    """Whether a text has several numbered headings, or is plain and numbered. Raises CorpusError if it is not UTF-8."""
    if path.suffix.lower() not in MARKDOWN:
        return is_numbered(path)
    headings = (found[1] for found in _HEADING.finditer(read_text(path)))
    return sum(bool(split_label(heading)[0]) for heading in headings) >= MARKED


def parse_markdown(path: Path) -> Parsed:
    """The text of a Markdown file without its markup. Raises CorpusError if it is not UTF-8 or has no text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.push("marked lines", _break_before_marks)
    matter, title = front_matter(text := read_text(path))
    page = f"<title>{escape(title)}</title><body>{parser.render(text[len(matter) :])}</body>"
    with TemporaryDirectory() as folder:
        rendered = Path(folder) / "page.html"
        rendered.write_text(f'<!doctype html><meta charset="utf-8">{page}', encoding="utf-8")
        try:
            return parse_html(rendered)
        except UnreadableError as error:
            msg = "expected text, found none below its headings; take it out"
            raise UnreadableError(msg) from error


def _break_before_marks(state: StateCore) -> None:
    """Ends the line before each item's mark within a paragraph; other line ends of the file are spaces."""
    for token in state.tokens:
        for piece, after in pairwise(token.children or []):
            if piece.type == "softbreak" and _MARK.match(after.content) and split_label(after.content.strip())[0]:
                piece.type = "hardbreak"
