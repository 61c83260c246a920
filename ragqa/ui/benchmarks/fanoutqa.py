"""FanOutQA as the page runs it: a language model asked in one of three settings, or answers checked and scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from ragqa.config import Config, api_key
from ragqa.ui import resources
from ragqa.ui.benchmarks.request import Request, config_of
from ragqa.ui.benchmarks.runs import Job
from ragqa.ui.benchmarks.view import Column, Comparison, Download, Figure, Line, Matched, Row, View

if TYPE_CHECKING:
    from ragqa.corpus.fanoutqa import FanOutQuestion
    from ragqa.evaluation.fanoutqa_metrics import Metrics
    from ragqa.evaluation.fanoutqa_run import Progress
    from ragqa.evaluation.fanoutqa_solvers import Sources
    from ragqa.evaluation.fanoutqa_text import Normaliser

COLUMNS: Final = (Column("loose", "loose"), Column("strict", "strict", 0), Column("rouge1", "ROUGE-1"))
HEADINGS: Final = ("loose", "strict", "ROUGE-1", "ROUGE-2", "ROUGE-L", "BLEURT", "judge")


def fanoutqa_work(job: Job) -> Iterator[View]:
    """The views of one run. Raises RagqaError, GenerationError when several questions in a row got no answer."""
    from ragqa.corpus.fanoutqa import load_fanoutqa
    from ragqa.evaluation.fanoutqa_judge_folder import measuring
    from ragqa.evaluation.fanoutqa_text import load_normaliser

    request = job.request
    view = View(request, phase="Loading the lemmatiser", columns=COLUMNS)
    yield view
    questions = load_fanoutqa(Path(request.questions))
    has_answers = all(question.answer is not None for question in questions)
    if request.generations and not has_answers:
        yield _checked(view, questions)
        return
    normaliser = load_normaliser()
    with ExitStack() as stack:
        metrics = stack.enter_context(measuring(questions, normaliser, job.folder))
        stream, stamp = _stream(job, questions, normaliser, metrics, stack)
        view = replace(view, phase="Scoring" if request.generations else "Answering")
        rows: dict[int, Row] = {}
        numbers = {question.question_id: n for n, question in enumerate(questions, start=1)}
        result = None
        while not job.stopped.is_set():
            try:
                progress = next(stream)
            except StopIteration as stop:
                result = stop.value
                break
            row = _row(numbers[progress.outcome.question.question_id], progress)
            rows[row.number] = row
            ordered = tuple(rows[number] for number in sorted(rows))
            view = replace(
                view, done=progress.done, total=progress.total, rows=ordered, figures=_figures(ordered, metrics)
            )
            yield view
        stream.close()
        if result is None:
            words = "Stopped: figures and files come with the end of a run. What was answered is kept."
            yield replace(view, notes=(words,))
            return
        report = _written(job.folder, result, stamp)
    yield replace(
        view,
        figures=_figures(view.rows, metrics),
        comparison=_comparison(report, request),
        downloads=_downloads(),
        notes=tuple(_missing(report)),
    )


def _stream(
    job: Job, questions: Sequence[FanOutQuestion], normaliser: Normaliser, metrics: Metrics | None, stack: ExitStack
) -> tuple[Any, Mapping[str, Any]]:
    """The run as a generator and its stamp; its folder is open until ``stack`` is."""
    from ragqa.evaluation.fanoutqa_run import (
        open_run_folder,
        run_fanoutqa,
        run_generations,
        scoring_stamp,
        stamp_of,
    )
    from ragqa.evaluation.fanoutqa_settings import generation_for
    from ragqa.evaluation.fanoutqa_solvers import setting_of, solver_for
    from ragqa.evaluation.fanoutqa_submission import answers_to
    from ragqa.generation.client import ChatClient

    request = job.request
    if request.generations:
        answers = answers_to(questions, Path(request.generations))
        stamp = scoring_stamp(questions, answers)
        stack.enter_context(open_run_folder(job.folder, stamp, restart=job.restart))
        assert metrics is not None  # noqa: S101 - questions with answers can be measured
        return run_generations(questions[: request.limit], answers, metrics), stamp
    config = generation_for(Config.from_env().generation)
    client = ChatClient(config, api_key())
    solver = solver_for(setting_of(request.setting), client, config, _sources(job, questions, normaliser))
    stamp = stamp_of(questions, solver, config)
    folder = stack.enter_context(open_run_folder(job.folder, stamp, restart=job.restart))
    return run_fanoutqa(questions, solver, folder, metrics, limit=request.limit), stamp


def _sources(job: Job, questions: Sequence[FanOutQuestion], normaliser: Normaliser) -> Sources:
    from ragqa.corpus.fanoutqa import revisions_of
    from ragqa.evaluation.fanoutqa_pages import open_pages
    from ragqa.evaluation.fanoutqa_solvers import DEFAULT_CONTEXT, Sources, index_search

    request, search, pages = job.request, None, None
    if request.index:
        search = index_search(resources.pipeline(config_of(request, job.paths), job.paths))
    if request.pages:
        pages = open_pages(request.pages, job.paths.home / "wikipedia", revisions_of(tuple(questions)))
    return Sources(normaliser, pages, search, request.context or DEFAULT_CONTEXT)


def _checked(view: View, questions: Sequence[FanOutQuestion]) -> View:
    """Answers to the test set, which nobody outside can score: whether the leaderboard would take them."""
    from ragqa.evaluation.fanoutqa_submission import check_generations, read_generations

    path = Path(view.request.generations)
    check = check_generations(path, {question.question_id for question in questions})
    verdict = "The leaderboard's rules take this file." if check.is_valid else "The leaderboard would refuse this file."
    notes = (f"{verdict} {check.n:,} answers to {len(questions):,} questions.", *check.problems[:50], *check.notes)
    answers = read_generations(path) if check.is_valid else {}
    rows = tuple(
        Row(n, question.question_id, question.question.text, answer=answers.get(question.question_id))
        for n, question in enumerate(questions, start=1)
        if question.question_id in answers
    )
    figures = (Figure("Answers", f"{check.n:,} of {len(questions):,}", "the test set's references are not public"),)
    return replace(
        view,
        columns=(),
        rows=rows,
        figures=figures,
        notes=notes,
        done=len(questions),
        total=len(questions),
        comparison=leaderboard_of(view.request),
    )


def _row(number: int, progress: Progress) -> Row:
    outcome, score = progress.outcome, progress.score
    row = Row(
        number=number,
        question_id=outcome.question.question_id,
        question=outcome.question.question.text,
        answer=outcome.answer,
        steps=tuple(map(_step, outcome.steps)),
        note=outcome.note,
    )
    if score is None:
        return replace(row, right=False if outcome.failed else None)
    rouge = None if score.rouge is None else score.rouge["rouge1"].fscore
    judged = f"The judge said {score.judging.letter}." if score.judging and score.judging.letter else ""
    return replace(
        row,
        right=score.is_strict,
        values={"loose": float(score.accuracy), "strict": float(score.is_strict), "rouge1": rouge},
        matches=tuple(Matched(match.reference, match.found) for match in score.matches),
        note=" ".join(filter(None, (outcome.note, score.note, judged))),
    )


def _step(step: Mapping[str, Any]) -> str:
    name = str(step.get("step", ""))
    rest = "; ".join(f"{key} {value}" for key, value in step.items() if key != "step")
    return f"{name}: {rest}" if rest else name


def _figures(rows: Sequence[Row], metrics: Metrics | None) -> tuple[Figure, ...]:
    answered = Figure("Answered", f"{sum(row.answer is not None for row in rows):,} of {len(rows):,}")
    if metrics is None or not rows:
        return (answered,)
    loose = fmean(row.values.get("loose") or 0.0 for row in rows)
    strict = fmean(row.values.get("strict") or 0.0 for row in rows)
    return (
        Figure("Loose", f"{loose:.3f}", "mean share of the reference's strings that stand in the answer"),
        Figure("Strict", f"{strict:.3f}", "share of questions whose whole reference does"),
        answered,
    )


def _written(folder: Path, result: Any, stamp: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    from ragqa.evaluation.fanoutqa_files import report_of, write_outputs

    report = report_of(result, stamp)
    write_outputs(folder, result, report)
    return report


def leaderboard_of(request: Request, ours: Sequence[Line] = ()) -> Comparison:
    """The published rows of the request's setting, below ours where there are any."""
    from ragqa.evaluation.fanoutqa_leaderboard import READ_ON, SOURCE, leaderboard
    from ragqa.evaluation.fanoutqa_solvers import setting_of

    setting = setting_of(request.setting)
    published = [
        Line(
            f"{row.name} ({row.citation})",
            tuple(
                f"{value:.3f}"
                for value in (row.loose, row.strict, row.rouge1, row.rouge2, row.rougeL, row.bleurt, row.judge)
            ),
            "published",
        )
        for row in leaderboard(setting)
    ]
    caption = f"Published: {setting}, 724 test questions, other people's figures from {SOURCE}, as read on {READ_ON}."
    return Comparison(HEADINGS, (*ours, *published), caption)


def _comparison(report: Mapping[str, Any], request: Request) -> Comparison:
    scores, model = report["scores"], report["run"].get("model", "answers given")
    if scores is None:
        name, cells = f"{model}: not scored, the test set's answers are not public", ("–",) * len(HEADINGS)
    else:
        rouge = scores["rouge"] or {}
        figures = (
            *(scores["acc"]["loose"], scores["acc"]["strict"]),
            *(rouge[kind]["fscore"] if rouge else None for kind in ("rouge1", "rouge2", "rougeL")),
            *(scores["bleurt"], scores["gpt"]),
        )
        name, cells = model, tuple("–" if value is None else f"{value:.3f}" for value in figures)
    counts = report["counts"]
    found = leaderboard_of(request, (Line(name, cells, "this run", True),))
    return replace(
        found, caption=f"This run: {counts['answered']:,} of {counts['questions']:,} questions. {found.caption}"
    )


def _missing(report: Mapping[str, Any]) -> Iterator[str]:
    if report["counts"]["failed"]:
        yield f"{report['counts']['failed']:,} questions got no answer; run it again to try them once more."
    if report["counts"]["pages_missing"]:
        yield f"Pages that the source does not have: {report['counts']['pages_missing']:,}."
    for part in (report["scores"] or {}).get("missing", ()):
        yield f"Not here: {part['metric']}, since {part['reason']}. To get it: {part['remedy']}"


def _downloads() -> tuple[Download, ...]:
    return (
        Download("Generations (FanOutQA JSON lines)", "generations.jsonl", "application/jsonl"),
        Download("Every question with what matched (JSON)", "details.json"),
        Download("Report (JSON)", "report.json"),
    )
