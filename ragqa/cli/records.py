"""`ragqa records list | show | export | feedback | copy | delete`."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import plain, stderr, stdout
from ragqa.cli.tables import answer_panel, passage_table, record_table, scores_group
from ragqa.errors import ConfigError, RecordError
from ragqa.infra.files import write_whole
from ragqa.records.case_store import CaseStore
from ragqa.records.record import claims_in
from ragqa.records.store import RecordStore
from ragqa.records.trace_words import trace_words
from ragqa.records.view import from_record
from ragqa.settings.paths import Paths
from ragqa.types import Selection
from ragqa.types.scores import ScoringMode

app = typer.Typer(help="Stored answers: list, show, export, copy, delete.", no_args_is_help=True)


def _store() -> RecordStore:
    return RecordStore(Paths.from_env().records)


@app.command("list")
def list_records(limit: Annotated[int, typer.Option(min=1, help="Number of records, newest first.")] = 20) -> None:
    """List the newest records."""
    stdout().print(record_table(_store().list(limit)))


@app.command()
def show(record_id: Annotated[str, typer.Argument(help="Record id, as listed by `ragqa records list`.")]) -> None:
    """Print a record as tables."""
    record = _store().load(record_id)
    selection = from_record(record).selection or Selection((), ())
    out = stdout()
    if found := record.question.follow_up:
        out.print(plain(f'Follows record {found.record_id}; asked as "{found.asked}".', style="dim"))
    out.print(plain(record.question.title, style="bold"), passage_table(selection))
    for event in record.trace:
        out.print(plain(trace_words(event), style="dim"))
    out.print(answer_panel(record.answer, record.kept))
    if record.scored:
        paper, script = record.scored.paper, record.scored.script
        shown, other = (paper, script) if record.scoring.mode is ScoringMode.PAPER else (script, paper)
        out.print(scores_group(shown, record.kept, other))
    if record.error:
        out.print(plain(record.error, style="red"))


@app.command()
def export(
    record_id: Annotated[str, typer.Argument(help="Record id, as listed by `ragqa records list`.")],
    out: Annotated[Path | None, typer.Option(help="File to write; standard output without it.")] = None,
) -> None:
    """Export a record as JSON, with everything needed to explain and repeat it."""
    body = _store().load(record_id).to_json()
    if out is None:
        typer.echo(body)
        return
    out.write_text(body + "\n", encoding="utf-8")
    stderr().print(plain(f"wrote {out}"))


@app.command()
def feedback(
    out: Annotated[Path, typer.Option(help="File to write: claims.jsonl, as `ragqa train verifier` reads it.")],
    limit: Annotated[int, typer.Option(min=1, help="Number of records, newest first.")] = 1_000,
) -> None:
    """Write readers' judgements of verdicts as labelled claims, each with the passage that decided it."""
    store = _store()
    rows = [row for one in store.list(limit) for row in claims_in(store.load(one.record_id))]
    write_whole(out, [json.dumps(row, ensure_ascii=False) + "\n" for row in rows])
    stderr().print(plain(f"wrote {len(rows)} claims to {out}"))


@app.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A file, or postgresql://HOST/DATABASE.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Target, likewise; created if missing.")],
) -> None:
    """Copy all records with their access rights, and all cases, to another store; what exists there stays as it is.

    Keep a password in PGPASSFILE or PGPASSWORD rather than on the command line.
    """
    if source == target:
        raise ConfigError("FROM and TO are the same store; name another")
    if "://" not in source and not Path(source).expanduser().is_file():
        msg = f"there is no record file {source}; expected the records.sqlite3 of a RAGQA_HOME, or postgresql://…"
        raise RecordError(msg)
    old, new = (RecordStore(Paths(records_at=one).records) for one in (source, target))
    done = old.copy_to(new)
    n_steps, other_cases = CaseStore(old.place).copy_to(CaseStore(new.place))
    words = f"copied {done.copied} records, {done.known} were there already, and {n_steps} steps of cases"
    stderr().print(plain(words))
    different = (*done.different, *other_cases)
    if different:
        first = ", ".join(different[:5])
        raise RecordError(f"{len(different)} exist with other content and were not changed: {first}")


@app.command()
def delete(
    record_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Record ids; none: chosen by the options.")
    ] = None,
    who: Annotated[
        str, typer.Option(help="Only this author's records: ISSUER|SUBJECT, as in `ragqa audit show`.")
    ] = "",
    before: Annotated[str, typer.Option(metavar="DATE", help="Only records from before this day, as 2026-01-31.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it, the records are only counted.")] = False,
) -> None:
    """Delete records for good, with their access rights. The audit log still shows who asked the questions."""
    if before:
        try:
            before = date.fromisoformat(before).isoformat()  # as text it is compared with days of this form
        except ValueError as error:
            msg = f"--before: expected a day such as 2026-01-31, found {before[:20]!r}; correct it"
            raise ConfigError(msg) from error
    if not (record_ids or who or before):
        raise ConfigError("expected ids, --who or --before, found none; choose the records to delete")
    store = _store()
    chosen = store.chosen(record_ids or [], who, before)
    if yes:
        store.delete(chosen, "" if record_ids or before else who)  # of the other records, who stays the author
    stderr().print(plain(f"{len(chosen)} records {'deleted' if yes else 'would be deleted; add --yes to delete them'}"))
