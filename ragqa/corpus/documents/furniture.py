"""What of a web page is its site's and not its document's: learned from structure and repetition, by no list of words.

A zone is where a text stands: the tags and classes around it, up to two that have a class. Zones that hold links and
little else are lists of links; zones whose few short texts come back on page after page are banners and controls. A
heading over nothing else goes with it. Numbers and names at a text's end do not count: "version of 1.2" is "version
of 3.4". What carries a number of its own is never furniture.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.labels import is_label

if TYPE_CHECKING:
    from lxml.html import HtmlElement

PAGES: Final = 12  # of one place that are compared
_SHORT: Final = 20  # words: a longer text is no link of a list and no control
_LINKED: Final = 0.8  # share of a zone's words that are links
_RECURS: Final = 0.6  # share of the pages with a zone that a control stands on
_LEAST_PAGES: Final = 3
_LEAST_TEXTS: Final = 2
_HEADINGS: Final = frozenset(f"h{n}" for n in range(1, 7))
DATE: Final = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-]\d{4}|\d{4}-\d{2}-\d{2}|\d{1,2} [A-Z][a-z]+ \d{4}")

Zone = tuple[str, ...]


@dataclass(slots=True)
class Zones:
    """What stands in each zone of a page, or of several: words, linked words, texts and what they begin with."""

    words: Counter[Zone] = field(default_factory=Counter)
    linked: Counter[Zone] = field(default_factory=Counter)
    texts: Counter[Zone] = field(default_factory=Counter)
    longest: Counter[Zone] = field(default_factory=Counter)
    pages: Counter[tuple[Zone, str]] = field(default_factory=Counter)  # how many pages have this text in this zone

    def add(self, leaves: Sequence[Leaf]) -> None:
        held = {(leaf.zone, "") for leaf in leaves}  # the pages that have the zone
        for leaf in leaves:
            n_words = leaf.text.count(" ") + 1
            self.texts[leaf.zone] += 1
            self.longest[leaf.zone] = max(self.longest[leaf.zone], n_words)
            if not DATE.fullmatch(leaf.text):
                self.words[leaf.zone] += n_words
                self.linked[leaf.zone] += leaf.n_linked
            if n_words <= _SHORT:
                held.add((leaf.zone, masked(leaf.text)))
        self.pages.update(held)

    def is_list_of_links(self, zone: Zone) -> bool:
        """Whether several short texts stand here, and links and dates are all they are."""
        if self.texts[zone] < _LEAST_TEXTS or self.words[zone] > _SHORT * self.texts[zone]:
            return False
        return self.linked[zone] > _LINKED * self.words[zone] or not self.words[zone]

    def recurs(self, zone: Zone, text: str) -> bool:
        """Whether this short text stands here on most pages that have the zone, and little else does."""
        n_pages = self.pages[zone, ""]
        least = max(_LEAST_PAGES, _RECURS * n_pages)
        alone = self.texts[zone] <= 2 * n_pages and self.longest[zone] <= _SHORT
        return alone and self.pages[zone, masked(text)] >= least


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text of a page that no other block stands in."""

    element: HtmlElement
    text: str
    n_linked: int
    zone: Zone


def masked(text: str) -> str:
    """The text without what differs from page to page: its numbers."""
    return re.sub(r"\d+", "#", text.casefold())


def leaves_of(root: HtmlElement, holds_blocks: Callable[[HtmlElement], bool], skipped: frozenset[str]) -> list[Leaf]:
    """The page's texts in order, without what no reader sees."""
    found: list[Leaf] = []
    waiting: list[tuple[HtmlElement, Zone]] = [(root, ())]
    while waiting:
        element, zone = waiting.pop()
        if names := element.get("class"):
            zone = (*zone[-1:], f"{element.tag} {' '.join(sorted(names.split()))}")
        if holds_blocks(element):
            waiting += [(child, zone) for child in reversed(element) if child.tag not in skipped]
            continue
        said = "".join(element.itertext()).strip() or " ".join(one.get("alt") or "" for one in element.iter("img"))
        if text := clean_line(said):
            links = [element] if element.tag == "a" else element.iterdescendants("a")
            found.append(Leaf(element, text, sum(len("".join(link.itertext()).split()) for link in links), zone))
    return found


def columns_and_headings(leaves: Sequence[Leaf]) -> tuple[set[HtmlElement], set[HtmlElement]]:
    """Numbers in columns of their own, and headings that no element marks: what zones of several texts hold throughout.

    Headings are a few words each, no sentence, all different, and something else follows each.
    """
    by_zone: dict[Zone, list[tuple[Leaf, bool]]] = {}
    for leaf, after in zip_longest(leaves, leaves[1:]):
        if leaf.zone and leaf.element.tag not in _HEADINGS:
            by_zone.setdefault(leaf.zone, []).append((leaf, after is not None and after.zone != leaf.zone))
    found: tuple[set[HtmlElement], set[HtmlElement]] = (set(), set())
    for pairs in by_zone.values():
        held = [leaf for leaf, _ in pairs]
        if len({leaf.text for leaf in held}) < _LEAST_PAGES:
            continue
        if all(is_label(leaf.text) and not leaf.text[:2].isalpha() for leaf in held):
            found[0].update(leaf.element for leaf in held)
        elif all(followed and _names(leaf) for leaf, followed in pairs):
            found[1].update(leaf.element for leaf in held)
    return found


def _numbers(text: str) -> bool:
    """Whether a heading is a number and nothing else: what follows has it."""
    return any(map(str.isdigit, text)) and is_label(text)


def _names(leaf: Leaf) -> bool:
    """Whether a paragraph may be a heading: a few words that begin large and end no sentence."""
    few = leaf.text[:1].isupper() and len(leaf.text.split()) <= _SHORT // 2 and not leaf.n_linked
    return few and leaf.element.tag in {"p", "div"} and leaf.text[-1].isalpha()


def furniture_of(leaves: Sequence[Leaf], page: Zones, place: Zones) -> Mapping[HtmlElement, str]:
    """The outermost elements that are furniture, and the words of each. ``place`` is of pages beside this one."""
    gone = {
        leaf.element
        for leaf in leaves
        if (
            any(zones.is_list_of_links(leaf.zone) for zones in (page, place))
            or (place.recurs(leaf.zone, leaf.text) and leaf.element.tag != "h1")
        )
        and not is_label(leaf.text)
    }
    kept: set[HtmlElement] = set()  # elements with text below them
    below: dict[HtmlElement, list[Leaf]] = {}
    for stays in (True, False):
        for leaf in leaves:
            alone = leaf.element not in gone and (leaf.element.tag not in _HEADINGS or _numbers(leaf.text))
            if alone is stays:
                element = leaf.element
                while element is not None and element not in kept:
                    if stays:
                        kept.add(element)
                    else:
                        below.setdefault(element, []).append(leaf)
                    element = element.getparent()
    found = {
        element: "\n".join(leaf.text for leaf in inside)
        for element, inside in below.items()
        if any(leaf.element in gone for leaf in inside)
    }
    return {element: text for element, text in found.items() if element.getparent() not in found}
