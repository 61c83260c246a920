"""Where commands write: results on standard output, progress and errors on standard error."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ragqa.cli.tables import plain
from ragqa.errors import (
    ConfigError,
    GenerationError,
    QuestionError,
    RagqaError,
    RecordError,
    ScoringError,
)

_EXIT_CODES: tuple[tuple[type[RagqaError], int], ...] = (
    (ConfigError, 2),
    (QuestionError, 2),
    (GenerationError, 4),
    (ScoringError, 5),
    (RecordError, 6),
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


def progress_bar() -> Progress:
    """A bar with counts, elapsed and remaining time, on standard error."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=stderr(),
    )


def fail(error: RagqaError) -> NoReturn:
    """Writes the error's message and ends the process with its exit code."""
    code = next(code for kind, code in _EXIT_CODES if isinstance(error, kind))
    stderr().print(plain(str(error), style="red"))
    sys.exit(code)


def options_of(context: typer.Context) -> dict[str, Any]:
    """The values of a command's options, given or not, in the order in which its help names them."""
    names = [option.name for option in context.command.params]
    return {name: context.params[name] for name in names if name in context.params}
