"""Cuts units into passages: the smallest numbered unit that can be read alone, with its lead-in.

Items below a sentence that they complete ("must: (a) …") stay with it. If the unit is still too long, it is split at
its items, each with the lead-in in its section. A long table is split at its rows, each run under the table's head.
Every word is in one passage. Text without numbers is chunked like plain text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import Final

from ragqa.corpus.chunking import chunk, plain_outline
from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.catalogue import ID
from ragqa.corpus.documents.furniture import DATE
from ragqa.corpus.documents.items import (
    TERM,
    Counted,
    Item,
    cells_of,
    counted_paragraphs,
    defines_a_term,
    lists_terms,
    table_number,
    terms_of,
    whole_paragraphs,
)
from ragqa.corpus.documents.labels import DOTTED, GUIDANCE, RANKS
from ragqa.corpus.documents.model import Block, Unit, places_of
from ragqa.corpus.files import passage_id_of, unique
from ragqa.english.reading import as_iso
from ragqa.english.sentences import reads_as_heading
from ragqa.types import Passage

SEPARATOR: Final = " › "
_ANNOUNCES: Final = re.compile(r"\bfollowing\b[^.]*\.$")  # "… if any of the following applies."
MAX_LEAD_WORDS: Final = 40
WHOLE: Final = 4  # most words of a numbered unit that is not split, as a multiple of the words of a chunk


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage without its document."""

    number: str
    section: str
    text: str
    place: str
    version: str = ""
    items: str = ""


def passages_of(root: Unit, document_id: str, title: str, max_tokens: int) -> tuple[Passage, ...]:
    """The passages of a document in order; if a number repeats, the id of the second passage ends in ``#2``."""
    pieces = [*_cut(root, max_tokens)]
    names = [piece.number or "text" for piece in pieces]
    found = []
    for piece, name in zip(pieces, unique(names), strict=True):
        since, until = _in_force(piece.version)
        found.append(
            Passage(
                passage_id_of(document_id, name),
                document_id,
                piece.text,
                title=title,
                section=piece.section,
                number=piece.number,
                place=piece.place,
                effective=since,
                until=until,
                items=piece.items,
            )
        )
    return tuple(found)


def _cut(unit: Unit, max_tokens: int) -> Iterator[Piece]:
    """The passages of a unit; the first one says if they are a rule or article that was cut."""
    pieces = [piece for piece in _parts_of(unit, max_tokens) if piece.text]
    if len(pieces) > 1 and unit.number and not (unit.is_chapter or any(map(_is_apart, unit.units))):
        items = "\n".join(filter(None, (pieces[0].items, f"0 -{len(pieces)} {clean_line(unit.number)}")))
        pieces[0] = replace(pieces[0], items=items)
    yield from pieces


def _is_apart(unit: Unit) -> bool:
    """Whether the unit is no part of the text of that above it."""
    return _begins_anew(unit) or _reads_alone(unit) or unit.kind == "note"


def _parts_of(unit: Unit, max_tokens: int) -> Iterator[Piece]:
    if unit.style and not unit.units and not any(part.text for part in unit.texts):
        yield Piece(unit.number, _section(unit), unit.label, _place_of(unit.parts), _version(unit))
        return
    if unit.parent is not None and _stays_whole(unit):
        beside = [below for below in unit.units if _reads_alone(below) or _is_section(below)]
        yield from _fitted(unit, [part for part in unit.parts if part not in beside], max_tokens)
        for below in beside:
            yield from _cut(below, max_tokens)
        return
    own: list[Block] = []
    loose: list[Unit] = []  # unnumbered paragraphs in a row
    for part in (*unit.parts, None):
        if isinstance(part, Unit) and part.style == "" and part.kind == "text":
            yield from _own_piece(unit, own, max_tokens)
            loose.append(part)
            continue
        yield from _chunked(loose, max_tokens)
        loose = []
        if isinstance(part, Block):
            own.append(part)
            continue
        yield from _own_piece(unit, own, max_tokens)
        if part is not None:
            yield from _cut(part, max_tokens)


def _own_piece(unit: Unit, own: list[Block], max_tokens: int, lead: str = "") -> Iterator[Piece]:
    """The passages of a unit's own texts; its heading is in their section, or is the text if there is no other."""
    said = _without_heading(unit, own)
    named = said != own or (unit.is_heading and len(own) > 1)  # a title that is part of the text, too
    yield from _pieces_of(said or own, unit, _section(unit, lead, named=named), max_tokens * WHOLE)
    own.clear()


def _without_heading(unit: Unit, blocks: list[Block]) -> list[Block]:
    return blocks[1:] if unit.is_heading and blocks and blocks[0].kind == "heading" else blocks


def _stays_whole(unit: Unit) -> bool:
    """Whether the units below this one only complete its text."""
    below = [part for part in unit.units if not (_reads_alone(part) or _is_section(part) or part.kind == "inner note")]
    if not below:
        return bool(unit.texts) and not any(map(_is_section, unit.units))
    if (unit.is_chapter and unit.is_heading) or (unit.style == ID and any(part.style == ID for part in unit.units)):
        return False
    first = unit.parts.index(below[0])
    said = [part for part in unit.parts[:first] if isinstance(part, Block)]
    if said and said[0].kind == "heading":
        said = said[1:]  # the rule's name
    lead = " ".join(part.text for part in said).strip()
    if not lead:
        return False
    if all(part.style == "" for part in below):
        return not unit.is_heading and all(part.kind == "table" for part in below)
    follows = any(isinstance(part, Block) and part.text[:1].islower() for part in unit.parts[first:])
    if _begins_anew(below[0]):
        return follows
    if _ANNOUNCES.search(lead):
        return follows or not _are_sentences(below)
    if lead[-1:].isalnum():  # an open sentence, or a title
        return follows or (not _are_sentences(below) and (is_lead_in(lead) or _are_clauses(below)))
    return follows or is_lead_in(lead)


def _begins_anew(unit: Unit) -> bool:
    """Whether a unit is not part of a sentence: a rule, or a heading with units below."""
    return unit.style == DOTTED or (unit.is_heading and any(below.style for below in unit.units))


def _is_section(unit: Unit) -> bool:
    """Whether the unit is a rule with a heading, which completes no sentence of the rule above it."""
    return unit.style == DOTTED and unit.is_heading


def _are_sentences(units: list[Unit]) -> bool:
    """Whether each of these begins like a complete sentence."""
    said = _beginnings(units)
    return bool(said) and all(text[:1].isupper() and len(text.split()) > 3 for text in said)


def _are_clauses(units: list[Unit]) -> bool:
    """Whether each of these continues a sentence in lower case."""
    said = _beginnings(units)
    return bool(said) and all(text[:1].islower() for text in said)


def _beginnings(units: list[Unit]) -> list[str]:
    return [unit.texts[0].text for unit in units if unit.texts and unit.texts[0].text]


def _reads_alone(unit: Unit) -> bool:
    """Whether the unit is guidance, a part or a chapter, which never continues the sentence above it."""
    return unit.style in RANKS or unit.style in {GUIDANCE, ID}


def is_lead_in(text: str) -> bool:
    """Whether a sentence is continued by the items below it."""
    if text.endswith((":", "—", "–", ",", ";", "-")):
        return True
    return not text.endswith((".", "?", "!", ".”", '."', ")")) and not reads_as_heading(text)


def _fitted(
    unit: Unit, parts: list[Block | Unit], max_tokens: int, lead: str = "", limit: int = WHOLE
) -> Iterator[Piece]:
    """A short unit as one piece; else its own texts and its units, each under the sentence that they complete.

    Notes are pieces of their own. Below a unit that is too long, only short units stay whole.
    """
    apart = [part for part in parts if isinstance(part, Unit) and part.kind == "note"]
    whole = [part for part in parts if part not in apart]
    blocks = [part for part in whole if isinstance(part, Block)]
    if len(blocks) == len(whole):
        yield from _own_piece(unit, blocks, max_tokens, lead)
    elif len(_joined(whole).split()) <= max_tokens * limit:
        said = _without_heading(unit, blocks)
        items: list[Item] = []
        text = _joined((part for part in whole if isinstance(part, Unit) or part in said), items, unit.number)
        if all(part.kind == "inner note" for part in whole if isinstance(part, Unit)):
            items += whole_paragraphs(text, deque(counted_paragraphs(said, unit.number)))
        items += _untitled(unit, text)
        section = _section(unit, lead, named=said != blocks or unit.is_heading)
        yield Piece(unit.number, section, text, _place_of(whole), _version(unit), _listed(items))
    else:
        yield from _parted(unit, whole, max_tokens, lead)
    for note in apart:
        yield from _cut(note, max_tokens)


def _parted(unit: Unit, parts: list[Block | Unit], max_tokens: int, lead: str) -> Iterator[Piece]:
    own: list[Block] = []
    opening = ""
    for part in parts:
        if isinstance(part, Block):
            own.append(part)
            continue
        said = takewhile(lambda block: not defines_a_term(block.text), _without_heading(unit, own))
        opening = opening or " ".join(block.text for block in said)
        yield from _own_piece(unit, own, max_tokens, lead)
        under = SEPARATOR.join(filter(None, (lead, _shortened(opening))))
        yield from _fitted(part, part.parts, max_tokens, under, 1)
    yield from _own_piece(unit, own, max_tokens, lead)


def _shortened(text: str) -> str:
    words = text.split()
    return text if len(words) <= MAX_LEAD_WORDS else f"{' '.join(words[:MAX_LEAD_WORDS])} …"


def _pieces_of(
    blocks: list[Block], unit: Unit, section: str, limit: int, counted: deque[Counted] | None = None
) -> Iterator[Piece]:
    """The texts as one piece if they are short enough, else split at sentences; tables at rows, under their heads."""
    for is_table, run in groupby(blocks, key=lambda block: block.kind == "table"):
        held = [block for block in run if block.text]
        text = "\n".join(block.text for block in held)
        if not text:
            continue
        names = counted if counted is not None else deque(counted_paragraphs(held, unit.number))
        terms = is_table and lists_terms(text)
        cut = [text] if len(text.split()) <= limit else _rows(text, limit, terms) if is_table else _chunks(text, limit)
        for one in cut:
            items = cells_of(one, table_number(unit), 0, terms=terms) if is_table else whole_paragraphs(one, names)
            yield Piece(
                unit.number, section, one, places_of(held), _version(unit), _listed([*items, *_untitled(unit, one)])
            )


def _untitled(unit: Unit, text: str) -> Iterator[Item]:
    """The text without the title at its beginning, as an item of the same number."""
    title = unit.texts[0].title if unit.texts else ""
    said = text.removeprefix(title).lstrip(" .:\n") if title else text
    if said and len(said) < len(text):
        yield len(text) - len(said), len(text), unit.number


def _chunks(text: str, limit: int) -> Iterator[str]:
    for outlined in plain_outline(text).sections:
        for span in chunk(text, outlined.blocks, limit):
            yield span.text


def _rows(text: str, limit: int, terms: bool) -> Iterator[str]:
    """Runs of rows of a table, as many as fit, each under the first row except in a list of ``terms``.

    A row that is too long is split.
    """
    rows = text.split("\n")
    head = "" if terms else rows.pop(0)
    limit = max(1, limit - len(head.split()))
    held: list[str] = []
    for row in (*rows, None):
        if held and (row is None or len(" ".join((*held, row)).split()) > limit):
            yield "\n".join((head, *held)).lstrip("\n")
            held = []
        if row is not None and len(row.split()) > limit:
            yield from (f"{head}\n{one}".lstrip("\n") for one in _chunks(row, limit))
        elif row is not None:
            held.append(row)


def _version(unit: Unit) -> str:
    return next((one.version for one in (unit, *unit.above()) if one.version), "")


def _in_force(version: str) -> tuple[str, str]:
    """The first day of this version of a provision, and of the next version, as YYYY-MM-DD; empty if not stated.

    The first date on a line of its own is the first day; a later date is that of a future version.
    """
    alone = [line for line in version.split("\n") if DATE.fullmatch(line)]
    if not alone:
        return "", ""
    since = as_iso(alone[0])
    later = sorted(date for found in DATE.findall(version) if since and (date := as_iso(found)) > since)
    return since, later[0] if later else ""


def _chunked(loose: list[Unit], max_tokens: int) -> Iterator[Piece]:
    """The pieces of paragraphs without numbers, each with as many as fit."""
    for _, alike in groupby(loose, key=lambda unit: unit.captions):
        run = list(alike)
        names = deque(counted_paragraphs([block for unit in run for block in unit.texts], run[0].number))
        waiting: list[Block] = []
        n_words = 0
        for unit in (*run, None):
            words = len(_joined(unit.parts).split()) if unit else 0
            if waiting and (unit is None or n_words + words > max_tokens):
                yield from _pieces_of(waiting, run[0], _section(run[0]), max_tokens, names)
                waiting, n_words = [], 0
            if unit:
                waiting += unit.texts
                n_words += words


def _joined(parts: Iterable[Block | Unit], items: list[Item] | None = None, number: str = "", at: int = 0) -> str:
    """The texts of these parts and all units below, a line each; adds the numbered ones to ``items``."""
    lines = []
    parts = list(parts)
    terms = terms_of([part for part in parts if isinstance(part, Block) and part.text and part.kind != "table"])
    for part in parts:
        if isinstance(part, Block):
            line = part.text
            if not line:
                continue
            if items is not None and part.kind == "table":
                items += cells_of(line, number, at, terms=lists_terms(line))
            elif items is not None and (found := terms.pop(0))[0]:
                items.append((at + found[1], at + len(line), f"{number.rstrip('.')}.{found[0]}".lstrip(".")))
        else:
            label = f"{part.label}\t" if part.label else ""
            line = label + _joined(part.parts, items, part.number, at + len(label))
            if items is not None and len(line) > len(label) and (label or part.style == TERM):
                named = part.is_heading and len(part.parts) > 1  # an item's title is no part of its text
                start = at + len(label) + (len(part.texts[0].text) + 1 if named and part.texts else 0)
                items.append((start, at + len(line), part.number))
        lines.append(line)
        at += len(line) + 1
    return "\n".join(lines)


def _listed(items: Iterable[Item]) -> str:
    return "\n".join(f"{start} {end} {clean_line(number)}" for start, end, number in sorted({*items}))


def _section(unit: Unit, lead: str = "", *, named: bool = False) -> str:
    """The headings above, outermost first, the unit's own if ``named``, and the sentence that it completes."""
    above = [*unit.above()][::-1]
    path: list[str] = []
    for depth in range(1, len(above) + 2):
        path += [text for held, text in unit.captions if held == depth]
        path += [above[depth - 1].heading] if depth <= len(above) else []
    named = named or any(part.title for part in unit.texts[:1])
    return SEPARATOR.join(filter(None, dict.fromkeys((*path, unit.heading if named else "", lead))))


def _place_of(parts: list[Block | Unit]) -> str:
    blocks = [part for part in parts if isinstance(part, Block)]
    for part in parts:
        if isinstance(part, Unit):
            blocks += [*part.texts, *(block for below in part.walk() for block in below.texts)]
    return places_of(blocks)
