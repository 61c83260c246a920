"""Saved web pages: the main text by lxml, without navigation, banners, scripts and forms; numbers stay.

Readers that guess the "article" lose rule numbers, converters to Markdown write list markers twice. So this walks the
page itself: what is furniture by its element, role or name goes, everything else that is shown stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.labels import GUIDANCE, RANKS, is_label, letters, read_label, roman, split_label
from ragqa.corpus.documents.model import Block, Kind, Parsed, UnreadableError
from ragqa.corpus.documents.sheets import table_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_NEVER: Final = frozenset(
    "script style noscript template iframe object embed svg canvas video audio button input select textarea form nav "
    "footer aside dialog menu head link meta".split()
)
_ROLES: Final = frozenset("navigation banner contentinfo search complementary dialog alertdialog menu toolbar".split())
_FURNITURE: Final = re.compile(
    r"(?:\w+[-_])?(?:cookies?|consent|gdpr|breadcrumbs?|nav|navbar|navigation|menu|sidebar|social|share|sharing|skip|"
    r"newsletter|subscribe|pagination|pager|toolbar|popup|modal|adverts?|toc|table-of-contents|masthead|footer)"
    r"(?:[-_]?(?:bar|banner|links?|list|menu|notice|overlay|policy|box|block|wrapper|container|content|inner|nav|to))*",
    re.IGNORECASE,
)  # of a class, as a whole
_MOST: Final = 0.3  # of a page's text: what holds more is no furniture, whatever it is called
_BLOCKS: Final = frozenset(
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 "
    "header hgroup hr li main ol p pre section summary table tbody td tfoot th thead tr ul caption".split()
)
_LISTS: Final = ("ol", "ul")
_HIDDEN: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_DEPTH: Final = 200  # of elements within elements


def parse_html(path: Path) -> Parsed:
    """The page's main text. Raises UnreadableError where it has none."""
    from lxml import etree, html

    data = path.read_bytes()
    encoding = None if re.search(rb"charset", data[:4096], re.IGNORECASE) else _encoding(data)
    parser = html.HTMLParser(encoding=encoding, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = html.document_fromstring(data, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError, LookupError) as error:
        msg = f"expected a web page, found nothing that reads as one ({str(error)[:80]}); save it again"
        raise UnreadableError(msg) from error
    parsed = Parsed()
    _Walk(parsed).walk(_main(root), 0, 0.0)
    title = clean_line(root.findtext(".//title") or "")
    headings = (block.text for block in parsed.blocks if block.kind == "heading" and block.level == 1)
    parsed.title = next((text for text in headings if not split_label(text, bare=True)[0]), "") or title
    if not any(block.kind != "heading" for block in parsed.blocks):
        msg = (
            "expected a page with text, found an empty body; the text may be loaded by a script: open the page, wait, "
            "and save it as a complete page or print it to PDF"
        )
        raise UnreadableError(msg)
    return parsed


def _encoding(data: bytes) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "cp1252"
    return "utf-8"


def _main(root: HtmlElement) -> HtmlElement:
    """The element that says it is the main text, where it holds most of the page's text; else the body."""
    body = root.find(".//body")
    if body is None:
        return root
    whole = _n_chars(body)
    for wanted in ("main", "*[@role='main']", "article", "*[@id='content']", "*[@id='main-content']"):
        found = body.findall(f".//{wanted}")
        if len(found) == 1 and _n_chars(found[0]) * 2 > whole:
            element: HtmlElement = found[0]
            return element
    return body


def _n_chars(element: HtmlElement) -> int:
    return sum(map(len, element.itertext()))


class _Walk:
    """One pass over a page: elements in, blocks out."""

    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.anchor = ""

    def walk(self, element: HtmlElement, depth: int, indent: float, label: str = "") -> None:
        """Adds the blocks below this element; ``label`` is the number that its list gives it."""
        if depth > _MAX_DEPTH:
            self.parsed.dropped["too deeply nested"] += 1
            return
        inline: list[str] = [element.text or ""]
        for child in element:
            tag = child.tag if isinstance(child.tag, str) else ""
            if reason := _dropped(child, tag):
                self.parsed.dropped[reason] += 1
            elif tag == "br":
                inline.append("\n")
            elif tag == "img":
                if alt := clean_line(child.get("alt") or ""):
                    inline.append(f" {alt} ")
                else:
                    self.parsed.dropped["image without a description"] += 1
            elif tag in _BLOCKS or _holds_blocks(child):
                label = self._flush(inline, label, indent)
                if child.get("id") or child.get("name"):
                    self.anchor = child.get("id") or child.get("name") or ""
                self._block(child, tag, depth + 1, indent, label)
                label = "" if tag not in {"a", "span"} and _has_text(child) else label
            else:
                self._inline(child, inline, depth)
            inline.append(child.tail or "")
        self._flush(inline, label, indent)

    def _block(self, element: HtmlElement, tag: str, depth: int, indent: float, label: str) -> None:
        if re.fullmatch(r"h[1-6]", tag):
            self._add(_text(element), "heading", label, int(tag[1]), indent)
        elif tag in _LISTS:
            for number, item in _items(element, tag):
                self.walk(item, depth, indent + 1, "" if _is_marked(item) else number)
        elif _is_note(element):
            self._add(_text(element), "note", "", 0, indent)
        elif tag == "table":
            self._table(element, depth, indent)
        elif tag == "pre":
            for line in _text(element, lines=True).split("\n"):
                self._add(line, "text", "", 0, indent)
        else:
            self.walk(element, depth, indent + (tag in {"blockquote", "dd"}), label)

    def _table(self, table: HtmlElement, depth: int, indent: float) -> None:
        """A table that only sets numbers beside their texts is text; another one stays a table."""
        rows = [[cell for cell in row if cell.tag in {"td", "th"}] for row in _rows(table)]
        if _is_layout(rows):
            for row in rows:
                texts = [_text(cell) for cell in row]
                label = texts[0] if len(row) > 1 and is_label(texts[0]) else ""
                for cell in row:
                    self.anchor = cell.get("id") or self.anchor
                for cell in row[1:] if label else row:
                    before = len(self.parsed.blocks)
                    self.walk(cell, depth, indent + 1, label)
                    label = "" if len(self.parsed.blocks) > before else label
                if label:
                    self._add("", "text", label, 0, indent)
            return
        self._add(table_text([_text(cell) for cell in row] for row in rows), "table", "", 0, indent)

    def _inline(self, element: HtmlElement, inline: list[str], depth: int) -> None:
        if element.get("id") or (element.tag == "a" and element.get("name")):
            self.anchor = element.get("id") or element.get("name") or ""
        inline.append(_text(element, strip=False))

    def _flush(self, inline: list[str], label: str, indent: float) -> str:
        """Adds the waiting words as paragraphs; gives back the label where there were none."""
        lines = [clean_line(line) for line in "".join(inline).split("\n\n")]
        inline.clear()
        for line in lines:
            if line:
                self._add(line, "text", label, 0, indent)
                label = ""
        return label

    def _add(self, text: str, kind: Kind, label: str, level: int, indent: float) -> None:
        place = f"anchor={self.anchor}" if self.anchor else ""
        self.parsed.add(Block(text, kind, label, level, indent, place))


def _dropped(element: HtmlElement, tag: str) -> str:
    """Why this element is left out; empty where it stays."""
    if not tag or tag in {"script", "style", "noscript", "template", "link", "meta"}:
        return "script or style"
    if _is_note(element) or (tag == "aside" and "note" in (element.get("class") or "")):
        return ""
    if tag in _NEVER:
        return "navigation, form or embedded object"
    if (element.get("role") or "").lower() in _ROLES:
        return "navigation, form or embedded object"
    if tag == "a" and (element.text or "").strip() in {"¶", "#", "§", "🔗"}:
        return "link to its own heading"
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return "hidden text"
    if _HIDDEN.search(element.get("style") or ""):
        return "hidden text"
    if tag == "header" and element.getparent() is not None and element.getparent().tag == "body":
        return "banner or menu"
    if any(map(_FURNITURE.fullmatch, (element.get("class") or "").split())) and _is_small(element):
        return "banner or menu"
    return ""


def _is_note(element: HtmlElement) -> bool:
    """Whether this is one footnote, as HTML writers mark them."""
    marks = f"{element.get('class') or ''} {element.get('role') or ''}".split()
    return element.tag in {"aside", "div", "dl", "li"} and not {"footnote", "doc-footnote", "endnote"}.isdisjoint(marks)


def _is_small(element: HtmlElement) -> bool:
    body = element.getroottree().find(".//body")
    return body is None or _n_chars(element) < _MOST * _n_chars(body)


def _holds_blocks(element: HtmlElement) -> bool:
    return any(isinstance(below.tag, str) and below.tag in _BLOCKS for below in element.iterdescendants())


def _has_text(element: HtmlElement) -> bool:
    return any(text.strip() for text in element.itertext())


def _text(element: HtmlElement, *, lines: bool = False, strip: bool = True) -> str:
    """The words that are shown below this element, on one line unless ``lines``."""
    pieces = list(_pieces(element))
    if lines:
        return "".join(pieces)
    text = "".join(pieces)
    return clean_line(text) if strip else text


def _pieces(element: HtmlElement) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        tag = child.tag if isinstance(child.tag, str) else ""
        if tag == "br" or tag in _BLOCKS:
            yield " "
        if tag == "img":
            yield child.get("alt") or ""
        elif not _dropped(child, tag):
            yield from _pieces(child)
        yield " " if tag in _BLOCKS else ""
        yield child.tail or ""


def _is_marked(item: HtmlElement) -> bool:
    """Whether a list item's number stands in its text: "(a) …", no "Chapter 5 says …" and no "Note that …"."""
    text = clean_line(" ".join(_pieces(item))[:200])
    steps, _ = read_label(text)
    if not steps:
        steps, rest = read_label((text.split() or [""])[0], bare=True)
        steps = () if rest else steps
    return bool(steps) and steps[0].style not in RANKS and steps[0].style != GUIDANCE


def _items(element: HtmlElement, tag: str) -> Iterator[tuple[str, HtmlElement]]:
    """The list's items with the numbers a browser shows; what is no item stands in the list as it is."""
    style = element.get("type") or "1"
    number = _whole(element.get("start")) or 1
    for child in element:
        if child.tag == "li":
            number = _whole(child.get("value")) or number
            yield _marker(number, child.get("type") or style) if tag == "ol" else "", child
            number += 1
        elif isinstance(child.tag, str):
            yield "", child


def _whole(value: str | None) -> int:
    return int(value) if value and re.fullmatch(r"\d{1,6}", value.strip()) else 0


def _marker(number: int, style: str) -> str:
    made: Any = {"a": letters(number), "A": letters(number).upper(), "i": roman(number), "I": roman(number).upper()}
    return f"{made.get(style, str(number))}."


def _rows(table: HtmlElement) -> Iterator[HtmlElement]:
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in {"thead", "tbody", "tfoot"}:
            yield from (row for row in child if row.tag == "tr")


def _is_layout(rows: list[list[HtmlElement]]) -> bool:
    """Whether the cells only place text: one column, or numbers in the first one and at most one text beside them."""
    if any(cell.tag == "th" for row in rows for cell in row):
        return False
    filled = [[text for cell in row if (text := _text(cell))] for row in rows]
    filled = [row for row in filled if row]
    if all(len(row) == 1 for row in filled):
        return True
    pairs = [row for row in filled if len(row) > 1]
    return all(len(row) == 2 for row in pairs) and sum(is_label(row[0]) for row in pairs) * 10 >= len(pairs) * 9
