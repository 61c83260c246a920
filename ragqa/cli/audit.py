"""`ragqa audit verify | show | rotate`: the log of who did what on a page where people sign in."""

from __future__ import annotations

import json
from collections import deque
from typing import Annotated

import typer

from ragqa.errors import RecordError
from ragqa.server.access.anchor import anchor_place, noted
from ragqa.server.access.audit import AuditLog, audit_log
from ragqa.settings.paths import Paths

app = typer.Typer(help="The audit log: verify its chain, show its entries.", no_args_is_help=True)


def _log() -> AuditLog:
    return audit_log(Paths.from_env().home)


@app.command()
def verify(
    anchor: Annotated[str, typer.Option(help="COUNT:HASH that this command printed earlier.")] = "",
    anchors: Annotated[str, typer.Option(help="File of such anchors; default: the file of RAGQA_AUDIT_ANCHOR.")] = "",
) -> None:
    """Verify the hash chain of the whole log; exit code 6 if a link is broken."""
    log = _log()
    found = log.verify(anchor, *noted(anchors or anchor_place()))
    if found.broken:
        raise RecordError(f"{log.folder}: {found.broken}. The {found.entries:,} entries before it are intact.")
    typer.echo(f"{found.entries:,} entries, whole. Anchor: {found.entries}:{found.hash}")


@app.command()
def rotate() -> None:
    """Move the log aside within its folder; the next entry is chained to it, and `verify` reads both."""
    aside = _log().rotate()
    typer.echo(f"{aside.name}: put aside" if aside else "No entries since the log was put aside; nothing done.")


@app.command()
def show(
    limit: Annotated[int, typer.Option(min=1, help="Number of entries, the latest last.")] = 50,
    act: Annotated[str, typer.Option(help="Only entries of this action, such as `question` or `refusal`.")] = "",
    who: Annotated[str, typer.Option(help="Only entries of people whose address or id contains this text.")] = "",
) -> None:
    """Entries as JSON lines, without their hashes."""
    chosen = (
        one
        for one in _log().entries()
        if act in ("", one.get("act")) and who in f"{one.get('who', '')} {one.get('email', '')}"
    )
    for one in deque(chosen, limit):
        typer.echo(json.dumps({name: value for name, value in one.items() if name not in {"hash", "before"}}))
