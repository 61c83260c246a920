"""A wiki page's HTML -> Markdown: headings, lists, tables and infoboxes are kept, what only steers a reader goes."""

from __future__ import annotations

import re
from typing import Final

from ragqa.corpus.cleaning import clean_text
from ragqa.errors import CorpusError

_NOT_TEXT: Final = (
    *("style", "script", "sup.reference", ".mw-editsection", ".mw-empty-elt", ".mw-cite-backlink", ".reference-text"),
    *("ol.references", "div.reflist", "div.refbegin", ".navbox", ".navbox-styles", ".metadata", ".noprint", ".toc"),
    *("#toc", ".vertical-navbox", ".sistersitebox", ".ambox", "#coordinates", ".mw-jump-link", ".printfooter"),
    *(".catlinks", "#siteSub", "#jump-to-nav", ".mwe-math-fallback-image-inline", ".mwe-math-fallback-image-display"),
)  # fmt: skip
_UNMARKED: Final = ("a", "b", "i", "strong", "em", "u", "s", "small", "big", "abbr", "cite", "q", "mark", "sup", "sub")
MAX_DEPTH: Final = 400  # of elements in elements
_BREAKS = re.compile(r"(?:<br\s*/?>|\\$)")
_BLANK_LINES = re.compile(r"\n{3,}")


def html_markdown(html: str, title: str = "") -> str:
    """The page as Markdown, cleaned (`clean_text`), read by html-to-markdown. Raises CorpusError where that fails.

    References, navigation boxes, edit links, notices, styles and scripts go; links and emphasis leave their words.
    ``title``, where it is a heading of level 1, goes too; other headings of that level get level 2. A cell's list is
    parted by commas.
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
    except Exception as error:  # the library's own errors have no one base
        msg = f"expected a page's HTML, found what cannot be converted ({error}); leave the page out or report it"
        raise CorpusError(msg) from error
    lines = (_line(line, title) for line in markdown.split("\n"))
    return _BLANK_LINES.sub("\n\n", clean_text("\n".join(lines)))


def _line(line: str, title: str) -> str:
    if line.startswith("# "):
        return "" if " ".join(line[2:].split()) == title else f"#{line}"
    return _BREAKS.sub(", " if line.startswith("|") else "", line)
