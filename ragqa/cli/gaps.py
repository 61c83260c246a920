"""`ragqa gaps`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragqa.cli.case import case_desk
from ragqa.cli.output import FittedTable, counted, plain, stderr, stdout
from ragqa.cli.register import SHOWN
from ragqa.errors import ConfigError
from ragqa.index import open_index
from ragqa.infra.journal import held
from ragqa.library.collection import collections, corpus_titles
from ragqa.library.edits import read_edits
from ragqa.library.gap_memo import gap_memo
from ragqa.library.gap_rows import ORDER, Correction, GapRun
from ragqa.library.gap_runs import versions_of
from ragqa.library.gap_search import WantedGaps, matching_gaps
from ragqa.library.gap_sheets import as_json as gaps_json
from ragqa.library.gap_sheets import cited_names, evidence, write_gaps
from ragqa.library.gaps import GapStore, Policies, gap_events
from ragqa.library.register import Obligation, register
from ragqa.library.register_search import part_of, rule_name
from ragqa.library.register_store import Register, load, renewed
from ragqa.records.memo_files import check_kind, write_memo
from ragqa.settings.config import Config, without_default_reranker
from ragqa.settings.paths import Paths
from ragqa.types.streams import mapped

if TYPE_CHECKING:
    from ragqa.library.gap_opinions import GapOpinions
    from ragqa.scoring.repass.scorer import RepassScorer


def gaps(
    corpus: Annotated[str, typer.Argument(help="Corpus of rules, as listed by `ragqa index list`.")],
    policies: Annotated[str, typer.Argument(help="Corpus of policies, as listed there.")],
    document: Annotated[list[str] | None, typer.Option(help="Document id; repeat for several; default: all.")] = None,
    chapter: Annotated[list[str] | None, typer.Option(help="Beginning of the rule's number, such as 3 or 3.1.")] = None,
    csv: Annotated[Path | None, typer.Option(help="File to write the rows to, as CSV.")] = None,
    xlsx: Annotated[Path | None, typer.Option(help="File to write rows, matrix and statements to, for Excel.")] = None,
    memo: Annotated[Path | None, typer.Option(help="File to write a memo to: .docx, .html, .md or .pdf.")] = None,
    take: Annotated[
        Path | None, typer.Option(help="Sheet written earlier: import people's judgements and comments.")
    ] = None,
    verifier: Annotated[
        str, typer.Option(help="model; llm: also ask a language model about rows that are not sure.")
    ] = "model",
    restart: Annotated[bool, typer.Option(help="Read every row again; people's judgements stay.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON and nothing else.")] = False,
) -> None:
    """Compare a corpus's obligations with policies: covered, partly, conflicts, not found, with the words of both.

    A row that was read is not read again until its text, the policy passages nearest to it or the verifier change; a
    stopped run continues. Rows whose status in the register is "not applicable" are not read. Results are kept in
    RAGQA_HOME/gaps.
    """
    if memo:
        check_kind(memo.suffix.lower())  # before a run of minutes, not after it
    paths = Paths.from_env()
    rules, against = (open_index(name, paths.indexes) for name in (corpus, policies))
    found, _ = renewed(load(paths.registers / f"{corpus}.jsonl"), tuple(register(rules.passages)))
    rows = part_of(found.duties, document, chapter)
    folder = paths.home / "gaps" / corpus / policies
    lines: list[str] = []
    with held(folder, "reading gaps"):
        reading = _reading(policies, paths, verifier)  # may fail: before `restart` deletes what was read
        store = GapStore(folder, restart=restart)
        if take:
            lines += store.take(read_edits(take, Correction), found.rows).words(take.name, found.rows)
        try:
            run = _run(store, found, rows, *reading)
        finally:
            store.close()
    for path in filter(None, (csv, xlsx)):
        write_gaps(path, run, against.passages)
        lines.append(f"{len(rows):,} rows are in {path}")
    if memo:
        versions = versions_of(corpus, policies, (rules, against))
        signed = case_desk().signed([f"gaps:{corpus}/{policies}"])
        titles = corpus_titles((corpus, policies), collections(paths.library))
        names = cited_names(against.passages)
        write_memo(gap_memo(run, titles[corpus], titles[policies], versions, signed, names), memo)
        lines.append(f"the memo is {memo}")
    if as_json:
        typer.echo(json.dumps(gaps_json(run), ensure_ascii=False))
        return
    if not (csv or xlsx or memo or take):
        stdout().print(_table(run))
    right, n_said = run.agreement
    if n_said:
        lines.append(f"People found {right:,} of {n_said:,} results right, of those that they judged")
    lines.append(f"{len(run.unasked):,} statements of the policies support none of these rows")
    if asked := run.opinions:
        lines.append(asked)
    for line in lines:
        stdout().print(plain(line))


def _reading(policies: str, paths: Paths, verifier: str) -> tuple[Policies, RepassScorer, GapOpinions | None]:
    """The policies, the scorer that compares rows with them, and the language model, if it is asked as well."""
    from ragqa.library.gap_opinions import GapOpinions
    from ragqa.loading import policy_scorer
    from ragqa.pipeline import load_pipeline, opinion_client

    if verifier not in {"model", "llm"}:
        raise ConfigError(f"--verifier: expected model or llm, found {verifier!r}; name one of them")
    config = Config.from_env()
    generation = replace(config.generation, generator="none")
    config = without_default_reranker(replace(config, index=policies, generation=generation))
    second = GapOpinions(opinion_client(config)) if verifier == "llm" else None
    with stderr().status("Loading the models"):
        pipeline = load_pipeline(config, paths, recording=False)
    against = Policies(pipeline.index.passages, pipeline.search)
    return against, policy_scorer(pipeline.models.scorer(config.scoring), paths), second


def _run(
    store: GapStore,
    found: Register,
    rows: Sequence[Obligation],
    against: Policies,
    scorer: RepassScorer,
    second: GapOpinions | None,
) -> GapRun:
    events = gap_events(store, found, rows, against, scorer, second)
    run = counted(mapped(events, lambda event: event.done), len(rows), "Rows")
    if second and second.failed:
        stderr().print(plain(second.failed))
    return run


def _table(run: GapRun) -> FittedTable:
    counts = Counter(map(run.label, run.gaps))
    words = ", ".join(f"{counts[label]:,} {label}" for label in ORDER if counts[label])
    more = f"; the first {SHOWN} of them" if len(run.gaps) > SHOWN else ""
    table = FittedTable(f"{len(run.gaps):,} rows: {words}{more}", show_lines=True)
    for heading, priority, least in (("rule", 0, 0), ("result", 0, 14), ("text", 0, 24), ("policy says", 0, 24)):
        table.add_column(heading, priority, least=least)
    table.add_column("missing or clashing", 2, least=16)
    has_several = len({gap.row.document_id for gap in run.gaps}) > 1
    for gap in matching_gaps(run, WantedGaps())[:SHOWN]:
        _, says, lacking = evidence(gap)
        rule = rule_name(gap.row, has_document=has_several)
        table.add_row(plain(rule, 60), run.label(gap), plain(gap.row.text, 300), plain(says, 300), plain(lacking, 200))
    return table
