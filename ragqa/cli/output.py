"""Where commands write: results on standard output, progress and errors on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, NoReturn, TypeVar

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ragqa.errors import AccessError, ConfigError, GenerationError, QuestionError, RagqaError, RecordError, ScoringError
from ragqa.infra.cleaning import without_controls
from ragqa.types.streams import returned

_T = TypeVar("_T")

LONGEST_WORD: Final = 12  # characters; a shorter word is never broken in a table


def plain(text: str, limit: int | None = None, style: str = "") -> Text:
    """The text without control characters, which a terminal would obey, cut to ``limit`` characters."""
    clean = without_controls(text)
    if limit is not None and len(clean) > limit:
        clean = clean[: limit - 1].rstrip() + "…"
    return Text(clean, style=style)


@dataclass(frozen=True, slots=True)
class _Column:
    heading: Text
    priority: int
    justify: Literal["left", "right"]
    least: int


@dataclass(slots=True)
class FittedTable:
    """A table that hides columns in a narrow terminal instead of breaking words into slivers.

    The columns with the highest priority number are hidden first, those with 0 never. A line below names them.
    """

    title: str | Text = ""
    show_lines: bool = False
    caption: str | Text = ""
    _columns: list[_Column] = field(default_factory=list)
    _rows: list[tuple[Text, ...]] = field(default_factory=list)
    _styles: list[str] = field(default_factory=list)

    def add_column(
        self, heading: str | Text, priority: int = 0, justify: Literal["left", "right"] = "left", least: int = 0
    ) -> None:
        """A column at least ``least`` cells wide, and as wide as its longest word up to `LONGEST_WORD`."""
        self._columns.append(_Column(_text(heading), priority, justify, least))

    def add_row(self, *cells: str | Text, style: str = "") -> None:
        """A row with a cell for each column."""
        self._rows.append(tuple(map(_text, cells)))
        self._styles.append(style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = list(range(len(self._columns)))
        least = [max(self._columns[place].least, *map(_longest_word, self._cells(place))) for place in shown]
        while _outer(len(shown)) + sum(least[place] for place in shown) > options.max_width:
            last = max(shown, key=lambda place: (self._columns[place].priority, place))
            if not self._columns[last].priority:
                break
            shown.remove(last)
        natural = [max(map(_longest_line, self._cells(place))) for place in range(len(self._columns))]
        room = options.max_width - _outer(len(shown))
        widths = _shared([least[place] for place in shown], [natural[place] for place in shown], room)
        table = Table(title=self.title or None, show_lines=self.show_lines, caption=self.caption or None)
        for place, width in zip(shown, widths, strict=True):
            column = self._columns[place]
            table.add_column(column.heading, justify=column.justify, width=width, overflow="fold")
        for row, style in zip(self._rows, self._styles, strict=True):
            table.add_row(*(row[place] for place in shown), style=style)
        yield table
        left_out = [column.heading.plain for place, column in enumerate(self._columns) if place not in shown]
        if left_out:
            yield Text(f"Columns hidden at this width: {', '.join(left_out)}.", style="dim")

    def _cells(self, place: int) -> list[Text]:
        return [self._columns[place].heading, *(row[place] for row in self._rows)]


def _text(value: str | Text) -> Text:
    return value if isinstance(value, Text) else Text(value)


def _longest_word(text: Text) -> int:
    return min(LONGEST_WORD, max(map(cell_len, text.plain.split()), default=1))


def _longest_line(text: Text) -> int:
    return max(map(cell_len, text.plain.split("\n")), default=1)


def _outer(n_columns: int) -> int:
    """The cells that borders and padding take."""
    return 3 * n_columns + 1


def _shared(least: Sequence[int], natural: Sequence[int], room: int) -> list[int]:
    """A width for each column: its least width, and an equal share of the remaining room up to its natural width."""
    widths = list(least)
    while (left := room - sum(widths)) > 0:
        narrow = [place for place, width in enumerate(widths) if width < natural[place]]
        if not narrow:
            break
        for place in narrow[:left]:
            widths[place] += min(max(1, left // len(narrow)), natural[place] - widths[place])
    return widths


_EXIT_CODES: tuple[tuple[type[RagqaError], int], ...] = (
    (ConfigError, 2),
    (QuestionError, 2),
    (GenerationError, 4),
    (ScoringError, 5),
    (RecordError, 6),
    (AccessError, 6),
    (RagqaError, 3),
)


class PrecisionChoice(StrEnum):
    """The arithmetic of the NLI models."""

    AUTO = "auto"
    FP32 = "fp32"
    BF16 = "bf16"


def stdout() -> Console:
    """The console for results; markup in data is never read."""
    return Console(markup=False, highlight=False, emoji=False)


def stderr() -> Console:
    """The console for progress and errors."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON
    """Prints the value on standard output as indented JSON."""
    typer.echo(json.dumps(value, indent=2))


def print_table(title: str, headings: Sequence[str], rows: Iterable[Iterable[str]], texts: int = 1) -> None:
    """A table on standard output; all columns but the first ``texts`` are numbers."""
    table = Table(title=plain(title))
    for place, heading in enumerate(headings):
        table.add_column(plain(heading), justify="left" if place < texts else "right")
    for row in rows:
        table.add_row(*map(plain, row))
    stdout().print(table)


def progress_bar() -> Progress:
    """A bar with counts, elapsed and remaining time, on standard error."""
    return Progress(
        TextColumn("{task.description}", markup=False),  # names of files and rankings are literal
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=stderr(),
    )


def counted(steps: Generator[int, None, _T], total: int, doing: str) -> _T:
    """The return value of the steps, which yield how many of ``total`` are done; a bar shows it."""
    with progress_bar() as bar:
        task = bar.add_task(doing, total=total)
        return returned(steps, lambda done: bar.update(task, completed=done))


def tracked(steps: Iterable[_T], total: int, doing: str = "Working...") -> list[_T]:
    """A list of the values that the steps yield, counted in a bar."""
    with progress_bar() as bar:
        return list(bar.track(steps, total=total, description=doing))


def fail(error: RagqaError) -> NoReturn:
    """Writes the error's message and ends the process with its exit code."""
    code = next(code for kind, code in _EXIT_CODES if isinstance(error, kind))
    stderr().print(plain(str(error), style="red"))
    sys.exit(code)


def options_of(context: typer.Context) -> dict[str, Any]:
    """The values of a command's options, given or default, by flag, in the order of its help."""
    return {
        option.opts[0].lstrip("-").replace("-", "_"): context.params[option.name]
        for option in context.command.params
        if option.name in context.params
    }
