"""Which words of a passage BM25 met in the question: for showing, not for ranking."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile
from typing import Final

from ragqa.analysers import Analyser
from ragqa.retrieval.analysis import tokenise
from ragqa.types import Span

MAX_CHARS: Final = 20_000  # of a passage that are looked at; the longest ADGM passage is a table of 24,312 words
SHORTEST_STEM: Final = 3  # letters of a short word before its ending: "vrt", "vrtu"; shorter are "in", "je", "za"
LONGEST_ENDING: Final = 2  # letters: "vrtom"; longer words with longer endings share half their pieces anyway
VOWELS: Final = frozenset("aeiouy")
_WORD = re.compile(r"(?u)\d+(?:\.\d+)+|[\w\u0300-\u036f]+")  # an accent may be a character of its own


def matched_words(text: str, question: str, analyser: Analyser) -> tuple[Span, ...]:
    """The words of ``text`` that share their token with a word of the question, in reading order.

    Under character n-grams, the words of which at least half the pieces occur in the question, and short words that
    stand there with another ending. Words of two letters, which every text shares, are left out unless in capitals.
    """
    single = replace(analyser, bigrams=False)
    wanted = frozenset(tokenise(question, single))
    asked = _whole_words(question, single) if single.character_ngrams else frozenset()
    verdicts: dict[str, bool] = {}
    found = []
    for match in _WORD.finditer(text[:MAX_CHARS]):
        word = match.group()
        if word not in verdicts:
            verdicts[word] = _matches(word, wanted, asked, single)
        if verdicts[word]:
            found.append(Span(word, match.start(), match.end()))
    return tuple(found)


def _matches(word: str, wanted: frozenset[str], asked: frozenset[str], analyser: Analyser) -> bool:
    """Whether this word of a passage is one of the question's; ``asked`` holds them uncut."""
    if analyser.character_ngrams and len(word) < SHORTEST_STEM and word != word.upper():
        return False
    tokens = tokenise(word, analyser)
    shared = sum(token in wanted for token in tokens)
    if not shared or 2 * shared >= len(tokens):
        return shared > 0
    return any(_inflects(one, whole) for whole in _whole_words(word, analyser) for one in asked)


def _whole_words(text: str, analyser: Analyser) -> frozenset[str]:
    """The words as the analyser folds them, not cut into pieces."""
    return frozenset(tokenise(text, replace(analyser, character_ngrams=0)))


def _inflects(first: str, second: str) -> bool:
    """Whether the two are one short word with other endings: at most two letters, the first of them a vowel."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    endings = first[same:], second[same:]
    return same >= SHORTEST_STEM and all(
        len(ending) <= LONGEST_ENDING and (not ending or ending[0] in VOWELS) for ending in endings
    )
