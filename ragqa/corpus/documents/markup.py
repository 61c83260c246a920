"""Reads the XML in which makers of laws publish them: numbers, headings and texts, told by what their elements hold.

Each maker has element names of its own. So an element is a number if nearly all elements of its name hold one; a
heading if they are short, end no clause and stand before something longer, or are named so; a note if a mark with a
link leads to it. What stands within the text of an element is part of its sentence; other elements are paragraphs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.labels import HYPHENED, MARKED, is_label
from ragqa.corpus.documents.model import MAX_BOLD_WORDS, VERBS, Block, Parsed, UnreadableError, count_words
from ragqa.corpus.documents.sheets import table_text

if TYPE_CHECKING:
    from lxml.etree import _Element

_MOSTLY: Final = 0.8  # share of the elements of a name that tells what they are
_NAMED: Final = re.compile(r"head|title|caption", re.IGNORECASE)  # in the name of an element
_TABLES: Final = frozenset(("table", "tgroup", "informaltable"))  # of HTML and CALS
_ROWS: Final = frozenset(("tr", "row"))
_CELLS: Final = frozenset(("td", "th", "entry"))
_LONGEST_MARK: Final = 4  # characters of a mark that leads to a note
_SMALL: Final = 60  # characters of an element that is one line, such as a date
_LEVELS: Final = 6
_BESIDE: Final = 8  # children among which the words beside a number are
_SENTENCE: Final = 6  # fewest words of a paragraph of prose
_MAX_DEPTH: Final = 200


def parse_markup(path: Path) -> Parsed:
    """The text of an XML file. Raises UnreadableError if it is damaged or has no text."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(path.read_bytes(), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        msg = f"expected XML, found none that can be read ({str(error)[:80]}); save or download it again"
        raise UnreadableError(msg) from error
    parsed = Parsed()
    parsed.words = count_words(" ".join(_pieces(root)))
    names = _Elements(root)
    for mark in names.marks:
        parsed.leave_out("mark of a note", clean_line("".join(_pieces(mark))))
    _ElementWalk(parsed, names).walk(root, 0, 0)
    words = [len(block.text.split()) for block in parsed.blocks]
    if not (names.numbers or names.headings) or sum(n for n in words if n >= _SENTENCE) * 2 < sum(words):
        msg = "expected XML with numbers or headings and sentences, found other data; take it out"
        raise UnreadableError(msg)
    return parsed


def _name(element: _Element) -> str:
    """The element's name without its namespace; empty for what is no element, such as an entity."""
    return str(element.tag).rpartition("}")[2] if isinstance(element.tag, str) else ""


def _pieces(element: _Element, left_out: frozenset[Any] = frozenset()) -> Iterator[str]:
    """The words below an element, without those of elements ``left_out``."""
    yield element.text or ""
    for child in element:
        if not isinstance(child.tag, str):
            yield unescape(child.text or "")
        elif child not in left_out:
            yield from _pieces(child, left_out)
        yield child.tail or ""


def _is_mixed(element: _Element) -> bool:
    """Whether the element has words of its own beside elements."""
    further = ((child.tail or "").strip() or not isinstance(child.tag, str) for child in element)
    return bool((element.text or "").strip() or any(further))


class _Elements:
    """What the elements of each name are in this file."""

    def __init__(self, root: _Element) -> None:
        every = [element for element in root.iter() if isinstance(element.tag, str)]
        held: dict[str, list[_Element]] = defaultdict(list)
        for element in every:
            held[_name(element)].append(element)
        ids = {value: element for element in every for key, value in element.attrib.items() if _is_id(key)}
        mixed = {element for element in every if _is_mixed(element)}
        self.notes: dict[_Element, str] = {}
        marks: set[_Element] = set()
        for element in every:
            aims = (ids.get(value.lstrip("#")) for key, value in element.attrib.items() if not _is_id(key))
            aim = next((one for one in aims if one is not None and one is not element), None)
            mark = clean_line("".join(_pieces(element)))
            if aim is not None and 0 < len(mark) <= _LONGEST_MARK and element.getparent() in mixed:
                self.notes[aim] = mark
                marks.add(element)
        self.marks = frozenset(marks)
        self._unsaid = self.marks | frozenset(self.notes)
        self.inline = {
            name
            for name, elements in held.items()
            if sum(one.getparent() in mixed for one in elements) * 2 > len(elements)
        }
        self.numbers = {name for name, elements in held.items() if name not in self.inline and self._number(elements)}
        blocks = {name: elements for name, elements in held.items() if name not in {*self.inline, *self.numbers}}
        self.headings = {name for name, elements in blocks.items() if self._are_headings(name, elements)}

    def text(self, element: _Element) -> str:
        """The words of an element on one line, without marks of notes and the notes."""
        return clean_line("".join(_pieces(element, self._unsaid)))

    def is_heading(self, element: _Element) -> bool:
        """Whether this is a heading, or holds nothing but one."""
        if _name(element) in self.headings:
            return True
        wraps = len(element) == 1 and not _is_mixed(element) and isinstance(element[0].tag, str)
        return wraps and self.is_heading(element[0])

    def number(self, element: _Element) -> _Element | None:
        """The element that holds the number of this one, among its first children."""
        return next((child for child in islice(element, MARKED) if _name(child) in self.numbers), None)

    def _number(self, elements: list[_Element]) -> bool:
        """Whether nearly all of these hold a number, and stand beside words."""
        n_numbers = n_texts = 0
        for one in elements:
            text, above = self.text(one), one.getparent()
            beside = islice(() if above is None else above, _BESIDE)  # a slice would count them all
            others = (self.text(child) for child in beside if child is not one)
            is_number = is_label(text) or bool(HYPHENED.fullmatch(text))
            n_texts += bool(text)
            n_numbers += is_number and any(re.search(r"[^\W\d_]", other) for other in others)
        return n_numbers >= max(1, _MOSTLY * n_texts)

    def _are_headings(self, name: str, elements: list[_Element]) -> bool:
        texts = [text for one in elements if (text := self.text(one))]
        few = [text for text in texts if len(text.split()) <= MAX_BOLD_WORDS and text[-1] not in ";:,"]
        if not texts or len(few) < _MOSTLY * len(texts) or any(self.number(one) is not None for one in elements):
            return False
        if _NAMED.search(name):
            return True
        before = sum(self._stands_before_more(one) for one in elements)
        titles = [text for text in few if not VERBS.search(text) and text[0].isupper() and text[-1] != "."]
        return len(texts) >= MARKED and min(before, len(titles)) >= _MOSTLY * len(texts)

    def _stands_before_more(self, element: _Element) -> bool:
        """Whether a longer element of another name comes next, or after a number."""
        after = (one for one in element.itersiblings() if isinstance(one.tag, str) and _name(one) not in self.numbers)
        following = next(after, None)
        if following is None or _name(following) == _name(element):
            return False
        return len(self.text(following)) > len(self.text(element))


def _is_id(key: str) -> bool:
    return key.rpartition("}")[2].lower() in {"id", "eid"}


class _ElementWalk:
    """One pass over the file that turns elements into blocks."""

    def __init__(self, parsed: Parsed, names: _Elements) -> None:
        self.parsed, self.names = parsed, names
        self._label = ""  # the number that waits for its text
        self._indent = 0.0

    def walk(self, element: _Element, depth: int, owners: int) -> None:
        """Adds the blocks of this element; ``depth`` counts the numbers, ``owners`` also the headings around it."""
        names, name = self.names, _name(element)
        if element in names.notes:
            self._note(element)
        elif name in _TABLES:
            self._flush()
            self._table(element)
        elif _is_mixed(element) or not len(element) or owners > _MAX_DEPTH:
            self._texts(element, depth, owners)
        elif len(names.text(element)) <= _SMALL and not self._is_structured(element):
            self._add(" ".join(map(names.text, element)), depth)
        else:
            self._children(element, depth, owners)

    def _is_structured(self, element: _Element) -> bool:
        """Whether a number or a heading is within the element."""
        return any(_name(one) in self.names.headings | self.names.numbers for one in element.iter())

    def _children(self, element: _Element, depth: int, owners: int) -> None:
        names = self.names
        number = names.number(element)
        if number is not None:
            self._flush()
            self._label, depth = names.text(number), depth + 1
            self._indent = float(depth)
        titles = {child: None for child in element if isinstance(child.tag, str) and names.is_heading(child)}
        first = next(iter(titles), None)
        own = first if len(titles) == 1 and self._opens(element, first, number) else None
        owns = own is not None or number is not None
        for child in element:
            if not isinstance(child.tag, str) or child is number:
                continue
            if child in titles:
                level = min(_LEVELS, 2 * owners + 1 + (child is own))
                self._heading(names.text(child), level, depth)
            else:
                self.walk(child, depth, owners + owns)
        self._flush()

    def _opens(self, element: _Element, title: _Element, number: _Element | None) -> bool:
        """Whether a heading stands before all but the number of its element."""
        first = (child for child in element if isinstance(child.tag, str) and child is not number)
        return next(first, None) is title

    def _heading(self, text: str, level: int, depth: int) -> None:
        label, self._label = self._label, ""
        if not label and not self.parsed.title:
            self.parsed.title = text
        self._put(Block(text, "heading", label, level, float(max(1, depth))))

    def _texts(self, element: _Element, depth: int, owners: int) -> None:
        """The words of an element as paragraphs; elements within them that are none of a sentence stand apart."""
        names = self.names
        apart = {one for one in element if isinstance(one.tag, str) and _name(one) not in names.inline}
        if not apart or owners > _MAX_DEPTH:
            self._add(names.text(element), depth)
            return
        waiting = element.text or ""
        for is_apart, run in groupby(element, key=lambda one: one in apart):
            for child in run:
                if is_apart:
                    self._add(clean_line(waiting), depth)
                    waiting = ""
                    self.walk(child, depth, owners)
                elif child not in names.marks:
                    waiting += "".join(_pieces(child, names.marks))
                waiting += child.tail or ""
        self._add(clean_line(waiting), depth)

    def _add(self, text: str, depth: int) -> None:
        if text:
            label, self._label = self._label, ""
            self._put(Block(text, "text", label, indent=float(max(1, depth))))

    def _flush(self) -> None:
        """Adds a number without a text of its own, whose first item comes next."""
        if self._label:
            self._put(Block("", "text", self._label, indent=self._indent))
            self._label = ""

    def _note(self, element: _Element) -> None:
        number = self.names.number(element)
        own = self.names.marks | ({number} if number is not None else set())
        text = clean_line("".join(_pieces(element, frozenset(own))))
        self._put(Block(text, "note", self.names.notes[element]))

    def _table(self, element: _Element) -> None:
        rows = [one for one in element.iter() if _name(one) in _ROWS]
        cells = [[self.names.text(cell) for cell in row if _name(cell) in _CELLS] for row in rows]
        inside = {below for row in rows for below in row.iter()}
        for one in element.iter():
            if one not in inside and isinstance(one.tag, str) and (one.text or "").strip():
                self._put(Block(self.names.text(one), indent=1.0))
        self._put(Block(table_text(cells), "table"))

    def _put(self, block: Block) -> None:
        self.parsed.add(replace(block, place=f"paragraph={len(self.parsed.blocks) + 1}"))
