"""The register of obligations: every sentence or list item that obliges, as a row that reads by itself. Pure.

Who, by when and under which condition are words of the row's own text, found by the build of the sentence: the subject
before its modal verb, periods and dates after a preposition, clauses that a conjunction opens. Where nothing is found
the field is empty; nothing is inferred.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ragqa.english.clauses import leading_clause, main_modal, opens_clause
from ragqa.english.phrases import (
    AUXILIARIES,
    BE,
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    WH,
    ParsedSentence,
    TaggedWord,
    is_participle,
)
from ragqa.english.quantities import RECURRENCE
from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.scoring.strength import strength_of
from ragqa.scoring.verdicts.listings import taken_apart
from ragqa.types import Passage, Span
from ragqa.types.scores import Strength

ID_DIGITS: Final = 12
ALIKE: Final = 0.5  # share of all words of two texts that both have, from which one is the other, changed
_PERIODS: Final = frozenset({"time", "business time", RECURRENCE})
_BEFORE_PERIOD: Final = 3  # words between the preposition of a period and its number: "not later than"
_EDGES: Final = " \t\n,;:."
_TO_CLAUSE_END: Final = re.compile(r"[,;:.](?=\s|$)|$")


@dataclass(frozen=True, slots=True)
class Parts:
    """Words of a text, each with its offsets there, or None where it has none."""

    party: Span | None = None
    deadline: Span | None = None
    condition: Span | None = None


@dataclass(frozen=True, slots=True)
class Obligation:
    """A row. ``obligation_id`` is a hash of document, rule number and text: the same in every index of one document.

    ``text`` has its lead-in; ``start`` and ``end`` are where the sentence or item stands in the passage's text.
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
    parts: Parts = Parts()


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row from one version to the next; "changed" has both, and "unchanged" may have another number."""

    what: Literal["unchanged", "changed", "new", "gone"]
    before: Obligation | None = None
    after: Obligation | None = None


def register(passages: Iterable[Passage], *, advice: bool = True) -> Iterator[Obligation]:
    """The rows of these passages in their order; without ``advice`` only what binds. Raises ModelError.

    A text that a passage repeats is one row.
    """
    for passage in passages:
        told = set()
        for span, text in _units(passage.text):
            strength = strength_of(text)
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
    """Every sentence of these passages that obliges somebody or recommends, as it stands there. Raises ModelError."""
    for passage in passages:
        for span in split_sentences(passage.text):
            if (strength := strength_of(span.text)).is_listed:
                yield passage, span, strength


def _units(text: str) -> Iterator[tuple[Span, str]]:
    """Sentences, and in place of one that lists things its items after the lead-in; texts on one line."""
    for sentence in split_sentences(text):
        listing = taken_apart(sentence.text)
        around = {item.above.mark for item in listing.items if item.above}
        items = [item for item in listing.items if item.mark not in around]
        for item in items:
            start = sentence.start + item.span.start
            yield Span(item.span.text, start, start + len(item.span.text)), " ".join(item.after(listing.lead).split())
        if not items:
            yield sentence, " ".join(sentence.text.split())


def _id_of(passage: Passage, text: str) -> str:
    key = "\n".join((passage.document_id, passage.number, text))
    return hashlib.sha256(key.encode()).hexdigest()[:ID_DIGITS]


# Who, when, under which condition -----------------------------------------------------------------------------------


def parts_of(text: str) -> Parts:
    """What the sentence says of who must act, by when and under which condition."""
    tokens = ParsedSentence(text).tokens
    leading, modal = leading_clause(text, tokens), main_modal(text, tokens)
    condition = _span(text, 0, leading) if leading else None
    if modal is None:
        return Parts(None, _deadline(text), condition)
    if not condition:
        condition = _trailing_clause(text, tokens[modal + 1 :])
    return Parts(_party(text, tokens, modal, leading), _deadline(text), condition)


def _trailing_clause(text: str, tokens: Sequence[TaggedWord]) -> Span | None:
    """The clause after the verb that a conjunction opens, to the next mark."""
    for token in tokens:
        if opens_clause(token):
            end = _TO_CLAUSE_END.search(text, token.end)
            return _span(text, token.start, end.start() if end else len(text))
    return None


def _party(text: str, tokens: Sequence[TaggedWord], modal: int, begin: int) -> Span | None:
    """The subject without its relative clause; of a passive the one by whom it is done, None where nobody is named."""
    after = [token for token in tokens[modal + 1 :] if token.lower not in {"not", "only", "also"}]
    is_passive = len(after) > 1 and after[0].lower in BE and (is_participle(after[1].lower) or after[1].tag == "verb")
    if tokens[modal].lower in BE or is_passive:
        by = next((n for n, token in enumerate(after) if token.lower == "by"), None)
        if by is None or by + 1 >= len(after) or after[by + 1].tag not in {"det", "word"}:
            return None
        ends = (token.start for token in after[by + 1 :] if token.tag not in {"det", "word"} and token.lower != "of")
        return _span(text, after[by + 1].start, next(ends, len(text)))
    before = [token for token in tokens[:modal] if token.start >= begin and token.text != ","]
    if before and all(token.lower in PRONOUNS for token in before):  # "it", of the clause before
        before = [token for token in tokens[1:modal] if token.start < begin]
        stop = next((n for n, token in enumerate(before) if token.tag not in {"det", "word"}), len(before))
    else:
        stop = next((n for n, token in enumerate(before) if token.lower in WH or token.lower == "that"), len(before))
    return _span(text, before[0].start, before[stop - 1].end) if before and stop else None


def _deadline(text: str) -> Span | None:
    """The first period or date after a preposition, to the end of its clause."""
    found = read(text)
    periods = [one.span for one in found.quantities if one.dimension in _PERIODS]
    often = {one.span for one in found.quantities if one.dimension == RECURRENCE}
    for span in sorted((*periods, *(date.span for date in found.dates)), key=lambda one: one.start):
        words = [(match[0].lower(), match.start()) for match in re.finditer(r"[^\W_]+", text[: span.start])]
        if span in often and words:
            return _span(text, words[-1][1] if words[-1][0] in DETERMINERS else span.start, span.end)
        near = words[-_BEFORE_PERIOD - 1 :]
        starts = [start for word, start in near if word in PREPOSITIONS and word not in {"of", "than"}]
        if starts:
            end = _TO_CLAUSE_END.search(text, span.end)
            stop = _before_verb(text, span.end, end.start() if end else len(text))
            return _span(text, starts[-1] if starts[-1] > near[0][1] else starts[0], stop)
    return None


def _before_verb(text: str, start: int, end: int) -> int:
    """Where what follows a period ends: before "and" or an auxiliary, which begin something else."""
    for match in re.finditer(r"[^\W_]+", text[start:end]):
        if match[0].lower() in AUXILIARIES or match[0].lower() == "and":
            return start + match.start()
    return end


def _span(text: str, start: int, end: int) -> Span | None:
    words = text[start:end]
    kept = words.strip(_EDGES)
    begin = start + words.index(kept) if kept else start
    return Span(kept, begin, begin + len(kept)) if kept else None


# Versions -----------------------------------------------------------------------------------------------------------


def compared(before: Sequence[Obligation], after: Sequence[Obligation]) -> tuple[RowChange, ...]:
    """What became of the rows: those of ``after`` in their order, then those that are gone.

    A row is unchanged where one of the same document says the same, under whatever number; changed where it has the
    same number, or none is nearer, and at least half of the words.
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
    """Share of the words of both that both have, in [0, 1]; more where the number is the same; 0 across documents."""
    if old.document_id != row.document_id:
        return 0.0
    mine, its = set(old.text.lower().split()), set(row.text.lower().split())
    return len(mine & its) / len(mine | its) + 0.1 * (old.number == row.number and bool(mine & its))
