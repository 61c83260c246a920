"""`ragqa eval fanoutqa`: the multi-document benchmark in its three settings, or answers that are there already."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragqa.cli.fanoutqa_tables import missing_lines, result_table
from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.config import Config, api_key
from ragqa.paths import Paths
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.fanoutqa import FanOutQuestion
    from ragqa.evaluation.fanoutqa_metrics import Metrics
    from ragqa.evaluation.fanoutqa_run import RunResult
    from ragqa.evaluation.fanoutqa_solvers import Sources
    from ragqa.evaluation.fanoutqa_text import Normaliser

NOT_ALL_ANSWERED, INTERRUPTED = 5, 130

Questions = Annotated[Path, typer.Option(help="fanout-final-dev.json or fanout-final-test.json.")]
Out = Annotated[Path, typer.Option(help="Keep every answer here as it comes, and go on from there after a stop.")]

Restart = Annotated[bool, typer.Option("--restart", help="Throw away what the folder holds and begin anew.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


@dataclass(frozen=True, slots=True)
class _Options:
    """What the user chose, besides the setting; see `fanoutqa`."""

    pages: str | None
    index: str | None
    context: int
    searches: int
    limit: int | None
    parallel: int
    restart: bool


def fanoutqa(
    questions: Questions,
    out: Out,
    setting: Annotated[
        str, typer.Option(help="closed-book, open-book or evidence-provided; also which leaderboard is shown.")
    ] = "closed-book",
    generations: Annotated[
        Path | None, typer.Option(help="Score these answers (JSON lines of {id, answer}) instead of asking a model.")
    ] = None,
    pages: Annotated[
        str | None, typer.Option(help="Wikipedia's text: a folder or JSON lines of {title, text}, or an api.php.")
    ] = None,
    index: Annotated[str | None, typer.Option(help="open-book: search this index instead of pages.")] = None,
    context: Annotated[int, typer.Option(help="The model's context in tokens.")] = 128_000,
    searches: Annotated[int, typer.Option(help="open-book: most searches a question; 0: one, by ragqa.")] = 30,
    lemmatiser: Annotated[str, typer.Option(help="auto, none, or the folder of a spaCy pipeline.")] = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")] = None,
    parallel: Annotated[int, typer.Option(min=1, max=64, help="Questions asked at the same time.")] = 1,
    restart: Annotated[
        bool, typer.Option("--restart", help="Throw away what the folder holds and begin anew.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """FanOutQA in one of its settings: answers, kept as they come, and the benchmark's own metrics of them.

    The language model is the one of OPENAI_BASE_URL, OPENAI_API_KEY and RAGQA_MODEL; the judge has a key of its own
    (RAGQA_JUDGE_KEY) and is off without it. Exit codes beyond the common ones: 5 where a question got no answer (the
    same command tries it again), 130 after Ctrl-C.
    """
    from ragqa.corpus.fanoutqa import load_fanoutqa
    from ragqa.evaluation.fanoutqa_judge_folder import measuring
    from ragqa.evaluation.fanoutqa_solvers import setting_of
    from ragqa.evaluation.fanoutqa_text import load_normaliser

    options = _Options(pages, index, context, searches, limit, parallel, restart)
    chosen, asked = setting_of(setting), load_fanoutqa(questions)
    with stderr().status("Loading the lemmatiser"):
        normaliser = load_normaliser(lemmatiser)
    with ExitStack() as stack:
        metrics = stack.enter_context(measuring(asked, normaliser, out))
        if generations:
            report, result = _scored(asked[:limit], generations, metrics, out, restart=restart)
        else:
            report, result = _answered(asked, chosen, normaliser, metrics, out, options)
    if as_json:
        typer.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        stdout().print(result_table(report, chosen), *missing_lines(report), sep="\n")
    if any(outcome.answer is None for outcome in result.outcomes) and not generations:
        raise typer.Exit(NOT_ALL_ANSWERED)


def _answered(
    questions: tuple[FanOutQuestion, ...],
    setting: Any,  # noqa: ANN401 - `Setting`, imported only when a command runs
    normaliser: Normaliser,
    metrics: Metrics | None,
    out: Path,
    options: _Options,
) -> tuple[dict[str, Any], RunResult]:
    from ragqa.evaluation.fanoutqa_files import report_of, write_outputs
    from ragqa.evaluation.fanoutqa_run import open_run_folder, run_fanoutqa, stamp_of
    from ragqa.evaluation.fanoutqa_settings import generation_for
    from ragqa.evaluation.fanoutqa_solvers import solver_for
    from ragqa.generation.client import ChatClient

    config = generation_for(Config.from_env().generation)
    solver = solver_for(setting, ChatClient(config, api_key()), config, _sources(questions, normaliser, options))
    with open_run_folder(out, stamp_of(questions, solver, config), restart=options.restart) as folder:
        stream = run_fanoutqa(questions, solver, folder, metrics, limit=options.limit, parallel=options.parallel)
        result = _followed(stream, len(questions[: options.limit]), out)
        report = report_of(result, folder.stamp)
        write_outputs(out, result, report)
    return report, result


def _followed(stream: Any, total: int, out: Path) -> RunResult:  # noqa: ANN401
    """The result of the run, its progress on standard error. Raises typer.Exit(130) after Ctrl-C."""
    sums = [0.0, 0.0, 0.0]
    try:
        with progress_bar() as bar:
            task = bar.add_task("Answering", total=total)
            while True:
                try:
                    progress = next(stream)
                except StopIteration as stop:
                    found: RunResult = stop.value
                    return found
                if progress.score is not None:
                    sums = [sums[0] + 1, sums[1] + progress.score.accuracy, sums[2] + progress.score.is_strict]
                words = (
                    f"Answering (loose {sums[1] / sums[0]:.3f}, strict {sums[2] / sums[0]:.3f})" if sums[0] else None
                )
                bar.update(task, completed=progress.done, description=words)
                if progress.outcome.note:
                    note = f"{progress.outcome.question.question_id}: {progress.outcome.note}"
                    bar.console.print(plain(note), soft_wrap=True)
    except KeyboardInterrupt:
        message = (
            f"stopped; what was answered is kept in {out}. The same command, without --restart, goes on from there"
        )
        stderr().print(plain(message), soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def _scored(
    questions: tuple[FanOutQuestion, ...], generations: Path, metrics: Metrics | None, out: Path, *, restart: bool
) -> tuple[dict[str, Any], RunResult]:
    from ragqa.evaluation.fanoutqa_files import report_of, write_outputs
    from ragqa.evaluation.fanoutqa_run import open_run_folder, run_generations, scoring_stamp
    from ragqa.evaluation.fanoutqa_submission import answers_to

    answers = answers_to(questions, generations)
    assert metrics is not None  # noqa: S101 - questions with answers can be measured
    with open_run_folder(out, scoring_stamp(questions, answers), restart=restart) as folder:
        result = _followed(run_generations(questions, answers, metrics), len(questions), out)
        report = report_of(result, folder.stamp)
        write_outputs(out, result, report)
    return report, result


def _sources(questions: tuple[FanOutQuestion, ...], normaliser: Normaliser, options: _Options) -> Sources:
    from ragqa.corpus.fanoutqa import revisions_of
    from ragqa.evaluation.fanoutqa_pages import open_pages
    from ragqa.evaluation.fanoutqa_solvers import Sources, index_search

    paths = Paths.from_env()
    search = pages = None
    if options.index:
        from ragqa.pipeline import load_pipeline

        config = Config.from_env()
        without = replace(config, index=options.index, generation=replace(config.generation, generator="none"))
        with stderr().status("Loading the models"):
            search = index_search(load_pipeline(without, paths, recording=False))
    if options.pages:
        pages = open_pages(options.pages, paths.home / "wikipedia", revisions_of(questions))
    return Sources(normaliser, pages, search, options.context, options.searches)
