"""The register of obligations: every sentence or list item that obliges, as a self-contained row. Pure.

`register_parts` finds who must act, by when and under which condition in the text of a row.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ragqa.english.clauses import main_modal, opens_clause
from ragqa.english.phrases import (
    ParsedSentence,
)
from ragqa.english.sentences import Item, Listing, reads_as_heading, split_sentences, taken_apart
from ragqa.library.register_parts import NO_PARTS, Parts, parts_of, row_strength
from ragqa.scoring.strength import strength_of
from ragqa.types import Passage, Span
from ragqa.types.scores import Strength

ID_DIGITS: Final = 12
ALIKE: Final = 0.5  # least similarity, see `_alike`, of two versions of a row
_OPENED_BY_MARK: Final = re.compile(r"\(?\w{1,4}\)\s")
_JOINED_BY_OR: Final = re.compile(r"\bor\b[\s,;]*\(?\w{1,5}\)\s+$")
_COMPARED: Final = re.compile(r"\bthe \w+er of\W*$|\bone of the following\b")
_EXCEPTED: Final = re.compile(r"\b(?:except|unless|only (?:if|when|where))\b[^,;.]*$")


@dataclass(frozen=True, slots=True)
class Obligation:
    """A row. ``obligation_id`` is a hash of document, rule number and text, so it is the same in every index.

    ``text`` includes the lead-in of a list; ``start`` and ``end`` are the sentence's or item's offsets in the passage.
    """

    obligation_id: str
    text: str
    strength: Strength
    document_id: str
    title: str
    number: str
    passage_id: str
    start: int
    end: int
    parts: Parts = NO_PARTS


@dataclass(frozen=True, slots=True)
class RowChange:
    """How a row changed between two versions; "changed" has both rows, "unchanged" may have another number."""

    what: Literal["unchanged", "changed", "new", "gone"]
    before: Obligation | None = None
    after: Obligation | None = None


def register(passages: Iterable[Passage], *, advice: bool = True) -> Iterator[Obligation]:
    """The rows of these passages, in order; without ``advice`` only binding ones. Raises ModelError.

    A text that occurs twice in a passage is one row.
    """
    for passage in passages:
        told = set()
        for span, text in _units(passage.text):
            strength = row_strength(text)
            if (strength.binds or (advice and strength is Strength.SHOULD)) and text not in told:
                told.add(text)
                yield Obligation(
                    _id_of(passage, text),
                    text,
                    strength,
                    passage.document_id,
                    passage.title,
                    passage.number,
                    passage.passage_id,
                    span.start,
                    span.end,
                    parts_of(text),
                )


def obliging(passages: Iterable[Passage]) -> Iterator[tuple[Passage, Span, Strength]]:
    """Every sentence of these passages that obliges or recommends, with passage and strength. Raises ModelError."""
    for passage in passages:
        for span in split_sentences(passage.text):
            if (strength := strength_of(span.text)).is_listed:
                yield passage, span, strength


def _units(text: str) -> Iterator[tuple[Span, str]]:
    """Span and one-line text of each sentence; a sentence with a list gives its items, each after the lead-in."""
    for sentence in _sentences(text):
        for span, words in _items(sentence.text, taken_apart(sentence.text)):
            start = sentence.start + span.start
            yield Span(span.text, start, start + len(span.text)), " ".join(words.split())


def _sentences(text: str) -> Iterator[Span]:
    """Sentences without their headings; a list item that was split off as a sentence is joined to its list."""
    begun: Span | None = None
    for sentence in map(_without_headings, split_sentences(text)):
        start = begun.start if begun and _OPENED_BY_MARK.match(sentence.text) else sentence.start
        joined = Span(text[start : sentence.end], start, sentence.end)
        if begun and start == begun.start and len(taken_apart(joined.text).items) > len(taken_apart(begun.text).items):
            begun = joined
            continue
        if begun:
            yield begun
        begun = sentence
    if begun:
        yield begun


def _without_headings(sentence: Span) -> Span:
    """The sentence without leading lines that read as headings and have no modal verb."""
    head, _, rest = sentence.text.partition("\n")
    words = rest.lstrip()
    is_heading = (
        words[:1].isupper() and reads_as_heading(head) and main_modal(head, ParsedSentence(head).tokens) is None
    )
    return _without_headings(Span(words, sentence.end - len(words), sentence.end)) if is_heading else sentence


def _items(text: str, listing: Listing, above: Item | None = None) -> Iterator[tuple[Span, str]]:
    """The items of a sentence or item, each after its lead-in; the whole where it has none or offers a choice."""
    items = [item for item in listing.items if (item.above if item.above in listing.items else None) == above]
    lead = above.after(listing.lead) if above else listing.lead.text
    if items and not _is_choice(text, lead, items):
        for item in items:
            yield from _items(text, listing, item)
    elif above:
        end = max(item.span.end for item in listing.items if item.mark.startswith(above.mark))
        whole = Span(text[above.span.start : end], above.span.start, end)
        yield whole, replace(above, span=whole).after(listing.lead)
    else:
        yield Span(text, 0, len(text)), text


def _is_choice(text: str, lead: str, items: Sequence[Item]) -> bool:
    """Whether the items say nothing by themselves: exceptions, "the greater of", alternatives joined by "or".

    Bans and occasions joined by "or" are rows: each is forbidden, or obliges.
    """
    if _COMPARED.search(lead) or _EXCEPTED.search(lead):
        return True
    if not _JOINED_BY_OR.search(text, 0, items[-1].span.start):
        return False
    last, strength = ParsedSentence(lead).tokens[-1:], strength_of(f"{lead} {items[0].span.text}")
    is_occasion = any((token.tag == "prep" and token.lower != "to") or opens_clause(token) for token in last)
    return strength is Strength.MAY_ONLY or (strength is not Strength.MUST_NOT and not is_occasion)


def _id_of(passage: Passage, text: str) -> str:
    key = "\n".join((passage.document_id, passage.number, text))
    return hashlib.sha256(key.encode()).hexdigest()[:ID_DIGITS]


# Versions -----------------------------------------------------------------------------------------------------------


def compared(before: Sequence[Obligation], after: Sequence[Obligation]) -> tuple[RowChange, ...]:
    """How the rows changed: first those of ``after`` in order, then the rows that are gone.

    A row is unchanged where the document had the same text before, under any number. It is changed where the most
    similar row among the others of the document has a similarity (`_alike`) of at least `ALIKE`.
    """
    left = dict(enumerate(before))
    matched: dict[int, tuple[Obligation, bool]] = {}
    for has_number in (True, False):
        places: dict[tuple[str, ...], list[int]] = {}
        for k in reversed(left):
            places.setdefault(_key(left[k], has_number=has_number), []).append(k)
        for n, row in enumerate(after):
            same = places.get(_key(row, has_number=has_number)) if n not in matched else None
            if same:
                matched[n] = left.pop(same.pop()), True
    for n, row in enumerate(after):
        near = [] if n in matched else [(_alike(old, row), -k) for k, old in left.items()]
        best, place = max(near, default=(0.0, 0))
        if best >= ALIKE:
            matched[n] = left.pop(-place), False
    changes = [
        RowChange("unchanged" if matched[n][1] else "changed", matched[n][0], row)
        if n in matched
        else RowChange("new", None, row)
        for n, row in enumerate(after)
    ]
    return (*changes, *(RowChange("gone", row) for row in left.values()))


def _key(row: Obligation, *, has_number: bool) -> tuple[str, ...]:
    return (row.document_id, row.text, row.number) if has_number else (row.document_id, row.text)


def _alike(old: Obligation, row: Obligation) -> float:
    """The shared fraction of both rows' words, in [0, 1], plus 0.1 for the same number; 0 across documents."""
    if old.document_id != row.document_id:
        return 0.0
    mine, its = set(old.text.lower().split()), set(row.text.lower().split())
    return len(mine & its) / len(mine | its) + 0.1 * (old.number == row.number and bool(mine & its))
