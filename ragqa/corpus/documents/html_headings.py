"""Tells the titles of a web page by their type and place: bold lines, capitals, titles before a text or beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise, takewhile
from typing import TYPE_CHECKING, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.html_parts import (
    BLOCKS,
    HEADS,
    LONGEST_NUMBER,
    has_text,
    lines_of,
    pieces_of,
    raises_link,
    text_of,
)
from ragqa.corpus.documents.labels import HYPHENED, is_label, is_later, read_label, split_label
from ragqa.corpus.documents.model import MAX_BOLD_WORDS, OBLIGES, VERBS
from ragqa.english.sentences import MAX_HEADING_WORDS, split_sentences

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_BOLD: Final = frozenset(("b", "strong"))
_ITALIC: Final = frozenset(("i", "em"))
_BOLD_STYLE: Final = re.compile(r"font-weight\s*:\s*(?:bold|[6-9]00)", re.IGNORECASE)
_BLOCK_STYLE: Final = re.compile(r"display\s*:\s*block", re.IGNORECASE)
_CENTRED: Final = re.compile(r"text-align\s*:\s*center", re.IGNORECASE)
_INSIDE: Final = frozenset(("a", "li", "dd", "dt", "th", "caption", *HEADS))  # where a bold line is no title of its own
_PRINTED: Final = re.compile(r"(?:§+\s?)?\d[\w.-]*\s*")  # a number before a title
_CAPITALS: Final = re.compile(r"[A-Z ]{2}(?=.* [A-Z]{3})[A-Z ,&()’'-]+")  # "OIL OF LAMPS"
_WORD: Final = re.compile(r"[^\W\d_]{3}")
_MAX_TITLE: Final = 8  # words of a title before a text in its line, behind a single number
_MAX_LINE: Final = 15  # words of a title between breaks
_NO_ENDS: Final = (".", ";", ":", ",")


def set_lines_apart(main: HtmlElement) -> None:
    """Puts each line that is only bold, or opens with a bold number and title, into a paragraph of its own.

    Such a line stands between boxes or breaks, as in "**Oil**<br>A keeper …", and not in a list or a row of cells. So
    does the title of a numbered item.
    """
    for element in main.xpath(".//span[contains(@style, 'font-weight') or contains(@style, 'display')]"):
        style = element.get("style") or ""
        element.tag = "div" if _BLOCK_STYLE.search(style) else "b" if _BOLD_STYLE.search(style) else "span"
    _set_titles_apart(main)
    for bold in list(main.iter(*_BOLD)):
        parent = bold.getparent()
        if parent is None or not _is_broken(parent) or (first := _begins_line(bold)) is None:
            continue
        if any(one.tag in _INSIDE or (one.tag == "td" and len(one.getparent()) > 1) for one in _upwards(parent, main)):
            continue
        line = [first, *takewhile(lambda one: one.tag != "br" and one.tag not in BLOCKS, first.itersiblings())]
        said = "".join(f"{''.join(pieces_of(one))}{one.tail or ''}" for one in line).strip()
        is_whole = all((one.tag in _BOLD or not has_text(one)) and not (one.tail or "").strip() for one in line)
        if (is_whole and _is_short(said) and len(said.split()) <= _MAX_LINE) or _opening(line)[1]:
            apart = parent.makeelement("p")
            parent.insert(parent.index(first), apart)
            apart.extend(line)


def _set_titles_apart(main: HtmlElement) -> None:
    """Puts the bold words with which numbered items open into a paragraph of their own: "2. **Lamps:** A keeper …".

    At least half of the items of the list open so, at least two, each with other words.
    """
    for items in main.iter("ol"):
        own = [*items.iterchildren("li")]
        openings = [bold for item in own if (bold := _bold_opening(item)) is not None]
        if len(openings) < 2 or 2 * len(openings) < len(own) or len({*map(text_of, openings)}) < len(openings):
            continue
        for bold in openings:
            around, rest = bold.getparent(), (bold.tail or "").lstrip(" :\xa0–—")
            apart = main.makeelement("p")
            bold.tail = None
            if around.tag == "li":
                around.text = None
                around.insert(0, apart)
                apart.tail = rest
            else:
                around.addprevious(apart)
                around.text = rest
            apart.append(bold)
            bold.text = (bold.text or "").rstrip().rstrip(".:")


def _bold_opening(item: HtmlElement) -> HtmlElement | None:
    """The few bold words with a stop or colon with which an item, or its first paragraph, begins."""
    opening = item
    while opening.tag in {"li", "p", "div"} and len(opening) and not (opening.text or "").strip():
        opening = opening[0]
    text = text_of(opening) if opening.tag in _BOLD and not len(opening) else ""
    ends = text[-1:] in {".", ":"} or (opening.tail or "").lstrip()[:1] == ":"
    is_title = ends and text[:1].isupper() and len(text.split()) <= _MAX_LINE
    return opening if is_title and len(text_of(item)) > len(text) + 1 else None


def _upwards(element: HtmlElement, main: HtmlElement) -> Iterator[HtmlElement]:
    yield from takewhile(lambda one: one is not main, (element, *element.iterancestors()))


def _is_broken(element: HtmlElement) -> bool:
    """Whether the element has lines: breaks or boxes beside words."""
    return element.tag != "tr" and any(child.tag == "br" or child.tag in BLOCKS for child in element)


def _begins_line(bold: HtmlElement) -> HtmlElement | None:
    """The first element of the line that begins with this one, an anchor perhaps; None if words come before it."""
    first = bold
    while True:
        before = first.getprevious()
        if ((first.getparent().text if before is None else before.tail) or "").strip():
            return None
        if before is None:
            return first if first.getparent().tag in BLOCKS or first.getparent().tag in {"font", "span"} else None
        if before.tag == "br" or before.tag in BLOCKS:
            return first
        if has_text(before) or before.tag == "img":
            return None
        first = before


def _is_short(text: str) -> bool:
    return (
        len(text.split()) <= MAX_BOLD_WORDS
        and not text.endswith(_NO_ENDS)
        and bool(_WORD.search(text) or is_label(text))
    )


def number_of(element: HtmlElement, *, raised: bool = False) -> HtmlElement | None:
    """The first child, if it is inline and has only the number of the text after it, in bold, in colour or raised."""
    children = [] if (element.text or "").strip() else [*islice(element, 3)]
    first = next((one for one in children if one.tag != "a" or len(one) or one.text or (one.tail or "").strip()), None)
    if first is None or first.tag in BLOCKS or first.tag in {"a", "br", "img"} or not isinstance(first.tag, str):
        return None
    if raises_link(first) or (first.tag == "sup" and not raised):
        return None
    number = clean_line("".join(islice(first.itertext(), 4)))
    is_word = number[:2].isalpha() and not (first.tag in _BOLD and any(map(str.isdigit, number)))  # "**Article 2** The"
    if not number or len(number) > LONGEST_NUMBER or is_word or not is_label(number):
        return None
    behind = (first.tail or "").strip() or next((text_of(one) for one in first.itersiblings() if has_text(one)), "")
    begins = behind[:1].isupper() or (behind.lstrip("–—")[:3] == "(1)" and not number.startswith("("))
    return first if begins and text_of(first) == number else None


def run_in(element: HtmlElement) -> str:
    """Takes a bold number and title before a text out of it, and returns them: "**4.2 Lamps.** A keeper …"; or ""."""
    opening, title = _opening([*element]) if not (element.text or "").strip() else ([], "")
    if title:
        opening[-1].tail = (opening[-1].tail or "").lstrip(" \xa0–—")  # "**12. Lamps.**—(1) A keeper …"
        for one in opening:
            one.drop_tree()
    return title


def _opening(elements: list[HtmlElement]) -> tuple[list[HtmlElement], str]:
    """The bold elements at the beginning that are a number and title, and these; "" if they are not."""
    opening = [*takewhile(lambda one: one.tag in _BOLD or not (one.tag == "br" or has_text(one)), elements)]
    spoken = next((n for n, one in enumerate(opening) if (one.tail or "").strip()), len(opening))
    opening = [one for one in opening[: spoken + 1] if one.tag in _BOLD]
    title = clean_line(" ".join(map(text_of, opening)))
    hyphened = HYPHENED.match(title)
    number, name = (hyphened[2], title[hyphened.end() :]) if hyphened else split_label(title, bare=True)
    most = MAX_BOLD_WORDS if re.search(r"\d[.-]\d", number) else _MAX_TITLE  # a number of several parts is no item's
    few = number[:1] != "(" and any(map(str.isdigit, number)) and len(name.split()) <= most
    begins = name[:1].isupper() or (name[:1] == "(" and name[1:2].isupper())  # "(Until May) Lamps."
    if not few or not begins or name[-1] != "." or VERBS.search(name) or len(split_sentences(name)) > 1:
        return [], ""
    return opening, title


def names_next(cell: HtmlElement, after: list[list[HtmlElement]]) -> bool:
    """Whether a bold cell beside a number says no duty, and a text that is not bold stands in the row after it."""
    texts = (one for row in after for one in row if has_text(one) and not is_label(text_of(one)))
    return not OBLIGES.search(text_of(cell)) and any(not is_emphasised(one) for one in texts)


def has_side_notes(rows: list[list[HtmlElement]]) -> bool:
    """Whether the first of two columns has the titles of the numbered texts in the second, whose numbers rise."""
    filled = [row for row in rows if any(map(has_text, row))]
    if len(filled) < 2 or any(len(row) != 2 or row[0].tag == "th" for row in filled):
        return False
    names = [text_of(row[0]) for row in filled]
    steps = [read_label(text_of(row[1])[:80])[0][:1] for row in filled]
    values = [step.value for one in steps for step in one if step.printed[0].isdigit() or step.printed[0] == "§"]
    return (
        len(values) == len(filled)
        and all(
            name[:1].isupper() and _is_short(name.rstrip(".")) and not split_label(name, bare=True)[0] for name in names
        )
        and all(is_later(one, other) for one, other in pairwise(values))
    )


def is_emphasised(element: HtmlElement) -> bool:
    """Whether the paragraph is a few bold words or capitals, and no sentence, which is a heading without a level.

    Italics count if they are centred, underlined words behind a number, as bills underline new text.
    """
    number = _PRINTED.match(text_of(element)) if element.find(".//u") is not None else None
    italic = next(element.iterdescendants(*_ITALIC), None) is not None and _is_centred(element)
    tags = {*_BOLD, *(_ITALIC if italic else ()), *("u" if number else ())}
    marks = dict.fromkeys(element.iterdescendants(*tags))
    is_bold = bool(_BOLD_STYLE.search(element.get("style") or ""))
    is_capital = element.tag == "p" and bool(_CAPITALS.fullmatch("".join(islice(element.itertext(), 4)).strip()))
    if not (marks or is_bold or is_capital) or not _is_short(text := text_of(element)):
        return False
    if not all(one.tag in _BOLD for one in marks) and (VERBS.search(text) or element.find(".//a[@href]") is not None):
        return False
    outer = (one for one in marks if marks.keys().isdisjoint(one.iterancestors()))
    plain = len(text) - sum(len(text_of(one)) for one in outer) - (len(number[0]) if number else 0)
    is_set = is_bold or plain <= 3 or is_capital
    return is_set and len([*lines_of("".join(pieces_of(element)))]) == 1


def repeated_titles(main: HtmlElement) -> set[HtmlElement]:
    """The paragraphs, at least two, of a few bold words with a full stop or colon, each before one that is not bold."""
    found: dict[str, HtmlElement] = {}
    for bold in main.iter(*_BOLD):
        element = bold.getparent()
        if element is None or element.tag != "p" or (element.text or "").strip() or (bold.tail or "").strip():
            continue
        text, after = text_of(element), element.getnext()
        few = text[-1:] in {".", ":"} and len(text.split()) <= _MAX_TITLE and text[:1].isupper()
        before_text = after is not None and after.tag == "p" and len(text_of(after).split()) > _MAX_TITLE
        is_statement = bool(VERBS.search(text) or split_label(text, bare=True)[0])
        if few and before_text and text == text_of(bold) and not is_statement:
            found[text] = element
    return {*found.values()} if len(found) > 1 else set()


def _is_centred(element: HtmlElement) -> bool:
    return any(
        one is not None and ((one.get("align") or "") == "center" or bool(_CENTRED.search(one.get("style") or "")))
        for one in (element, element.getparent())
    )


def is_title_term(term: HtmlElement) -> bool:
    """Whether this is a term of a definition list that is a number with its title, such as "Section 3. Lamps"."""
    number, name = split_label(text_of(term), bare=True) if term.tag == "dt" else ("", "")
    return any(map(str.isdigit, number)) and name[:1].isupper() and _is_short(name)


def is_sentences(text: str) -> bool:
    """Whether the text of a heading is several sentences, a notice that titles nothing."""
    return len(text.split()) > MAX_HEADING_WORDS and text.endswith(".") and len(split_sentences(text)) > 1
