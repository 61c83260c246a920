"""Checks that no text is lost: each word that a plain second reading finds is in a passage or was left out by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ragqa.corpus.documents.model import Parsed, UnreadableError, count_words, words_of
from ragqa.types import Passage

_SHOWN: Final = 8
_MOST: Final = 0.01  # share of a file's words that may be lost with only a warning
_FEW: Final = 20  # number of words that may be lost with only a warning


def lost_words(parsed: Parsed, passages: Iterable[Passage]) -> Counter[str]:
    """The lost words with their counts: those that are in the file but no block, and those in a block but no passage.

    A heading may be in the section of the text below it, and a number in the number of its passage. Words that the two
    readings only split differently ("shall not", "shallnot", "S H A L L") are not lost.
    """
    named = {"heading", "version"}
    said = count_words("\n".join(block.text for block in parsed.blocks if block.kind not in named))
    further = (f"{block.label} {block.text if block.kind in named else ''}" for block in parsed.blocks)
    kept = said + count_words("\n".join(further))
    for (_, text), times in parsed.left_out.items():
        for word in words_of(text):
            kept[word] += times
    there = parsed.words
    lost, more = there - kept, kept - there
    joined = " ".join(word for word in more if word not in there)
    for word in more.elements():  # a word set wide is single letters in the plain reading: match all of them or none
        if len(word) > 1 and (letters := Counter(word)) <= lost:
            lost -= letters
    lost = Counter(
        {word: n for word, n in lost.items() if word not in joined and (word in kept or not _is_parted(word, kept))}
    )
    passages = tuple(passages)
    texts = count_words("\n".join(passage.text for passage in passages))
    above = set(count_words("\n".join({f"{passage.section} {passage.number}": None for passage in passages})))
    cut = Counter({word: times for word, times in (said - texts).items() if word not in above})
    return lost + cut


def _is_parted(word: str, words: Counter[str]) -> bool:
    """Whether the word occurs as two words."""
    return any(word[:n] in words and word[n:] in words for n in range(1, len(word)))


def check_words(parsed: Parsed, passages: Iterable[Passage]) -> None:
    """Warns of lost words. Raises UnreadableError if they are more than a few, as the reading is then wrong."""
    lost = lost_words(parsed, passages)
    if not lost:
        return
    shown = ", ".join(word for word, _ in lost.most_common(_SHOWN))
    if lost.total() > max(_FEW, _MOST * parsed.words.total()):
        msg = (
            f"expected every word of the file in a passage, found {lost.total():,} of {parsed.words.total():,} in none "
            f"({shown}); save it in another format, for instance as HTML or Word"
        )
        raise UnreadableError(msg)
    parsed.warnings.append(
        f"{lost.total():,} words of the file are in no passage and were not left out on purpose: {shown}"
    )
