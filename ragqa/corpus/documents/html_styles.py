"""Applies what a web page's own style sheet says of numbers and bold type, as word processors export them.

Selectors may name elements and classes, and a parent with ``>``; others are ignored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ragqa.corpus.documents.labels import in_style, is_label

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_RULE: Final = re.compile(r"([^{}]+)\{([^{}]*)\}")
_SELECTOR: Final = re.compile(r"(?:([\w.-]+)\s*>\s*)?([\w.-]+)(::?before)?")
_BOLD: Final = re.compile(r"font-weight\s*:\s*(?:bold|[6-9]00)")
_PIECE: Final = re.compile(
    r"\"([^\"]*)\"|'([^']*)'|counters?\(\s*([\w-]+)\s*(?:,\s*[\"']([^\"']*)[\"']\s*)?(?:,\s*([\w-]+)\s*)?\)"
)
_COUNTS: Final = re.compile(r"counter-(reset|increment)\s*:\s*([^;]+)")
_NAMED: Final = re.compile(r"([A-Za-z_][\w-]*)(?:\s+(-?\d+))?")
_CONTENT: Final = re.compile(r"content\s*:\s*([^;]*counter[^;]*)")
_USED: Final = re.compile(r"counter|list-style|font-weight")
_Rule = tuple[str, str, bool, str]  # selectors of the parent and of the element, whether text before it, and its styles


def apply_styles(root: HtmlElement) -> dict[HtmlElement, str]:
    """The numbers that counters show before elements; marks bold text with ``b`` and gives lists their styles."""
    rules: defaultdict[str, list[_Rule]] = defaultdict(list)
    for sheet in root.iter("style"):
        for selectors, styles in _RULE.findall(sheet.text or ""):
            for selector in selectors.split(",") if _USED.search(styles) else ():
                if found := _SELECTOR.fullmatch(selector.strip()):
                    rules[found[2].split(".")[-1]].append((found[1] or "", found[2], bool(found[3]), styles))
    numbers: dict[HtmlElement, str] = {}
    held: dict[str, list[tuple[HtmlElement | None, int]]] = {}  # by counter: the parents of its scopes, and values
    for element in list(root.iter("*")) if rules else ():
        own = _rules_of(element, rules)
        if not own:
            continue
        styles = ";".join(styles for _, _, before, styles in own if not before)
        if element.tag == "span" and _BOLD.search(styles):
            element.tag = "b"
        if element.tag == "ol" and "list-style" in styles:
            element.set("style", f"{styles};{element.get('style') or ''}")
        _count(element, styles, held)
        content = next((found[1] for _, _, before, said in own if before and (found := _CONTENT.search(said))), "")
        if is_label(number := "".join(_shown(content, held)).strip()):
            numbers[element] = number
    return numbers


def _rules_of(element: HtmlElement, rules: dict[str, list[_Rule]]) -> list[_Rule]:
    """The rules whose selectors fit the element and its parent."""
    names = (str(element.tag), *(element.get("class") or "").split())
    near = (rule for name in names for rule in rules.get(name, ()))
    return [rule for rule in near if _is(element, rule[1]) and _is(element.getparent(), rule[0])]


def _is(element: HtmlElement | None, selector: str) -> bool:
    """Whether the element has the name and all the classes of a selector such as "ol.start" or ".note"."""
    if not selector:
        return True
    tag, *classes = selector.split(".")
    return element is not None and tag in {"", element.tag} and {*classes} <= {*(element.get("class") or "").split()}


def _count(element: HtmlElement, styles: str, held: dict[str, list[tuple[HtmlElement | None, int]]]) -> None:
    """Sets and increments counters; a counter is valid below the parent of the element that sets it."""
    parent = element.getparent()
    for what, names in _COUNTS.findall(styles):
        for name, number in _NAMED.findall(names):
            values = held.setdefault(name, [])
            resets = what == "reset"
            above = {*element.iterancestors()} - ({parent} if resets else set())  # a counter may begin anew
            values[:] = [one for one in values if one[0] in above]
            if resets or not values:
                values.append((parent, int(number or 0) if resets else 0))
            if not resets:
                values[-1] = values[-1][0], values[-1][1] + int(number or 1)


def _shown(content: str, held: dict[str, list[tuple[HtmlElement | None, int]]]) -> Iterator[str]:
    for text, other, name, separator, style in _PIECE.findall(content):
        values = [value for _, value in held.get(name, ())]
        values = values if separator else values[-1:]
        yield separator.join(in_style(value, style) for value in values) if name else text or other
