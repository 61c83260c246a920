"""ObliQA retrieval as the page runs it: every question ranked, kept and measured, then the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from ragqa.ui import resources
from ragqa.ui.benchmarks.request import config_of
from ragqa.ui.benchmarks.runs import Job
from ragqa.ui.benchmarks.view import Column, Comparison, Download, Figure, Hit, Line, Row, View

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldUnit
    from ragqa.evaluation.retrieval import Result
    from ragqa.evaluation.retrieval_run import RetrievalOutcome

SHOWN_HITS: Final = 10
MEASURES: Final[dict[str, tuple[str, ...]]] = {
    "passage": ("R@10", "AP@10", "nDCG@10", "RR@10", "R@100"),
    "document": ("Success@1", "Success@2", "R@10", "AP@10", "RR@10"),
}
EXPLAINED: Final = {
    "R": "share of the gold found",
    "AP": "mean average precision: gold early counts more",
    "nDCG": "discounted gain, against the ideal order",
    "RR": "mean of 1 / rank of the first gold",
    "Success": "share of questions with gold among the first",
}


def retrieval_work(job: Job) -> Iterator[View]:
    """The views of one run. Raises ConfigError, CorpusError, IndexingError, ModelError, RecordError."""
    from ragqa.corpus.questions import load_gold
    from ragqa.evaluation.retrieval import compare
    from ragqa.evaluation.retrieval_report import FUSED, report_of, write_outputs
    from ragqa.evaluation.retrieval_run import open_retrieval_folder, run_retrieval, stamp_of

    request, questions = job.request, Path(job.request.questions)
    view = View(request, phase="Loading the index and its models (once)")
    yield view
    pipeline = resources.pipeline(config_of(request, job.paths), job.paths)
    index, config = pipeline.index, pipeline.config
    gold, unit = load_gold(questions, index.passages)
    names = [retriever.name for retriever in pipeline.retrievers]
    view = replace(view, phase="Retrieving", total=len(gold[: request.limit]), columns=_columns(unit))
    yield view
    outcomes: list[RetrievalOutcome] = []
    stamp = stamp_of(index, questions, config.retrieval, config.fusion)
    with open_retrieval_folder(job.folder, stamp, names, restart=job.restart) as folder:
        run = run_retrieval(
            *(index, pipeline.retrievers, gold, config.retrieval, config.fusion, unit),
            limit=request.limit,
            folder=folder,
        )
        for outcome in run:
            outcomes.append(outcome)
            rows = (*view.rows, _row(outcome, unit))
            view = replace(view, done=len(outcomes), rows=rows, figures=_figures(outcomes, unit))
            yield view
            if job.stopped.is_set():
                run.close()
                break
        yield replace(view, phase="Measuring")
        results = _results(outcomes, len(gold), unit, config.fusion)
        comparisons = compare(results, FUSED)
        spent = {FUSED: 1000 * median(outcome.seconds for outcome in outcomes)}
        report = report_of(index.name, index, len(outcomes), results, comparisons, spent)
        write_outputs(job.folder, [outcome.gold for outcome in outcomes], results, report)
    yield replace(view, comparison=_comparison(results, unit, len(outcomes)), downloads=_downloads())


def _results(outcomes: Sequence[RetrievalOutcome], n_all: int, unit: GoldUnit, fusion: object) -> tuple[Result, ...]:
    from ragqa.evaluation.retrieval_run import RetrievalRun

    return RetrievalRun(tuple(outcomes), n_all, unit).results(fusion)  # type: ignore[arg-type]


def _columns(unit: GoldUnit) -> tuple[Column, ...]:
    return tuple(Column(name, name) for name in MEASURES[unit])


def _row(outcome: RetrievalOutcome, unit: GoldUnit) -> Row:
    gold = outcome.gold
    hits = tuple(
        Hit(
            hit.passage.passage_id,
            hit.passage.document_id,
            float(hit.score),
            (hit.passage.passage_id if unit == "passage" else hit.passage.document_id) in gold.gold,
        )
        for hit in outcome.fused.hits[:SHOWN_HITS]
    )
    return Row(
        number=outcome.number,
        question_id=gold.question.question_id,
        question=gold.question.text,
        right=outcome.values["R@10"] >= 1,
        values={name: outcome.values[name] for name in MEASURES[unit]},
        hits=hits,
        gold=tuple(sorted(gold.gold)),
        steps=(f"Ranked in {1000 * outcome.seconds:.0f} ms.",),
        kept=outcome.kept,
    )


def _figures(outcomes: Sequence[RetrievalOutcome], unit: GoldUnit) -> tuple[Figure, ...]:
    from ragqa.evaluation.measures import display_name

    means = [
        Figure(
            display_name(name),
            f"{fmean(outcome.values[name] for outcome in outcomes):.3f}",
            f"{EXPLAINED[name.partition('@')[0]]} {name.partition('@')[2]}".strip()
            if name.startswith("Success")
            else EXPLAINED[name.partition("@")[0]],
        )
        for name in MEASURES[unit]
    ]
    spent = 1000 * median(outcome.seconds for outcome in outcomes)
    return (*means, Figure("Time", f"{spent:.0f} ms", "median of a question, on this machine"))


def _comparison(results: Sequence[Result], unit: GoldUnit, n_questions: int) -> Comparison:
    from ragqa.evaluation.measures import display_name
    from ragqa.evaluation.published_retrieval import PUBLISHED_RETRIEVAL

    names = MEASURES[unit]
    headings = tuple(display_name(name) for name in names)
    ours = [
        Line(
            "fused, the settings' own" if number == 0 else f"{result.name} alone",
            tuple(f"{result.means[name]:.3f}" for name in names),
            "this run",
            number == 0,
        )
        for number, result in enumerate(results)
    ]
    if unit == "document":
        words = f"{n_questions:,} questions; gold are documents, for which no figures were published."
        return Comparison(headings, tuple(ours), words)
    published = [
        Line(
            row.name,
            (f"{row.recall:.3f}", f"{row.mean_average_precision:.3f}", *("" for _ in names[2:])),
            f"{row.source.partition(',')[0]}, table {row.table}",
        )
        for row in sorted(PUBLISHED_RETRIEVAL, key=lambda row: -row.recall)
    ]
    words = (
        f"This run: {n_questions:,} questions. Published: other people's systems over the 2,786 test questions of "
        "ObliQA, as their papers of 2024 and 2025 print them; they compare with a run over that file only."
    )
    return Comparison(headings, (*ours, *published), words)


def _downloads() -> tuple[Download, ...]:
    return (
        Download("Ranking (TREC run)", "fused.run", "text/plain"),
        Download("Every question (JSON lines)", "fused.questions.jsonl", "application/jsonl"),
        Download("Report (JSON)", "report.json"),
    )
