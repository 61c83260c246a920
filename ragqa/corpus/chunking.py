"""Blocks of a text -> chunks of bounded length that are verbatim slices and never cut a sentence that fits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ragqa.corpus.outline import Block
from ragqa.sentences import split_sentences
from ragqa.types import Span

_WORD = re.compile(r"\S+")
_CLAUSE_ENDS = (";:", ",–—)")  # tried in this order, then any word's end


def chunk(text: str, blocks: Iterable[Block], max_tokens: int) -> Iterator[Span]:
    """Chunks of at most ``max_tokens`` white-space separated tokens, in order; no token is lost or repeated.

    A block that fits stays whole, and neighbours are merged while they fit together. A longer one is split into its
    parts (list items, table rows, lines of code), then sentences; a sentence that alone is too long is split at its
    clauses, else between words. Blank blocks give nothing. ``max_tokens`` is at least 1.
    """
    start = end = n_tokens = 0
    for piece_start, piece_end in _pieces(text, blocks, max_tokens):
        n_new = _count(text, piece_start, piece_end)
        if n_tokens and n_tokens + n_new > max_tokens:
            yield Span(text[start:end], start, end)
            n_tokens = 0
        start, end, n_tokens = (start if n_tokens else piece_start), piece_end, n_tokens + n_new
    if n_tokens:
        yield Span(text[start:end], start, end)


def _count(text: str, start: int, end: int) -> int:
    return len(text[start:end].split())


def _pieces(text: str, blocks: Iterable[Block], max_tokens: int) -> Iterator[tuple[int, int]]:
    """The largest slices that fit, without surrounding white space; between two of them is white space only."""
    for block in blocks:
        stripped = text[block.start : block.end].strip()
        if not stripped:
            continue
        start = text.index(stripped, block.start)
        end = start + len(stripped)
        if _count(text, start, end) <= max_tokens:
            yield start, end
        elif block.parts:
            yield from _pieces(text, block.parts, max_tokens)
        else:
            yield from _sentence_pieces(text, start, end, max_tokens)


def _sentence_pieces(text: str, start: int, end: int, max_tokens: int) -> Iterator[tuple[int, int]]:
    begins = [start + span.start for span in split_sentences(text[start:end])]
    borders = [start, *(begin for begin in begins if begin > start and text[begin - 1].isspace()), end]
    for first, last in pairwise(borders):
        words = [word.span() for word in _WORD.finditer(text, first, last)]
        position = 0
        while position < len(words):
            after = position + max_tokens
            if after < len(words):
                after = _clause_border(text, words, position, after)
            yield words[position][0], words[min(after, len(words)) - 1][1]
            position = after


def _clause_border(text: str, words: Sequence[tuple[int, int]], first: int, last: int) -> int:
    """Where to end a slice of words[first:last]: after the last clause end in its second half, else at ``last``."""
    for marks in _CLAUSE_ENDS:
        for border in range(last, (first + last) // 2, -1):
            if text[words[border - 1][1] - 1] in marks:
                return border
    return last
