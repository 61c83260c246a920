"""`ragqa ask`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragqa.cli.options import reshaped
from ragqa.cli.output import plain, stderr, stdout
from ragqa.cli.tables import answer_panel, passage_table, relevance_group, scores_group
from ragqa.errors import ConfigError, RagqaError
from ragqa.plugins.registry import RETRIEVERS, listed
from ragqa.records.recorder import words_per_second
from ragqa.records.store import RecordStore
from ragqa.records.trace_words import trace_words
from ragqa.records.view import View, advance
from ragqa.settings.config import Config, FusionConfig, settings_at, with_values
from ragqa.settings.paths import Paths
from ragqa.settings.schema import Place, SettingSpec
from ragqa.types import Question
from ragqa.types.events.generation import TraceEvent
from ragqa.types.events.pipeline import Answered, Recorded, Selected
from ragqa.types.events.scoring import RelevanceMeasured, Scored
from ragqa.types.scores import ScoringMode

if TYPE_CHECKING:
    from rich.status import Status

    from ragqa.pipeline import Pipeline


def with_setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the command's ``**given`` by one option per setting; None or False if the option is not given."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    fixed = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
    return reshaped(command, [*fixed, *map(_parameter, settings_at(Place.OPTION))])


def _parameter(setting: SettingSpec) -> inspect.Parameter:
    flag = f"--{(setting.option or setting.key).replace('_', '-')}"
    kind: Any = type(setting.default)
    if setting.choices:
        make: Any = StrEnum  # typer lists its values in ``--help``
        kind = make(f"{setting.key.title()}Choice", {str(name).upper(): str(name) for name in setting.choices})
    default = False if kind is bool else None
    kind = kind if kind is bool else kind | None
    annotation = Annotated[kind, typer.Option(flag, help=setting.brief)]
    return inspect.Parameter(setting.key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@with_setting_options
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")] = "",
    follow: Annotated[
        str | None,
        typer.Option(help="Id of the record it follows: the question is rewritten, shown, and asked of that corpus."),
    ] = None,
    instead: Annotated[
        str | None, typer.Option("--as", help="With --follow: ask this in place of the rewriting.")
    ] = None,
    index: Annotated[str | None, typer.Option(help="Corpus, as listed by `ragqa index list`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record as JSON and nothing else.")] = False,
    preset: Annotated[str | None, typer.Option(help="Preset, by name or as a preset file.")] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(help=f"Weight of a ranking, as bm25=3; repeatable; others get 0. Rankings: {listed(RETRIEVERS)}."),
    ] = None,
    batch: Annotated[
        Path | None, typer.Option(help="Questionnaire (.xlsx, .csv): answer each question of a column; needs --out.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="With --batch: file for its rows and answers; run again, it continues.")
    ] = None,
    column: Annotated[str, typer.Option(help='With --batch: head of the column; default: "question".')] = "",
    **given: Any,  # noqa: ANN401 - a value for each setting
) -> None:
    """Answer a question from a corpus and score the answer: passages, answer, RePASs."""
    _check_batch(question, follow, batch, out, column, as_json=as_json)
    if instead and not follow:
        msg = "--as changes the rewriting of a follow-up, got no --follow; name the record that the question follows"
        raise ConfigError(msg)
    before = RecordStore(Paths.from_env().records).load(follow) if follow else None
    config = with_preset(Config.from_env(), preset)
    chosen = {name: value for name, value in given.items() if value is not None and value is not False}
    if chosen.get("local_model"):
        chosen = {"generator": "llm"} | chosen
    elif "model" in chosen and "local_model" not in chosen:
        chosen["local_model"] = ""
    config = with_values(replace(config, index=index or (before.index if before else config.index)), chosen)
    shares = _shares(weight) if weight else config.fusion.weights
    config = replace(
        config, fusion=replace(config.fusion, weights=FusionConfig.of(config.fusion.method, **shares).weights)
    )
    if batch and out:
        from ragqa.cli.questionnaire import answer_batch

        answer_batch(batch, out, column, config)
        return
    asked = Question(question)
    if before:
        asked = _standing_alone(question, before.record_id, config, instead)
    answer_all([asked], config, as_json=as_json)


def _check_batch(
    question: str, follow: str | None, batch: Path | None, out: Path | None, column: str, *, as_json: bool
) -> None:
    """Raises ConfigError where a question and a file of questions are mixed, or neither is given."""
    if batch and out and not (question or follow or as_json):
        return
    if batch:
        raise ConfigError("--batch expects --out and no question, --follow or --json; name the file for its answers")
    if out or column:
        raise ConfigError("--out and --column need a questionnaire, got no --batch; name the file of questions")
    if not question.strip():
        msg = "The question is empty; put one in quotes behind the command, or name a file of questions: --batch"
        raise ConfigError(msg)


def _standing_alone(asked: str, record_id: str, config: Config, instead: str | None) -> Question:
    """The follow-up rewritten to stand alone, or ``instead``; printed before retrieval starts."""
    from ragqa.conversation import follow_up

    found = follow_up(asked, record_id, RecordStore(Paths.from_env().records), config.generation)
    text = instead or found.rewritten
    err = stderr()
    err.print(plain(f"Asked as: {text}", style="bold"))
    if found.note:
        err.print(plain(found.note, style="dim"))
    if text == found.rewritten != asked:
        err.print(plain(f'Rewritten by {found.by} from "{asked}"; --as "…" asks something else.', style="dim"))
    return Question(text, follow_up=found)


def answer_all(questions: Sequence[Question], config: Config, *, as_json: bool) -> None:
    """Answers or checks each question and prints the results; the models are loaded once.

    Of several, one that fails does not keep the others from being read: its error is printed, and raised at the end.
    """
    from ragqa.pipeline import load_pipeline

    paths, err = Paths.from_env(), stderr()
    failed: list[RagqaError] = []
    with err.status("Loading the models") as status:
        pipeline = load_pipeline(config, paths)
        if not pipeline.index.manifest.has_vectors:
            err.print(plain("no vectors in this index: lexical only", style="dim"))
        for question in questions:
            status.update("Retrieving passages")
            if len(questions) > 1 and not as_json:
                stdout().print(plain(question.title, style="bold"))
            try:
                _show(pipeline, question, status, as_json=as_json)
            except RagqaError as error:
                if len(questions) == 1:
                    raise
                failed.append(error)
                err.print(plain(f"{question.question_id or question.title}: {error}", style="red"))
    if failed:
        msg = f"{len(failed)} of {len(questions)} texts could not be read; the lines above say why"
        raise type(failed[-1])(msg)


def _show(pipeline: Pipeline, question: Question, status: Status, *, as_json: bool) -> None:
    """Prints results as their events arrive; the status shows the current stage."""
    config, out, view = pipeline.config, stdout(), View(question, pipeline.config)
    for event in pipeline.run(question):
        view = advance(view, event)
        status.update(plain(view.phase))
        passages = view.selection.passages if view.selection else ()
        match event:
            case Selected(selection) if not as_json:
                out.print(passage_table(selection))
            case Selected(selection) if config.generation.generator == "none" and not question.given:
                typer.echo(json.dumps(asdict(selection), ensure_ascii=False, indent=2))
            case _ if isinstance(event, TraceEvent):
                if not question.given:  # for a checked text, the passages say which sentence found them
                    stderr().print(plain(trace_words(event), style="dim"))
            case Answered(answer) if not as_json:
                out.print(answer_panel(answer, passages))
            case RelevanceMeasured(relevance) if not as_json:
                out.print(relevance_group(relevance))
            case Scored(paper, script) if not as_json:
                shown, other = (paper, script) if config.scoring.mode is ScoringMode.PAPER else (script, paper)
                out.print(scores_group(shown, passages, other))
            case Recorded(record_id) if as_json:
                typer.echo(RecordStore(Paths.from_env().records).load(record_id).to_json())
            case Recorded(record_id, seconds):
                times = ", ".join(f"{stage} {value:.2f} s" for stage, value in seconds.items())
                pace = words_per_second(view.answer.raw if view.answer else "", seconds)
                times += f", {pace:.1f} words a second" if pace else ""
                out.print(plain(f"record {record_id}; {times}", style="dim"))


def with_preset(config: Config, name: str | None) -> Config:
    """The settings, with those of the preset or preset file ``name`` if one is given."""
    if not name:
        return config
    from ragqa.settings import presets  # modules that a question by default does not need
    from ragqa.settings.preset_files import find_preset

    return presets.with_preset(config, find_preset(name, Paths.from_env().presets))


def _shares(weights: list[str]) -> dict[str, float]:
    """``["bm25=3", "dense=2"]`` as a mapping. Raises ConfigError."""
    shares = {}
    for weight in weights:
        name, _, share = weight.partition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError as error:
            msg = f"--weight must be RANKING=SHARE, for example bm25=0.6, got {weight!r}; correct it and try again"
            raise ConfigError(msg) from error
    return shares
