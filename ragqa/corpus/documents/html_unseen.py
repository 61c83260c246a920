"""What of a saved web page no reader sees, or is no text of it by its element, role or name."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ragqa.corpus.documents.html_parts import LONGEST_NAME, is_note, pieces_of, text_of
from ragqa.corpus.documents.model import Parsed, words_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

UNSEEN: Final = frozenset("script style noscript template head link meta title".split())
_NEVER: Final = frozenset(
    "iframe object embed svg canvas video audio button input select textarea form label nav footer aside dialog "
    "menu".split()
)
_ROLES: Final = frozenset("navigation banner contentinfo search complementary dialog alertdialog menu toolbar".split())
_FURNITURE: Final = re.compile(
    r"(?:\w+[-_])?(?:cookies?|consent|gdpr|breadcrumbs?|nav|navbar|navigation|menu|sidebar|social|share|sharing|skip|"
    r"newsletter|subscribe|pagination|pager|toolbar|popup|modal|adverts?|toc|table-of-contents|masthead|footer)"
    r"(?:[-_]?(?:bar|banner|links?|list|menu|notice|overlay|policy|box|block|wrapper|container|content|inner|nav|to))*",
    re.IGNORECASE,
)  # of a class, as a whole
_SCRIPT: Final = "script or style"
_MOST: Final = 0.3  # of a page's text: what holds more is no furniture, whatever it is called
_HIDDEN: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def take_out(body: HtmlElement, parsed: Parsed) -> None:
    """Takes out what no reader sees, and what is no text by its element, role or name."""
    whole, gone = n_chars(body), set[Any]()
    for element in list(body.iterdescendants()):
        if element in gone:
            continue
        reason = _dropped(element, element.tag if isinstance(element.tag, str) else "", whole)
        if not reason or (reason != _SCRIPT and _is_aside(element)):
            continue
        gone.update(element.iter())
        if reason != _SCRIPT:
            parsed.leave_out(reason, text_of(element))
        element.drop_tree()


def plain_words(body: HtmlElement) -> list[str]:
    """Every word of the page that is no script: what is read and what is left out come to the same."""
    for element in list(body.iter(*UNSEEN)):
        element.drop_tree()
    return words_of("".join(pieces_of(body)))


def n_chars(element: HtmlElement) -> int:
    """How many characters stand below this element."""
    return sum(map(len, element.itertext()))


def _dropped(element: HtmlElement, tag: str, whole: int) -> str:
    """Why this element is left out; empty where it stays. ``whole``: the characters of the page."""
    if not tag or tag in UNSEEN:
        return _SCRIPT
    if tag not in _NEVER and not element.attrib and tag not in {"a", "header"}:
        return ""
    if tag in _NEVER or (element.get("role") or "").lower() in _ROLES:
        holds = tag == "form" and element.find(".//h1") is not None and n_chars(element) >= _MOST * whole
        names = tag == "button" and re.fullmatch("h[1-6]|summary", element.getparent().tag)
        return "" if holds or names else "navigation, form or embedded object"
    if tag == "a" and (element.text or "").strip() in {"¶", "#", "§", "🔗"}:
        return "link to its own heading"
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return "hidden text"
    if _HIDDEN.search(element.get("style") or ""):
        return "hidden text"
    if tag == "header" and element.getparent() is not None and element.getparent().tag == "body":
        return "banner or menu"
    if _is_furniture(f"{element.get('class') or ''} {element.get('id') or ''}") and n_chars(element) < _MOST * whole:
        return "banner or menu"
    return ""


@lru_cache(4096)
def _is_furniture(names: str) -> bool:
    return any(len(name) <= LONGEST_NAME and _FURNITURE.fullmatch(name) for name in names.split())


def _is_aside(element: HtmlElement) -> bool:
    """Whether this is a note, whatever it is called besides."""
    return is_note(element) or (element.tag == "aside" and "note" in (element.get("class") or ""))
