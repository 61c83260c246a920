"""What a question asks for: its parts, each with the words that it is about. Pure, English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ragqa.english.phrases import ParsedSentence
from ragqa.english.reading import read
from ragqa.english.words import stem, words_of

_AUXILIARY: Final = r"(?:is|are|was|were|do|does|did|can|could|may|might|must|should|will|would|has|have|had)"
_PREPOSITION: Final = r"(?:(?:at|in|for|by|on|to|from|with)\s+)?"
_PARTS: Final = re.compile(
    rf",?\s+and\s+(?={_PREPOSITION}(?:what|when|how|who|whom|whose|where|which|why)\b)"
    rf"|,\s+(?={_PREPOSITION}(?:what|how|why)\b)|,\s+(?:and\s+)?(?=must\b)|(?<=\?)\s+(?=\w)",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(  # what stands before a part is one itself, and no condition
    rf"\A{_PREPOSITION}(?:(?:when|where)\s+)?{_AUXILIARY}\b|\b(?:what|how|who|whom|whose|which|why)\b", re.IGNORECASE
)
_EMPTY: Final = frozenset(  # words that questions are put with; they say nothing of what is asked
    stem(word)
    for word in (
        "how many much long thick tall high deep far old often large big heavy fast wide year date day name "
        "mean count why please exactly roughly get got go make made take took thing happen list tell say ask "
        "need want know let come came put turn like way don doesn isn aren wasn mustn wasn't isn't mustn't "
        "won't don't doesn't yearly my anybody anything somebody something else nonetheless now suppose odd "
        "what's who's that's there's s t"
    ).split()
)
_POINTS: Final = frozenset("it its they their them this these that those such he his him she her one".split())
FEW: Final = 2  # words of its own: a part with fewer is not understood without the others


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a question that wants an answer of its own.

    ``content`` are the stems of what it is about, ``borrowed`` those of the parts before, which it may speak of by a
    pronoun; ``asked`` is the part as it is understood by itself: after what the others speak of, where it needs that.
    """

    text: str
    asked: str
    content: frozenset[str]
    borrowed: frozenset[str] = frozenset()


def parts_of(question: str, context: str = "") -> tuple[Part, ...]:
    """The question's parts in order, at least one; ``context`` is the question before, that it is read with."""
    parts: list[Part] = []
    before, known = context.rstrip("?"), read(context).content - _EMPTY
    for text in _taken_apart(question):
        content = read(text).content - _EMPTY
        needs = bool(known) and (len(content) < FEW or any(word.lower in _POINTS for word in words_of(text)))
        asked = f"{before}: {text}" if needs and before else text
        borrowed = known - content if content and needs else frozenset()
        parts.append(Part(text, asked, content or known or frozenset(word.stem for word in words_of(text)), borrowed))
        known |= content
        phrases = [phrase.text for phrase in ParsedSentence(text).phrases if not phrase.in_question]
        before = ", ".join(filter(None, (before, *phrases)))
    return tuple(parts) or (Part(question, question, frozenset()),)


def _taken_apart(question: str) -> Iterator[str]:
    start = 0
    for match in _PARTS.finditer(question):
        before = question[start : match.start()].strip()
        if before and (_ASKS.search(before) or "and" in match[0]):
            yield before
            start = match.end()
    if rest := question[start:].strip():
        yield rest
