"""The register of obligations: every sentence or list item that obliges, as a self-contained row. Pure.

Party, deadline and condition are words of the row's own text, found by the syntax of the sentence: the subject of the
first main clause that obliges; periods and dates after a preposition, or "before" something; clauses that a
conjunction opens. Where nothing is found the field is empty; nothing is inferred.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, Literal

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
from ragqa.english.sentences import reads_as_heading, split_sentences
from ragqa.english.words import words_of
from ragqa.scoring.strength import strength_of
from ragqa.scoring.verdicts.listings import Item, Listing, taken_apart
from ragqa.types import Passage, Span
from ragqa.types.scores import Strength

ID_DIGITS: Final = 12
ALIKE: Final = 0.5  # least similarity, see `_alike`, of two versions of a row
_PERIODS: Final = frozenset({"time", "business time", RECURRENCE})
_BEFORE_PERIOD: Final = 3  # most words between the preposition of a period and its number: "not later than"
_EDGES: Final = " \t\n,;:."
_OPENED_BY_MARK: Final = re.compile(r"\(?\w{1,4}\)\s")
_JOINED_BY_OR: Final = re.compile(r"\bor\b[\s,;]*\(?\w{1,5}\)\s+$")
_COMPARED: Final = re.compile(r"\bthe \w+er of\W*$")
_TO_CLAUSE_END: Final = re.compile(r"[,;:.](?=\s|$)|$")


@dataclass(frozen=True, slots=True)
class Parts:
    """Who must act, by when and under which condition: spans of a row's text, None where it has none."""

    party: Span | None = None
    deadline: Span | None = None
    condition: Span | None = None


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
    parts: Parts = Parts()


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
            strength = _strength(text)
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
    """Whether the items are alternatives: "the greater of", or joined by "or" and neither bans nor occasions."""
    if _COMPARED.search(lead):
        return True
    if not _JOINED_BY_OR.search(text, 0, items[-1].span.start):
        return False
    last, strength = ParsedSentence(lead).tokens[-1:], strength_of(f"{lead} {items[0].span.text}")
    is_occasion = any((token.tag == "prep" and token.lower != "to") or opens_clause(token) for token in last)
    return strength is Strength.MAY_ONLY or (strength is not Strength.MUST_NOT and not is_occasion)


def _id_of(passage: Passage, text: str) -> str:
    key = "\n".join((passage.document_id, passage.number, text))
    return hashlib.sha256(key.encode()).hexdigest()[:ID_DIGITS]


# Who, when, under which condition -----------------------------------------------------------------------------------


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
        deadline or _deadline(text, tokens, after, len(text)),
        condition or (None if modal is None else _trailing_clause(text, tokens[modal + 1 :])),
    )


def _strength(text: str) -> Strength:
    """The strength of a row's text; that of a list by its first item. A negated "must" is a ban.

    Where the sentence has several clauses, the first main clause that obliges decides.
    """
    listing = taken_apart(text)
    text = listing.items[0].after(listing.lead) if listing.items else text
    tokens = ParsedSentence(text).tokens
    begin, modal = _binding_clause(text, tokens, leading_clause(text, tokens))
    is_asked_before = any(is_modal(one) and one.lower not in BE for one in tokens if one.start < begin)
    strength = strength_of(_judged(text[begin:]) if is_asked_before else text)
    is_of_none = any(one.lower == "no" for one in tokens[: modal or 0] if one.start >= begin)
    if is_of_none and strength is Strength.MAY:  # "No credit may be taken"
        return Strength.MUST_NOT
    if modal is None or not strength.binds:
        return strength
    clause = strength_of(_judged(text[begin : _next_modal(text, tokens, modal)]))
    strength = clause if clause.binds else strength
    is_negated = is_of_none or any(one.lower == "not" for one in tokens[modal + 1 : modal + 2])
    return Strength.MUST_NOT if is_negated and strength is Strength.MUST else strength


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
        cut = next((one.end for one in reversed(since) if one.text in {",", ";"} or one.lower in {"and", "but"}), None)
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
    after = [token for token in tokens[modal + 1 :] if token.lower not in {"not", "only", "also"}]
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
        earlier = [token for token in tokens[1:modal] if token.start < begin]
        before = earlier or before
        stop = next((n for n, token in enumerate(earlier) if token.tag not in {"det", "word"}), len(before))
    else:
        stop = next((n for n, token in enumerate(before) if token.lower in WH or token.lower == "that"), len(before))
    return _span(text, before[0].start, before[stop - 1].end) if before and stop else None


def _is_told(after: Sequence[TaggedWord]) -> bool:
    """Whether the participle obliges its own subject: "is required to keep"."""
    return len(after) > 2 and after[1].lower == "to" and is_base(after[2].lower)


def _deadline(text: str, tokens: Sequence[TaggedWord], begin: int, end: int) -> Span | None:
    """The first time expression in this part of the text (how soon, how long, how often), to its clause's end."""
    for start, stop in sorted((*_periods(text, tokens), *_bounds(tokens))):
        if begin <= start < end:
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
