"""`ragqa eval answers | compare`: many questions answered and scored, and runs of them side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TextColumn

from ragqa.cli.answer_tables import comparison_tables, report_table
from ragqa.cli.ask import with_preset
from ragqa.cli.output import progress_bar, stderr, stdout
from ragqa.config import Config
from ragqa.errors import ConfigError
from ragqa.paths import Paths
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.evaluation.answer_folder import AnswerFolder
    from ragqa.evaluation.answer_run import Outcome
    from ragqa.pipeline import Pipeline

NOT_ALL_SCORED, INTERRUPTED = 5, 130  # exit codes, as of `ragqa score`

Questions = Annotated[Path, typer.Option(help="JSON list of {QuestionID, Question}; gold is not needed.")]
IndexName = Annotated[str, typer.Option(help="Which corpus.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")]
Parallel = Annotated[int, typer.Option(min=1, max=64, help="Questions asked of a language model at the same time.")]
PriceIn = Annotated[float | None, typer.Option(min=0, help="Price of a million tokens sent, for the cost.")]
PriceOut = Annotated[float | None, typer.Option(min=0, help="Price of a million tokens written.")]
Restart = Annotated[bool, typer.Option("--restart", help="Throw away what the folder holds and begin anew.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is carried out; nothing here decides an answer."""

    limit: int | None = None
    parallel: int = 1
    prices: tuple[float, float] | None = None
    restart: bool = False
    docids: Path | None = None


def answers(
    questions: Questions,
    out: Annotated[Path, typer.Option(help="Keep every answer here as it comes, and go on from there after a stop.")],
    index: IndexName = "rulebook",
    generator: Annotated[
        str | None, typer.Option(help="Who writes, as `ragqa ask` has it; the environment's choice without it.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Named settings, as on the page, or a file of them.")] = None,
    limit: Limit = None,
    parallel: Parallel = 1,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    restart: Restart = False,
    docids: Annotated[
        Path | None,
        typer.Option(help="ObliQA's documents: the run names their item IDs, as the shared task asks."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer many questions through the page's own pipeline, score each answer, write the shared task's files.

    Killed or stopped, the same command goes on: what was answered is never asked again. Exit codes beyond the common
    ones: 5 where a question got no answer or no score (the same command tries it again), 130 after Ctrl-C.
    """
    from ragqa.pipeline import load_pipeline

    options = RunOptions(limit, parallel, prices_of(price_in, price_out), restart, docids)
    config = replace(with_preset(Config.from_env(), preset), index=index)
    if generator:
        config = replace(config, generation=replace(config.generation, generator=generator))
    with stderr().status("Loading the models"):
        pipeline = load_pipeline(config, Paths.from_env(), recording=False)
    report = run_answers(pipeline, questions, out, options)
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        stdout().print(report_table(report))
    if report["counts"]["failed"] or report["counts"]["left"]:
        raise typer.Exit(NOT_ALL_SCORED)


def compare(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of `ragqa eval answers`, finished; the first is the baseline.")
    ],
    as_json: AsJson = False,
) -> None:
    """Runs side by side on the questions they share: means, paired differences, and what was published."""
    from ragqa.evaluation.answer_comparison import compare_runs, load_run
    from ragqa.evaluation.published import PUBLISHED

    runs = [load_run(folder) for folder in folders]
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        runs = [replace(run, name=str(folder)) for run, folder in zip(runs, folders, strict=True)]
    means, comparisons = compare_runs(runs)
    shown = [row for row in PUBLISHED if row.table == "5"]
    if as_json:
        found = {
            "runs": {
                run.name: {"means": of_run, "unscored": run.n_unscored} for run, of_run in zip(runs, means, strict=True)
            },
            "comparisons": [asdict(comparison) for comparison in comparisons],
            "published": [asdict(row) for row in shown],
        }
        typer.echo(json.dumps(found, indent=2))
        return
    stdout().print(*comparison_tables(runs, means, comparisons, shown))


def prices_of(price_in: float | None, price_out: float | None) -> tuple[float, float] | None:
    """Both prices, or None where neither is given. Raises ConfigError where one is missing."""
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        msg = f"--price-in and --price-out go together, got {price_in} and {price_out}; give both or neither"
        raise ConfigError(msg)
    return price_in, price_out


def run_answers(
    pipeline: Pipeline, questions: Path, out: Path, options: RunOptions, variant: str = ""
) -> dict[str, Any]:
    """Answers and scores what is still open in this folder, writes its files, and gives the report.

    Raises ConfigError where the generator writes nothing, and typer.Exit(130) after Ctrl-C.
    """
    from ragqa.corpus.obliqa import load_item_ids
    from ragqa.corpus.questions import load_asked
    from ragqa.evaluation.answer_files import report_of, write_outputs
    from ragqa.evaluation.answer_folder import items_of, open_answer_folder, stamp_of
    from ragqa.evaluation.answer_run import AnswerRun, Status, outcome_of

    if pipeline.generator is None:
        msg = "the generator must write answers, got 'none'; name another with --generator"
        raise ConfigError(msg)
    names = load_item_ids(options.docids) if options.docids else None
    items = items_of(load_asked(questions))[: options.limit]
    with open_answer_folder(out, stamp_of(pipeline, questions, variant), restart=options.restart) as folder:
        outcomes = [outcome_of(item, folder) for item in items]
        done = {Status.SCORED, Status.EMPTY}
        pending = [outcome.item for outcome in outcomes if outcome.status not in done]
        _announce(folder, outcomes, len(pending))
        if pending:
            _answer(AnswerRun(pipeline, pending, folder, options.parallel), outcomes, options, out)
        outcomes = [outcome_of(item, folder) for item in items]
        report = report_of(folder, outcomes, options.prices)
        write_outputs(folder, outcomes, report, names)
    return report


def _announce(folder: AnswerFolder, outcomes: Sequence[Outcome], n_pending: int) -> None:
    if folder.journal.dropped_torn_line:
        _say(f"{folder.folder}: dropped an entry that was only half written; it is made again")
    if n_pending == len(outcomes) and not any(outcome.n_begun for outcome in outcomes):
        return
    standings = [folder.standing(outcome.item) for outcome in outcomes]
    unscored = sum(s.answered_at is not None and s.scored is None for s in standings)
    broken_off = sum(bool(s.n_begun) and s.answered_at is None and not s.failed for s in standings)
    also = f", {unscored:,} of them only to be scored" if unscored else ""
    if broken_off:
        also += f"; {broken_off:,} were under way when the last run ended, and are asked again"
    _say(f"going on: {len(outcomes) - n_pending:,} answers are done already, {n_pending:,} are left{also}")


def _answer(run: Any, outcomes: Sequence[Outcome], options: RunOptions, out: Path) -> None:  # noqa: ANN401
    spent = _Spent(options.prices, len(outcomes), outcomes)
    try:
        with progress_bar() as bar:
            bar.columns = (*bar.columns, TextColumn("{task.fields[cost]}"))
            known = sum(outcome.values is not None for outcome in outcomes)
            task = bar.add_task("Answering", total=len(outcomes), completed=known, cost=spent.words)
            for outcome in run.outcomes():
                spent.add(outcome)
                bar.update(task, advance=1, cost=spent.words)
                if outcome.note:
                    bar.console.print(plain(f"question {outcome.item.number}: {outcome.note}"), soft_wrap=True)
    except KeyboardInterrupt:
        run.stop()
        _say("stopping: what is under way is received and kept first; press Ctrl-C again to stop at once")
        run.wait()
        _say(f"stopped; what was answered is kept in {out}. The same command, without --restart, goes on from there")
        raise typer.Exit(INTERRUPTED) from None


class _Spent:
    """Tokens and money so far, and what all of it will come to."""

    def __init__(self, prices: tuple[float, float] | None, total: int, before: Sequence[Outcome]) -> None:
        self._prices, self._total = prices, total
        self._usage = {outcome.item.number: outcome.usage for outcome in before if outcome.values is not None}

    def add(self, outcome: Outcome) -> None:
        self._usage[outcome.item.number] = outcome.usage

    @property
    def words(self) -> str:
        """``"12,000 + 3,400 tokens, 0.12 of about 1.20"``; empty where no server was asked."""
        sent = sum(usage.prompt_tokens for usage in self._usage.values())
        written = sum(usage.completion_tokens for usage in self._usage.values())
        if not sent + written:
            return ""
        words = f"{sent:,} + {written:,} tokens"
        if self._prices:
            money = (sent * self._prices[0] + written * self._prices[1]) / 1_000_000
            words += f", {money:.2f} of about {money * self._total / len(self._usage):.2f}"
        return words


def _say(message: str) -> None:
    stderr().print(plain(message), soft_wrap=True)
