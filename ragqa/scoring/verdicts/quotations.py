"""Finds the source sentences that state an answer sentence word for word: one of them, or several in a row.

Case, punctuation and white space are ignored. A part of a source sentence is not a quotation, because the rest of the
sentence may limit it; the verifier judges such sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from ragqa.english.reading import Reading, read
from ragqa.types.scores import Premise


class Part(StrEnum):
    """What was quoted, as the text of a reason; ``{}`` is the number of the passage."""

    WHOLE = "Quoted word for word from {}."
    SEVERAL = "Sentences of {}, word for word."


@dataclass(frozen=True, slots=True)
class Quotation:
    """Positions of the source sentences that state a text; of several in a row only the first."""

    positions: tuple[int, ...]
    part: Part


class Quotations:
    """Finds quotations of these source sentences; results are cached by text."""

    def __init__(self, premises: Sequence[Premise]) -> None:
        """``premises``: the sentences of a passage stand next to each other, in order."""
        self._readings = [read(premise.text) for premise in premises]
        self._places = [
            list(places) for _, places in groupby(range(len(premises)), key=lambda n: premises[n].passage_index)
        ]
        self._found: dict[str, Quotation | None] = {}

    def of(self, text: str) -> Quotation | None:
        """Where this text is quoted from; None where no source states it, and for a text without words."""
        if text not in self._found:
            said = read(text)
            self._found[text] = self._find(said) if said.words else None
        return self._found[text]

    def _find(self, said: Reading) -> Quotation | None:
        whole = tuple(n for n, found in enumerate(self._readings) if found.plain == said.plain)
        if whole:
            return Quotation(whole, Part.WHOLE)
        several = tuple(n for places in self._places for n in self._run(said, places))
        return Quotation(several, Part.SEVERAL) if several else None

    def _run(self, said: Reading, places: Sequence[int]) -> list[int]:
        """The first of the consecutive sentences at these places that together equal this text; empty if none do."""
        run = [word for n in places for word in self._readings[n].plain]
        start = position_in(tuple(run), said.plain)
        if start is None:
            return []
        ends, at = {0: places[0]}, 0
        for n, after in zip(places, [*places[1:], -1], strict=True):
            at += len(self._readings[n].plain)
            ends[at] = after
        return [ends[start]] if start in ends and start + len(said.plain) in ends else []


def position_in(words: tuple[str, ...], run: tuple[str, ...]) -> int | None:
    """The position at which ``run`` first occurs in ``words``; None where it does not occur or is empty."""
    if not run or len(run) > len(words):
        return None
    text = f" {' '.join(words)} "  # searching text takes linear time even with repeated words; no word has a space
    place = text.find(f" {' '.join(run)} ")
    return text.count(" ", 0, place) if place >= 0 else None
