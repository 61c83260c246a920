"""Reads the main text of saved web pages with lxml: without navigation, banners, scripts and forms, but with numbers.

Libraries that guess the "article" lose rule numbers, and converters to Markdown write list markers twice. So this
module walks the page itself. Furniture, by element, role, name or recurrence (`ragqa.corpus.documents.furniture`), is
removed first and recorded; all other visible text stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.furniture import DATE, Zones, columns_and_headings, contents_of, furniture_of, leaves_of
from ragqa.corpus.documents.html_headings import (
    has_side_notes,
    is_emphasised,
    is_sentences,
    is_title_term,
    names_next,
    number_of,
    repeated_titles,
    run_in,
    set_lines_apart,
)
from ragqa.corpus.documents.html_parts import (
    BLOCKS,
    HEADS,
    TYPED_MARK,
    cells_in,
    cited,
    has_text,
    is_item_label,
    is_layout,
    is_marked,
    is_note,
    is_paragraph,
    is_repeated,
    items_of,
    lines_of,
    mark_before,
    marks_of,
    notes_last,
    notes_of,
    numbers_text,
    opens_with_label,
    pieces_of,
    raises_numbers,
    read_page,
    runs_on,
    shows_counters,
    spanned,
    text_of,
    titles_of,
)
from ragqa.corpus.documents.html_styles import apply_styles
from ragqa.corpus.documents.html_unseen import UNSEEN, leads_beside, main_of, neighbours_of, plain_words, take_out
from ragqa.corpus.documents.labels import MARKED, is_label, split_label
from ragqa.corpus.documents.model import BOLD_LEVEL, OUTERMOST, Block, Kind, Parsed, UnreadableError
from ragqa.corpus.documents.sheets import table_text
from ragqa.english.sentences import reads_as_heading

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_LISTS: Final = ("ol", "ul")
_ROWS: Final = frozenset(("tr", "table", "tbody", *_LISTS))
_TITLES: Final = HEADS | {"summary", "legend"}
_ATTRIBUTE: Final = re.compile(r"content\s*:[^;}]{0,200}?\battr\(\s*([\w-]{1,80})")
_MAX_WAITING: Final = 2**24  # bytes of parsed pages that are kept for later use
_MAX_NAMED: Final = 40  # characters of the name of notes in a box
_MAX_DEPTH: Final = 200  # of nested elements
_WAITING: dict[tuple[Path, int, int], _WebPage] = {}


def parse_html(path: Path, beside: Sequence[Path] = ()) -> Parsed:
    """The page's main text; ``beside`` are pages of the same folder. Raises UnreadableError if it has no text."""
    place = zones_beside(tuple(beside))
    page = _WAITING.pop(_identity(path), None) or _WebPage(path)
    parsed = page.parsed
    own = Zones()
    own.add(page.leaves)
    contents, titles = contents_of(page.leaves, page.main)
    page.headings |= titles
    for element, text in furniture_of(page.leaves, own, place, page.main, contents).items():
        parsed.leave_out("furniture of the site", text)
        page.furniture[element] = text
    if page.furniture.keys().isdisjoint((page.main, *page.main.iterancestors())):  # else the page is only furniture
        _Walk(parsed, page).walk(page.main, 0, OUTERMOST)
    if page.main is not page.body:
        page.main.drop_tree()
        parsed.leave_out("outside the main text", text_of(page.body))
    headings = [block.text for block in parsed.blocks if block.kind == "heading" and block.level == 1]
    named = (text for text in headings if not split_label(text, bare=True)[0] or text in page.title)
    parsed.title = next(named, "") or page.title
    if not any(block.kind != "heading" for block in parsed.blocks):
        found = "what stands on other pages of its site, too" if page.furniture else "an empty body"
        raise UnreadableError(
            f"expected a page with text of its own, found {found}; its text may be loaded by a script or stand "
            "elsewhere: open the page, wait, and save it as a complete page or print it to PDF"
        )
    return parsed


@cache
def zones_beside(paths: tuple[Path, ...]) -> Zones:
    """The zones of these pages, cached. The parsed pages are kept for `parse_html`, up to a limit."""
    zones, held = Zones(), 0
    for path in paths:
        try:
            page = _WebPage(path)
        except (UnreadableError, OSError):
            continue
        zones.add(page.leaves)
        if (held := held + path.stat().st_size) <= _MAX_WAITING:
            _WAITING[_identity(path)] = page
    return zones


def _identity(path: Path) -> tuple[Path, int, int]:
    return path, path.stat().st_mtime_ns, path.stat().st_size


class _WebPage:
    """A parsed page without invisible text, and the facts that are collected before the walk.

    Raises UnreadableError if the file is not a web page.
    """

    def __init__(self, path: Path) -> None:
        self.parsed = Parsed()
        root = read_page(path)
        self._elements = list(root.iter())  # references keep lxml from making new objects for the same elements
        self.title = clean_line(root.findtext(".//title") or "")
        body = root.find(".//body")
        self.body = root if body is None else body
        self._shown = {name for style in root.iter("style") for name in _ATTRIBUTE.findall(style.text or "")}
        self._counted = apply_styles(root)
        beside = neighbours_of(root)
        self.parsed.words = plain_words(self.body)
        take_out(self.body, self.parsed, [*leads_beside(self.body, beside, self.title)])
        self.main = main = main_of(self.body)
        set_lines_apart(main)
        self.furniture: dict[HtmlElement, str] = {}
        self._holding: dict[HtmlElement, None] = {}
        self._after: dict[HtmlElement, dict[HtmlElement, tuple[int, int]]] = {}  # characters of notes and of all text
        self.linked_mark = partial(mark_before, cited=cited(main), raised=marks_of(main))
        self.raises_numbers = raises_numbers(main)
        for element in main.iter():
            if element.tag in BLOCKS or (element.tag == "span" and is_paragraph(element)):
                above = element if element.tag == "span" else element.getparent()
                while above is not None and above not in self._holding:
                    self._holding[above] = None
                    above = above.getparent()
        self.shows_counters = shows_counters(main)
        self.leaves = leaves_of(main, self.holds_blocks, UNSEEN)
        self.numbers, self.headings = columns_and_headings(self.leaves)
        self.headings |= repeated_titles(main)
        first = (one[0] for one in self.headings if len(one) and not (one.text or "").strip())
        self._before = Counter(text_of(one) for one in first if one.tag not in BLOCKS)

    def holds_blocks(self, element: HtmlElement) -> bool:
        return element in self._holding

    def attributed(self, element: HtmlElement) -> str:
        """The number that the page's style shows before the element, counted or from an attribute; empty if none."""
        if element in self._counted:
            return self._counted[element]
        numbers = (element.get(name) or "" for name in self._shown)
        return next((number for number in numbers if is_label(number)), "")

    def repeated_before(self, heading: HtmlElement) -> str:
        """The words before several such headings, for screen readers, such as "Marginal note:"; empty if none."""
        words = text_of(heading[0]) if len(heading) and not (heading.text or "").strip() else ""
        return words if self._before[words] >= MARKED and words != text_of(heading) else ""

    def is_of_notes(self, heading: HtmlElement) -> bool:
        """Whether only footnotes follow the heading."""
        above = heading.getparent()
        if above not in self._after:
            self._after[above] = {}
            n_chars = n_noted = 0
            for child in reversed(above):
                self._after[above][child] = n_noted, n_chars
                n_chars += len(text_of(child))
                below = (one for one in child.iter() if one.tag in {"p", "li", "div", "aside", "dl"})
                notes = {one: None for one in below if is_note(one) or self.linked_mark(one)}
                n_noted += sum(len(text_of(one)) for one in notes if one.getparent() not in notes)
        n_noted, n_chars = self._after[above][heading]
        return n_noted > 0 and n_noted >= 0.9 * n_chars


class _Walk:
    """One pass over a page that turns elements into blocks."""

    def __init__(self, parsed: Parsed, page: _WebPage) -> None:
        self.parsed = parsed
        self.page = page
        self.anchor = ""
        self._rule = -1  # the first block of the numbered text in which the walk is; -1 outside
        self._broken = -1  # the last block that is a heading or has a number, and is no note in a rule

    def walk(self, element: HtmlElement, depth: int, indent: float, label: str = "") -> None:
        """Adds the blocks below this element; ``label`` is its number from a list or from a column beside it."""
        if depth > _MAX_DEPTH:
            self.parsed.leave_out("too deeply nested", text_of(element))
            return
        numbers, above = self._numbers(element), self._rule
        number = number_of(element, raised=self.page.raises_numbers)
        self._rule = len(self.parsed.blocks) if label else above
        inline: list[str] = [element.text or ""]
        for child in notes_last(element):
            tag = child.tag if isinstance(child.tag, str) else ""
            if child in numbers or child in self.page.numbers or child is number or is_item_label(child):
                self._flush(inline, label, indent, last=True)
                label = text_of(child)
                self._rule = len(self.parsed.blocks)
            elif child in self.page.furniture:
                label = self._flush(inline, label, indent)
                self._furniture(child)
            elif tag == "dt" and is_repeated(child):
                self.parsed.leave_out("term that its definition repeats", text_of(child))
            elif tag == "br":
                inline.append("\v\n")
            elif tag == "img":
                inline.append(self._picture(child))
            elif tag in BLOCKS or self.page.holds_blocks(child):
                label = self._flush(inline, label, indent)
                if child.get("id") or child.get("name"):
                    self.anchor = child.get("id") or child.get("name") or ""
                before = len(self.parsed.blocks)
                self._block(child, tag, depth + 1, indent, label)
                label = "" if len(self.parsed.blocks) > before else label
            else:
                self._inline(child, inline)
            inline.append(child.tail or "")
        self._flush(inline, label, indent, last=has_text(element))
        self._rule = above

    @property
    def _note_kind(self) -> Kind:
        """The kind of a note here: inside the text of one number, with at most items between, it is part of it."""
        return "inner note" if self._rule >= 0 and self._broken <= self._rule else "note"

    def _numbers(self, element: HtmlElement) -> Sequence[HtmlElement]:
        """The children that are only a number or a term, each followed by a child with its text."""
        if len(element) < 2 or element.tag in _ROWS or (element.text or "").strip():
            return ()
        if element.tag == "dl":
            terms = (child for child in element.iterchildren("dt") if has_text(child))
            return [term for term in terms if not (is_repeated(term) or is_title_term(term))]
        shown = (child for child in element if has_text(child) and child not in self.page.furniture)
        numbers = []
        for first in shown:
            other = next(shown, None)
            if other is None or (first.tail or "").strip() or not numbers_text(first, other):
                return ()
            numbers.append(first)
        return numbers

    def _heads_notes(self, element: HtmlElement) -> bool:
        """Whether these few words are the name of the notes after them in a box."""
        text = (element.text or "").strip() if element.getprevious() is None and not len(element) else ""
        return 0 < len(text) < _MAX_NAMED and text[-1].isalpha() and self.page.is_of_notes(element)

    def _is_emphasised(self, element: HtmlElement) -> bool:
        is_text = element.tag == "p" or (element.tag in {"div", "td", "th"} and not self.page.holds_blocks(element))
        return is_text and is_emphasised(element)

    def _furniture(self, element: HtmlElement) -> None:
        """Adds dates beside a rule, which say since when it is in force, as a version; drops other furniture."""
        if DATE.search(text := self.page.furniture[element]):
            self.parsed.add(Block(text, "version"))

    def _picture(self, element: HtmlElement) -> str:
        if alt := clean_line(element.get("alt") or ""):
            return f" {alt} "
        self.parsed.leave_out("image without a description", "")
        return ""

    def _block(self, element: HtmlElement, tag: str, depth: int, indent: float, label: str) -> None:
        label = self.page.attributed(element) or label
        if label and (tag in {*_LISTS, "table", "pre"} or is_note(element)):
            self._add("", "text", label, 0, indent)
        if tag in HEADS and self.page.is_of_notes(element):
            self._notes_heading(text_of(element), indent)
        elif tag in _TITLES or element in self.page.headings or is_title_term(element) or self._is_emphasised(element):
            self._heading(element, label, int(tag[1]) if tag in HEADS else BOLD_LEVEL, indent)
        elif tag in _LISTS:
            self._list(element, tag, depth, indent)
        elif tag == "aside" or is_note(element) or (tag == "p" and self._heads_notes(element)):
            for note, mark in notes_of(element):
                self._note(note, indent, mark)
        elif tag in {"p", "div", "dd"} and (mark := self.page.linked_mark(element)):
            self._note(element, indent, mark.strip("()[]"))
        elif tag == "table":
            self._table(element, depth, indent)
        elif tag == "pre":
            for line in re.split(r"[\n\f]", "".join(pieces_of(element))):
                self._add(line, "text", "", 0, indent)
        else:
            if title := "" if label else run_in(element):
                self._add(title.rstrip("."), "heading", "", BOLD_LEVEL, indent)
            self.walk(element, depth, indent + (tag in {"blockquote", "dd"}), label)

    def _list(self, element: HtmlElement, tag: str, depth: int, indent: float) -> None:
        for number, item in items_of(element, tag):
            mark = self.page.linked_mark(item)
            if mark or is_note(item):
                self._note(item, indent, mark.strip("()[]") or number.rstrip("."))
                continue
            counts = self.page.shows_counters and not is_marked(item)
            self.walk(item, depth, indent + 1, self.page.attributed(item) or (number if counts else ""))

    def _heading(self, element: HtmlElement, label: str, level: int, indent: float) -> None:
        text, number = text_of(element), number_of(element)
        if number is not None and not label:
            label = text_of(number)
            text = text.removeprefix(label).strip()
        if words := self.page.repeated_before(element) if element in self.page.headings else "":
            self.parsed.leave_out("words before each heading", words)
            text = text.removeprefix(words).strip()
        self._add(text, "text" if not label and is_sentences(text) else "heading", label, level, indent)

    def _notes_heading(self, text: str, indent: float) -> None:
        if self._note_kind == "note":
            self.parsed.leave_out("heading of notes", text)
        else:
            self._add(text, "inner note", "", 0, indent)

    def _note(self, element: HtmlElement, indent: float, mark: str = "") -> None:
        label, text = split_label(TYPED_MARK.sub(r"(\1)", text_of(element)), bare=True)
        if mark and not label:
            label, text = mark, text.lstrip("([").removeprefix(mark).lstrip(")] ")
        self._add(text, self._note_kind, label, 0, indent)

    def _table(self, table: HtmlElement, depth: int, indent: float) -> None:
        """Adds a table; one that only places numbers beside their texts is added as text."""
        rows = cells_in(table)
        for caption in table.iterchildren("caption"):
            self._add(text_of(caption), "heading", "", BOLD_LEVEL, indent)
        if has_side_notes(rows):
            for title, text in (row for row in rows if any(map(has_text, row))):
                self._heading(title, "", BOLD_LEVEL, indent)
                self.walk(text, depth, indent)
            return
        if not is_layout(rows):
            for cell in titles_of(rows):
                if reads_as_heading(text_of(cell)):
                    self._heading(cell, "", BOLD_LEVEL, indent)
                else:
                    self.walk(cell, depth, indent)
            self._add(table_text(spanned(rows)), "table", "", 0, indent)
            return
        for n, row in enumerate(rows):
            label = text if len(row) > 1 and is_label(text := text_of(row[0])) else ""
            self.anchor = next((cell.get("id") for cell in reversed(row) if cell.get("id")), self.anchor)
            for cell in row[1:] if label else row:
                before = len(self.parsed.blocks)
                names = label and self._is_emphasised(cell) and names_next(cell, rows[n + 1 : n + 2])
                if names or cell in self.page.headings:
                    self._heading(cell, label, BOLD_LEVEL, indent)
                else:
                    self.walk(cell, depth, indent + 1, label)
                label = "" if len(self.parsed.blocks) > before else label
            if label:
                self._add("", "text", label, 0, indent)

    def _inline(self, element: HtmlElement, inline: list[str]) -> None:
        if element.get("id") or (element.tag == "a" and element.get("name")):
            self.anchor = element.get("id") or element.get("name") or ""
        text = "".join(pieces_of(element))
        between = inline[-2] if len(inline) > 1 and not inline[-1] else ""
        inline.append(f" {text}" if runs_on(between, text) or opens_with_label(inline) else text)

    def _flush(self, inline: list[str], label: str, indent: float, *, last: bool = False) -> str:
        """Adds the waiting words as paragraphs; returns an unused label or, if ``last``, adds it alone first."""
        lines = [clean_line(line) for line in lines_of("".join(inline))]
        inline.clear()
        for line in lines:
            if line:
                self._add(line, "text", label, 0, indent)
                label = ""
        if last and label:
            self._add("", "text", label, 0, indent)
        return label

    def _add(self, text: str, kind: Kind, label: str, level: int, indent: float) -> None:
        place = f"anchor={self.anchor}" if self.anchor else ""
        n_before = len(self.parsed.blocks)
        self.parsed.add(Block(text, kind, label, level, indent, place))
        begins = kind == "heading" or (kind != "inner note" and label[:1].isdigit())
        if begins and len(self.parsed.blocks) > n_before:
            self._broken = n_before
