"""Finds references in legal text: ``Rule 4.2.1(b)``, ``point (c) of Article 36(1) of CRR``, ``FEES 10.3``. Pure.

A reference names one or more numbers. It may also name their kind (rule, section, …), the units that contain them, and
the instrument.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

GRAMMAR_VERSION: Final = 3  # raise it when this module finds other references: kept results are then unusable
HERE: Final = "this document"  # the instrument of "section 3 above"
MOST: Final = 200  # references read in one passage
ORDER: Final = (
    "volume book division part schedule annex appendix title chapter section regulation article rule clause recital "
    "principle paragraph point"
).split()  # kinds of units, from the outermost to the innermost
_LAST_RANK: Final = ORDER.index("chapter")

_KIND = (
    r"(?:[Rr]ules?|RULES?|[Ss]ections?|SECTIONS?|[Ss]ub-?sections?|s{1,2}\.|[Aa]rticles?|ARTICLES?|[Rr]egulations?|"
    r"[Pp]aragraphs?|[Pp]aras?\.?|[Ss]ub-?paragraphs?|[Pp]oints?|[Cc]lauses?|[Rr]ecitals?|Principles?|[Cc]hapters?|"
    r"Parts?|PART|Titles?|[Ss]chedules?|App(?:endix|endices)?|APP|[Aa]nnex(?:es|ures?)?|ANNEX(?:URES?)?)"
)
_ITEMS = r"(?: ?\((?:\d{1,3}[A-Z]?|[a-z]{1,5}|[A-Z]{1,2})\))"
_REST = r"(?:\.\d{1,3}[A-Z]{0,2}|\.[A-Z](?=\.\d))"
_HEAD = r"(?:[A-Z]{1,3}\d{0,2}\.|APP ?\d{1,2}\.)?"
_COUNT = r"\d{1,3}(?:[A-Z]{1,2}\d{0,3}|(?!st|nd|rd|th)[a-z]{1,2})?"
_CODED = r"(?:[A-Z]{2,4} )?[A-Z]{1,2}-\d{1,3}"  # "SME R-2"
_UNIT = rf"(?:{_HEAD}{_COUNT}{_REST}*|{_CODED}|[A-Z]\d{{1,2}}|[IVXLC]{{1,6}}|[A-Z])(?![\w’'])"
_NUMBER = rf"(?:{_UNIT}{_ITEMS}*|(?! ?\([A-Z]{{2}}\)){_ITEMS}+)"
_OPEN = rf"(?:\d{{1,3}}[A-Z]{{1,2}}\d{{0,3}}{_REST}*|\d{{1,3}}{_REST}+)(?!\w){_ITEMS}*"  # clearly a rule number
_HYPHEN = r"(?:[–—]|-(?!\d)|(?<![A-Z])-)"  # not that of "R-2"
_JOIN = rf"(?: ?[,;/] ?(?:and +|or +|and/or +|& ?)?| +(?:and/or|and|or|to|through|or,|&) +| ?{_HYPHEN} ?)"
_MEASURE = r"(?![\w.]*\s*(?:%|per cent|days?|years?|months?|hours?|million|business))"
_MORE = rf"(?:{_JOIN}{_NUMBER}{_MEASURE})*"
_ACRONYM = r"[A-Z][A-Z&]{1,7}(?:s\b)?"
_WORD = r"(?:and|of|the|for|on|in|to|from|&|[–-]|[A-Z(][\w'’()/-]*|\d+/\d+(?:/\w+)?|(?:19|20)\d\d)"
_NAME = rf"(?:[A-Z][\w'’/-]*(?:\s+{_WORD}){{0,14}})"
_TITLE = rf"(?!{_KIND}[ ,])[A-Z][\w'’/-]+(?:\s+{_WORD}){{0,10}}?"  # a name in front of its numbers
_OF = r"\s*(?:\([^()]{3,60}\)\s*)?(?:of|in|under|to)\s+"
_LINK: Final = re.compile(rf"(?P<kind>{_KIND})\s+(?P<numbers>{_UNIT}{_ITEMS}*{_MORE})")  # "(2) of section 58"
_REFERENCE = re.compile(
    rf"\b(?P<kind>{_KIND}) *(?:[–—-] ?)?(?P<numbers>{_NUMBER}{_MORE})"
    rf"(?P<chain>(?:{_OF}(?:this\s+|that\s+)?{_KIND}\s+{_UNIT}{_ITEMS}*{_MORE})*)(?P<this>{_OF}(?:this|these)\s+\w+)?"
    rf"(?={_OF}(?:the\s+|that\s+)?(?P<after>{_ACRONYM}\b|{_NAME}|\[[A-Z][^\]\n]{{1,40}}\]))?"
    r"(?P<away>\s*,?\s*(?:therein|thereof))?(?P<here>\s+(?:above|below)\b)?"
)
_ALONE = re.compile(
    rf"(?:(?<=[^\W\d_] )|(?<=[)] ))(?P<numbers>(?:{_OPEN}|{_ITEMS}+|\d{{1,2}}(?!\w|[/.]\w)){_MEASURE}{_MORE})"
)
_FRONT: Final = re.compile(rf"(?<![\w’'-])(?P<name>{_TITLE})(?:\s+Parts?)?,?\s+\(?$")  # before a number or its kind
_LEAD: Final = (
    r"\b(?i:in|to|with|of|under|by|for|from|and|or|if|where|see|per|than|that|both|either|unless|except|which)\s+"
)
_LEADS: Final = re.compile(rf"{_LEAD}$")
_CHAPTER: Final = re.compile(
    r"(?:(?:set out|referred to|specified|provided for|described) in|accordance with|purposes of|pursuant to|"
    r"[Ss]ubject to|required by)\s+$"
)
_OPENING: Final = re.compile(r"(?:^|[.;:\n\t)])\s*$")  # before a word that always has a capital
_ONE = re.compile(rf"(?P<unit>{_UNIT})?(?P<items>{_ITEMS}*)")
_BACK: Final = 120  # characters to look back from a number for a name
_KINDS: Final = {"": "section", "s": "section", "para": "paragraph", "appendice": "appendix", "app": "appendix"}
_NO_NAME: Final = {"A", "I", "IF", "OR", "AND", "THE", "IN", "NOT", "AN", "OF", "TO", "BY", "RULE", "RULES", "PART"}


@dataclass(frozen=True, slots=True)
class Named:
    """One number of a reference: ``unit`` with dots, ``items`` in brackets; ``last`` is the end of a range.

    It is ``text[start:end]``, if the offsets are known.
    """

    unit: str
    items: tuple[str, ...] = ()
    last: Named | None = None
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    def __str__(self) -> str:
        to = f" to {self.last}" if self.last else ""
        return f"{self.unit}{''.join(f'({item})' for item in self.items)}{to}"


@dataclass(frozen=True, slots=True)
class Mention:
    """A reference in a text, ``text[start:end]``. ``instrument`` is as printed, empty if none is named.

    ``before`` is a name in front of the reference, which may be that of the instrument. ``within`` are the units that
    contain it, the innermost first. ``kind`` is empty for a number without a kind. If ``opens`` is true, ``before`` is
    the first word of a sentence and may be any word.
    """

    start: int
    end: int
    kind: str
    named: tuple[Named, ...]
    instrument: str = ""
    before: str = ""
    within: tuple[tuple[str, Named], ...] = ()
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """A resolved reference in the passage ``source``: ``text[start:end]``. All passages are given by id.

    ``target`` is the first passage meant and ``last`` the last. Both are empty if none was found; ``reason`` says why.
    """

    source: str
    start: int
    end: int
    target: str = ""
    last: str = ""
    reason: str = ""


def mentions(text: str) -> tuple[Mention, ...]:
    """The references in a text, in order."""
    text = text.replace("\u200e", " ").replace("\u00a0", " ")
    several = list(_joined(list(_read(text)), text))
    behind = 0
    ends = iter([*((mention.start, mention.end) for mention in several), (len(text), len(text))])
    start, end = next(ends)
    for match in _ALONE.finditer(text):
        while end <= match.start():
            behind, (start, end) = end, next(ends)
        if match.start() >= behind and match.end() <= start and (alone := _alone(text, match)):
            several.append(alone)
    return tuple(sorted(several, key=lambda mention: mention.start))[:MOST]


def _alone(text: str, match: re.Match[str]) -> Mention | None:
    """The mention of a number without a kind, if the words before it show that it is a reference."""
    numbers, start = match["numbers"], match.start()
    front = text[max(0, start - _BACK) : start]
    name = "" if numbers.startswith("(") else _before(front)
    leads = _LEADS if numbers.startswith("(") or re.match(_OPEN, numbers) else _CHAPTER
    if not (name or leads.search(front) or re.match(r"\d+[A-Z]\d", numbers)):
        return None
    is_word = bool(name) and " " not in name and (name in _NO_NAME or not name.isupper())
    opens = is_word and _OPENING.search(front[: front.rindex(name)]) is not None
    named = tuple(_numbers(numbers, start))
    instrument = name if re.fullmatch(_ACRONYM, name) and name not in _NO_NAME else ""
    before = "" if instrument else name
    return Mention(start, named[-1].end, "", named, instrument, before, opens=opens) if named else None


def _before(front: str) -> str:
    """The name at the end of this text, if it may be that of a document."""
    found = _FRONT.search(front)
    name = re.sub(rf"^(?:{_LEAD})+", "", found["name"]) if found else ""
    name = re.sub(rf".*\s[a-z]+\s(?={_ACRONYM}$)", "", name)  # "Spot Commodities in FEES"
    return "" if re.search(r"(?:^|\s)(?:[a-z&–-][a-z]*)$", name) or _LEADS.search(f"{name} ") else name


def line_of_mentions(several: Iterable[Mention]) -> str:
    """The references of a text as a line of JSON."""
    return json.dumps(list(map(astuple, several)), ensure_ascii=False) + "\n"


def mentions_of(line: bytes) -> tuple[Mention, ...]:
    """The references in this line."""
    rows = (dict(zip(Mention.__slots__, row, strict=True)) for row in json.loads(line))
    return tuple(
        Mention(
            **row
            | {"named": tuple(map(_named, row["named"])), "within": tuple((a, _named(b)) for a, b in row["within"])}
        )
        for row in rows
    )


def _named(row: Iterable[Any]) -> Named:
    unit, items, last, start, end = row
    return Named(unit, tuple(items), _named(last) if last else None, start, end)


def _kind(word: str) -> str:
    kind = re.sub(r"^sub-?|(?<=^annex)(?:e|ure)?s?$", "", word.lower().rstrip(".")).removesuffix("s")
    return _KINDS.get(kind, kind)


def _read(text: str) -> Iterator[Mention]:
    """The references that name a kind; the units that contain them come after them."""
    behind = 0  # the end of the reference before, whose number is no name
    for match in _REFERENCE.finditer(text):
        front, behind = text[max(behind, match.start() - _BACK) : match.start()], match.end()
        if match["away"]:
            continue
        before = _before(front)
        acronym = re.search(rf"(?:^|\s)({_ACRONYM})(?:\s+(?:Rulebook|Rules))?$", before)
        instrument = HERE if match["here"] or match["this"] else _trimmed(match["after"] or "")
        if not instrument and acronym and acronym[1] not in _NO_NAME:
            instrument, before = acronym[1], ""
        kind = _kind(match["kind"])
        if before and text[: match.start()].endswith("(") and ORDER.index(kind) <= _LAST_RANK:
            instrument = instrument or before  # "Investments (Chapter 2)"
        offset = match.start("chain")
        chain = [(match["kind"], match["numbers"], match.start("kind"), match.start("numbers"))] + [
            (one["kind"], one["numbers"], offset + one.start("kind"), offset + one.start("numbers"))
            for one in _LINK.finditer(match["chain"])
        ]
        several = [
            Mention(start, named[-1].end, _kind(kind), named, instrument, before)
            for kind, numbers, start, at in chain
            if (named := tuple(_numbers(numbers, at)))
        ]
        for place, mention in enumerate(several):
            within = tuple((outer.kind, outer.named[0]) for outer in several[place + 1 :])
            end, left = mention.end, mention.named
            for inner, outer in pairwise(several[place:]):
                if not _is_piece(inner, outer):
                    break
                end = outer.named[0].end  # "point (c) of Article 36" is one
            if place and _is_piece(several[place - 1], mention):
                left = left[1:]
            if left:
                start = mention.start if left == mention.named else left[0].start
                yield replace(mention, start=start, end=end, named=left, within=within)


def _is_piece(inner: Mention, outer: Mention) -> bool:
    """Whether ``inner`` is a paragraph of ``outer``, and not a unit of its own."""
    is_paragraph = inner.kind in {"paragraph", "point"} or not inner.named[0].unit
    return is_paragraph and ORDER.index(outer.kind) > _LAST_RANK


def _joined(several: list[Mention], text: str) -> Iterator[Mention]:
    """The mentions, with adjacent ones such as "Article 6, paragraph 2" as one within the other."""
    for place, mention in enumerate(several):
        after = several[place + 1] if place + 1 < len(several) else None
        if after and _holds(mention, after, text) and not mention.instrument:
            several[place] = replace(mention, instrument=after.instrument)
        if place and not mention.within and _holds(several[place - 1], mention, text):
            outer = several[place - 1]
            instrument = mention.instrument or outer.instrument
            within = ((outer.kind, outer.named[-1]), *outer.within)
            several[place] = replace(
                mention, instrument=instrument, within=within, before=mention.before or outer.before
            )
        yield several[place]


def _holds(outer: Mention, inner: Mention, text: str) -> bool:
    return text[outer.end : inner.start].strip() in {"", ","} and ORDER.index(outer.kind) < ORDER.index(inner.kind)


def _trimmed(name: str) -> str:
    """The name without the rest of the sentence: "Money Act 2015" for "Money Act 2015 and Rule"."""
    name = re.sub(r"\s*\([^)]*$", "", name)
    name = re.sub(r"((?:19|20)\d\d)\b(?!/).*", r"\1", name)
    name = re.sub(rf"\s+(?:and|or|to|in|of)\s+(?:the\s+)?{_KIND}\b.*", "", name)
    return re.sub(r"(?:\s+(?:and|of|the|for|on|in|to|from|&|–|-))+$", "", name.strip(" .,;"))


def _numbers(text: str, offset: int) -> list[Named]:
    """The numbers of a list; items without a unit belong to the unit before them: ``58(2) and (3)``."""
    found: list[Named] = []
    before: Named | None = None
    joint, begin = "", 0
    for part in (*re.finditer(_JOIN, text), None):
        match = _ONE.fullmatch(text[begin : part.start() if part else len(text)].strip())
        if match and (match["unit"] or match["items"]):
            items = tuple(re.findall(r"\(([^)]+)\)", match["items"]))
            start = offset + text.index(match[0], begin)
            one = Named(match["unit"] or "", items, None, start, start + len(match[0]))
            if not one.unit and before and before.unit:
                one = replace(one, unit=before.unit, items=(*_kept(before.items, items), *items))
            if before and re.fullmatch(r"\s*(?:to|through|[–—-])\s*", joint):
                found[-1] = replace(before, last=one, end=one.end)
            else:
                found.append(one)
            before = one
        joint, begin = (part[0], part.end()) if part else ("", 0)
    return found


def _kept(before: tuple[str, ...], items: tuple[str, ...]) -> tuple[str, ...]:
    """The items of the number before that still apply: after (1)(a), "(b)" is (1)(b), and "(2)" is (2)."""
    for place, item in enumerate(before):
        if item.isdigit() == items[0].isdigit():
            return before[:place]
    return before
