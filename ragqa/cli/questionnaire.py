"""`ragqa ask --batch`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragqa.cli.output import plain, progress_bar, stderr
from ragqa.errors import ConfigError, QuestionError, RagqaError
from ragqa.records.questionnaire import Questionnaire, failure, reply
from ragqa.records.view import View, advance
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import Question

if TYPE_CHECKING:
    from ragqa.pipeline import Pipeline


def answer_batch(file: Path, out: Path, column: str, config: Config) -> None:
    """Answers each question of the file that has no answer in ``out``; the models are loaded once.

    A failed row holds its error, and the run continues. Raises as `Questionnaire`; ConfigError for the generator none.
    """
    from ragqa.pipeline import load_pipeline

    if config.generation.generator == "none":
        raise ConfigError("--batch writes answers, got the generator 'none'; choose another --generator")
    sheet, err = Questionnaire(file, out, column), stderr()
    sheet.save()
    waiting, failed = sheet.waiting, 0
    if waiting:
        with err.status("Loading the models"):
            pipeline = load_pipeline(config, Paths.from_env())
        with progress_bar() as bar:
            for row, question in bar.track(waiting.items(), total=len(waiting), description="Questions"):
                try:
                    sheet.put(row, reply(_answered(pipeline, question)))
                except RagqaError as error:
                    sheet.put(row, failure(error))
                    err.print(plain(f"row {row}: {error}", style="red"))
                    failed += 1
    known = len(sheet.questions) - len(waiting)
    words = f"{len(waiting) - failed} questions answered, {failed} failed, {known} were answered before"
    err.print(plain(f"{words}; wrote {out}"))


def _answered(pipeline: Pipeline, question: str) -> View:
    if question.startswith("="):
        msg = "expected a question, found a formula that was never computed; open the file in Excel and save it again"
        raise QuestionError(msg)
    asked = Question(question)
    view = View(asked, pipeline.config)
    for event in pipeline.run(asked):
        view = advance(view, event)
    return view
