"""`ragqa records list | show | export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragqa.cli.output import stderr, stdout
from ragqa.fusion import fuse, rerank
from ragqa.generation.fanout.merging import reselected, with_passages
from ragqa.generation.trace_words import trace_words
from ragqa.paths import Paths
from ragqa.records import RecordStore
from ragqa.scores import ScoringMode
from ragqa.tables import answer_panel, passage_table, plain, record_table, scores_group

app = typer.Typer(help="Answers given before: list, show, export.", no_args_is_help=True)


def _store() -> RecordStore:
    return RecordStore(Paths.from_env().records)


@app.command("list")
def list_records(limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20) -> None:
    """The newest records."""
    stdout().print(record_table(_store().list(limit)))


@app.command()
def show(record_id: Annotated[str, typer.Argument(help="As `ragqa records list` prints it.")]) -> None:
    """One record as tables."""
    record = _store().load(record_id)
    trace = with_passages(record.trace, {passage.passage_id: passage for passage in record.passages})
    ranking = fuse(record.ranked, record.fusion)
    if record.reranker_scores:
        ranking = rerank(ranking, dict(record.reranker_scores), record.reranking)
    selection = record.selection(reselected(ranking, trace, record.filtering))
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
    record_id: Annotated[str, typer.Argument(help="As `ragqa records list` prints it.")],
    out: Annotated[Path | None, typer.Option(help="File to write; standard output without it.")] = None,
) -> None:
    """One record as JSON, with everything needed to explain and repeat it."""
    body = _store().load(record_id).to_json()
    if out is None:
        typer.echo(body)
        return
    out.write_text(body + "\n", encoding="utf-8")
    stderr().print(plain(f"wrote {out}"))
