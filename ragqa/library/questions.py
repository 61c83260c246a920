"""Example questions, made from the time limits, terms and headings of a corpus. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Final

from ragqa.corpus.choices import LOOKED_AT, spread
from ragqa.corpus.documents.labels import split_label
from ragqa.english.phrases import WH
from ragqa.library.definitions import definitions_in
from ragqa.library.next_questions import timed_question
from ragqa.library.register import register
from ragqa.types import Passage

MOST: Final = 12
_KINDS: Final = ("limit", "term", "heading", "party")
_WORD: Final = re.compile(r"[^\W\d_]+")
_DUTY: Final = re.compile(r"\b(?:must|shall|is required to|are required to)\b")
_WHO: Final = re.compile(r"(?:^|[.:]\s+)((?:An?|The|Every|Each) (?:[A-Z][\w-]+(?: |$)){1,4}?)(must(?: not)?|shall)\b")
_DULL: Final = re.compile(
    r"(?i)^(introduction|contents?|general|general rules|application|interpretation|definitions?|preface|foreword|"
    r"background|overview|summary|appendix|annex|schedule|part|chapter|section|index|notes?|guidance|purpose|scope|"
    r"commencement|citation|miscellaneous|table \d+.*|figure \d+.*)$"
)


def questions_of(passages: Sequence[Passage]) -> tuple[str, ...]:
    """At most twelve questions that these passages answer, spread over kinds and documents. Raises ModelError.

    The kinds are time limits, terms, headings with duties, and parties that have duties without a heading.
    """
    kinds: dict[str, dict[str, str]] = {}  # the questions of a kind by topic
    for passage in spread(passages, LOOKED_AT):
        for kind, topic, question in _asked(passage):
            kinds.setdefault(kind, {}).setdefault(topic, question)
    in_turn = zip_longest(*(spread(tuple(kinds[kind].values()), MOST) for kind in _KINDS if kind in kinds))
    return tuple(dict.fromkeys(question for row in in_turn for question in row if question))[:MOST]


def _asked(passage: Passage) -> Iterator[tuple[str, str, str]]:
    """(kind, topic, question) of this passage; only terms where it has no duty."""
    for one in definitions_in(passage):
        if " " in one.term:
            yield "term", one.term.casefold(), f"What does “{one.term}” mean?"
    if not _DUTY.search(passage.text):
        return
    for row in register([passage], advice=False):
        if question := timed_question(row):
            yield "limit", question, question
    heading = _heading(passage.section)
    if heading.isupper():  # the abbreviations stay: words of capitals in the rule too
        known = {word for word in _WORD.findall(passage.text) if len(word) > 1}
        heading = _WORD.sub(lambda word: word[0] if word[0] in known else word[0].lower(), heading)
    if heading:
        yield "heading", heading.casefold(), f"What is required on {heading}?"
    elif who := _WHO.search(passage.text):
        name = who[1].split(maxsplit=1)[1].strip()
        yield "party", name.casefold(), f"What must a{'n' if name[0] in 'AEIOU' else ''} {name} do?"


@lru_cache(2**12)
def _heading(section: str) -> str:
    """The innermost heading that names a subject, without its number; empty where there is none."""
    for heading in reversed(section.split(" › ")):
        words = split_label(heading, bare=True)[1].strip(" .:–—-")
        if (
            words[:1].isalpha()
            and words.split()[0].casefold() not in WH
            and 2 <= len(words.split()) <= 9
            and len(words) > 5
            and not _DULL.match(words)
        ):
            return words[0].lower() + words[1:] if _is_plain(words) else words
    return ""


def _is_plain(words: str) -> bool:
    """Whether no letter after the first is a capital, so that the heading can be put in lower case in a sentence."""
    return words[1:] == words[1:].lower()
