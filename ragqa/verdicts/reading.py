"""What a sentence says that can be compared: words, quantities, dates, names.

Pure, English, and shallow on purpose: no parser decides here, only word lists a reader can check. What is not
recognised takes no part in any comparison.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import lru_cache

import Stemmer

from ragqa.types import Span
from ragqa.verdicts.quantities import Date, Quantity, Token, dates_of, quantities_of

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")
_local = threading.local()  # a Stemmer keeps one C buffer: two threads in it corrupt each other's stems

# Words that say nothing about a subject: what two sentences share of these is not compared.
STOP_WORDS = frozenset(
    "a an the of to in on at by for with from and or as than that this these those it its itself they them their he "
    "him his she her we us our i you your who whom whose which what when where while is are was were be been being "
    "am has have had having do does did done will would shall should may might can could must not no nor never so "
    "such there here then also too very more most less least other another any some each every all both either "
    "neither one into onto out up down over under about between among through during before after again if unless "
    "except only own same just even ever still yet but however although though because since until without within "
    "upon per via".split()
)


@dataclass(frozen=True, slots=True)
class Word(Token):
    """A word or number of a text; ``text[start:end]`` is it, ``lower`` in lower case without a possessive ending."""

    stem: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """One sentence, read. Spans and offsets count characters of ``text``."""

    text: str
    words: tuple[Word, ...]
    content: frozenset[str]  # stems of words that are not stop words
    quantities: tuple[Quantity, ...]
    dates: tuple[Date, ...]
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A proper name or defined term: words written with capitals, in lower case and stemmed, and where it stands."""

    stems: tuple[str, ...]
    span: Span


@lru_cache(maxsize=20_000)
def read(text: str) -> Reading:
    """The reading of a sentence; remembered, as a source sentence meets every sentence of an answer."""
    words = words_of(text)
    dates = dates_of(text, words)
    return Reading(
        text=text,
        words=words,
        content=frozenset(word.stem for word in words if word.lower not in STOP_WORDS),
        quantities=quantities_of(text, words, dates),
        dates=dates,
        names=tuple(name for name in _names(text, words) if not _is_measure(name, dates)),
    )


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text in order."""
    found = []
    for match in _WORD.finditer(text):
        lower = match.group().casefold().replace("’", "'")
        lower = lower.removesuffix("'s").removesuffix("'")
        found.append(Word(lower, match.start(), match.end(), match.group()[0].isupper(), stem(lower)))
    return tuple(found)


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        stemmer = _local.stemmer = Stemmer.Stemmer("english")
    found: str = stemmer.stemWord(word)
    return found


_LINKS = frozenset({"of", "the", "and", "de", "van", "von", "la"})  # lower-case words within a name
_NO_NAMES = frozenset("i a an the it he she they we in on at by for if when where no not this that".split())


def _names(text: str, words: tuple[Word, ...]) -> tuple[Name, ...]:
    """Runs of capitalised words; a single one at the beginning of the sentence may be any word and is left out."""
    names, start = [], 0
    while start < len(words):
        if not words[start].is_capital or words[start].lower in STOP_WORDS or words[start].lower in _NO_NAMES:
            start += 1
            continue
        end = start + 1
        while end < len(words):
            if _is_apart(text, words[end - 1], words[end]):
                break
            if words[end].is_capital and words[end].lower not in _NO_NAMES:
                end += 1
            elif (
                words[end].lower == "of"
                and end + 1 < len(words)
                and words[end + 1].is_capital
                and not _is_apart(text, words[end], words[end + 1])
            ):
                end += 2
            else:
                break
        run = words[start:end]
        if len(run) > 1 or not _begins(text, run[0]):
            stems = tuple(word.stem for word in run if word.lower not in _LINKS)
            names.append(Name(stems, Span(text[run[0].start : run[-1].end], run[0].start, run[-1].end)))
        start = end
    return tuple(names)


def _is_measure(name: Name, dates: tuple[Date, ...]) -> bool:
    """Whether this is a month of a date, a unit or a currency and no name of anything."""
    within = any(date.span.start <= name.span.start < date.span.end for date in dates)
    return within or name.span.text in {"Business Day", "Business Days", "Celsius", "Fahrenheit"}


def _is_apart(text: str, before: Word, after: Word) -> bool:
    return any(not character.isspace() and character not in "-'’" for character in text[before.end : after.start])


def _begins(text: str, word: Word) -> bool:
    """Whether a word opens the text, or a sentence or quotation in it."""
    before = text[: word.start].rstrip(" \t\n\"'“‘(")
    return not before or before[-1] in ".:;?!"
