"""`ragqa case`: cases and their sign-off."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Annotated

import typer

from ragqa.cli.output import FittedTable, plain, print_json, stderr, stdout
from ragqa.errors import RagqaError
from ragqa.index import Index, open_index
from ragqa.library.case_items import ItemLooker
from ragqa.records.case_store import CaseStore
from ragqa.records.case_words import search, title_of, told
from ragqa.records.cases import FORMS, CaseView, Step
from ragqa.records.sign_off import changed_since
from ragqa.records.store import RecordStore
from ragqa.server.access.audit import audit_log
from ragqa.server.access.desk import CaseDesk
from ragqa.server.access.gate import Gate
from ragqa.settings.paths import Paths

app = typer.Typer(
    help="Cases: items, notes, tasks; submit them, and decide on what others submit.", no_args_is_help=True
)

CaseId = Annotated[str, typer.Argument(metavar="CASE", help="Case id, as listed by `ragqa case list`.")]
ItemNumber = Annotated[int, typer.Argument(metavar="[ITEM]", min=0, help="Number of the item; none: the whole case.")]
Why = Annotated[str, typer.Option(help="The reason.")]
As = Annotated[str, typer.Option("--as", help="Your name (not verified); default: your login name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def case_desk(name: str = "") -> CaseDesk:
    """The desk of the person at this terminal."""
    paths = Paths.from_env()

    @cache
    def corpus(index: str) -> Index | None:
        with suppress(RagqaError):
            return open_index(index, paths.indexes)
        return None

    look = ItemLooker(RecordStore(paths.records), paths, corpus)
    return CaseDesk(Gate(), CaseStore(paths.records), look, audit_log(paths.home), name or _login_name())


def _login_name() -> str:
    """The name of this user, or the number where the system has no name for it, as in a container."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return f"user {os.getuid()}"


@app.command()
def new(title: Annotated[str, typer.Argument(help="What the case is about.")], who: As = "") -> None:
    """Open a case; its id is printed."""
    typer.echo(case_desk(who).begin(title).case_id)


@app.command("list")
def list_cases(as_json: AsJson = False) -> None:
    """List the cases, the last changed first."""
    desk = case_desk()
    found = _cases(desk)
    if as_json:
        print_json([told(one, desk.looked(one)) for one in found])
        return
    table = FittedTable("Cases")
    for heading, priority in (
        ("case", 0),
        ("title", 0),
        ("state", 0),
        ("items", 2),
        ("open tasks", 2),
        ("changed (UTC)", 1),
    ):
        table.add_column(heading, priority)
    for one in found:
        n_open = sum(not task.done for task in one.tasks)
        cells = (one.case_id, plain(one.title, 80), one.state(), str(len(one.items)), str(n_open), one.last_at[:16])
        table.add_row(*cells)
    stdout().print(table)


@app.command()
def show(case_id: CaseId, as_json: AsJson = False) -> None:
    """Print a case: items, notes, tasks, sign-off, and what has changed since."""
    desk = case_desk()
    case = desk.store.load(case_id)
    looked = desk.looked(case)
    if as_json:
        print_json(told(case, looked))
        return
    out = stdout()
    out.print(plain(case.title, style="bold"), plain(f"case {case.case_id}, opened by {case.opened.by.shown}"))

    def signed(number: int) -> str:
        changed = changed_since(case, number, looked)
        words = [case.state(number)] + [f"by {event.by.shown}" for _, event in case.reviews(number)[-1:]]
        return " ".join(words) + (f"; since then: {', '.join(changed)}" if changed else "")

    out.print(plain(f"the case is {signed(0)}"))
    for item in case.items:
        out.print(plain(f"item {item.number}  {title_of(item, looked)}  ({signed(item.number)})"))
    for task in case.tasks:
        ended = f"done by {task.done.by.shown}" if task.done else ""
        details = ", ".join(filter(None, (task.made.owner, task.made.due, ended)))
        out.print(plain(f"task {task.number}  {task.made.text}" + (f"  ({details})" if details else "")))
    for n, note in enumerate(case.notes, 1):
        out.print(plain(f"note {n}  {note.by.shown}, {note.at[:16]} UTC: {note.text}"))
    for _, event in case.review:
        about = f"item {event.item}" if event.item else "the case"
        why = f": {event.text}" if event.text else ""
        out.print(plain(f"{event.at[:16]} UTC  {event.by.shown} {event.step} {about}{why}"))


@app.command()
def add(
    case_id: CaseId,
    ref: Annotated[str, typer.Argument(metavar="ITEM", help=f"{FORMS}; an ID alone is a record's.")],
    who: As = "",
) -> None:
    """Add an item: a record of a question or check, a document, a row of a register, a gap run."""
    _say(case_desk(who).add(case_id, ref), lambda case: f"item {case.items[-1].number}")


@app.command()
def remove(
    case_id: CaseId, item: Annotated[int, typer.Argument(min=1, help="Number of the item.")], who: As = ""
) -> None:
    """Remove an item from a case; decisions on it stay in the case."""
    _say(case_desk(who).remove(case_id, item), lambda _: f"item {item} is removed")


@app.command()
def note(case_id: CaseId, text: Annotated[str, typer.Argument(help="The note.")], who: As = "") -> None:
    """Add a note."""
    _say(case_desk(who).note(case_id, text), lambda case: f"note {len(case.notes)}")


@app.command()
def task(
    case_id: CaseId,
    text: Annotated[str, typer.Argument(help="What is to be done.")],
    owner: Annotated[str, typer.Option(help="Who is to do it.")] = "",
    due: Annotated[str, typer.Option(metavar="DATE", help="By which day, as 2026-12-31.")] = "",
    who: As = "",
) -> None:
    """Add a task."""
    _say(case_desk(who).task(case_id, text, owner, due), lambda case: f"task {case.tasks[-1].number}")


@app.command()
def done(
    case_id: CaseId, number: Annotated[int, typer.Argument(min=1, help="Number of the task.")], who: As = ""
) -> None:
    """End a task."""
    _say(case_desk(who).done(case_id, number), lambda _: f"task {number} is done")


@app.command()
def submit(case_id: CaseId, item: ItemNumber = 0, why: Why = "", who: As = "") -> None:
    """Submit an item, or the case, for another person's decision."""
    _say(case_desk(who).submit(case_id, item, why), lambda case: case.state(item))


def _decide(step: Step, case_id: str, item: int, why: str, who: str) -> None:
    _say(case_desk(who).decide(case_id, step, item, why), lambda case: case.state(item))


@app.command()
def approve(case_id: CaseId, item: ItemNumber = 0, why: Why = "", who: As = "") -> None:
    """Approve an item or case that another person submitted; refused if it has changed since."""
    _decide(Step.APPROVED, case_id, item, why, who)


@app.command("return")
def return_(case_id: CaseId, item: ItemNumber = 0, why: Why = "", who: As = "") -> None:
    """Return an item or case that another person submitted, with a reason."""
    _decide(Step.RETURNED, case_id, item, why, who)


@app.command()
def override(case_id: CaseId, item: ItemNumber = 0, why: Why = "", who: As = "") -> None:
    """Override an item or case that another person submitted, with a reason."""
    _decide(Step.OVERRIDDEN, case_id, item, why, who)


@app.command("search")
def search_cases(
    words: Annotated[str, typer.Argument(help="Words to find anywhere in a case.")], as_json: AsJson = False
) -> None:
    """Search title, notes, tasks, reasons and items of all cases."""
    desk = case_desk()
    cases = _cases(desk)
    found = list(search(cases, words, desk.looked(*cases)))
    if as_json:
        print_json([{"case_id": one.case.case_id, "title": one.case.title, "places": one.places} for one in found])
        return
    for one in found:
        stdout().print(plain(f"{one.case.case_id}  {one.case.title}", style="bold"))
        for place, text in one.places:
            stdout().print(plain(f"  {place}: {text}"))


def _cases(desk: CaseDesk) -> tuple[CaseView, ...]:
    """All cases; those that were altered are named on standard error."""
    problems: set[str] = set()
    found = desk.store.list(problems)
    for one in sorted(problems):
        stderr().print(plain(one))
    return found


def _say(case: CaseView, words: Callable[[CaseView], str]) -> None:
    stdout().print(plain(f"case {case.case_id}: {words(case)}"))
