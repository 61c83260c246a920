"""A benchmark as a command: options from its definition, progress as a bar, the report as tables."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import TextColumn
from rich.table import Table

from ragqa.cli.options import reshaped
from ragqa.cli.output import LONGEST_WORD, FittedTable, plain, progress_bar, stderr, stdout
from ragqa.evaluation.benchmark import Benchmark, Command, Option, Outcome, Settings, Status, Task
from ragqa.evaluation.report import Comparison, Report
from ragqa.evaluation.run import RunProgress, folder_of, run
from ragqa.settings.paths import Paths

REFUSED, NOT_ALL_SCORED, INTERRUPTED = 3, 5, 130  # exit codes; 130 is what shells say of a process ended by Ctrl-C
NAMED_AT_MOST = 10  # items passed over that are listed one by one
FIGURES_IN_BAR = 3

Shows = Callable[[RunProgress, Settings, bool], None]

_EXIT_CODES = (
    "The same command continues a killed or stopped run. Further exit codes: 5 where an item failed (the "
    "same command retries it), 130 after Ctrl-C."
)
_TYPES: Mapping[str, type] = {"int": int, "float": float, "flag": bool, "file": Path, "argument": Path}
CARRIED_OUT = (
    Option("out", "Folder of the run: finished items are stored there, and a stopped run continues.", "path"),
    Option("restart", "Discard what the folder holds and start over.", "flag", default=False),
    Option("json", "Print the report as JSON.", "flag", default=False),
)


def command_of(benchmark: Benchmark, show: Shows | None = None) -> Callable[..., None]:
    """The benchmark as a function that typer can read: one parameter per option, and --out, --restart and --json.

    ``show`` replaces `printed`: it prints a finished run, given its settings and whether to print JSON.
    """

    def command(**given: Any) -> None:  # noqa: ANN401 - typer passes what the options say
        out, restart, as_json = (given.pop(option.name) for option in CARRIED_OUT)
        settings = benchmark.settings(**plain_values(given))
        folder = Path(out) if out else folder_of(benchmark, settings, Paths.from_env())
        last = watched(benchmark, settings, folder, restart=restart, is_named=bool(out))
        (show or printed)(last, settings, as_json)
        if out and last.report.files:
            say(f"{folder}: {', '.join(file.name for file in last.report.files)} written")
        if any(outcome.status in (Status.FAILED, Status.LEFT) for outcome in last.outcomes):
            raise typer.Exit(NOT_ALL_SCORED)

    text = f"{benchmark.description}\n\n{_EXIT_CODES}"
    return shaped(command, benchmark.name, text, (*benchmark.options, *CARRIED_OUT))


def further_command(one: Command) -> Callable[..., None]:
    """A further command of a benchmark as a function that typer can read. Exit code 3 if its check fails."""

    def command(**given: Any) -> None:  # noqa: ANN401
        report, is_well = one.call(plain_values(given))
        draw(report)
        if not is_well:
            raise typer.Exit(REFUSED)

    return shaped(command, one.name, one.description, one.options)


def shaped(command: Callable[..., None], name: str, text: str, options: Sequence[Option]) -> Callable[..., None]:
    """The command with the name, help and parameters that typer reads."""
    parameters = [_parameter(option) for option in options]
    parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    command.__name__, command.__doc__ = name, text
    return reshaped(command, parameters)


def plain_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of options, with choices as plain strings."""
    return {name: str(value) if isinstance(value, StrEnum) else value for name, value in given.items()}


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = _type_of(option)
    is_file = option.kind in ("file", "argument")
    required = is_file and option.default is None and not option.environment and not option.optional
    required = required or option.positional
    info: Any
    if option.kind == "argument" or option.positional:
        info = typer.Argument(help=option.help, metavar=option.name.upper())
    else:
        whole = int if option.kind == "int" else float
        low, high = (None if bound is None else whole(bound) for bound in (option.least, option.most))
        info = typer.Option(option.flag, help=option.help, envvar=option.environment or None, min=low, max=high)
    default: Any = option.default
    if required:
        default = inspect.Parameter.empty
    elif option.many:
        kind, default = list.__class_getitem__(kind) | None, None
    elif default is None:
        kind = kind | None
    elif option.choices:
        default = kind(default)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.name, keyword, default=default, annotation=Annotated[kind, info])


def _type_of(option: Option) -> Any:  # noqa: ANN401 - a type, or one made here of the choices
    if not option.choices:
        return _TYPES.get(option.kind, str)
    names: Any = {name.upper(): name for name in option.choices}
    make: Any = StrEnum
    return make(f"{option.name.title()}Choice", names)


def printed(last: RunProgress, _: Settings, as_json: bool) -> None:
    """The report on standard output: as tables, or its data as JSON."""
    if as_json:
        typer.echo(json.dumps(last.report.data, indent=2, ensure_ascii=False))
    else:
        draw(last.report)


def watched(
    benchmark: Benchmark,
    settings: Settings,
    folder: Path,
    *,
    restart: bool = False,
    is_named: bool = True,
    task: Task | None = None,
) -> RunProgress:
    """Runs the benchmark under a bar; its last progress. Ctrl-C awaits open requests, then raises typer.Exit(130)."""
    stop = threading.Event()
    steps = run(benchmark, settings, folder, Paths.from_env(), restart=restart, stop=stop, task=task)
    with closing(steps):  # type: ignore[type-var]
        try:
            return _drawn(benchmark, steps)
        except KeyboardInterrupt:
            stop.set()
            say("stopping after the requests in progress; press Ctrl-C again to stop at once")
            steps.close()  # type: ignore[attr-defined]
            where = f" in {folder}" if is_named else ""
            say(f"stopped; finished items are stored{where}. The same command, without --restart, continues")
            raise typer.Exit(INTERRUPTED) from None


def _drawn(benchmark: Benchmark, steps: Any) -> RunProgress:  # noqa: ANN401
    last, shown = RunProgress("Loading"), ""
    with stderr().status("Loading") as status:
        for last in steps:
            if last.total:
                break
            status.update(plain(last.phase))
            phase = last.phase.partition(":")[0]
            if phase != shown and not stderr().is_terminal:  # the status is not visible
                say(phase)
            shown = phase
    with progress_bar() as bar:
        bar.columns = (*bar.columns, TextColumn("{task.fields[figures]}", markup=False))
        if last.resumed:
            bar.console.print(plain(last.resumed), soft_wrap=True)
        task = bar.add_task(benchmark.doing, total=last.total, completed=last.done, figures="")
        for last in steps:
            figures = ", ".join(f"{figure.label} {figure.text}" for figure in last.report.figures[:FIGURES_IN_BAR])
            bar.update(task, description=last.phase, completed=last.done, figures=figures)
            if last.outcome is not None and last.outcome.note and last.outcome.status is not Status.SKIPPED:
                bar.console.print(plain(f"{_named(last.outcome)}: {last.outcome.note}"), soft_wrap=True)
    _say_skipped(last)
    return last


def _say_skipped(last: RunProgress) -> None:
    skipped = [outcome for outcome in last.outcomes if outcome.status is Status.SKIPPED]
    if skipped:
        named = "; ".join(f"{_named(one)}: {one.note}" for one in skipped[:NAMED_AT_MOST])
        more = f"; and {len(skipped) - NAMED_AT_MOST:,} more" if len(skipped) > NAMED_AT_MOST else ""
        say(f"skipped {len(skipped):,} items: {named}{more}")


def _named(outcome: Outcome) -> str:
    name = outcome.item.question.question_id
    return f"item {outcome.item.number}" + (f" ({name})" if name else "")


def draw(report: Report) -> None:
    """Prints the report as tables on standard output: its comparisons, or its figures if it has none."""
    if report.figures and not report.comparisons:
        table = Table()
        for heading in ("figure", "", "what it is"):
            table.add_column(heading)
        for figure in report.figures:
            table.add_row(plain(figure.label), plain(figure.text), plain(figure.explanation))
        stdout().print(table)
    for comparison in report.comparisons:
        stdout().print(comparison_table(comparison))
    for note in report.notes:
        stdout().print(plain(note), soft_wrap=True)


def comparison_table(comparison: Comparison) -> FittedTable:
    """One comparison as a table. If the lines come from several origins, a last column names them and ours are bold.

    In a narrow terminal the last figures are hidden first.
    """
    table = FittedTable(plain(comparison.title), caption=plain(comparison.caption))
    table.add_column(plain(comparison.first), least=LONGEST_WORD)
    for place, heading in enumerate(comparison.headings):
        table.add_column(plain(heading), place, justify="right")
    origins = len({line.origin for line in comparison.lines}) > 1
    if origins:
        table.add_column("from")
    for line in comparison.lines:
        blank = [""] * (len(comparison.headings) - len(line.cells))
        style = "bold" if line.is_ours and origins else ""
        from_where = [plain(line.origin)] if origins else []
        table.add_row(plain(line.name), *map(plain, line.cells), *blank, *from_where, style=style)
    return table


def say(message: str) -> None:
    """A line on standard error."""
    stderr().print(plain(message), soft_wrap=True)
