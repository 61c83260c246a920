"""Who must act, by when and under which condition, as a row of a register says; and how strongly it binds. Pure.

These are words of the row's own text, found by the syntax of the sentence: the subject of the first main clause that
obliges; periods and dates after a preposition, or "before" something; clauses that a conjunction opens. Where nothing
is found the field is empty; nothing is inferred.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from ragqa.english.clauses import is_modal, leading_clause, main_modal, opens_clause
from ragqa.english.phrases import (
    BE,
    PRONOUNS,
    WH,
    ParsedSentence,
    TaggedWord,
    is_base,
    is_participle,
)
from ragqa.english.quantities import RECURRENCE, unit_at
from ragqa.english.reading import read
from ragqa.english.sentences import taken_apart
from ragqa.english.words import words_of
from ragqa.scoring.strength import strength_of, strengths_of
from ragqa.types import Span
from ragqa.types.scores import Strength

_PERIODS: Final = frozenset({"time", "business time", RECURRENCE})
_BEFORE_PERIOD: Final = 3  # most words between the preposition of a period and its number: "not later than"
_EDGES: Final = " \t\n,;:."
_TO_CLAUSE_END: Final = re.compile(r"[,;:.](?=\s|$)|$")


@dataclass(frozen=True, slots=True)
class Parts:
    """Who must act, by when and under which condition: spans of a row's text, None where it has none."""

    party: Span | None = None
    deadline: Span | None = None
    condition: Span | None = None


NO_PARTS: Final = Parts()


def parts_of(text: str) -> Parts:
    """Who must act, by when and under which condition, as the sentence says. Raises ModelError."""
    tokens = ParsedSentence(text).tokens
    leading = leading_clause(text, tokens)
    begin, modal = _binding_clause(text, tokens, leading)
    first = tokens[0] if leading else None
    is_time = first is not None and not opens_clause(first)
    deadline = _deadline(text, tokens, 0, leading if is_time else 1)
    after = 0 if modal is None else tokens[modal].end
    condition = _span(text, 0, leading) if leading and not deadline else None
    return Parts(
        None if modal is None else _party(text, tokens, modal, max(begin, deadline.end if deadline else 0)),
        deadline or _deadline(text, tokens, after, _lead_end(text)),
        condition or (None if modal is None else _trailing_clause(text, tokens[modal + 1 :])),
    )


def _lead_end(text: str) -> int:
    """Where the part that holds for the whole row ends: a list of exceptions or alternatives has times of its own."""
    listing = taken_apart(text)
    return listing.lead.end if listing.items else len(text)


def row_strength(text: str) -> Strength:
    """The strength of a row's text; that of a list by its first item. Raises ModelError."""
    return row_strengths([text])[0]


def row_strengths(texts: Sequence[str]) -> list[Strength]:
    """The `row_strength` of each text; faster together."""
    listings = [(text, taken_apart(text)) for text in texts]
    read = [one.items[0].after(one.lead) if one.items else text for text, one in listings]
    return [
        Strength.MUST_NOT if strength is Strength.MUST and _is_denied(text) else strength
        for text, strength in zip(read, strengths_of(read), strict=True)
    ]


def _is_denied(text: str) -> bool:
    """Whether the verb that obliges is denied: "no account must be taken", "must not"."""
    tokens = ParsedSentence(text).tokens
    begin, modal = _binding_clause(text, tokens, leading_clause(text, tokens))
    if modal is None:
        return False
    subject = [one.lower for one in tokens[:modal] if one.start >= begin]
    return "no" in subject or any(one.lower == "not" for one in tokens[modal + 1 : modal + 2])


def _judged(clause: str) -> str:
    """A clause as a separate sentence, with a capital."""
    words = clause.lstrip(_EDGES)
    return words[:1].upper() + words[1:]


def _binding_clause(text: str, tokens: Sequence[TaggedWord], leading: int) -> tuple[int, int | None]:
    """The offset of the first main clause that obliges, and its modal's token; of the first clause where none does."""
    modal = main_modal(text, tokens)
    if modal is None:
        return leading, None
    found = [(leading, modal)]
    for n, token in enumerate(tokens[modal + 1 :], modal + 1):
        since = tokens[found[-1][1] : n - 1]  # a comma right before the verb is left out: it closes an insertion
        ends = [k for k, one in enumerate(since) if one.text in {",", ";"} or one.lower in {"and", "but"}]
        is_inside = ends and since[ends[-1]].text == "," and any(map(opens_clause, since[: ends[-1]]))
        cut = since[ends[-1]].end if ends and not is_inside else None  # a comma within "if …" begins no main clause
        has_subject = any(one.tag in {"word", "pron"} for one in tokens[found[-1][1] : n] if one.start >= (cut or 0))
        if is_modal(token) and token.lower not in BE and tokens[n - 1].text == ",":
            found.append((found[-1][0], n))
        elif is_modal(token) and token.lower not in BE and cut and has_subject:
            found.append((cut, n))
    if len(found) == 1:
        return found[0]
    clauses = ((one, text[one[0] : _next_modal(text, tokens, one[1])]) for one in found)
    return next((one for one, clause in clauses if strength_of(_judged(clause)).is_listed), found[0])


def _next_modal(text: str, tokens: Sequence[TaggedWord], modal: int) -> int:
    """The offset of the next modal verb other than "be"; the end of the text where there is none."""
    following = (one.start for one in tokens[modal + 1 :] if is_modal(one) and one.lower not in BE)
    return next(following, len(text))


def _trailing_clause(text: str, tokens: Sequence[TaggedWord]) -> Span | None:
    """The clause after the verb that a conjunction opens, up to the next punctuation mark."""
    for token in tokens:
        if opens_clause(token):
            end = _TO_CLAUSE_END.search(text, token.end)
            return _span(text, token.start, end.start() if end else len(text))
    return None


def _party(text: str, tokens: Sequence[TaggedWord], modal: int, begin: int) -> Span | None:
    """The subject without its relative clause; the agent ("by …") of a passive, None where no agent is named."""
    after = [one for one in tokens[modal + 1 :] if one.lower not in {"not", "only", "also"} and not _is_adverb(one)]
    if tokens[modal].lower not in BE:
        after = after[1:] if after and after[0].lower in BE else []
    if after and (after[0].tag == "verb" or is_participle(after[0].lower)) and not _is_told(after):
        by = next((n for n, token in enumerate(after) if token.lower == "by" or token.tag == "mark"), len(after))
        agent = after[by + 1 :]
        is_done_by = agent[:1] and after[by].lower == "by" and (by == 1 or not is_participle(after[by - 1].lower))
        if not is_done_by or agent[0].tag not in {"det", "word"}:
            return None
        ends = (token.start for token in agent if token.tag not in {"det", "word"} and token.lower != "of")
        return _span(text, agent[0].start, next(ends, len(text)))
    before = [token for token in tokens[:modal] if token.start >= begin and token.text != ","]
    if before and all(token.lower in PRONOUNS for token in before):  # "it" stands for the subject of the clause before
        opener = next((n for n, token in enumerate(tokens[:modal]) if opens_clause(token)), 0)
        earlier = [token for token in tokens[opener + 1 : modal] if token.start < begin]
        before = earlier or before
        stop = next((n for n, token in enumerate(earlier) if token.tag not in {"det", "word"}), len(before))
    else:
        stop = next((n for n, token in enumerate(before) if token.lower in WH or token.lower == "that"), len(before))
    return _span(text, before[0].start, before[stop - 1].end) if before and stop else None


def _is_adverb(token: TaggedWord) -> bool:
    return token.tag == "word" and token.lower.endswith("ly")


def _is_told(after: Sequence[TaggedWord]) -> bool:
    """Whether the participle obliges its own subject: "is required to keep"."""
    return len(after) > 2 and after[1].lower == "to" and is_base(after[2].lower)


def _deadline(text: str, tokens: Sequence[TaggedWord], begin: int, end: int) -> Span | None:
    """The first time expression in this part of the text (how soon, how long, how often), to its clause's end."""
    recurring = {one.span.end for one in read(text).quantities if one.dimension == RECURRENCE}
    for start, stop in sorted((*_periods(text, tokens), *_bounds(tokens))):
        if begin <= start < end:
            if stop in recurring:  # how often is complete by itself
                return _span(text, start, stop)
            mark = _TO_CLAUSE_END.search(text, stop)
            ends = (one.start for one in tokens if one.start >= stop and _begins_another(one))
            return _span(text, start, min(next(ends, len(text)), mark.start() if mark else len(text), max(end, stop)))
    return None


def _periods(text: str, tokens: Sequence[TaggedWord]) -> Iterator[tuple[int, int]]:
    """(start, earliest end) of recurrences, and of periods and dates with their prepositions."""
    found = read(text)
    spans = {one.span: one.dimension for one in found.quantities if one.dimension in _PERIODS}
    for span in (*spans, *(date.span for date in found.dates)):
        words = [token for token in tokens if token.start < span.start]
        if spans.get(span) == RECURRENCE:
            yield words[-1].start if words and words[-1].tag == "det" else span.start, span.end
            continue
        near = words[-_BEFORE_PERIOD - 1 :]
        starts = [
            token.start
            for n, token in enumerate(near)
            if token.tag == "prep" and token.lower not in {"of", "than"} and (not n or near[n - 1].tag != "det")
        ]
        if starts:
            yield starts[-1] if starts[-1] > near[0].start else starts[0], span.end


def _bounds(tokens: Sequence[TaggedWord]) -> Iterator[tuple[int, int]]:
    """(start, earliest end) of times without a number: "before", "later than", "by the end of a day", "monthly"."""
    for n, token in enumerate(tokens):
        earlier, following = tokens[max(0, n - 1)], tokens[min(n + 1, len(tokens) - 1)]
        if token.lower == "before" or (token.lower, following.lower) == ("prior", "to"):
            yield token.start, following.end
        elif (token.lower == "after" and earlier.lower.endswith("ly")) or (token.lower, following.lower) == (
            "later",
            "than",
        ):
            yield earlier.start, following.end
        elif token.lower in {"by", "within"}:
            phrase = list(takewhile(lambda one: one.tag in {"det", "word"} or one.lower == "of", tokens[n + 1 :]))
            if any(_is_unit(one.text) for one in phrase):
                yield token.start, phrase[-1].end
        elif token.lower.endswith("ly") and following.tag != "word" and _is_unit(token.lower.removesuffix("ly")):
            yield token.start, token.end


def _is_unit(word: str) -> bool:
    unit = unit_at(words_of(word), 0)
    return unit is not None and unit[0] in _PERIODS


def _begins_another(token: TaggedWord) -> bool:
    """Whether something other than a time begins at this token."""
    return token.tag == "aux" or token.lower == "and" or opens_clause(token)


def _span(text: str, start: int, end: int) -> Span | None:
    words = text[start:end]
    kept = words.strip(_EDGES)
    begin = start + words.index(kept) if kept else start
    return Span(kept, begin, begin + len(kept)) if kept else None
