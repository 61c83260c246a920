"""`ragqa register`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import FittedTable, plain, stdout
from ragqa.errors import ConfigError
from ragqa.index import open_index
from ragqa.infra.files import locked
from ragqa.library import register_sheets as sheets
from ragqa.library.edits import read_edits
from ragqa.library.register import Obligation, register
from ragqa.settings.paths import Paths

SHOWN = 40  # rows printed


def obligations_of(
    corpus: Annotated[str, typer.Argument(help="Corpus, as listed by `ragqa index list`.")],
    document: Annotated[list[str] | None, typer.Option(help="Document id; repeat for several; default: all.")] = None,
    chapter: Annotated[list[str] | None, typer.Option(help="How the rule's number begins, such as 3 or 3.1.")] = None,
    csv: Annotated[Path | None, typer.Option(help="File to write the rows to, as CSV.")] = None,
    xlsx: Annotated[Path | None, typer.Option(help="File to write the rows to, as an Excel sheet.")] = None,
    take: Annotated[
        Path | None,
        typer.Option(help="Sheet written earlier: its owners, statuses, due days and notes are taken over."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON and nothing else.")] = False,
) -> None:
    """Register the obligations of a corpus: a row for each sentence or item that obliges, with who and by when.

    Rows of the corpus as it was registered before are matched: unchanged, changed, new and gone. The register is kept
    in RAGQA_HOME/registers.
    """
    paths = Paths.from_env()
    passages = open_index(corpus, paths.indexes).passages
    file = paths.registers / f"{corpus}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    msg = f"expected to be alone with the register of {corpus!r}, found another ragqa at it; try again when it is done"
    with locked(file.with_suffix(".lock"), lambda: ConfigError(msg)):
        before = sheets.load(file)
        found, changes = sheets.renewed(before, tuple(register(passages)))
        lines = []
        if before.rows:
            counts = Counter(change.what for change in changes)
            lines.append("Since the last time: " + ", ".join(f"{counts[what]:,} {what}" for what in counts))
        if take:
            found, taken = sheets.merged(found, read_edits(take, sheets.Handling))
            lines += taken.words(take.name)
        sheets.save(file, found)
    rows = part_of(found.rows, document, chapter)
    for path in filter(None, (csv, xlsx)):
        sheets.write_sheet(path, found, rows)
        lines.append(f"{len(rows):,} rows are in {path}")
    if as_json:
        typer.echo(
            json.dumps([asdict(row) | asdict(found.handling(row.obligation_id)) for row in rows], ensure_ascii=False)
        )
        return
    if not (csv or xlsx or take):
        stdout().print(_table(rows))
    for line in lines:
        stdout().print(plain(line))


def part_of(
    rows: Sequence[Obligation], document: Sequence[str] | None, chapter: Sequence[str] | None
) -> list[Obligation]:
    """The rows of these documents and chapters; all where none is named. Raises ConfigError where one has no rows."""
    for named, has in ((document, _in_document), (chapter, _in_chapter)):
        for one in named or ():
            if not any(has(row, one) for row in rows):
                known = ", ".join(dict.fromkeys(row.document_id for row in rows))
                msg = f"expected a document or chapter with obligations, found {one!r}; choose one of: {known[:300]}"
                raise ConfigError(msg)
        rows = [row for row in rows if not named or any(has(row, one) for one in named)]
    return list(rows)


def _in_document(row: Obligation, document: str) -> bool:
    return row.document_id == document


def _in_chapter(row: Obligation, chapter: str) -> bool:
    return f"{row.number}.".startswith(f"{chapter.rstrip('.')}.")


def _table(rows: list[Obligation]) -> FittedTable:
    counts = Counter(row.strength for row in rows)
    words = ", ".join(f"{count:,} {strength}" for strength, count in counts.most_common())
    more = f"; the first {SHOWN} of them" if len(rows) > SHOWN else ""
    table = FittedTable(f"{len(rows):,} rows: {words}{more}", show_lines=True)
    for heading, priority in (("rule", 0), ("strength", 0), ("who", 2), ("deadline", 2)):
        table.add_column(heading, priority)
    table.add_column("text", least=24)
    for row in rows[:SHOWN]:
        party, deadline = (span.text if span else "" for span in (row.parts.party, row.parts.deadline))
        table.add_row(row.number, str(row.strength), plain(party, 60), plain(deadline, 60), plain(row.text, 300))
    return table
