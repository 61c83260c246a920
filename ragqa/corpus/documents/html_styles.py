"""Applies what a web page's own style sheet says of numbers and bold type, as word processors export them.

Selectors may name elements and classes, and a parent with ``>``; others are ignored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from ragqa.corpus.documents.labels import in_style, is_label

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_SELECTOR: Final = re.compile(r"(?:([\w.-]+)\s*>\s*)?([\w.-]+)(::?before)?")
_PIECE: Final = re.compile(
    r"\"([^\"]*)\"|'([^']*)'|counters?\(\s*([\w-]+)\s*(?:,\s*[\"']([^\"']*)[\"']\s*)?(?:,\s*([\w-]+)\s*)?\)"
)
_NAMED: Final = re.compile(r"([A-Za-z_][\w-]*)(?:\s+(-?\d{1,6}\b))?")
# What a hostile page may make of each element is bounded: laws have some dozens of such rules.
_MOST_RULES, _MOST_COUNTERS, _LONGEST = 500, 20, 200  # of a page; of a rule; characters of a selector or a value
_MOST_COUNTED: Final = 10_000  # beyond it no rule is numbered, and "aaa…" would be long
_Names = tuple[str, frozenset[str]]  # a selector's element, "" for any, and classes
_Held = dict[str, list[tuple["HtmlElement | None", int]]]  # by counter: the parents of its scopes, and values


class _Rule(NamedTuple):
    """A rule of the sheet, as far as it says something of numbers and bold type."""

    parent: _Names
    own: _Names
    before: bool  # whether it is about the text before the element
    bold: bool
    listed: str  # the declaration of a list's style
    counts: tuple[tuple[bool, str, int], ...]  # whether it sets a counter or adds to it, its name and a number
    content: str


def apply_styles(root: HtmlElement) -> dict[HtmlElement, str]:
    """The numbers that counters show before elements; marks bold text with ``b`` and gives lists their styles."""
    rules: defaultdict[str, list[_Rule]] = defaultdict(list)
    for name, rule in islice(_rules(root), _MOST_RULES):
        rules[name].append(rule)
    numbers: dict[HtmlElement, str] = {}
    held: _Held = {}
    for element in list(root.iter("*")) if rules else ():
        own = _rules_of(element, rules)
        if element.tag == "span" and any(rule.bold for rule in own if not rule.before):
            element.tag = "b"
        if element.tag == "ol" and (listed := [rule.listed for rule in own if rule.listed and not rule.before]):
            element.set("style", f"{';'.join(listed)};{element.get('style') or ''}")
        _count(element, [count for rule in own if not rule.before for count in rule.counts], held)
        content = next((rule.content for rule in own if rule.before and rule.content), "")
        if content and is_label(number := "".join(_shown(content, held)).strip()):
            numbers[element] = number
    return numbers


def _rules(root: HtmlElement) -> Iterator[tuple[str, _Rule]]:
    """The rules of the page's sheets that say something here, each with the last name of its selector."""
    for sheet in root.iter("style"):
        first, *others = re.sub("<!--|-->", "", sheet.text or "").split("/*")
        styles = first + " ".join(one.partition("*/")[2] for one in others)  # without comments
        for block in dict.fromkeys(styles.split("}")):
            head, _, styles = block.rpartition("{")
            said = _said(styles)
            for selector in head.rpartition("{")[2].split(",") if any(said) else ():
                selector = selector.strip()
                if len(selector) <= _LONGEST and (found := _SELECTOR.fullmatch(selector)):
                    rule = _Rule(_names(found[1] or ""), _names(found[2]), bool(found[3]), *said)
                    yield found[2].split(".")[-1], rule


def _said(styles: str) -> tuple[bool, str, tuple[tuple[bool, str, int], ...], str]:
    """What these declarations say: bold, the style of a list, counts, and content that shows a counter."""
    bold, listed, counts, content = False, "", list[tuple[bool, str, int]](), ""
    for declaration in styles.split(";"):
        name, value = (part.strip() for part in declaration.partition(":")[::2])
        if len(value) > _LONGEST:
            continue
        if name == "font-weight":
            bold = bold or bool(re.match(r"bold|[6-9]00", value))
        elif name.startswith("list-style"):
            listed = f"{name}:{value}"
        elif name in {"counter-reset", "counter-increment"}:
            sets = name == "counter-reset"
            counts += [(sets, one, int(number or (not sets))) for one, number in _NAMED.findall(value)]
        elif name == "content" and "counter" in value:
            content = content or value
    return bold, listed, tuple(counts[:_MOST_COUNTERS]), content


def _names(selector: str) -> _Names:
    tag, *classes = selector.split(".")
    return tag, frozenset(classes)


def _rules_of(element: HtmlElement, rules: dict[str, list[_Rule]]) -> list[_Rule]:
    """The rules whose selectors fit the element and its parent."""
    classes = (element.get("class") or "").split()
    own = str(element.tag), frozenset(classes)
    near = [rule for name in dict.fromkeys((own[0], *classes)) for rule in rules.get(name, ())]
    if not near:
        return []
    above = element.getparent()
    parent = (
        ("", frozenset[str]()) if above is None else (str(above.tag), frozenset((above.get("class") or "").split()))
    )
    return [rule for rule in near if _is(own, rule.own) and _is(parent, rule.parent)]


def _is(names: _Names, selector: _Names) -> bool:
    """Whether an element has the name and all the classes of a selector such as "ol.start" or ".note"."""
    return selector[0] in {"", names[0]} and selector[1] <= names[1]


def _count(element: HtmlElement, counts: list[tuple[bool, str, int]], held: _Held) -> None:
    """Sets and increments counters; a counter is valid below the parent of the element that sets it."""
    if not counts:
        return
    parent, ancestors = element.getparent(), {*element.iterancestors()}
    for resets, name, number in counts[:_MOST_COUNTERS]:
        values = held.setdefault(name, [])
        above = ancestors - ({parent} if resets else set())  # a counter may begin anew
        values[:] = [one for one in values if one[0] in above]
        if resets or not values:
            values.append((parent, number if resets else 0))
        if not resets:
            values[-1] = values[-1][0], values[-1][1] + number


def _shown(content: str, held: _Held) -> Iterator[str]:
    for text, other, name, separator, style in _PIECE.findall(content):
        values = [value for _, value in held.get(name, ())]
        values = values if separator else values[-1:]
        shown = (in_style(value, style) if abs(value) < _MOST_COUNTED else "" for value in values)
        yield separator.join(shown) if name else text or other
