"""Units -> passages: the smallest numbered unit that reads by itself, with its lead-in.

Items below a sentence that they complete ("must: (a) …") stay with it. A unit that is too long all the same is parted
at its items, each with the lead-in before it. Text without numbers is chunked as plain text is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ragqa.corpus.chunking import chunk, plain_outline
from ragqa.corpus.documents.labels import GUIDANCE, RANKS
from ragqa.corpus.documents.model import Block
from ragqa.corpus.documents.structure import DOTTED, Unit
from ragqa.corpus.files import passage_id_of
from ragqa.english.sentences import reads_as_heading
from ragqa.types import Passage

SEPARATOR: Final = " › "
_ANNOUNCES: Final = re.compile(r"\bfollowing\b[^.]*\.$")  # "… if any of the following applies."
WHOLE: Final = 4  # times the words of a chunk: a numbered unit that reads by itself may be so long


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage without its document."""

    number: str
    section: str
    text: str
    place: str


def passages_of(root: Unit, document_id: str, title: str, max_tokens: int) -> tuple[Passage, ...]:
    """The passages of a document in order; where a number repeats, the second one's id ends in ``#2``."""
    pieces = [piece for piece in _cut(root, max_tokens) if piece.text]
    names = [piece.number or "text" for piece in pieces]
    counts: Counter[str] = Counter()
    found = []
    taken = set(names)
    for piece, name in zip(pieces, names, strict=True):
        counts[name] += 1
        unique = name
        while counts[name] > 1 and (unique := f"{name}#{counts[name]}") in taken:
            counts[name] += 1
        taken.add(unique)
        found.append(
            Passage(
                passage_id_of(document_id, unique),
                document_id,
                piece.text,
                title=title,
                section=piece.section,
                number=piece.number,
                place=piece.place,
            )
        )
    return tuple(found)


def _cut(unit: Unit, max_tokens: int) -> Iterator[Piece]:
    if unit.parent is not None and _stays_whole(unit):
        beside = [below for below in unit.units if _reads_alone(below)]
        own_parts = [one for one in unit.parts if one not in beside]
        yield from _fitted(replace(unit, parts=own_parts), max_tokens)
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


def _own_piece(unit: Unit, own: list[Block], max_tokens: int) -> Iterator[Piece]:
    text = "\n".join(block.text for block in own if block.text)
    if text:
        yield from _pieces_of(text, unit.number, _section(unit), _places(own), max_tokens * WHOLE)
    own.clear()


def _stays_whole(unit: Unit) -> bool:
    """Whether the units below this one only complete what it says."""
    below = [part for part in unit.units if not _reads_alone(part)]
    if not below:
        return bool(unit.texts)
    if unit.style in RANKS:
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
    """Whether a unit is no piece of a sentence: a rule, or a heading with units of its own."""
    return unit.style == DOTTED or (unit.is_heading and any(below.style for below in unit.units))


def _are_sentences(units: list[Unit]) -> bool:
    """Whether each of these begins as a sentence of its own does."""
    said = _beginnings(units)
    return bool(said) and all(text[:1].isupper() and len(text.split()) > 3 for text in said)


def _are_clauses(units: list[Unit]) -> bool:
    """Whether each of these goes on with a sentence in lower case."""
    said = _beginnings(units)
    return bool(said) and all(text[:1].islower() for text in said)


def _beginnings(units: list[Unit]) -> list[str]:
    return [unit.texts[0].text for unit in units if unit.texts and unit.texts[0].text]


def _reads_alone(unit: Unit) -> bool:
    """Guidance below a rule, and parts and chapters: never a piece of the sentence above them."""
    return unit.style in RANKS or unit.style == GUIDANCE


def is_lead_in(text: str) -> bool:
    """Whether a sentence is left open for the items below it."""
    if text.endswith((":", "—", "–", ",", ";", "-")):
        return True
    return not text.endswith((".", "?", "!", ".”", '."', ")")) and not reads_as_heading(text)


def _fitted(unit: Unit, max_tokens: int) -> Iterator[Piece]:
    text, section = _text(unit), _section(unit)
    below = [part for part in unit.units if part.style]
    if len(text.split()) <= max_tokens * WHOLE or not below:
        yield from _pieces_of(text, unit.number, section, _place(unit), max_tokens * WHOLE)
        return
    first = unit.parts.index(below[0])
    lead = "\n".join(part.text for part in unit.parts[:first] if isinstance(part, Block) and part.text)
    for part in unit.parts[first:]:
        if isinstance(part, Unit):
            whole = f"{lead}\n{part.label}\t{_text(part)}" if part.label else _text(part)
            yield from _pieces_of(whole, part.number, section, _place(part), max_tokens * WHOLE)
        elif part.text:
            yield Piece(unit.number, section, part.text, part.place)


def _pieces_of(text: str, number: str, section: str, place: str, limit: int) -> Iterator[Piece]:
    if len(text.split()) <= limit:
        yield Piece(number, section, text, place)
        return
    for outlined in plain_outline(text).sections:
        for span in chunk(text, outlined.blocks, limit):
            yield Piece(number, section, span.text, place)


def _chunked(loose: list[Unit], max_tokens: int) -> Iterator[Piece]:
    """Paragraphs without numbers, as many together as fit."""
    waiting: list[Unit] = []
    n_words = 0
    for unit in (*loose, None):
        words = len(_text(unit).split()) if unit else 0
        if waiting and (unit is None or n_words + words > max_tokens or unit.captions != waiting[0].captions):
            text = "\n\n".join(map(_text, waiting))
            place = _places([block for held in waiting for block in held.texts])
            yield from _pieces_of(text, waiting[0].number, _section(waiting[0]), place, max_tokens)
            waiting, n_words = [], 0
        if unit:
            waiting.append(unit)
            n_words += words


def _text(unit: Unit) -> str:
    """A unit's words with those of all units below, a line each."""
    lines = []
    for part in unit.parts:
        if isinstance(part, Block):
            lines += [part.text] if part.text else []
        else:
            text = _text(part)
            lines.append(f"{part.label}\t{text}" if part.label else text)
    return "\n".join(lines)


def _section(unit: Unit) -> str:
    """The headings above, outermost first."""
    named = [above.heading for above in unit.above() if above.heading][::-1]
    captions = [text for text in unit.captions if text not in named]
    return SEPARATOR.join((*named, *captions))


def _place(unit: Unit) -> str:
    return _places([*unit.texts, *(block for below in unit.walk() for block in below.texts)])


def _places(blocks: list[Block]) -> str:
    """Where these blocks stand: the first place, and of a PDF one box a page."""
    places = [piece for block in blocks for piece in block.place.split(";") if piece]
    if not places or not places[0].startswith("page="):
        return places[0] if places else ""
    boxes: dict[str, list[list[float]]] = {}
    for piece in places:
        page, _, box = piece.partition("&box=")
        boxes.setdefault(page, []).append([float(edge) for edge in box.split(",")])
    merged = []
    for page, found in boxes.items():
        edges = [*(min(box[n] for box in found) for n in (0, 1)), *(max(box[n] for box in found) for n in (2, 3))]
        merged.append(f"{page}&box={','.join(f'{edge:.0f}' for edge in edges)}")
    return ";".join(merged)
