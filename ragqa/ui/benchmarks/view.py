"""What the page knows about one evaluation, finished or under way. Pure values that a file can hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from ragqa.errors import RecordError
from ragqa.ui.benchmarks.request import Request


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
    """One string of a FanOutQA reference, and whether it stands in the answer."""

    reference: str
    found: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One question that is done. ``number`` is its place in the file, from 1; ``right`` None: not measured.

    ``values`` are keyed as the view's columns. ``gold`` are the ids that would be right; ``kept`` says that it was read
    back from an earlier run.
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
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A measure of a question, as the table of questions shows it."""

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
    """A row of the comparison. ``origin`` is "this run", or where other people published it."""

    name: str
    cells: tuple[str, ...]
    origin: str
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """This run beside published figures; ``caption`` says how far they compare."""

    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    caption: str


@dataclass(frozen=True, slots=True)
class Download:
    """A file of the run's folder, and what it is to whoever takes it away."""

    label: str
    name: str
    mime: str = "application/json"


@dataclass(frozen=True, slots=True)
class View:
    """Everything shown of one evaluation; a field is empty until it is known.

    ``seconds_left`` is an estimate from the questions done in this run. ``error`` says why it ended early.
    """

    request: Request
    phase: str = "Starting"
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    figures: tuple[Figure, ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    comparison: Comparison | None = None
    downloads: tuple[Download, ...] = ()
    notes: tuple[str, ...] = ()
    error: str = ""
    running: bool = True
    stopped: bool = False

    @property
    def n_kept(self) -> int:
        """How many of the rows were read back from an earlier run."""
        return sum(row.kept for row in self.rows)

    @property
    def complete(self) -> bool:
        """Whether every question that was asked for is done."""
        return not self.running and not self.error and self.total > 0 and self.done >= self.total


def view_to_json(view: View) -> str:
    """The view as the text of a file."""
    return json.dumps(asdict(view), ensure_ascii=False, allow_nan=False) + "\n"


def view_from_json(text: str, name: str) -> View:
    """The view in this text, ``name`` being the file. Raises RecordError where it is something else."""
    from pydantic import ValidationError

    try:
        found: View = _adapter().validate_json(text)
    except (ValidationError, ValueError, RecursionError) as error:
        msg = f"{name} is not what an evaluation wrote; run it again, what is done is kept beside it"
        raise RecordError(msg) from error
    return found


@cache
def _adapter() -> Any:  # noqa: ANN401 - pydantic is imported by who reads a view
    from pydantic import TypeAdapter

    return TypeAdapter(View)


def plain(values: Mapping[str, Any]) -> dict[str, float | None]:
    """The values as numbers."""
    return {key: None if value is None else float(value) for key, value in values.items()}
