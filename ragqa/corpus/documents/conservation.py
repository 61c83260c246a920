"""Nothing is lost: each word that a plain second reading of a file finds is in a passage or was left out by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ragqa.corpus.documents.model import Parsed, words_of
from ragqa.types import Passage

_SHOWN: Final = 8


def lost_words(parsed: Parsed, passages: Iterable[Passage]) -> Counter[str]:
    """Words that are missing, with how often: first between the file and its blocks, then between them and passages.

    A heading may stand in the section of what is below it, and a number in that of its passage.
    """
    kept = Counter(word for block in parsed.blocks for word in words_of(f"{block.label} {block.text}"))
    for (_, text), times in parsed.left_out.items():
        for word in words_of(text):
            kept[word] += times
    lost = Counter(parsed.words) - kept
    texts, above = Counter[str](), set[str]()
    for passage in passages:
        texts.update(words_of(passage.text))
        above.update(words_of(f"{passage.section} {passage.number}"))
    said = Counter(
        word for block in parsed.blocks if block.kind not in {"heading", "version"} for word in words_of(block.text)
    )
    cut = Counter({word: times for word, times in (said - texts).items() if word not in above})
    return lost + cut


def complaint(lost: Counter[str]) -> str:
    """What to say of them; empty where nothing is lost."""
    if not lost:
        return ""
    shown = ", ".join(word for word, _ in lost.most_common(_SHOWN))
    return f"{lost.total():,} words of the file are in no passage and were not left out on purpose: {shown}"
