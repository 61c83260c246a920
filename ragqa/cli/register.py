"""`ragqa register`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import FittedTable, plain, stdout
from ragqa.english.words import quantity
from ragqa.index import Index, open_index
from ragqa.index.folders import index_names
from ragqa.library import register_sheets as sheets
from ragqa.library.changes import word_changes
from ragqa.library.edits import read_edits
from ragqa.library.register import Obligation, RowChange, register
from ragqa.library.register_search import part_of, rule_name
from ragqa.library.register_store import Handling, Register, change, renewed
from ragqa.library.work_list import WorkItem, answers_before, gap_results, work_list
from ragqa.records.store import RecordStore
from ragqa.settings.paths import Paths

SHOWN = 40  # rows printed


def obligations_of(
    corpus: Annotated[str, typer.Argument(help="Corpus, as listed by `ragqa index list`.")],
    document: Annotated[list[str] | None, typer.Option(help="Document id; repeat for several; default: all.")] = None,
    chapter: Annotated[list[str] | None, typer.Option(help="Beginning of the rule's number, such as 3 or 3.1.")] = None,
    csv: Annotated[Path | None, typer.Option(help="File to write the rows to, as CSV.")] = None,
    xlsx: Annotated[Path | None, typer.Option(help="File to write the rows to, as an Excel sheet.")] = None,
    take: Annotated[
        Path | None,
        typer.Option(help="Sheet written earlier: import its owners, statuses, due days and notes."),
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="List the changes of the new version, and the answers they affect.")
    ] = False,
    since: Annotated[
        int, typer.Option(min=0, help="Version of the register that --changes compares with; 0: the last but one.")
    ] = 0,
    recitals: Annotated[
        bool, typer.Option("--recitals", help="List recitals too, not only those with an owner, status or note.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON and nothing else.")] = False,
) -> None:
    """Register the obligations of a corpus: a row for each sentence or item that obliges, with who and by when.

    Rows are matched with those of the previous register: unchanged, changed, new or gone. The register is kept in
    RAGQA_HOME/registers.
    """
    paths = Paths.from_env()
    index = open_index(corpus, paths.indexes)
    lines: list[str] = []

    def how(before: Register) -> Register:
        found, became = renewed(before, tuple(register(index.passages)), index.manifest.corpus_sha256)
        if before.rows:
            counts = Counter(one.what for one in became)
            lines.append("Since the last time: " + ", ".join(f"{counts[what]:,} {what}" for what in counts))
        if take:
            found, taken = sheets.merged(found, read_edits(take, Handling))
            lines.extend(taken.words(take.name, found.rows))
        return found

    found = change(paths.registers / f"{corpus}.jsonl", how)
    rows = part_of(found.listed(recitals=recitals), document, chapter)
    if changes:
        became = found.changes(since)
        known = (row for one in became if (row := one.after or one.before))
        wanted = {row.obligation_id for row in part_of(list(known), document, chapter)}
        _changed(found, became, index, paths, wanted, as_json=as_json)
        return
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


def _table(rows: list[Obligation]) -> FittedTable:
    counts = Counter(row.strength for row in rows)
    words = ", ".join(f"{count:,} {strength}" for strength, count in counts.most_common())
    more = f"; the first {SHOWN} of them" if len(rows) > SHOWN else ""
    table = FittedTable(f"{len(rows):,} rows: {words}{more}", show_lines=True)
    for heading, priority in (("rule", 0), ("strength", 0), ("who", 2), ("deadline", 2)):
        table.add_column(heading, priority)
    table.add_column("text", least=24)
    has_several = len({row.document_id for row in rows}) > 1
    for row in rows[:SHOWN]:
        party, deadline = (span.text if span else "" for span in (row.parts.party, row.parts.deadline))
        rule = rule_name(row, has_document=has_several)
        table.add_row(plain(rule, 60), str(row.strength), plain(party, 60), plain(deadline, 60), plain(row.text, 300))
    return table


def _changed(
    found: Register, became: tuple[RowChange, ...], index: Index, paths: Paths, wanted: set[str], *, as_json: bool
) -> None:
    """Prints the work list for the ``wanted`` rows."""
    answers = answers_before(index.manifest.name, index.manifest.corpus_sha256, RecordStore(paths.records))
    gaps = gap_results(paths.home / "gaps" / index.manifest.name, index_names(paths.indexes))
    items = [one for one in work_list(found, became, answers, index, gaps) if one.row.obligation_id in wanted]
    if as_json:
        typer.echo(json.dumps(list(map(_told, items)), ensure_ascii=False))
        return
    counts = Counter(one.change.what for one in items)
    changes = ", ".join(f"{counts[what]:,} {what}" for what in ("new", "changed", "gone"))
    n_answers = len({name for one in items for name in one.answers})
    stdout().print(plain(f"Version {len(found.versions)}: {changes}. {quantity(n_answers, 'kept answer')} to look at."))
    for one in items:
        row, who = one.row, ", ".join(filter(None, (one.handling.owner, one.handling.status)))
        stdout().print(plain(f"\n{one.change.what} {rule_name(row)}" + (f" ({who})" if who else "")))
        stdout().print(plain("  " + _marked(one)))
        if one.answers:
            stdout().print(plain(f"  answers: {' '.join(one.answers)}; their memos too"))
        for policies, label in one.gaps.items():
            stdout().print(plain(f"  gap result: {policies}, {label}"))


def _marked(one: WorkItem) -> str:
    """The text of the row; in a changed row, removed words as [-words-] and new words as {+words+}."""
    before, after = one.change.before, one.change.after
    pieces = []
    for gone, new in word_changes(before.text, after.text) if before and after else [(one.row.text, one.row.text)]:
        pieces += [new] if gone == new else [f"[-{gone}-]"] * bool(gone) + [f"{{+{new}+}}"] * bool(new)
    return " ".join(pieces)


def _told(one: WorkItem) -> dict[str, object]:
    before, after = ((row.text if row else "") for row in (one.change.before, one.change.after))
    row = {name: value for name, value in asdict(one.row).items() if name != "text"}
    return {
        "what": one.change.what,
        "before": before,
        "after": after,
        "answers": one.answers,
        "gaps": one.gaps,
        **row,
        **asdict(one.handling),
    }
