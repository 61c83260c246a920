"""What an answer left out of a source sentence that changes its meaning: a condition, an exception, "only".

"A firm may outsource" does not follow from "A firm may outsource only if the contract permits it". A marker opens a
condition; what follows it, to the end of its clause, must be told by the answer, or at least marked as conditional.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from ragqa.english.reading import Reading
from ragqa.english.words import STOP_WORDS, Word
from ragqa.types import Span

LONGEST_CLAUSE = 600  # characters: where no comma or full stop ends it, a condition ends here
TOLD = 0.4  # share of a condition's content words that the answer must have to have told it
NEAR = 0.5  # share of the words around a marker that the answer must have for the condition to concern it
BESIDE = 10  # words on one side of a condition that it is taken to limit

_MARKER = re.compile(
    r"\b(?:only(?: if| when| where| after| once| so far as| to the extent)?"
    r"|if|unless|except(?: that| where| when| for| in| by)?"
    r"|provided(?: that)?|subject to|other than|save(?: that| where| for| as)"
    r"|without(?! (?:undue |any )?delay)|until|as long as|so far as"
    r"|to the extent|in the absence of|where|when|whenever|once(?! in| a| every|\b.{0,12}\d)"
    r"|according to|is said to|are said to|claims? that"
    r"|believed to|alleged)\b",
    re.IGNORECASE,
)
_RESTRICTION = re.compile(
    r"\b(?:who|that|which|in Category|holding|with)\b"
)  # of a subject: before the first modal verb
_MODAL = re.compile(r"\b(?:must|may|shall|will|can|cannot|should)\b")
_TELLS = re.compile(  # an answer that speaks of a condition, in whatever words
    r"\b(?:only|if|unless|except|provided|subject to|other than|save|as long as|so far as|to the extent|where|when"
    r"|whenever|in the absence of|no|not|until|after|before|once)\b",
    re.IGNORECASE,
)
_DEADLINE = re.compile(
    r"\bby (?:the )?(?:end|close) of [^,;.]{3,60}"
    r"|\b(?:immediately|promptly|forthwith|at once|as soon as [^,;.]{3,40})\b"
    r"|\bwithout (?:undue |any )?delay\b|\bno later than [^,;.]{3,60}|\bbefore (?:the |it |they )[^,;.]{3,60}",
    re.IGNORECASE,
)
_OPENING = re.compile(r"(?:Below|Above|Under|Over|After|Before|During|Within|In the case of|For)\b[^,]{3,120},")
_UNIVERSAL = re.compile(r"(?:In |To |For )?(?:all|every|each|no)\b", re.IGNORECASE)
_SOME = re.compile(r"\b(?:some|many|most|several|certain|a few|often|usually)\b", re.IGNORECASE)
_STOP = re.compile(r"[;:]|, (?!and |or )|\.(?=\s|$)")
_ALL = re.compile(r"\b(?:all|every|each|always)\b", re.IGNORECASE)


_DENIED = re.compile(
    r"\b(?:not|no|never|neither|nor|nobody|none|cannot|said|says?|claim(?:s|ed)?|believed?|denied|denies|deny|whether)\b",
    re.IGNORECASE,
)


def has_limit(text: str) -> bool:
    """Whether words beside a quotation may limit it: a condition, an exception, "only", a negation, a report."""
    return bool(_MARKER.search(text) or _DENIED.search(text))


def dropped_scope(said: Reading, found: Reading) -> Span | None:
    """The condition, exception or "only" of the source sentence that the answer leaves out; None where none."""
    starts = [word.start for word in found.words]
    for start, end, is_only in _conditions(found.text):
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        content = _content(found.words[first:last])
        beside = _content(found.words[max(0, first - BESIDE) : first]) or _content(found.words[last : last + BESIDE])
        if not beside or _share(beside, said) < NEAR or not (content or is_only):
            continue
        told = _share(content, said) if content else 1.0
        if told >= TOLD and not (is_only and not _restricts(said)):
            continue
        if told > 0 and _TELLS.search(said.text):
            continue
        return Span(found.text[start:end], start, end)
    return None


def missing_deadline(said: Reading, found: Reading) -> Span | None:
    """A deadline without a number, such as "by the end of the next Business Day", that the answer lacks."""
    deadline = _DEADLINE.search(found.text)
    if deadline is None or _DEADLINE.search(said.text):
        return None
    return Span(deadline.group(), deadline.start(), deadline.end())


def widened(said: Reading, found: Reading) -> Span | None:
    """Where the answer says of all, at its beginning, what the source says of some or many; None else."""
    some, universal = _SOME.search(found.text), _UNIVERSAL.match(said.text) or _ALL.search(said.text)
    if not some or not universal or _SOME.search(said.text) or _ALL.search(found.text):
        return None
    return Span(some.group(), some.start(), some.end())


def _conditions(text: str) -> list[tuple[int, int, bool]]:
    """(start, end, whether "only" opens it) of each condition, from its marker to the end of its clause."""
    found = []
    opening = _OPENING.match(text)
    if opening:
        found.append((0, opening.end() - 1, False))
    modal = _MODAL.search(text)
    before_modal = modal.start() if modal else 0
    restriction = _RESTRICTION.search(text, 0, before_modal)
    if restriction:
        found.append((restriction.start(), _end_of_clause(text, restriction.end(), before_modal), False))
    for marker in _MARKER.finditer(text):
        limit = before_modal if marker.end() < before_modal else len(text)
        is_only = marker.group().casefold().startswith("only")
        found.append((marker.start(), _end_of_clause(text, marker.end(), limit), is_only))
    return found


def _end_of_clause(text: str, start: int, limit: int) -> int:
    limit = min(limit, start + LONGEST_CLAUSE)
    stop = _STOP.search(text, start, limit)
    return stop.start() if stop else limit


def _content(words: Sequence[Word]) -> list[str]:
    return [word.stem for word in words if word.lower not in STOP_WORDS]


def _share(stems: Sequence[str], said: Reading) -> float:
    return sum(stem in said.stems for stem in stems) / len(stems)


def _restricts(said: Reading) -> bool:
    """Whether the answer limits what it says in some way: "only", "not … unless", "no … except"."""
    return bool(_MARKER.search(said.text)) or any(word.lower in {"just", "solely", "alone"} for word in said.words)
