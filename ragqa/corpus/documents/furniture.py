"""Finds the furniture of a web page, which belongs to its site and not to the document, without a word list.

A zone is the place of a text: the innermost two elements around it that have a class. A zone with mostly links is a
list of links. A zone whose few short texts recur on other pages is a banner or control. A heading above only furniture
is furniture too. Numbers are ignored when texts are compared: "version of 1.2" equals "version of 3.4". A text with a
number of its own is never furniture.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile, zip_longest
from typing import TYPE_CHECKING, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.html_parts import raises_link
from ragqa.corpus.documents.labels import component, is_label, split_label
from ragqa.corpus.documents.model import MAX_BOLD_WORDS, OBLIGES, words_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

PAGES: Final = 12  # number of pages of one folder that are compared
_SHORT: Final = 20  # most words of a link in a list or of a control
_LINKED: Final = 0.8  # share of words in links from which a zone is a list of links
_RECURS: Final = 0.6  # share of the pages with a zone on which a control recurs
_LEAST_PAGES: Final = 3
_SHEET: Final = 60  # mean words of a printed sheet, at least
_NAMING: Final = 0.75  # share of the texts of a class that are names from which all are headings
_LEAST_TEXTS: Final = 2
_COUNTED: Final = re.compile(r"(\d{1,4}[A-Z]{0,2}) [A-Z]")
_HEADINGS: Final = frozenset(f"h{n}" for n in range(1, 7))
DATE: Final = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-]\d{4}|\d{4}-\d{2}-\d{2}|\d{1,2} [A-Z][a-z]+ \d{4}")

Zone = tuple[str, ...]


@dataclass(slots=True)
class Zones:
    """Statistics of the zones of one or several pages: words, linked words, texts and longest texts."""

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
        """Whether the zone has several short texts that are only links and dates."""
        if self.texts[zone] < _LEAST_TEXTS or self.words[zone] > _SHORT * self.texts[zone]:
            return False
        return self.linked[zone] > _LINKED * self.words[zone] or not self.words[zone]

    def recurs(self, zone: Zone, text: str) -> bool:
        """Whether this short text is on most pages that have the zone, with little else in the zone."""
        n_pages = self.pages[zone, ""]
        least = max(_LEAST_PAGES, _RECURS * n_pages)
        alone = self.texts[zone] <= 2 * n_pages and self.longest[zone] <= _SHORT
        return alone and self.pages[zone, masked(text)] >= least


@dataclass(frozen=True, slots=True)
class Leaf:
    """The text of an element that contains no other block."""

    element: HtmlElement
    text: str
    n_linked: int
    zone: Zone


def masked(text: str) -> str:
    """The text with its numbers masked, as they differ from page to page."""
    return re.sub(r"\d+", "#", text.casefold())


def leaves_of(root: HtmlElement, holds_blocks: Callable[[HtmlElement], bool], skipped: frozenset[str]) -> list[Leaf]:
    """The visible texts of the page, in order."""
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
            links = filter(_leads_elsewhere, element.iter("a"))
            found.append(Leaf(element, text, sum(len("".join(link.itertext()).split()) for link in links), zone))
    return found


def _leads_elsewhere(link: HtmlElement) -> bool:
    """Whether this is a link, and not a heading's link to its own section."""
    href = link.get("href") or ""
    return bool(href) and not (href[0] == "#" and any(one.get("id") == href[1:] for one in link.iterancestors()))


def columns_and_headings(leaves: Sequence[Leaf]) -> tuple[set[HtmlElement], set[HtmlElement]]:
    """The elements with numbers in a column of their own, and those with headings that no element marks.

    All texts of such a class or zone are numbers, or most are headings: a few words each, all different, no sentences,
    and each is followed by another class or zone.
    """
    by_look: dict[Zone, list[tuple[Leaf, bool]]] = {}
    long = {one.element for one, after in pairwise(leaves) if after.text.count(" ") > _SHORT // 2}
    for leaf, after in zip_longest(leaves, leaves[1:]):
        if leaf.zone and leaf.element.tag not in _HEADINGS:
            followed = after is not None and _look(after) != _look(leaf) and not after.text[:1].islower()
            by_look.setdefault(_look(leaf), []).append((leaf, followed))
    found: tuple[set[HtmlElement], set[HtmlElement]] = (set(), set())
    for pairs in by_look.values():
        held = [leaf for leaf, _ in pairs]
        n_texts = len({leaf.text for leaf in held})
        before_texts = len(held) == 2 and all(one.element in long and one.element.get("class") for one in held)
        if n_texts < (2 if before_texts else _LEAST_PAGES):
            continue
        if all(is_label(one.text) and not (one.text[:2].isalpha() or raises_link(one.element)) for one in held):
            found[0].update(leaf.element for leaf in held)
        elif _count_up(held) or sum(followed and _names(leaf) for leaf, followed in pairs) >= _NAMING * len(pairs):
            titles = (leaf for leaf, followed in pairs if followed and leaf.text[-1] not in ":;,")
            titles = (leaf for leaf in titles if not OBLIGES.search(leaf.text))
            found[1].update(one.element for one in titles if one.text[-1] != "." or one.text[0].isdigit())
    return found


def _look(leaf: Leaf) -> Zone:
    return leaf.zone[-1:] if leaf.element.get("class") else leaf.zone


def _numbers(text: str) -> bool:
    """Whether a heading is only a number, which belongs to the text after it."""
    return any(map(str.isdigit, text)) and is_label(text)


def _count_up(leaves: Sequence[Leaf]) -> bool:
    """Whether these are titles with rising numbers in front, "17 Title", "17A Other title", and few end a sentence."""
    few = (leaf.text for leaf in leaves if leaf.text.count(" ") < MAX_BOLD_WORDS and not OBLIGES.search(leaf.text))
    found = [match for text in few if (match := _COUNTED.match(text))]
    values = [component(match[1]) for match in found]
    ended = sum(leaf.text[-1] in ".;:," for leaf in leaves)
    rising = all(one < other for one, other in pairwise(values))
    return len(found) == len(leaves) and rising and ended <= (1 - _NAMING) * len(leaves)


def _names(leaf: Leaf) -> bool:
    """Whether a paragraph may be a heading: a few words with a capital first letter that are no sentence."""
    text = split_label(leaf.text, bare=True)[1] if leaf.text[:1].isdigit() else leaf.text  # "3A Keepers"
    few = text[:1].isupper() and len(text.split()) <= _SHORT // 2 and not leaf.n_linked and not OBLIGES.search(text)
    return few and leaf.element.tag in {"p", "div", "td"} and leaf.text[-1].isalpha()


def contents_of(leaves: Sequence[Leaf], main: HtmlElement) -> tuple[set[HtmlElement], set[HtmlElement]]:
    """The entries of lists, at least three, that have only links into the page, whose words mostly stand there.

    Second, the texts with the words of an entry, which are titles.
    """
    lists: dict[HtmlElement, list[Leaf]] = {}
    for leaf in leaves:
        around = [one for one in (leaf.element, *leaf.element.iterancestors()) if one.tag in {"ol", "ul"}]
        if around:
            lists.setdefault(around[-1], []).append(leaf)
    linked = {around: [_target(leaf) for leaf in held] for around, held in lists.items() if len(held) >= _LEAST_PAGES}
    linked = {around: names for around, names in linked.items() if all(names)}
    texts = _texts_at(leaves, main) if linked else {}
    found: tuple[set[HtmlElement], set[HtmlElement]] = (set(), set())
    own = {leaf.element: masked(leaf.text) for leaf in leaves}
    for around, names in linked.items():
        entries = {leaf.element for leaf in lists[around]}
        there = [(leaf.text, *texts.get(name, (None, ""))) for leaf, name in zip(lists[around], names, strict=True)]
        alike = sum(_stands_in(entry, text) for entry, _, text in there)
        if alike > _RECURS * len(names) and not any(one is None or one in entries for _, one, _ in there):
            found[0].update(entries)
            found[1].update(one for entry, one, _ in there if one is not None and own[one] == masked(entry))
    return found


def _target(leaf: Leaf) -> str:
    """The name of the place in the page to which all words of a text are one link; empty if there is none."""
    names = [href[1:] for link in leaf.element.iter("a") if (href := link.get("href") or "")[:1] == "#"]
    return names[0] if len(names) == 1 and leaf.n_linked == leaf.text.count(" ") + 1 else ""


def _texts_at(leaves: Sequence[Leaf], main: HtmlElement) -> dict[str, tuple[HtmlElement, str]]:
    """For each name of a place, the first element with text there, and the text of it and of the next."""
    after = {leaf.element: f"{leaf.text} {nxt.text if nxt else ''}" for leaf, nxt in zip_longest(leaves, leaves[1:])}
    found: dict[str, tuple[HtmlElement, str]] = {}
    waiting: list[HtmlElement] = []
    for element in main.iter():
        waiting.append(element)
        if element in after:
            for one in (*waiting, *element.iter()):
                for name in {one.get("id"), one.get("name")} - {None}:
                    found.setdefault(name, (element, after[element]))
            waiting.clear()
    return found


def _stands_in(entry: str, text: str) -> bool:
    words, there = {*words_of(entry)}, {*words_of(text)}
    return len(words & there) * 2 > len(words)


def _running_of(leaves: Sequence[Leaf], main: HtmlElement) -> Iterator[HtmlElement]:
    """The words and numbers at the head or foot of each sheet of a document whose sheets are elements alike."""
    inside: dict[HtmlElement, list[Leaf]] = {}
    for leaf in leaves:
        path = [leaf.element, *takewhile(lambda one: one is not main, leaf.element.iterancestors())]
        inside.setdefault(path[-1], []).append(leaf)
    if len({(sheet.tag, sheet.get("class")) for sheet in inside}) != 1 or len(inside) < _LEAST_PAGES:
        return
    if sum(leaf.text.count(" ") + 1 for leaf in leaves) < _SHEET * len(inside):
        return
    printed = [
        [int(leaf.text) for leaf in (*held[:2], *held[-2:]) if leaf.text.isdecimal()] for held in inside.values()
    ]
    if not all(printed) or any(other[0] != one[0] + 1 for one, other in pairwise(printed)):
        return
    if not all(any(_begins_part(leaf) for leaf in held) for held in inside.values()):
        return
    for edge in (slice(0, 2), slice(-2, None)):
        recurring = Counter(text for held in inside.values() for text in {leaf.text for leaf in held[edge]})
        running = {text for text, times in recurring.items() if times > _RECURS * len(inside) and " " in text}
        for held in inside.values():
            if any(leaf.text in running for leaf in held[edge]):
                yield from (leaf.element for leaf in held[edge] if leaf.text in running or leaf.text.isdigit())


def _begins_part(leaf: Leaf) -> bool:
    """Whether this is a heading or begins with a number, and is more than a number."""
    return leaf.element.tag in _HEADINGS or (bool(split_label(leaf.text)[0]) and not is_label(leaf.text))


def furniture_of(
    leaves: Sequence[Leaf], page: Zones, place: Zones, main: HtmlElement, contents: set[HtmlElement]
) -> Mapping[HtmlElement, str]:
    """The outermost elements that are furniture, with their words. ``place`` has the zones of the pages beside it."""
    running = {*_running_of(leaves, main)}
    left_out = running | contents
    gone = {
        leaf.element
        for leaf in leaves
        if (
            leaf.element in left_out
            or any(zones.is_list_of_links(leaf.zone) for zones in (page, place))
            or (place.recurs(leaf.zone, leaf.text) and leaf.element.tag != "h1")
        )
        and (leaf.element in running or not is_label(leaf.text))
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
