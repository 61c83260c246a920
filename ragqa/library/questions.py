"""Example questions, made from a corpus's headings and from the parties that its rules oblige. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from ragqa.corpus.documents.labels import split_label
from ragqa.types import Passage

MOST: Final = 12
_WORD: Final = re.compile(r"[^\W\d_]+")
_DUTY: Final = re.compile(r"\b(?:must|shall|is required to|are required to)\b")
_WHO: Final = re.compile(r"(?:^|[.:]\s+)((?:An?|The|Every|Each) (?:[A-Z][\w-]+(?: |$)){1,4}?)(must(?: not)?|shall)\b")
_DULL: Final = re.compile(
    r"(?i)^(introduction|contents?|general|general rules|application|interpretation|definitions?|preface|foreword|"
    r"background|overview|summary|appendix|annex|schedule|part|chapter|section|index|notes?|guidance|purpose|scope|"
    r"commencement|citation|miscellaneous|table \d+.*|figure \d+.*)$"
)


def questions_of(passages: Iterable[Passage]) -> tuple[str, ...]:
    """At most twelve questions that these passages answer, spread over as many documents and headings as possible."""
    by_document: dict[str, dict[str, str]] = {}
    for passage in passages:
        found = by_document.setdefault(passage.document_id, {})
        if len(found) < MOST:
            for key, question in _asked(passage):
                found.setdefault(key, question)
    rounds = [list(found.values()) for found in by_document.values()]
    in_turn = [questions[n] for n in range(MOST) for questions in rounds if n < len(questions)]
    return tuple(dict.fromkeys(in_turn))[:MOST]


def _asked(passage: Passage) -> Iterator[tuple[str, str]]:
    """(topic, question): about the passage's heading, else about who must act; nothing where it has no duty."""
    if not _DUTY.search(passage.text):
        return
    heading = _heading(passage.section)
    if heading.isupper():  # the abbreviations stay: words of capitals in the rule too
        known = {word for word in _WORD.findall(passage.text) if len(word) > 1}
        heading = _WORD.sub(lambda word: word[0] if word[0] in known else word[0].lower(), heading)
    if heading:
        yield heading.casefold(), f"What is required on {heading}?"
        return
    who = _WHO.search(passage.text)
    if who:
        name = who[1].split(maxsplit=1)[1].strip()
        yield name.casefold(), f"What must a {name} do?" if name[0] not in "AEIOU" else f"What must an {name} do?"


@lru_cache(2**12)
def _heading(section: str) -> str:
    """The innermost heading that names a subject, without its number; empty where there is none."""
    for heading in reversed(section.split(" › ")):
        words = split_label(heading, bare=True)[1].strip(" .:–—-")
        if 1 <= len(words.split()) <= 9 and len(words) > 5 and not _DULL.match(words):
            return words[0].lower() + words[1:] if _is_plain(words) else words
    return ""


def _is_plain(words: str) -> bool:
    """Whether no letter after the first is a capital, so that the heading can be put in lower case in a sentence."""
    return words[1:] == words[1:].lower()
