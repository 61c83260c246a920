"""Which source sentences say an answer sentence word for word: one of them, or several in a run.

Case, punctuation and white space do not count. A part of a sentence is no quotation: what limits it may stand in the
rest, and that is for the verifier to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from ragqa.english.reading import Reading, read
from ragqa.types.scores import Premise


class Part(StrEnum):
    """What of a source is quoted, as a reason has it; ``{}`` is the number of its passage."""

    WHOLE = "Quoted word for word from {}."
    SEVERAL = "Sentences of {}, word for word."


@dataclass(frozen=True, slots=True)
class Quotation:
    """Positions of the source sentences that say it; of several in a run the first."""

    positions: tuple[int, ...]
    part: Part


class Quotations:
    """Finds quotations of these source sentences; each text is looked for once."""

    def __init__(self, premises: Sequence[Premise]) -> None:
        """``premises``: the sentences of a passage stand next to each other, in order."""
        self._readings = [read(premise.text) for premise in premises]
        self._places = [
            list(places) for _, places in groupby(range(len(premises)), key=lambda n: premises[n].passage_index)
        ]
        self._found: dict[str, Quotation | None] = {}

    def of(self, text: str) -> Quotation | None:
        """Where this text is quoted from; None where from nowhere, and for a text without words."""
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
        """The first of the sentences at these places that, one after the other, are this text; none where none are."""
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
    """Where ``run`` first stands in ``words`` in one piece; None where it does not, or is empty."""
    if not run or len(run) > len(words):
        return None
    text = f" {' '.join(words)} "  # a search in text takes linear time, whatever repeats; no word has a space
    place = text.find(f" {' '.join(run)} ")
    return text.count(" ", 0, place) if place >= 0 else None
