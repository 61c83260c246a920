"""The results of a run as plain values, which terminal, page and files show independently of the benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found. Its text is looked up in the index when it is shown; ``score`` None is unknown."""

    passage_id: str
    document_id: str
    score: float | None
    is_gold: bool = False


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of an answer with its RePASs verdict and the result of its citation check."""

    text: str
    verdict: str
    entailment: float
    contradiction: float
    citations: str = ""


@dataclass(frozen=True, slots=True)
class Matched:
    """One string of a reference, and whether it occurs in the answer."""

    reference: str
    found: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One finished item. ``number`` is its place in the file, from 1; ``right`` None means not measured.

    ``values`` have the keys of the report's columns. ``gold`` are the right ids; ``restored`` means read back from an
    earlier run.
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
    """A measure in the table of items."""

    key: str
    heading: str
    decimals: int = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the whole run as text, with a one-line explanation."""

    label: str
    text: str
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a comparison. ``origin`` is "this run", or the source of a published figure."""

    name: str
    cells: tuple[str, ...]
    origin: str = ""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """Figures side by side, such as this run beside published ones; ``caption`` says how comparable they are."""

    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    caption: str = ""
    title: str = ""
    first: str = "system"  # the heading of the lines' names
    is_shares: bool = False  # each cell ends with a share of its line, as in a confusion matrix, which the page shades


@dataclass(frozen=True, slots=True)
class File:
    """A file of the run's folder, with its label for download."""

    label: str
    name: str
    mime: str = "application/json"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything shown of a run; a field is empty until it is known.

    ``data`` is the same for programs: the output of ``--json`` and the content of ``report.json``.
    """

    figures: tuple[Figure, ...] = ()
    columns: tuple[Column, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


def shown(value: float | None, decimals: int = 3) -> str:
    """The number as shown in a table; a dash for None."""
    return "–" if value is None else f"{value:,.{decimals}f}"
