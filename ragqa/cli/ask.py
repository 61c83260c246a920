"""`ragqa ask`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragqa.cli.output import stderr, stdout
from ragqa.cli.tables import answer_panel, passage_table, plain, relevance_group, scores_group
from ragqa.errors import ConfigError
from ragqa.generation.trace_words import trace_words
from ragqa.plugins.registry import GENERATORS, RERANKERS, RETRIEVERS, listed
from ragqa.records.recorder import words_per_second
from ragqa.records.store import RecordStore
from ragqa.settings.config import Config, FilteringConfig, FusionConfig, RerankingConfig, option_help
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import find_preset
from ragqa.types import Question, Selection
from ragqa.types.events.generation import TraceEvent, Working
from ragqa.types.events.pipeline import Answered, Fused, Recorded, Reranked, Retrieved, Selected
from ragqa.types.events.scoring import ObligationScored, RelevanceMeasured, Scored, SentenceScored
from ragqa.types.scores import ScoringMode

if TYPE_CHECKING:
    from rich.status import Status

    from ragqa.pipeline import Pipeline


class Bm25Choice(StrEnum):
    """Which library ranks by words."""

    BM25S = "bm25s"
    RANK_BM25 = "rank_bm25"


class FusionChoice(StrEnum):
    """How rankings are merged."""

    WSUM = "wsum"
    RRF = "rrf"


class FilterChoice(StrEnum):
    """How the list of passages is ended."""

    LIMITS = "limits"
    EXPECTED_F2 = "expected-f2"


def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    follow: Annotated[
        str | None,
        typer.Option(help="Record that it follows: rewritten to stand alone, shown, and asked of that corpus."),
    ] = None,
    instead: Annotated[
        str | None, typer.Option("--as", help="With --follow: ask this in place of the rewriting.")
    ] = None,
    index: Annotated[str | None, typer.Option(help="Corpus, as listed by `ragqa index list`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record as JSON and nothing else.")] = False,
    preset: Annotated[str | None, typer.Option(help="Preset, by name or as a preset file.")] = None,
    generator: Annotated[
        str | None, typer.Option(help=f"Who writes: {listed(GENERATORS)}; none: passages only.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Language model, as the server names it; `ragqa models` lists them.")
    ] = None,
    local_model: Annotated[
        str | None, typer.Option(help="Language model on this machine: of `ragqa models list`, or a GGUF file.")
    ] = None,
    mode: Annotated[ScoringMode | None, typer.Option(help="RePASs definition.")] = None,
    fusion: Annotated[FusionChoice | None, typer.Option(help="How rankings are merged.")] = None,
    bm25_library: Annotated[Bm25Choice | None, typer.Option(help="Which library ranks by words.")] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Share of a ranking, as bm25=3; repeatable, those not named count 0. Of {listed(RETRIEVERS)}."
        ),
    ] = None,
    reranker: Annotated[
        str | None,
        typer.Option(help=f"Rerank the best passages: {listed(RERANKERS)} or hub name."),
    ] = None,
    rerank_depth: Annotated[int | None, typer.Option(help="Passages the reranker reads.")] = None,
    rerank_weight: Annotated[float | None, typer.Option(help="The reranker's share of the score, 0 to 1.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Lowest relevance kept, 0 to 1.")] = None,
    max_drop: Annotated[float | None, typer.Option(help="A fall this large ends the list, 0 to 1 (1 = off).")] = None,
    top_k: Annotated[int | None, typer.Option(help="Most passages kept.")] = None,
    filter_method: Annotated[
        FilterChoice | None, typer.Option(help="limits: the three above; expected-f2: a learned cut.")
    ] = None,
    quote_anyway: Annotated[
        bool, typer.Option("--quote-anyway", help="direct, llm: the nearest sentences instead of a refusal.")
    ] = False,
    candidates: Annotated[int | None, typer.Option(help=option_help("candidates"))] = None,
    rounds: Annotated[int | None, typer.Option(help=option_help("rounds"))] = None,
    tries: Annotated[int | None, typer.Option(help=option_help("tries"))] = None,
    sub_questions: Annotated[int | None, typer.Option(help=option_help("max_sub_questions"))] = None,
    depth: Annotated[int | None, typer.Option(help=option_help("depth"))] = None,
    max_calls: Annotated[int | None, typer.Option(help=option_help("max_calls"))] = None,
) -> None:
    """Answer a question from a corpus and score the answer: passages, answer, RePASs."""
    if instead and not follow:
        msg = "--as changes the rewriting of a follow-up, got no --follow; name the record that the question follows"
        raise ConfigError(msg)
    before = RecordStore(Paths.from_env().records).load(follow) if follow else None
    config = with_preset(Config.from_env(), preset)
    shares = _shares(weight) if weight else config.fusion.weights
    fused = FusionConfig.of(fusion.value if fusion else config.fusion.method, **shares)
    filtering = FilteringConfig(
        _or(threshold, config.filtering.threshold),
        _or(max_drop, config.filtering.max_drop),
        top_k if top_k is not None else config.filtering.top_k,
        filter_method.value if filter_method else config.filtering.method,
    )
    chosen: dict[str, Any] = {
        "generator": generator or ("llm" if local_model else None),
        "quote_anyway": quote_anyway or None,
        "model": model,
        "local_model": "" if model and local_model is None else local_model,
        "candidates": candidates,
        "rounds": rounds,
        "tries": tries,
        "max_sub_questions": sub_questions,
        "depth": depth,
        "max_calls": max_calls,
    }
    config = replace(
        config,
        index=index or (before.index if before else config.index),
        retrieval=replace(config.retrieval, bm25_backend=bm25_library.value) if bm25_library else config.retrieval,
        fusion=fused,
        reranking=RerankingConfig(
            reranker if reranker is not None else config.reranking.model,
            rerank_depth if rerank_depth is not None else config.reranking.depth,
            _or(rerank_weight, config.reranking.weight),
        ),
        filtering=filtering,
        generation=replace(config.generation, **{name: value for name, value in chosen.items() if value is not None}),
        scoring=replace(config.scoring, mode=mode or config.scoring.mode),
    )
    asked = Question(question)
    if before:
        asked = _standing_alone(question, before.record_id, config, instead)
    answer_all([asked], config, as_json=as_json)


def _standing_alone(asked: str, record_id: str, config: Config, instead: str | None) -> Question:
    """The follow-up as it is asked of the corpus, which is said before anything is looked up."""
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
    """Answers, or checks, each of these and prints what comes of it; everything is loaded once."""
    from ragqa.pipeline import load_pipeline

    paths, err = Paths.from_env(), stderr()
    with err.status("Loading the models") as status:
        pipeline = load_pipeline(config, paths)
        if not pipeline.index.manifest.has_vectors:
            err.print(plain("no vectors in this index: lexical only", style="dim"))
        for question in questions:
            status.update("Retrieving passages")
            if len(questions) > 1 and not as_json:
                stdout().print(plain(question.title, style="bold"))
            _show(pipeline, question, status, as_json=as_json)


def _show(pipeline: Pipeline, question: Question, status: Status, *, as_json: bool) -> None:
    config, out, err = pipeline.config, stdout(), stderr()
    written, selection = "", Selection((), ())
    for event in pipeline.run(question):
        match event:
            case Retrieved(rankings):
                status.update(f"Retrieved {' + '.join(str(len(r.hits)) for r in rankings)} passages")
            case Fused(ranking):
                status.update(f"Fused into {len(ranking.hits)} candidates")
            case Reranked(ranking):
                status.update(f"Reranked the best {min(config.reranking.depth, len(ranking.hits))} candidates")
            case Selected(selection):
                status.update("Comparing" if question.given else "Writing the answer")
                if not as_json:
                    out.print(passage_table(selection))
                elif config.generation.generator == "none" and not question.given:
                    typer.echo(json.dumps(asdict(selection), ensure_ascii=False, indent=2))
            case Working(phase):
                status.update(phase)
            case _ if isinstance(event, TraceEvent):
                if question.given:  # the table of passages says which sentence found what
                    continue
                err.print(plain(trace_words(event), style="dim"))
            case Answered(answer):
                written = answer.raw
                status.update("Scoring the answer")
                if not as_json:
                    out.print(answer_panel(answer, selection.passages))
            case RelevanceMeasured(relevance) if not as_json:
                out.print(relevance_group(relevance))
            case SentenceScored(_, done, total):
                status.update(f"Scoring the answer: {done} of {total} sentences final")
            case ObligationScored(_, done, total):
                status.update(f"Scoring the answer: {done} of {total} obligations final")
            case Scored(paper, script) if not as_json:
                shown, other = (paper, script) if config.scoring.mode is ScoringMode.PAPER else (script, paper)
                out.print(scores_group(shown, selection.passages, other))
            case Recorded(record_id, seconds):
                if as_json:
                    typer.echo(RecordStore(Paths.from_env().records).load(record_id).to_json())
                else:
                    times = ", ".join(f"{stage} {value:.2f} s" for stage, value in seconds.items())
                    pace = words_per_second(written, seconds)
                    times += f", {pace:.1f} words a second" if pace else ""
                    out.print(plain(f"record {record_id}; {times}", style="dim"))


def with_preset(config: Config, name: str | None) -> Config:
    """The settings with this preset's in place of theirs; its index too, where it was chosen on one."""
    if name is None:
        return config
    preset = find_preset(name, Paths.from_env().presets)
    return replace(
        config,
        index=preset.index or config.index,
        retrieval=preset.retrieval,
        fusion=preset.fusion,
        reranking=preset.reranking,
        filtering=preset.filtering,
    )


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


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
