"""What a run came to, as plain values: the terminal, the page and files draw them, and know no benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found. Its text is looked up in the index when it is shown; ``score`` None: not known."""

    passage_id: str
    document_id: str
    score: float | None
    is_gold: bool = False


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of an answer with its RePASs verdict and what became of its citations."""

    text: str
    verdict: str
    entailment: float
    contradiction: float
    citations: str = ""


@dataclass(frozen=True, slots=True)
class Matched:
    """One string of a reference, and whether it stands in the answer."""

    reference: str
    found: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One item that is done. ``number`` is its place in the file, from 1; ``right`` None: not measured.

    ``values`` are keyed as the report's columns. ``gold`` are the ids that would be right; ``restored`` says that it
    was read back from an earlier run.
    """

    number: int
    question_id: str
    question: str
    right: bool | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    hits: tuple[Hit, ...] = ()
    gold: tuple[str, ...] = ()
    answer: str | None = None
    sentences: tuple[CheckedSentence, ...] = ()
    matches: tuple[Matched, ...] = ()
    steps: tuple[str, ...] = ()
    note: str = ""
    restored: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A measure of an item, as the table of items shows it."""

    key: str
    heading: str
    decimals: int = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the whole run, written out, with a line that says what it is."""

    label: str
    text: str
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a comparison. ``origin`` is "this run", or where other people published it."""

    name: str
    cells: tuple[str, ...]
    origin: str = ""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """Figures side by side, such as this run beside published ones; ``caption`` says how far they compare."""

    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    caption: str = ""
    title: str = ""
    first: str = "system"  # the heading of the lines' names
    is_shares: bool = False  # each cell ends with a share of its line, as a table of confusion: a page shades them


@dataclass(frozen=True, slots=True)
class File:
    """A file of the run's folder, and what it is to whoever takes it away."""

    label: str
    name: str
    mime: str = "application/json"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything to be shown of a run; a field is empty until it is known.

    ``data`` is the same for programs: what ``--json`` prints and ``report.json`` holds.
    """

    figures: tuple[Figure, ...] = ()
    columns: tuple[Column, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


def shown(value: float | None, decimals: int = 3) -> str:
    """The number as a table shows it; a dash where there is none."""
    return "–" if value is None else f"{value:,.{decimals}f}"
