"""What generators that work over obligations send in place of the passages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragqa.types import Passage

NO_TEXT = "The kept passages hold no text. Lower the threshold or raise the max drop to keep further passages."


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to answer from: an obligation, or a whole passage that holds none. ``passage_index`` is from 0."""

    text: str
    passage_index: int
    is_obligation: bool


def obligations_only(passages: Sequence[Passage], obligations: Sequence[Sequence[str]]) -> list[Passage]:
    """Each passage with its own obligations, a line each, for text; one without obligations as it is (AUEB 4.1).

    ``obligations[i]`` belong to ``passages[i]``.
    """
    return [
        replace(passage, text="\n".join(found)) if found else passage
        for passage, found in zip(passages, obligations, strict=True)
    ]


def items_of(passages: Sequence[Passage], obligations: Sequence[Sequence[str]]) -> list[Item]:
    """Every obligation in the order of the passages, and in its place a passage that has none and is not blank.

    A text that stands in several passages comes once, under the first of them.
    """
    items: dict[str, Item] = {}
    for index, (passage, found) in enumerate(zip(passages, obligations, strict=True)):
        texts = [(text, True) for text in found] or [(passage.text.strip(), False)]
        for text, is_obligation in texts:
            if text:
                items.setdefault(text, Item(text, index, is_obligation))
    return list(items.values())
