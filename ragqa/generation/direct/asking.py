"""Analyses a question: its parts, the kind of answer to each, and whether a sentence has that kind. Pure, English."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from typing import Final

from ragqa.corpus.numbered import without_names
from ragqa.english.reading import Reading, read
from ragqa.english.words import STOP_WORDS, stem, words_of
from ragqa.generation.fanout.decomposition import sides_of


class Asked(StrEnum):
    """The kind of answer that a question asks for."""

    DATE = "a date"
    QUANTITY = "a number"
    PERSON = "who"
    PLACE = "a place"
    DEFINITION = "what it is"
    LIST = "a list"
    REASON = "a reason"
    YES_NO = "yes or no"
    OTHER = "something else"


UNNAMED: Final = "this act"  # what the selector reads for a name that neither title nor texts have
MOST_OF_A_VAGUE_ONE: Final = 6  # words of a vague question
_AUXILIARY: Final = r"(?:is|are|was|were|do|does|did|can|could|may|might|must|should|will|would|has|have|had)"
_OPENS: Final = (
    r"(?:\A|[,.:;?!] |\band |\b(?:to|by|for|of|with|from|at|in|on) )"  # before an interrogative, not a relative pronoun
)
_FORMS: Final = (  # the match that begins first decides; at a tie the first one here
    (Asked.DATE, rf"\bwhen {_AUXILIARY}\b|\b(?:what|which) (?:year|date|day|month)\b|\bby when\b|\blast day\b"),
    (
        Asked.QUANTITY,
        r"\bhow (?:many|much|long|thick|tall|high|deep|far|old|often|large|big|heavy|fast|wide|hot|cold|dense|few)\b"
        r"|\b(?:what|which) (?:[a-z]+ )?(?:temperature|age|height|length|depth|speed|distance|weight|population)\b"
        r"|\bwhat (?:part|share|percentage|proportion|amount|number|fee|salary|price|sum|limit)\b|\bcosts?\b"
        r"|\bwhat(?:'s| is| are) the (?:\w+ )?"
        r"(?:minimum|maximum|lowest|highest|most|least|fine|limit|fee|(?:boil|melt)ing point)\b",
    ),
    (Asked.DEFINITION, r"\bwhat does .* mean\b|\bwho counts as\b|\A[^,]{3,40}, what(?:'s| is) (?:that|it)\b"),
    (Asked.DEFINITION, r"\Awhat(?:'s| is| are) (?:an? |the )?(?:[\w-]+ ?){1,3}\W*\Z"),
    (Asked.PERSON, rf"{_OPENS}who(?:m|se)?\b|\bwhich (?:person|people|team)\b"),
    (Asked.PLACE, rf"\bwhere {_AUXILIARY}\b|\b(?:what|which) (?:city|country|street|place)\b"),
    (Asked.REASON, r"\bwhy\b|\bwhat (?:caused|made|set|illness)\b"),
    (
        Asked.LIST,
        r"\b(?:name|list) the\b|\bwhat are the\b|\ball the\b"
        r"|\b(?:which|what) (?:[\w-]+ ){0,2}(?!(?:does|happens|makes|means)\b)\w{3,}s\b",
    ),
    (Asked.YES_NO, rf"(?:\A|[.?!,] ){_AUXILIARY}\b"),
)
_PATTERNS: Final = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _FORMS)
_DIMENSIONS: Final = (  # dimensions of the quantity that these words ask for
    (r"how long", frozenset({"time", "business time", "length", "interval"})),
    (r"how (?:old|often)|\bage\b", frozenset({"time", "business time", "interval"})),
    (r"how (?:thick|tall|high|deep|far|wide)|height|length|depth|distance", frozenset({"length"})),
    (r"temperature|(?:boiling|melting) point|how (?:hot|cold)", frozenset({"temperature"})),
    (r"fee|cost|salary|price|award|\bpaid\b|\bfine\b", frozenset({"money"})),
    (r"what (?:part|share|percentage|proportion)", frozenset({"share"})),
    (r"how (?:many|few)", frozenset({"count", "time", "volume", "area"})),
)
_SUBJECT: Final = r"(?:I|we|you|he|she|it|they|there|the|an?|this|that|these|those|my|our|your|its|their)"
_PREPOSITION: Final = r"(?:(?:at|in|for|by|on|to|from|with)\s+)?"
_PARTS: Final = re.compile(
    rf",?\s+and\s+(?={_PREPOSITION}(?:what|when|how|who|whom|whose|where|which|why)\b)"
    rf"|,\s+(?={_PREPOSITION}(?:what|how|why)\b)|,\s+(?:and\s+)?(?=must\b)"
    rf"|,\s+and\s+(?P<verb>(?={_AUXILIARY}\s+{_SUBJECT}\b))",  # "and may they": a verb before its subject asks
    re.IGNORECASE,
)
_ASKS: Final = re.compile(  # text before a part is a part itself if this matches, else a condition
    rf"\A{_PREPOSITION}(?:(?:when|where)\s+)?{_AUXILIARY}\b|\b(?:what|how|who|whom|whose|which|why)\b", re.IGNORECASE
)
_EMPTY: Final = frozenset(  # words of questions that do not tell what is asked about
    stem(word)
    for word in (
        "how many much long thick tall high deep far old often large big heavy fast wide year date day name "
        "mean count why please exactly roughly get got go make made take took thing happen list tell say ask "
        "need want know let come came put turn like way don doesn isn aren wasn mustn wasn't isn't mustn't "
        "won't don't doesn't yearly my anybody anything somebody something else nonetheless now suppose odd "
        "what's who's that's there's s t"
    ).split()
)
_COUNTED: Final = re.compile(r"\bhow (?:many|few|much)\s+(?:of [\w']+\s+)?(?P<words>(?:[\w-]+\s*){1,3})", re.IGNORECASE)
_DEFINES: Final = re.compile(r"\bmeans\b|\b(?:is|are|was) (?:an?|the|any|one)\b")
_ROLES: Final = frozenset(map(stem, "firm person officer member commission manager client employee body owner".split()))
_AT: Final = re.compile(r"\b(?:in|at|on|near|of|from|to|through) (?:the )?[A-Z]")
_BECAUSE: Final = re.compile(
    r"\b(?:because|since|so that|owing to|due to|as a result|in order|caused?)\b", re.IGNORECASE
)
_DECIDES: Final = re.compile(r"\b(?:not|never|may|must|can|cannot|need)\b|\ANo\b")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a question that needs an answer of its own.

    ``content`` are the stems of its subject words; ``borrowed`` are those of earlier parts, which a pronoun may refer
    to. ``is_side`` is true of each of the things that a question compares: one sentence may answer for all of them.
    """

    text: str
    kind: Asked
    content: frozenset[str]
    borrowed: frozenset[str]
    dimensions: frozenset[str]
    counted: frozenset[str]  # stems of the words after "how many"
    is_side: bool = False

    @property
    def is_strict(self) -> bool:
        """Whether a sentence without the kind of answer that is asked for cannot be the answer."""
        return self.kind in {Asked.DATE, Asked.QUANTITY, Asked.PERSON, Asked.PLACE, Asked.REASON}

    @property
    def is_vague(self) -> bool:
        """Whether it says too little to be understood: "What about fees?", "Is it allowed?"."""
        is_open = self.kind in {Asked.YES_NO, Asked.OTHER, Asked.LIST}
        return len(self.content) <= is_open and len(self.text.split()) <= MOST_OF_A_VAGUE_ONE

    def without_names(self, names: Collection[str]) -> Part:
        """The part without these names of documents, with `UNNAMED` in their place."""
        named = frozenset[str]().union(*(read(name).stems for name in names))
        text = without_names(self.text, names, UNNAMED)
        return replace(self, text=text, content=self.content - named or self.content)

    def fit(self, sentence: Reading) -> float:
        """How well a sentence has the kind of answer that is asked for, in [0, 1]; .5 if the kind is unknown."""
        match self.kind:
            case Asked.DATE:
                return 1.0 if sentence.dates else 0.7 if _has(sentence, frozenset({"time", "business time"})) else 0.0
            case Asked.QUANTITY:
                return self._fit_of_quantity(sentence)
            case Asked.PERSON:
                new = any(self._is_new(name.stems) for name in sentence.names)
                return 1.0 if new else 0.5 if sentence.stems & _ROLES else 0.0
            case Asked.PLACE:
                new = any(self._is_new(name.stems) for name in sentence.names)
                return (0.5 + 0.5 * bool(_AT.search(sentence.text))) if new else 0.0
            case Asked.DEFINITION:
                return self._fit_of_definition(sentence)
            case Asked.LIST:
                return min(
                    1.0, 0.35 * (sentence.text.count(",") + sentence.text.count(" and ") + sentence.text.count(";"))
                )
            case Asked.REASON:
                return 1.0 if _BECAUSE.search(sentence.text) else 0.3
            case Asked.YES_NO:
                return 1.0 if _DECIDES.search(sentence.text) else 0.4
        return 0.5

    def _is_new(self, stems: tuple[str, ...]) -> bool:
        return not (self.content | self.borrowed).issuperset(stems)

    def _fit_of_quantity(self, sentence: Reading) -> float:
        if not sentence.quantities:
            return 0.0
        if any(self.counted & {stem(noun) for noun in one.nouns} for one in sentence.quantities):
            return 1.0
        if not self.dimensions:
            return 0.9
        if not _has(sentence, self.dimensions):
            return 0.2
        return 0.4 if self.counted else 1.0

    def _fit_of_definition(self, sentence: Reading) -> float:
        defines = _DEFINES.search(sentence.text)
        if not defines:
            return 0.0
        subject = read(sentence.text[: defines.start()]).content
        return 1.0 if subject and len(subject & self.content) >= 0.5 * len(subject) else 0.3


def _has(sentence: Reading, dimensions: frozenset[str]) -> bool:
    return any(one.dimension in dimensions for one in sentence.quantities)


def is_fragment(text: str) -> bool:
    """Whether the text names a matter and asks nothing: "shell bank criteria"."""
    return "?" not in text and not _ASKS.search(text)


def parts_of(question: str) -> tuple[Part, ...]:
    """The question's parts in order, at least one.

    Each further part has its own question word, or is about another of the things that the question compares.
    """
    found: list[Part] = []
    before: frozenset[str] = frozenset()
    for text in _taken_apart(question):
        sides = [one.text for one in sides_of(text)]
        new = [_part(side, before, is_side=bool(sides)) for side in sides or [text]]
        before = before.union(*(read(part.text).content - _EMPTY for part in new))
        found += new
    return tuple(found)


def _part(text: str, before: frozenset[str], *, is_side: bool) -> Part:
    content = read(text).content - _EMPTY
    counted = _COUNTED.search(text)
    dimensions = (sizes for words, sizes in _DIMENSIONS if re.search(words, text, re.IGNORECASE))
    return Part(
        text,
        _kind(text),
        content or before or frozenset(word.stem for word in words_of(text)),
        before - content if content else frozenset(),
        next(dimensions, frozenset()),
        _first_run(counted["words"]) if counted else frozenset(),
        is_side,
    )


def _taken_apart(question: str) -> Iterator[str]:
    start = 0
    for match in _PARTS.finditer(question):
        before = question[start : match.start()].strip()
        if before and (_ASKS.search(before) or ("and" in match[0] and match["verb"] is None)):
            yield before
            start = match.end()
    if rest := question[start:].strip():
        yield rest


def _first_run(text: str) -> frozenset[str]:
    """The stems before the first stop word: "moons" of "moons does Saturn"."""
    return frozenset(word.stem for word in takewhile(lambda word: word.lower not in STOP_WORDS, words_of(text)))


def _kind(text: str) -> Asked:
    """The kind whose pattern matches first in the text."""
    matches = [(match.start(), n, kind) for n, (kind, way) in enumerate(_PATTERNS) if (match := way.search(text))]
    return min(matches)[2] if matches else Asked.OTHER
