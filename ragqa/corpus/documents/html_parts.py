"""Parts of a web page: its visible words, lists with their numbers, and tables with their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice, pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.labels import GUIDANCE, RANKS, follows, in_style, is_label, read_label, split_label
from ragqa.corpus.documents.model import MAX_BLOCKS, UnreadableError
from ragqa.corpus.documents.sheets import MAX_COLUMNS

if TYPE_CHECKING:
    from lxml.html import HtmlElement

BLOCKS: Final = frozenset(
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 "
    "header hgroup hr li main ol p pre section summary table tbody td tfoot th thead tr ul caption".split()
)

HEADS: Final = frozenset(f"h{n}" for n in range(1, 7))
_BREAK: Final = "\f"  # in the words of an element where a line ends
_NOTE: Final = re.compile(r"(?:\w+(?:-\w+)*[-_])?(?:footnote|endnote|note)")  # one way to match each name, so fast
_FOOTNOTE: Final = re.compile(r"(?:\w+(?:-\w+)*[-_])?(?:footnote|endnote)")
TYPED_MARK: Final = re.compile(r"^[(\[]\s*(\w{1,3})\s*[)\]]")  # before a footnote
_UNIT: Final = re.compile(r"(?:^|[\s\d])[kcdm]?m$")  # of a length, behind which a raised number is no mark
_MOST_TITLES: Final = 3  # rows of titles at the top of a table
_PLACED: Final = 10  # paragraphs in a cell from which it only places them in the page
_SHIFTED: Final = frozenset(("sub", "sup"))  # part of the word before them
_STYLED: Final = re.compile(
    r"list-style(?:-type)?\s*:[^;]{0,80}?((?:lower|upper)-(?:alpha|latin|roman))", re.IGNORECASE
)
_CHARSET: Final = re.compile(rb"<meta\b[^>]{0,500}charset", re.IGNORECASE)  # not that of a script
LONGEST_NAME: Final = 80
_MOST_PIECES: Final = 8  # of a number at the beginning of a paragraph, so that long ones take no time
LONGEST_NUMBER: Final = 20  # characters of a number in an element of its own
_CODE: Final = ("code", "samp", "kbd", "tt", "var")


def read_page(path: Path) -> HtmlElement:
    """The page's root element; its encoding is guessed if the page does not state it. Raises UnreadableError."""
    from lxml import etree, html

    data = path.read_bytes()
    encoding = None if _CHARSET.search(data[:4096]) else _encoding(data)
    parser = html.HTMLParser(encoding=encoding, no_network=True, remove_comments=True, remove_pis=True)
    try:
        return html.document_fromstring(data, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError, LookupError) as error:
        msg = f"expected a web page, found nothing that reads as one ({str(error)[:80]}); save it again"
        raise UnreadableError(msg) from error


def _encoding(data: bytes) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "cp1252"
    return "utf-8"


def has_text(element: HtmlElement) -> bool:
    """Whether there are any words below this element."""
    return any(text.strip() for text in element.itertext())


def text_of(element: HtmlElement) -> str:
    """The visible words below this element, on one line."""
    return clean_line("".join(pieces_of(element)))


def pieces_of(element: HtmlElement) -> Iterator[str]:
    """Lazily yields the words below this element, with spaces around blocks, and between a number and its title."""
    yield element.text or ""
    waiting: list[HtmlElement | str] = [*element.iterchildren(reversed=True)]  # a stack instead of recursion
    said = ""  # the words of the element before, if none are between
    while waiting:
        child = waiting.pop()
        if isinstance(child, str):
            yield child
            said = ""
            continue
        tag = child.tag
        is_block = tag in BLOCKS
        after = f"{' ' if is_block else ''}{child.tail or ''}"
        if after:
            waiting.append(after)
        if is_block or tag == "br":
            yield " " if is_block else _BREAK
        if tag == "img":
            yield child.get("alt") or ""
        elif isinstance(tag, str):
            if text := child.text:
                apart = said and tag not in _SHIFTED and runs_on(said, text) and not _is_code(child)
                yield f" {text}" if apart else text
                said = text
            waiting += child.iterchildren(reversed=True)


def _is_code(element: HtmlElement) -> bool:
    """Whether the element is part of a name in code, in which no title begins: "python" and "X"."""
    return next(element.iterancestors(*_CODE), None) is not None


def opens_with_label(words: list[str]) -> bool:
    """Whether these first words of a paragraph are only a number, from which the next element is set apart."""
    return len(words) <= _MOST_PIECES and is_label("".join(words))


def lines_of(text: str) -> Iterator[str]:
    """The paragraphs of a text, and its lines if numbers count on: "TITLE 5", "CHAPTER 2", or "(a) …", "(b) …"."""
    for paragraph in re.split(r"\n\v?\n", text):
        lines = re.split(rf"[\v{_BREAK}]", paragraph)
        steps = [step for line in lines for step in read_label(line.strip())[0][:1]] if len(lines) > 1 else []
        parts = sum(step.style in RANKS for step in steps)
        counted = any(one.style == step.style and follows(one.value, step.value) for one, step in pairwise(steps))
        yield from lines if parts > 1 or counted or any(map(_begins_section, lines, lines[1:])) else (paragraph,)


def _begins_section(before: str, line: str) -> bool:
    """Whether a line behind the end of another begins with the sign of a section and a title: "Sec. 1-5. Lamps."."""
    steps, text = read_label(line.strip())
    is_sign = bool(steps) and (steps[0].printed[:1] == "§" or steps[0].printed[:3].lower() == "sec")
    return is_sign and text[:1].isupper() and before.rstrip()[-1:] in {".", ")", "]"}


def marks_of(main: HtmlElement) -> set[str]:
    """The raised marks of notes that stand in texts, without links."""
    found: set[str] = set()
    for one in main.iter("sup"):
        mark, before, above = text_of(one), one.getprevious(), one.getparent()
        said = (above.text if before is None else before.tail) or ""
        if before is None and not said.strip():
            if above.tag in BLOCKS and not found and is_label(mark):  # the page raises the numbers of paragraphs
                return set()
        elif 0 < len(mark) <= 3 and is_label(mark) and not _UNIT.search(said[-3:].rstrip()):
            found.add(mark)
    return found


def mark_before(element: HtmlElement, cited: set[str], raised: set[str]) -> str:
    """The mark before a footnote, if the page links to one of its ids or raises the same mark in its text; else ""."""
    if not cited and not raised:
        return ""
    first, before, own = element, element.getprevious(), {element.get("id"), element.get("name")}
    while first.tag != "a" and len(first) and (first.text or "").strip() in {"", "(", "["}:
        first = first[0]
        if first.tag in BLOCKS and first.tag != "p":
            return ""
        own |= {first.get("id"), first.get("name")}
    if first.tag != "a" or not is_mark_link(first):
        if element.get("id") in cited and (typed := TYPED_MARK.match((element.text or "").lstrip())):
            return typed[1]
        return mark if first.tag == "sup" and (mark := text_of(first)) in raised else ""
    own |= {before.get("id"), before.get("name")} if before is not None else set()
    return text_of(first) if not own.isdisjoint(cited) else ""


def runs_on(before: str, text: str) -> bool:
    """Whether a text in an element of its own begins anew behind another without a space: "PART 1" and "Title"."""
    return text[:1].isupper() and (before[-1:].isdigit() or before[-1:].islower())


def is_paragraph(element: HtmlElement) -> bool:
    """Whether a ``span`` is set as a paragraph: its first child is the number of the next, or it follows one alike."""
    if len(element) > 1 and not (element.text or "").strip() and not (element[0].tail or "").strip():
        label = (element[0].text or "").strip() if len(element[0]) == 0 else ""
        if label and not label[0].isalnum() and is_label(label) and has_text(element[1]):
            return True
    before = element.getprevious()
    if before is None or before.tag != "span" or not element.get("class") or (before.tail or "").strip():
        return False
    ended = before.get("class") == element.get("class") and text_of(before)[-1:] in set(".;:—–")
    return ended and len(text_of(element).split()) > 2


def raises_numbers(main: HtmlElement) -> bool:
    """Whether the page raises the numbers of paragraphs, without links, and no such number is a mark in a text."""
    raised = [one for one in main.iter("sup") if one.find("a") is None and text_of(one)[:1].isdigit()]
    return len(raised) > 2 and all(
        one.getprevious() is None and not (one.getparent().text or "").strip() for one in raised
    )


def raises_link(element: HtmlElement) -> bool:
    """Whether this is the raised mark of a note, a link, and so no number."""
    return any(sup.find(".//a") is not None for sup in element.iter("sup"))


def numbers_text(first: HtmlElement, other: HtmlElement) -> bool:
    """Whether an element is only a number, and the one beside it does not begin with a heading that has its own."""
    if first.tag in {"p", "li", *HEADS} or not is_label(text_of(first)) or raises_link(first):
        return False
    heading = next((one for one in islice(other.iter(), 9) if one.tag in HEADS), None)
    return heading is None or not split_label(text_of(heading), bare=True)[0]


def is_item_label(element: HtmlElement) -> bool:
    """Whether a heading is only the number of an item, "(a)", whose text comes after it."""
    if element.tag not in HEADS or len(text := text_of(element)) > LONGEST_NUMBER:
        return False
    return text[:1] == "(" and is_label(text)


def notes_of(element: HtmlElement) -> Iterator[tuple[HtmlElement, str]]:
    """The notes in this element, each with its mark: each definition of a list with the term before, else itself."""
    if element.tag != "dl" or element.find("dd") is None:
        yield element, ""
        return
    term = None
    for child in element.iterchildren("dt", "dd", "div", "p"):
        if term is not None and child.tag != "dd":
            yield term, ""
        mark = text_of(term).strip("()[].") if term is not None else ""
        term = child if child.tag == "dt" else None
        if term is None:
            yield child, mark if child.tag == "dd" else ""
    if term is not None:
        yield term, ""


def notes_last(element: HtmlElement) -> Iterator[HtmlElement]:
    """The children in order, with margin notes at the beginning moved to the end, after the text that they explain."""
    before = [*takewhile(lambda child: child.tag == "aside", element)]
    return chain(islice(element, len(before), None), before)


def is_marked(item: HtmlElement) -> bool:
    """Whether a list item's number is in its text: "(a) …", but not "Chapter 5 says …" or "Note that …"."""
    text = clean_line(" ".join(islice(pieces_of(item), 200))[:200])
    steps, _ = read_label(text)
    if not steps:
        steps, rest = read_label((text.split() or [""])[0], bare=True)
        steps = () if rest else steps
    return bool(steps) and steps[0].style not in RANKS and steps[0].style != GUIDANCE


def shows_counters(main: HtmlElement) -> bool:
    """Whether lists show their counters; else numbers are typed into the items and a style hides them."""
    items = [item for item in main.iter("li") if item.getparent().tag == "ol"]
    return sum(map(is_marked, items)) * 2 <= len(items)


def items_of(element: HtmlElement, tag: str) -> Iterator[tuple[str, HtmlElement]]:
    """The items of a list with the numbers that a browser shows; other children have no number."""
    styled = _STYLED.search(element.get("style") or "")
    style = element.get("type") or (styled[1] if styled else "1")
    step = 1 if element.get("reversed") is None else -1
    number = _first(element.get("start"), 1 if step > 0 else sum(child.tag == "li" for child in element))
    for child in element:
        if child.tag == "li":
            number = _first(child.get("value"), number)
            yield f"{in_style(number, child.get('type') or style) or number}." if tag == "ol" else "", child
            number += step
        elif isinstance(child.tag, str):
            yield "", child


def _first(value: str | None, otherwise: int) -> int:
    """The number of a list or item as its attribute states it, which may be 0."""
    return int(value) if value and re.fullmatch(r"-?\d{1,6}", value.strip()) else otherwise


def _whole(value: str | None) -> int:
    return int(value) if value and re.fullmatch(r"\d{1,6}", value.strip()) else 0


def rows_of(table: HtmlElement) -> Iterator[HtmlElement]:
    """The table's own rows, without those of tables in its cells; cells without a row are one."""
    if table.find("td") is not None or table.find("th") is not None:
        yield table
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in {"thead", "tbody", "tfoot"}:
            rows = [row for row in child if row.tag == "tr"]
            yield from rows or [child]  # cells without a row


def cells_in(table: HtmlElement) -> list[list[HtmlElement]]:
    """The cells of the table's own rows, without a column that only holds the colons between terms and meanings."""
    rows = [[cell for cell in row if cell.tag in {"td", "th"}] for row in rows_of(table)]
    said: dict[int, set[str]] = {}
    for row in rows:
        for n, cell in enumerate(row):
            said.setdefault(n, set()).add("(elements)" if len(cell) else (cell.text or "").strip())
    return [[cell for n, cell in enumerate(row) if said[n] not in ({":"}, {":", ""})] for row in rows]


def is_layout(rows: list[list[HtmlElement]]) -> bool:
    """Whether the table only places text: one column, numbers beside at most one text, or one row of a page."""
    if len(rows) == 1 and any(sum(1 for _ in islice(cell.iter("p"), _PLACED)) == _PLACED for cell in rows[0]):
        return True
    if any(cell.tag == "th" for row in rows for cell in row):
        return False
    filled = [[cell for cell in row if has_text(cell)] for row in rows]
    pairs = [row for row in filled if len(row) > 1]
    return (
        all(len(row) == 2 for row in pairs) and sum(is_label(text_of(row[0])) for row in pairs) * 10 >= len(pairs) * 9
    )


def titles_of(rows: list[list[HtmlElement]]) -> list[HtmlElement]:
    """Removes the first rows whose one cell spans a table of several columns, and returns their cells."""
    width = _width(rows)
    titles = [*takewhile(lambda row: _spans(row, width), rows[: min(_MOST_TITLES, len(rows) - 1)])]
    del rows[: len(titles)]
    return [row[0] for row in titles]


def _width(rows: list[list[HtmlElement]]) -> int:
    return max((sum(_whole(cell.get("colspan")) or 1 for cell in row) for row in rows[:MAX_COLUMNS]), default=0)


def _spans(row: list[HtmlElement], width: int) -> bool:
    return len(row) == 1 and 1 < width <= _whole(row[0].get("colspan"))


def spanned(rows: list[list[HtmlElement]]) -> Iterator[list[str]]:
    """The texts of a table; a cell that spans several rows or columns is repeated in each."""
    held: dict[int, tuple[int, str]] = {}  # by column: rows still to fill, and with what
    n_cells, width = 0, _width(rows)
    for row in rows:
        if _spans(row, width):
            yield [text_of(row[0])]
            continue
        texts: list[str] = []
        cells = iter(row)
        while True:
            if held.get(len(texts), (0, ""))[0]:
                left, text = held[len(texts)]
                held[len(texts)] = (left - 1, text)
                texts.append(text)
                continue
            cell = next(cells, None)
            if cell is None:
                break
            text, down = text_of(cell), min(_whole(cell.get("rowspan")) or 1, len(rows))
            for _ in range(min(_whole(cell.get("colspan")) or 1, MAX_COLUMNS)):
                held[len(texts)] = (down - 1, text)
                texts.append(text)
        n_cells += len(texts)
        if n_cells > MAX_BLOCKS:
            msg = f"expected tables of at most {MAX_BLOCKS:,} cells, found one that spans more; split it"
            raise UnreadableError(msg)
        yield texts


def _names(element: HtmlElement, *attributes: str) -> list[str]:
    """The names in these attributes, without overlong ones."""
    names = " ".join(element.get(attribute) or "" for attribute in attributes).split()
    return [name for name in names if len(name) <= LONGEST_NAME]


def has_notes_outside(main: HtmlElement, body: HtmlElement) -> bool:
    """Whether marks in the main text link to footnotes after it."""
    marks = cited(main)
    return bool(marks) and any(one.get("id") in marks and main not in one.iterancestors() for one in body.iter())


def cited(main: HtmlElement) -> set[str]:
    """The ids of footnotes to which marks in the main text link."""
    return {link.get("href")[1:] for link in main.iter("a") if is_mark_link(link)}


def is_mark_link(link: HtmlElement) -> bool:
    """Whether this looks like the mark of a footnote: a link within the page of at most three characters."""
    text = text_of(link) if len(link) else link.text or ""
    return (link.get("href") or "")[:1] == "#" and 0 < len(text.strip("()[] ")) <= 3


def is_repeated(term: HtmlElement) -> bool:
    """Whether the definition itself begins with the term."""
    after = term.getnext()
    return after is not None and after.tag == "dd" and text_of(after).startswith(f"{text_of(term)} ")


def is_note(element: HtmlElement) -> bool:
    """Whether this is a single footnote, by the usual classes and roles."""
    marks = _names(element, "class", "role")
    if not marks:
        return False
    if element.tag == "p":  # "note" alone may also be a box beside the text
        return any(map(_NOTE.fullmatch, marks)) and bool(split_label(text_of(element))[0])
    return element.tag in {"aside", "div", "dl", "li"} and any(map(_FOOTNOTE.fullmatch, marks))
