"""Which words of a passage BM25 met in the question: for showing, not for ranking."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from ragqa.analysers import Analyser
from ragqa.retrieval.analysis import tokenise
from ragqa.types import Span

__all__ = ["matched_words"]

MAX_CHARS: Final = 20_000  # of a passage that are looked at; the longest ADGM passage is a table of 24,312 words
_WORD = re.compile(r"(?u)\d+(?:\.\d+)+|\w+")


def matched_words(text: str, question: str, analyser: Analyser) -> tuple[Span, ...]:
    """The words of ``text`` that share their token with a word of the question, in reading order.

    Under character n-grams, the words of which at least half the pieces occur in the question.
    """
    single = replace(analyser, bigrams=False)
    wanted = frozenset(tokenise(question, single))
    verdicts: dict[str, bool] = {}
    found = []
    for match in _WORD.finditer(text[:MAX_CHARS]):
        word = match.group()
        if word not in verdicts:
            tokens = tokenise(word, single)
            verdicts[word] = bool(tokens) and 2 * sum(token in wanted for token in tokens) >= len(tokens)
        if verdicts[word]:
            found.append(Span(word, match.start(), match.end()))
    return tuple(found)
