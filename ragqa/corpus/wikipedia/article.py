"""Converts a wiki page's HTML to Markdown, and an article in Markdown to passages with title and headings."""

from __future__ import annotations

import re
from typing import Final

from ragqa.corpus.chunking import chunk, markdown_outline
from ragqa.corpus.cleaning import clean_text
from ragqa.corpus.text import SEPARATOR
from ragqa.errors import CorpusError
from ragqa.types import Passage

VERSION: Final = 2  # raise it when sources become other Markdown or passages; part of every stream's identity


def article_passages(title: str, markdown: str, max_tokens: int, document_id: str = "") -> tuple[Passage, ...]:
    """The chunks of an article; () if it has no text below its headings.

    ``document_id`` is the title by default. Passage ids are ``"Title:1"``, ``"Title:2"``. They are unique if document
    ids are, as the number follows the last colon. ``section`` is the path of headings below the title; ``start`` and
    ``end`` are offsets in the Markdown.
    """
    spans = (
        (SEPARATOR.join(section.path), span)
        for section in markdown_outline(markdown).sections
        for span in chunk(markdown, section.blocks, max_tokens)
    )
    return tuple(
        Passage(
            passage_id=f"{document_id or title}:{number}",
            document_id=document_id or title,
            text=span.text,
            title=title,
            section=section,
            number=str(number),
            start=span.start,
            end=span.end,
        )
        for number, (section, span) in enumerate(spans, start=1)
    )


_NOT_TEXT: Final = (
    *("style", "script", "sup.reference", ".mw-editsection", ".mw-empty-elt", ".mw-cite-backlink", ".reference-text"),
    *("ol.references", "div.reflist", "div.refbegin", ".navbox", ".navbox-styles", ".metadata", ".noprint", ".toc"),
    *("#toc", ".vertical-navbox", ".sistersitebox", ".ambox", "#coordinates", ".mw-jump-link", ".printfooter"),
    *(".catlinks", "#siteSub", "#jump-to-nav", ".mwe-math-fallback-image-inline", ".mwe-math-fallback-image-display"),
)  # fmt: skip
_UNMARKED: Final = ("a", "b", "i", "strong", "em", "u", "s", "small", "big", "abbr", "cite", "q", "mark", "sup", "sub")
MAX_DEPTH: Final = 400  # of nested elements
_BREAKS = re.compile(r"(?:<br\s*/?>|\\$)")
_BLANK_LINES = re.compile(r"\n{3,}")


def html_markdown(html: str, title: str = "") -> str:
    """The page as cleaned Markdown (`clean_text`), converted by html-to-markdown. Raises CorpusError if that fails.

    References, navigation boxes, edit links, notices, styles and scripts are removed; links and emphasis become plain
    words. A heading of level 1 that is ``title`` is removed, and other headings of level 1 get level 2. Items of a list
    in a table cell are separated by commas.
    """
    from html_to_markdown import ConversionOptions, convert

    options = ConversionOptions(
        exclude_selectors=list(_NOT_TEXT),
        strip_tags=list(_UNMARKED),
        skip_images=True,
        compact_tables=True,
        br_in_tables=True,
        bullets="-",
        list_indent_width=3,
        autolinks=False,
        extract_metadata=False,
        newline_style="backslash",
        max_depth=MAX_DEPTH,
    )
    try:
        markdown = convert(html, options).content or ""
    except Exception as error:  # the library's errors have no common base class
        msg = f"expected a page's HTML, found what cannot be converted ({error}); leave the page out or report it"
        raise CorpusError(msg) from error
    lines = (_line(line, title) for line in markdown.split("\n"))
    return _BLANK_LINES.sub("\n\n", clean_text("\n".join(lines)))


def _line(line: str, title: str) -> str:
    if line.startswith("# "):
        return "" if " ".join(line[2:].split()) == title else f"#{line}"
    return _BREAKS.sub(", " if line.startswith("|") else "", line)
