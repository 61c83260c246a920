"""Checks by its words that a rewritten follow-up adds nothing to the thread. Pure, English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ragqa.conversation.history import Turn
from ragqa.english.phrases import ParsedSentence, base_of
from ragqa.english.words import STOP_WORDS, stem, words_of

_ADDED: Final = frozenset(map(stem, "happen regarding whether case same thing".split()))  # words that the rules insert
_POSSESSIVE: Final = re.compile(r"\b([\w-]{1,60})['’]s\b")  # no longer: without a bound, the square of a chain's time
_SHORT_IS: Final = re.compile(r"\b(?:it|that|this|there|he|she)['’]s\b", re.IGNORECASE)
_TWICE: Final = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)
_CONTRACTED: Final = frozenset("what who where when how it that there here he she let".split())


def parses_back(rewritten: str, asked: str, thread: Sequence[Turn]) -> bool:
    """Whether each word of the rewriting is in the thread or has no own meaning, and only nouns are possessive."""
    texts = [asked, *(text for turn in thread for text in (turn.question, turn.answer))]
    said = {word.stem for text in texts for word in words_of(text)}
    bases = {base_of(word.lower) for text in texts for word in words_of(text)}
    known = all(
        word.stem in said or word.lower in STOP_WORDS or word.stem in _ADDED or base_of(word.lower) in bases
        for word in words_of(rewritten)
    )
    owners = {match.lower() for match in _POSSESSIVE.findall(rewritten)} - _CONTRACTED
    owners -= {match.lower() for text in texts for match in _POSSESSIVE.findall(text)}
    is_short = _SHORT_IS.search(asked)  # "it's late": the words that replace "it" are not possessive
    heads = (
        {one.head.lower() for text in texts for one in ParsedSentence(text).phrases}
        if owners and not is_short
        else set()
    )
    is_one = rewritten.count("?") <= 1 and (not _TWICE.search(rewritten) or bool(_TWICE.search(asked)))
    return known and is_one and owners <= heads
