"""PandaChat-RAG-sl as the page runs it: the index is built where there is none, then question by question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragqa.config import IndexingConfig
from ragqa.errors import IndexNotFoundError
from ragqa.paths import Paths
from ragqa.ui import resources
from ragqa.ui.benchmarks.request import config_of
from ragqa.ui.benchmarks.runs import Job
from ragqa.ui.benchmarks.view import Column, Comparison, Download, Figure, Hit, Line, Row, View

if TYPE_CHECKING:
    from ragqa.evaluation.pandachat import PandachatOutcome, PandachatResult

KS: Final = (1, 2)
COLUMNS: Final = (Column("top1", "top 1", 0), Column("top2", "top 2", 0), Column("ms", "ms", 0))


def pandachat_work(job: Job) -> Iterator[View]:
    """The views of one run. Raises ConfigError, CorpusError, IndexingError, ModelError, RecordError."""
    from ragqa.corpus.pandachat import load_pandachat_questions
    from ragqa.evaluation.pandachat import N_SOURCES, PandachatResult, check_index, ranker_of, run_pandachat
    from ragqa.evaluation.pandachat_folder import open_pandachat_folder, stamp_of
    from ragqa.evaluation.pandachat_submission import submission_file_name

    request, data = job.request, Path(job.request.questions)
    view = View(request, phase="Reading the data set")
    yield view
    questions = load_pandachat_questions(data)
    for phase in _building(request.index, data, job.paths):
        if job.stopped.is_set():
            yield replace(view, total=len(questions[: request.limit]))
            return
        yield replace(view, phase=phase)
    yield replace(view, phase="Loading the index and its models (once)")
    pipeline = resources.pipeline(config_of(request, job.paths), job.paths)
    index, config = pipeline.index, pipeline.config
    check_index(index, data)
    view = replace(view, phase="Retrieving", total=len(questions[: request.limit]), columns=COLUMNS)
    yield view
    ranker = ranker_of(pipeline.retrievers, config.retrieval, config.fusion)
    system = ", ".join(part for part in (f"ragqa-{Path(index.manifest.encoder).name}", request.preset) if part)
    stamp = stamp_of(index, data, config.retrieval, config.fusion, N_SOURCES)
    outcomes: list[PandachatOutcome] = []
    outputs = (submission_file_name(system), f"{submission_file_name(system)}_results.json", "report.json")
    with open_pandachat_folder(job.folder, stamp, outputs, restart=job.restart) as folder:
        run = run_pandachat(index, ranker, questions, limit=request.limit, folder=folder)
        for outcome in run:
            outcomes.append(outcome)
            view = replace(view, done=len(outcomes), rows=(*view.rows, _row(outcome)), figures=_figures(outcomes))
            yield view
            if job.stopped.is_set():
                run.close()
                break
        result = PandachatResult(tuple(outcomes), len(questions))
        _write(job.folder, result, system, data)
    yield replace(view, comparison=_comparison(result, system), downloads=_downloads(system))


def _building(name: str, data: Path, paths: Paths) -> Iterator[str]:
    """Builds the index where there is none of that name; how far it is, in words."""
    from ragqa.indexing import build_events, index_info
    from ragqa.loading import load_encoder

    try:
        index_info(name, paths.indexes)
    except IndexNotFoundError:
        yield f"Building the index {name}: loading the encoder"
        config = IndexingConfig()
        encoder = load_encoder(config.encoder, paths=paths)
        steps = build_events(name, data, indexes=paths.indexes, config=config, encoder=encoder, format="pandachat")
        for step in steps:
            yield f"Building the index {name}: {step.stage}, {step.done:,} of {step.total:,}"


def _row(outcome: PandachatOutcome) -> Row:
    hits = tuple(
        Hit(hit.passage.passage_id, hit.passage.document_id, float(hit.score), source == outcome.document)
        for hit, source in zip(outcome.hits, outcome.sources, strict=True)
    )
    return Row(
        number=outcome.number,
        question_id=outcome.question.question_id,
        question=outcome.question.text,
        right=outcome.right_at(2),
        values={"top1": float(outcome.right_at(1)), "top2": float(outcome.right_at(2)), "ms": outcome.milliseconds},
        hits=hits,
        gold=(outcome.document,),
        steps=(f"Ranked in {outcome.milliseconds:.0f} ms, the question's encoding included.",),
        kept=outcome.kept,
    )


def _figures(outcomes: Sequence[PandachatOutcome]) -> tuple[Figure, ...]:
    import statistics

    n = len(outcomes)
    right = {k: sum(outcome.right_at(k) for outcome in outcomes) for k in KS}
    spent = statistics.median(outcome.milliseconds for outcome in outcomes)
    return (
        Figure("Top 2", f"{right[2]:,} of {n:,}", "right: the document is among the first two sources, as published"),
        Figure("Top 1", f"{right[1]:,} of {n:,}", "right: the document is the first source"),
        Figure("Time", f"{spent:.0f} ms", "median of a question, on this machine"),
    )


def _write(folder: Path, result: PandachatResult, system: str, data: Path) -> None:
    """The submission, what is right in it, and the report; the benchmark's results where all questions were asked."""
    from ragqa.corpus.pandachat import load_pandachat_questions
    from ragqa.evaluation.pandachat_report import figures_of_run, report_of, write_report
    from ragqa.evaluation.pandachat_submission import read_submission, submission_file_name, write_submission
    from ragqa.evaluation.run_folder import translated

    n_asked, questions = len(result.outcomes), load_pandachat_questions(data)
    path = folder / submission_file_name(system)
    with translated(folder):
        write_submission(path, result.submission(system, data))
    figures = [figures_of_run(result, system, KS)]
    report = report_of(figures, data, n_asked, result.n_all)
    write_report(folder, report, figures, {path.name: read_submission(path, questions, n_asked)}, KS)


def _comparison(result: PandachatResult, system: str) -> Comparison:
    from ragqa.evaluation.pandachat_report import RUN, compared, figures_of_run
    from ragqa.evaluation.pandachat_results import N_QUESTIONS, PUBLISHED_SOURCE

    lines = []
    for line in compared([figures_of_run(result, system, KS)]):
        cells = [f"{row.n_right:,} of {row.n_questions:,} ({row.percent:.1f}%)" for row in line.rows]
        if not cells and line.published:
            cells = ["", f"{line.published.n_right:,} of {N_QUESTIONS} ({line.published.percent:.1f}%)"]
        seconds = "–" if line.seconds is None else f"{line.seconds:.3f}"
        ours = line.origin == RUN
        lines.append(Line(line.system, (*cells, seconds), "this run" if ours else "published", ours))
    asked = f"This run: {len(result.outcomes):,} of {result.n_all:,} questions"
    few = "; figures of all questions are the ones to compare" if len(result.outcomes) < result.n_all else ""
    words = (
        f"{asked}{few}. Published: other people's figures at top 2, {PUBLISHED_SOURCE}; their seconds are of other "
        "machines. Seconds: mean of a question."
    )
    return Comparison(("top 1", "top 2", "seconds"), tuple(lines), words)


def _downloads(system: str) -> tuple[Download, ...]:
    from ragqa.evaluation.pandachat_submission import submission_file_name

    name = submission_file_name(system)
    return (
        Download("Submission (PandaChat JSON)", name),
        Download("Submission with what is right (JSON)", f"{name}_results.json"),
        Download("Report (JSON)", "report.json"),
    )
