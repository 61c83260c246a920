"""The register of obligations: every sentence or list item that obliges, as a self-contained row. Pure.

`register_parts` finds who must act, by when and under which condition in the text of a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from ragqa.english.sentences import split_sentences
from ragqa.library.register_parts import NO_PARTS, Parts, parts_of, row_strength, row_strengths
from ragqa.library.register_units import RuleUnit, recitals, units
from ragqa.scoring.strength import strengths_of
from ragqa.types import Passage, Span
from ragqa.types.scores import Strength

ID_DIGITS: Final = 12
READ_TOGETHER: Final = 128  # units
ALIKE: Final = 0.5  # least similarity, see `_alike`, of two versions of a row


@dataclass(frozen=True, slots=True)
class Obligation:
    """A row. ``obligation_id`` is a hash of document, rule number and text, so it is the same in every index.

    ``text`` includes the lead-in of a list; ``start`` and ``end`` are the sentence's or item's offsets in the passage.
    A recital (``is_recital``) gives reasons: people may handle it, but it is no duty.
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
    is_recital: bool = False


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
    passages = tuple(passages)
    preamble, told = recitals(passages), set()
    for unit, strength in _read(units(passages)):
        passage = unit.passage
        strength = row_strength(unit.lead) if unit.lead and not strength.is_listed else strength
        key = passage.passage_id, unit.text
        if (strength.binds or (advice and strength is Strength.SHOULD)) and key not in told:
            told.add(key)
            yield Obligation(
                _id_of(passage, unit.text),
                unit.text,
                strength,
                passage.document_id,
                passage.title,
                passage.number,
                passage.passage_id,
                unit.span.start,
                unit.span.end,
                parts_of(unit.text),
                passage.passage_id in preamble,
            )


def _read(found: Iterator[RuleUnit]) -> Iterator[tuple[RuleUnit, Strength]]:
    """The units with the strengths of their texts, which are read many at a time."""
    while some := list(islice(found, READ_TOGETHER)):
        yield from zip(some, row_strengths([one.text for one in some]), strict=True)


def obliging(passages: Iterable[Passage]) -> Iterator[tuple[Passage, Span, Strength]]:
    """Every sentence of these passages that obliges or recommends, with passage and strength. Raises ModelError."""
    sentences = ((passage, span) for passage in passages for span in split_sentences(passage.text))
    while some := list(islice(sentences, READ_TOGETHER)):
        for (passage, span), strength in zip(some, strengths_of([span.text for _, span in some]), strict=True):
            if strength.is_listed:
                yield passage, span, strength


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
