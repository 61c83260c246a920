"""`ragqa eval pandachat`: the Slovenian retrieval benchmark with an index of ours, or any submission files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.config import Config, IndexingConfig
from ragqa.errors import ConfigError
from ragqa.paths import Paths
from ragqa.preset_files import find_preset
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.pandachat import DocumentQuestion
    from ragqa.evaluation.pandachat import PandachatResult
    from ragqa.evaluation.pandachat_report import PandachatFigures
    from ragqa.evaluation.pandachat_submission import Submission
    from ragqa.indexing import Index
    from ragqa.protocols import Encoder

INTERRUPTED = 130  # exit code, as of `ragqa eval answers`
DEFAULT_INDEX = "pandachat"


@dataclass(frozen=True, slots=True)
class _Asked:
    """The data set's place and questions, how many of them to ask, and the ks to count at, rising."""

    data: Path
    all_questions: tuple[DocumentQuestion, ...]
    limit: int | None
    ks: tuple[int, ...]

    @property
    def questions(self) -> tuple[DocumentQuestion, ...]:
        return self.all_questions[: self.limit]


@dataclass(frozen=True, slots=True)
class _RunOptions:
    """How a run is carried out, kept and named."""

    preset: str | None
    system: str
    out: Path | None
    restart: bool


def pandachat(
    data: Annotated[
        Path, typer.Option(envvar="RAGQA_DATA", help="The data set's JSON file, or a folder that holds it.")
    ] = Path("../shared/data"),
    index: Annotated[
        str | None, typer.Option(help=f"Which index of it; built where there is none.  [default: {DEFAULT_INDEX}]")
    ] = None,
    submission: Annotated[
        list[Path] | None, typer.Option(help="Evaluate this file instead, or with --index as well; repeatable.")
    ] = None,
    k: Annotated[
        list[int] | None, typer.Option("--k", min=1, help="Count the first K sources; repeatable.  [default: 1, 2]")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Named settings, as on the page, or a file of them.")] = None,
    system: Annotated[str, typer.Option(help="The submission's name; of encoder and preset where not said.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the submission and the results; a stopped run goes on there.")
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Throw away the run that --out holds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Retrieve for the questions of PandaChat-RAG-sl, write a submission, compare with the published results.

    A question is right at K where its document is among the first K sources, one a chunk, duplicates counted. Chunks
    have at most 128 words; the benchmark's have 128 tokens, 2.6 of which make a word: an index built with
    --chunk-max-tokens 40 has chunks of its size.
    """
    from ragqa.corpus.pandachat import load_pandachat_questions, locate_pandachat
    from ragqa.evaluation.pandachat_report import figures_of_file, figures_of_run, report_of, write_report
    from ragqa.evaluation.pandachat_submission import read_submission, submission_file_name

    place = locate_pandachat(data)
    asked = _Asked(place, load_pandachat_questions(place), limit, tuple(sorted(set(k or (1, 2)))))
    files = {file: read_submission(file, asked.all_questions, limit) for file in submission or []}
    if len({file.name for file in files}) < len(files):
        msg = f"submission files must differ in name, got {', '.join(file.name for file in files)}; rename one"
        raise ConfigError(msg)
    figures: list[PandachatFigures] = []
    submissions: dict[str, Submission] = {}
    if index is not None or not files:
        name, result = _run(asked, index or DEFAULT_INDEX, _RunOptions(preset, system, out, restart))
        figures.append(figures_of_run(result, name, asked.ks))
        if out:
            own = out / submission_file_name(name)
            submissions[own.name] = read_submission(own, asked.all_questions, limit)
    figures += [figures_of_file(read, file.name, asked.ks, asked.questions) for file, read in files.items()]
    submissions |= {file.name: read for file, read in files.items()}
    report = report_of(figures, place, len(asked.questions), len(asked.all_questions))
    if out:
        write_report(out, report, figures, submissions, asked.ks)
        if len(asked.questions) < len(asked.all_questions):
            _say(
                f"only {len(asked.questions):,} of {len(asked.all_questions):,} questions were asked: the figures are "
                "not put among the benchmark's results, which are of all"
            )
    if as_json:
        typer.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        stdout().print(_table(figures, asked))


def _run(asked: _Asked, index: str, options: _RunOptions) -> tuple[str, PandachatResult]:
    """The system's name and what it retrieved; its submission is in the folder where there is one."""
    from ragqa.evaluation.pandachat import N_SOURCES, check_index, ranker_of, run_pandachat
    from ragqa.evaluation.pandachat_folder import open_pandachat_folder, stamp_of
    from ragqa.evaluation.pandachat_submission import submission_file_name, write_submission
    from ragqa.evaluation.run_folder import translated
    from ragqa.loading import load_further
    from ragqa.retrieval import retrievers_for
    from ragqa.retrieval.names import fitting_fusion

    paths = Paths.from_env()
    settings = find_preset(options.preset, paths.presets) if options.preset else Config.from_env()
    if settings.reranking.model:
        msg = f"--preset {options.preset!r} reranks, which this benchmark's run does not; choose another"
        raise ConfigError(msg)
    opened, encoder = _open(index, asked.data, paths)
    check_index(opened, asked.data)
    manifest = opened.manifest
    fusion = fitting_fusion(settings.fusion, manifest.retrievers, manifest.encoder, manifest.name)
    models = load_further([ranking.option for ranking in manifest.rankings], paths)
    retrievers = retrievers_for(opened, encoder, settings.retrieval, models)
    n_sources = max(N_SOURCES, *asked.ks)
    system = options.system or ", ".join(
        part for part in (f"ragqa-{Path(manifest.encoder).name}", options.preset) if part
    )
    with ExitStack() as stack:
        folder, out = None, options.out
        if out:
            stamp = stamp_of(opened, asked.data, settings.retrieval, fusion, n_sources)
            outputs = (submission_file_name(system),)
            folder = stack.enter_context(open_pandachat_folder(out, stamp, outputs, restart=options.restart))
            if folder.n_done:
                _say(f"going on: {folder.n_done:,} questions are in {out} already")
        ranker = ranker_of(retrievers, settings.retrieval, fusion)
        outcomes = run_pandachat(
            opened, ranker, asked.all_questions, limit=asked.limit, n_sources=n_sources, folder=folder
        )
        result = _drawn(outcomes, asked, out)
        if out:
            with translated(out):
                write_submission(out / submission_file_name(system), result.submission(system, asked.data))
    return system, result


def _open(name: str, data: Path, paths: Paths) -> tuple[Index, Encoder]:
    """The index of this name, built now where there is none, and its encoder."""
    from ragqa.errors import IndexNotFoundError
    from ragqa.indexing import build_events, index_info, open_index
    from ragqa.loading import load_encoder

    try:
        encoder_name, exists = index_info(name, paths.indexes).encoder, True
    except IndexNotFoundError:
        encoder_name, exists = IndexingConfig().encoder, False
    with stderr().status("Loading the encoder"):
        encoder = load_encoder(encoder_name, paths=paths)
    if not exists:
        _say(f"no index {name!r} yet: building it from {data}")
        steps = build_events(
            name, data, indexes=paths.indexes, config=IndexingConfig(), encoder=encoder, format="pandachat"
        )
        with progress_bar() as bar:
            tasks: dict[str, Any] = {}
            for step in steps:
                if step.stage not in tasks:
                    tasks[step.stage] = bar.add_task(step.stage)
                bar.update(tasks[step.stage], completed=step.done, total=step.total)
    return open_index(name, paths.indexes), encoder


def _drawn(outcomes: Any, asked: _Asked, out: Path | None) -> PandachatResult:  # noqa: ANN401
    """What the generator returns, while a bar shows how many are done and how many of them right."""
    try:
        with closing(outcomes), progress_bar() as bar:
            return _exhausted(outcomes, bar, asked)
    except KeyboardInterrupt:
        kept = f"; what was retrieved is kept in {out}, and the same command goes on from there" if out else ""
        _say(f"stopped{kept}")
        raise typer.Exit(INTERRUPTED) from None


def _exhausted(outcomes: Any, bar: Progress, asked: _Asked) -> PandachatResult:  # noqa: ANN401
    task = bar.add_task("Retrieving", total=len(asked.questions))
    right = dict.fromkeys(asked.ks, 0)
    while True:
        try:
            outcome = next(outcomes)
        except StopIteration as stop:
            result: PandachatResult = stop.value
            return result
        right = {k: count + outcome.right_at(k) for k, count in right.items()}
        words = ", ".join(f"top {k}: {count}" for k, count in right.items())
        bar.update(task, advance=1, description=f"Retrieving ({words})")


def _table(figures: Sequence[PandachatFigures], asked: _Asked) -> Table:
    """A line a system, what was counted here beside what was published."""
    from ragqa.evaluation.pandachat_report import PUBLISHED_ONLY, RUN, compared
    from ragqa.evaluation.pandachat_results import PUBLISHED_SOURCE

    table = Table(title=plain(f"PandaChat-RAG-sl: right of {len(asked.questions):,} questions"))
    table.add_column("system", overflow="fold")
    for k in asked.ks:
        table.add_column(f"top {k}", justify="right")
    table.add_column("published (2)", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("from")
    for line in compared(figures):
        table.add_row(
            plain(line.system),
            *(f"{row.n_right}" for row in line.rows or ()),
            *("" for _ in asked.ks[len(line.rows) :]),
            f"{line.published.n_right} of {line.published.n_questions}" if line.published else "",
            "–" if line.seconds is None else f"{line.seconds:.4f}",
            plain(line.origin if line.origin in {RUN, PUBLISHED_ONLY} else "file"),
            style="bold" if line.origin == RUN else "",
        )
    medians = [one.median_milliseconds for one in figures if one.median_milliseconds is not None]
    table.caption = plain(
        "Right at K: the question's document is among the first K sources, one a chunk, duplicates counted. Seconds: "
        f"mean of a question; those of files and published ones are of other machines. Published: {PUBLISHED_SOURCE}."
        + "".join(f" Median of this run: {median:.1f} ms a question." for median in medians)
    )
    return table


def _say(message: str) -> None:
    stderr().print(plain(message), soft_wrap=True)
