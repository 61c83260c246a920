"""`ragqa memo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import plain, stderr
from ragqa.errors import ConfigError
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore
from ragqa.settings.paths import Paths


def memo(
    record_ids: Annotated[
        list[str], typer.Argument(metavar="RECORD_ID...", help="As listed by `ragqa records list`, in this order.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write: .docx, .html, .md or .pdf; without it, Markdown is printed.")
    ] = None,
    template: Annotated[Path | None, typer.Option(help="A .docx that supplies styles and page layout.")] = None,
    title: Annotated[str, typer.Option(help="Title; default: the first question.")] = "",
) -> None:
    """Write a memo on stored answers: question, answer, verdicts, rules word for word, settings, a page for review.

    For a follow-up, the answers that it follows are included. A PDF needs LibreOffice.
    """
    from ragqa.cli.case import case_desk
    from ragqa.records.memo import memo_of
    from ragqa.records.memo_files import memo_bytes, write_memo
    from ragqa.records.thread import records_back

    store = RecordStore(Paths.from_env().records)
    records: dict[str, AnswerRecord] = {}
    for record_id in record_ids:
        records |= {one.record_id: one for one in reversed(list(records_back(record_id, store)))}
    made = memo_of(list(records.values()), title, case_desk().signed([f"record:{name}" for name in records]))
    if out is None:
        typer.echo(memo_bytes(made, ".md", template).decode(), nl=False)
        return
    if not out.parent.is_dir():
        raise ConfigError(f"--out: expected a file in a folder that exists, found {out}; name another")
    write_memo(made, out, template)
    stderr().print(plain(f"wrote {out}"))
