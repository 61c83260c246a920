"""References in legal text: ``Rule 4.2.1(b)``, ``section 58(2) of FSMR``, ``paragraph (3)``; what they name. Pure.

A reference names numbers, of a kind where it says one (rule, section, …), of an instrument where it names one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

GRAMMAR_VERSION: Final = 1  # of this module: a change of what it finds makes what was kept of it unusable
HERE: Final = "this document"  # the instrument of "section 3 above"
MOST: Final = 200  # references read in one passage

_KIND = (
    r"(?P<kind>[Rr]ules?|RULES?|[Ss]ections?|SECTIONS?|[Ss]ub-?sections?|s{1,2}\.|[Aa]rticles?|ARTICLES?|[Rr]egulations?|[Pp]aragraphs?|"
    r"[Pp]aras?\.?|[Ss]ub-?paragraphs?|[Cc]hapters?|Parts?|PART|[Ss]chedules?|App(?:endix|endices)?|APP|Annex(?:es)?)"
)
_UNIT = r"(?:[A-Z]{1,3}\d{0,2}\.|APP ?\d{1,2}\.)?\d{1,3}[A-Z]{0,2}(?:\.\d{1,3}[A-Z]{0,2}|\.[A-Z](?=\.\d))*(?!\w)"
_ITEMS = r"(?:\s?\((?:\d{1,3}[A-Z]?|[a-z]{1,5}|[A-Z]{1,2})\))"
_NUMBER = rf"(?:{_UNIT}{_ITEMS}*|{_ITEMS}+)"
_JOIN = r"(?:\s*(?:,|;|/)\s*(?:and\s+|or\s+|and/or\s+)?|\s+(?:and/or|and|or|to|through|or,)\s+|\s*[–—-]\s*)"
_MEASURE = r"(?![\w.]*\s*(?:%|per cent|days?|years?|months?|hours?|million|business))"
_LIST = rf"(?P<numbers>{_NUMBER}(?:{_JOIN}{_NUMBER}{_MEASURE})*)"
_ACRONYM = r"[A-Z][A-Z&]{1,7}(?:s\b)?"
_NAME = r"(?:[A-Z][\w'’-]*(?:\s+(?:and|of|the|for|on|in|to|from|&|[A-Z(][\w'’()-]*|(?:19|20)\d\d)){0,14})"
_INNER = rf"(?:paragraph|section|subsection|rule|article|regulation)\s+{_UNIT}{_ITEMS}*"  # "(2) of section 58"
_OF = r"\s*(?:\([^()]{3,60}\)\s*)?(?:of|in|under|to)\s+"
_REFERENCE = re.compile(
    rf"(?:\b(?P<before>{_ACRONYM})(?:\s+(?:Rulebook|Rules))?,?\s+)?\b{_KIND}\s*{_LIST}"
    rf"(?:{_OF}(?P<inner>{_INNER})|(?={_OF}(?:the\s+|that\s+)?(?P<after>{_ACRONYM}\b|(?:Schedule|Annex|Appendix)\s\w+|{_NAME})))?"
    r"(?P<away>\s*,?\s*(?:therein|thereof))?(?P<here>\s+(?:above|below)\b)?"
)
_BARE = re.compile(
    rf"\b(?P<before>{_ACRONYM})\s+(?P<numbers>\d{{1,3}}[A-Z]?\.\d{{1,3}}(?:\.\d{{1,3}}[A-Z]?)*{_ITEMS}*)"
)
_ONE = re.compile(rf"(?P<unit>{_UNIT})?(?P<items>{_ITEMS}*)")
_KINDS: Final = {"s": "section", "ss": "section", "para": "paragraph", "appendice": "appendix", "app": "appendix"}
_NO_NAME: Final = {"A", "I", "IF", "OR", "AND", "THE", "IN", "NOT", "AN", "OF", "TO", "BY", "RULE", "RULES", "PART"}


@dataclass(frozen=True, slots=True)
class Named:
    """One number of a reference: ``unit`` with dots, ``items`` in brackets; ``last`` is where a range ends."""

    unit: str
    items: tuple[str, ...]
    last: Named | None = None

    def __str__(self) -> str:
        to = f" to {self.last}" if self.last else ""
        return f"{self.unit}{''.join(f'({item})' for item in self.items)}{to}"


@dataclass(frozen=True, slots=True)
class Mention:
    """A reference as a text has it, ``text[start:end]``. ``instrument`` is as printed, empty where none is named."""

    start: int
    end: int
    kind: str
    named: tuple[Named, ...]
    instrument: str = ""


def mentions(text: str) -> tuple[Mention, ...]:
    """The references in a text, in order."""
    text = text.replace("\u200e", " ").replace("\u00a0", " ")
    found = list(_read(text))[:MOST]
    return tuple(sorted(found, key=lambda one: one.start))


def line_of_mentions(found: Iterable[Mention]) -> str:
    """The references of a text as a line of JSON."""
    told = [[one.start, one.end, one.kind, [_told(named) for named in one.named], one.instrument] for one in found]
    return json.dumps(told, ensure_ascii=False) + "\n"


def mentions_of(line: bytes) -> tuple[Mention, ...]:
    """The references in this line."""
    if line == b"[]\n":
        return ()
    return tuple(Mention(start, end, kind, _named(told), name) for start, end, kind, told, name in json.loads(line))


def _told(one: Named) -> list[Any]:
    return [one.unit, one.items, _told(one.last) if one.last else None]


def _named(told: Iterable[list[Any]]) -> tuple[Named, ...]:
    return tuple(Named(unit, tuple(items), _named([last])[0] if last else None) for unit, items, last in told)


def _read(text: str) -> Iterator[Mention]:
    taken: list[tuple[int, int]] = []
    for match in _REFERENCE.finditer(text):
        kind = match["kind"].lower().rstrip(".").rstrip("s") or "section"
        kind = (
            _KINDS.get(kind, kind)
            .replace("sub-", "")
            .replace("subparagraph", "paragraph")
            .replace("subsection", "section")
        )
        before = match["before"] or ""
        instrument = before if before and before not in _NO_NAME else match["inner"] or _trimmed(match["after"] or "")
        if match["here"]:
            instrument = HERE
        named = tuple(_numbers(match["numbers"]))
        if named and not match["away"]:
            taken.append(match.span())
            yield Mention(match.start("kind"), match.end("numbers"), kind, named, instrument)
    for match in _BARE.finditer(text):
        if match["before"] not in _NO_NAME and not any(a <= match.start() < b for a, b in taken):
            yield Mention(match.start(), match.end(), "", tuple(_numbers(match["numbers"])), match["before"])


def _trimmed(name: str) -> str:
    """The name without what a sentence goes on with: "Money Act 2015 and Rule" is one of 2015."""
    name = re.sub(r"\s*\([^)]*$", "", name)
    name = re.sub(r"((?:19|20)\d\d)\b.*", r"\1", name)
    name = re.sub(rf"\s+(?:and|or|to|in|of)\s+(?:the\s+)?{_KIND}\b.*", "", name)
    return re.sub(r"\s+(?:and|of|the|for|on|in|to|from|&)$", "", name.strip(" .,;()"))


def _numbers(text: str) -> list[Named]:
    """The numbers of a list; items without a unit belong to the unit before them: ``58(2) and (3)``."""
    pieces = re.split(rf"({_JOIN})", text)
    found: list[Named] = []
    before: Named | None = None
    for place in range(0, len(pieces), 2):
        match = _ONE.fullmatch(pieces[place].strip())
        if not match or not (match["unit"] or match["items"]):
            continue
        items = tuple(re.findall(r"\(([^)]+)\)", match["items"]))
        one = Named(match["unit"] or "", items)
        if not one.unit and before and before.unit:
            one = Named(before.unit, (*_kept(before.items, items), *items))
        is_range = place and re.fullmatch(r"\s*(?:to|through|[–—-])\s*", pieces[place - 1])
        if is_range and before:
            found[-1] = Named(before.unit, before.items, one)
        else:
            found.append(one)
        before = one
    return found


def _kept(before: tuple[str, ...], items: tuple[str, ...]) -> tuple[str, ...]:
    """The brackets that go on counting: after (1)(a) a "(b)" is (1)(b), a "(2)" is (2)."""
    for place, item in enumerate(before):
        if item.isdigit() == items[0].isdigit():
            return before[:place]
    return before
