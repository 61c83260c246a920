"""The words of a text, their stems, and which of them say nothing about a subject."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ragqa.english.analysers import stemmer

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")

# What two sentences share of these is not compared.
STOP_WORDS = frozenset(
    "a an the of to in on at by for with from and or as than that this these those it its itself they them their he "
    "him his she her we us our i you your who whom whose which what when where while is are was were be been being "
    "am has have had having do does did done will would shall should may might can could must not no nor never so "
    "such there here then also too very more most less least other another any some each every all both either "
    "neither one into onto out up down over under about between among through during before after again if unless "
    "except only own same just even ever still yet but however although though because since until without within "
    "upon per via".split()
)


class Word(NamedTuple):
    """A word or number of a text; ``text[start:end]`` is it, ``lower`` in lower case without a possessive ending."""

    lower: str
    start: int
    end: int
    is_capital: bool
    stem: str


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text in order."""
    found = []
    for match in _WORD.finditer(text):
        written = match.group()
        lower = written.casefold()
        if "'" in lower or "’" in lower:
            lower = lower.replace("’", "'").removesuffix("'s")
        found.append(Word(lower, match.start(), match.end(), written[0].isupper(), stem(lower)))
    return tuple(found)


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    found: str = stemmer("english").stemWord(word)
    return found
