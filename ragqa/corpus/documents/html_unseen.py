"""Removes the parts of a saved web page that are invisible, or that are furniture by their element, role or name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final

from ragqa.corpus.documents.html_parts import HEADS, LONGEST_NAME, has_notes_outside, is_note, pieces_of, text_of
from ragqa.corpus.documents.model import Parsed, count_words, words_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

UNSEEN: Final = frozenset("script style noscript template head link meta title".split())
_NEVER: Final = frozenset(
    "iframe object embed svg canvas video audio button input select textarea form label nav footer aside dialog "
    "menu".split()
)
_STRUCK_OUT: Final = frozenset(("del", "s", "strike"))  # wordings that are no longer in force
_CONTROLS: Final = ("button", "select", "textarea", "label")
_ROLES: Final = frozenset("navigation banner contentinfo search complementary dialog alertdialog menu toolbar".split())
_FURNITURE: Final = re.compile(
    r"(?:\w+[-_])?(?:cookies?|consent|gdpr|breadcrumbs?|nav|navbar|navigation|menu|sidebar|social|share|sharing|skip|"
    r"newsletter|subscribe|pagination|pager|toolbar|popup|modal|adverts?|toc|table-of-contents|masthead|footer)"
    r"(?:[-_]?(?:bar|banner|links?|list|menu|notice|overlay|policy|box|block|wrapper|container|content|inner|nav|to))*",
    re.IGNORECASE,
)  # must match a whole class name
_BESIDE: Final = {"prev", "previous", "next", "up", "home", "start", "contents"}  # how pages of a book are linked
_MOST_BESIDE: Final = 40  # links to other pages of a book
_MOST_AROUND: Final = 200  # characters, and elements, of links to other pages and the titles beside them
_SCRIPT: Final = "script or style"
_MOST: Final = 0.3  # share of a page's text from which an element is not furniture, whatever its name
_HIDDEN: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def take_out(body: HtmlElement, parsed: Parsed, beside: Sequence[HtmlElement]) -> None:
    """Removes invisible elements, furniture by element, role or name and what leads ``beside``; records all of it."""
    whole, gone = n_chars(body), set[Any]()
    for element in list(body.iterdescendants()):
        if element in gone:
            continue
        reason = _dropped(element, element.tag if isinstance(element.tag, str) else "", whole)
        reason = "links to the pages beside it" if element in beside else reason
        if not reason or (reason != _SCRIPT and _is_aside(element)):
            continue
        gone.update(element.iter())
        if reason != _SCRIPT:
            parsed.leave_out(reason, text_of(element))
        element.drop_tree()


def neighbours_of(root: HtmlElement) -> dict[str, str]:
    """The pages to which this one links as the previous, the next or those above it, each with its title."""
    links = (link for link in root.iter("link", "a") if _BESIDE & {*(link.get("rel") or "").lower().split()})
    return {link.get("href") or "": link.get("title") or "" for link in links}


def leads_beside(body: HtmlElement, named: dict[str, str], title: str) -> Iterator[HtmlElement]:
    """The outermost elements that hold only links to these pages, and no words but those of links and titles."""
    links = [*islice((link for link in body.iter("a") if link.get("href") in named), _MOST_BESIDE)]
    known = {*words_of(" ".join((title, *named.values(), *map(text_of, links))))}

    @cache
    def leads(one: HtmlElement) -> bool:
        inside = [*islice(one.iter(), _MOST_AROUND + 1)]
        return (
            one is not body
            and len(inside) <= _MOST_AROUND
            and len(text := text_of(one)) <= _MOST_AROUND
            and not any(other.tag in {"h1", "h2", "h3"} for other in inside)
            and all(other.get("href") in named for other in inside if other.tag == "a")
            and {*words_of(text)} <= known
        )

    for link in links:
        yield from [*takewhile(leads, link.iterancestors())][-1:]


def plain_words(body: HtmlElement) -> Counter[str]:
    """How often each word of the page outside scripts occurs, to compare with those that were read or left out."""
    for element in list(body.iter(*UNSEEN)):
        element.drop_tree()
    return count_words("".join(pieces_of(body)))


def n_chars(element: HtmlElement) -> int:
    """The number of characters below this element."""
    return sum(map(len, element.itertext()))


def main_of(body: HtmlElement) -> HtmlElement:
    """The element that is marked as the main text, if it has most of the page's text; else the body."""
    whole = n_chars(body)
    for wanted in ("main", "*[@role='main']", "article", "*[@id='content']", "*[@id='main-content']"):
        found = body.findall(f".//{wanted}")
        if len(found) == 1 and n_chars(found[0]) * 2 > whole:
            element: HtmlElement = found[0]
            return body if has_notes_outside(element, body) else element
    return body


def _dropped(element: HtmlElement, tag: str, whole: int) -> str:
    """The reason why this element is left out; empty if it stays. ``whole`` is the page's number of characters."""
    if not tag or tag in UNSEEN:
        return _SCRIPT
    if tag in _STRUCK_OUT:
        return "struck-out text"
    if tag not in _NEVER and not element.attrib and tag not in {"a", "header"}:
        return ""
    if tag in _NEVER or (element.get("role") or "").lower() in _ROLES:
        in_controls = sum(map(n_chars, element.iter(*_CONTROLS))) if tag == "form" else 0
        holds = tag == "form" and n_chars(element) - in_controls >= _MOST * whole
        names = tag == "button" and re.fullmatch("h[1-6]|summary", element.getparent().tag)
        return "" if holds or names else "navigation, form or embedded object"
    if tag == "a" and (element.get("href") or "")[:1] == "#" and _is_symbol(element):
        return "link to its own heading"
    if tag == "a" and element.get("target") and element.getparent().tag in HEADS and text_of(element).isalpha():
        goes_on = (element.tail or "").strip() or element.getnext() is not None
        return "link beside a heading" if goes_on else ""
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return "hidden text"
    if _HIDDEN.search(element.get("style") or ""):
        return "hidden text"
    if tag == "header" and element.getparent() is not None and element.getparent().tag == "body":
        return "banner or menu"
    if _is_furniture(f"{element.get('class') or ''} {element.get('id') or ''}") and n_chars(element) < _MOST * whole:
        return "banner or menu"
    return ""


def _is_symbol(element: HtmlElement) -> bool:
    text = "".join(element.itertext()).strip()
    return 0 < len(text) < 3 and not any(map(str.isalnum, text)) and element.find(".//img") is None


@lru_cache(4096)
def _is_furniture(names: str) -> bool:
    return any(len(name) <= LONGEST_NAME and _FURNITURE.fullmatch(name) for name in names.split())


def _is_aside(element: HtmlElement) -> bool:
    """Whether this is a note, whatever other names it has."""
    return is_note(element) or (element.tag == "aside" and "note" in (element.get("class") or ""))
