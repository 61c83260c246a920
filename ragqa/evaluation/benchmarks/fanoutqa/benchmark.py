"""`ragqa eval fanoutqa`: asks a language model in one of three settings, or scores or checks existing answers.

The test set's answers are not public: a model's answers to it are stored for the leaderboard, and a file of answers to
it is checked against the leaderboard's rules; neither is scored.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from ragqa.evaluation.benchmark import LIMIT, PARALLEL, Benchmark, Item, Json, Option, Settings, Status, Task
from ragqa.evaluation.benchmarks.fanoutqa import reporting
from ragqa.evaluation.benchmarks.fanoutqa.evidence import index_search, open_pages
from ragqa.evaluation.benchmarks.fanoutqa.instruments import JudgeSettings, LlmJudge, load_metrics, load_normaliser
from ragqa.evaluation.benchmarks.fanoutqa.metrics import Metrics, Normaliser, score_one
from ragqa.evaluation.benchmarks.fanoutqa.questions import (
    FanOutQuestion,
    load_fanoutqa,
    looks_like_fanoutqa,
    revisions_of,
)
from ragqa.evaluation.benchmarks.fanoutqa.reporting import COLUMNS, FILES, UNSOLVED, FanOutContext
from ragqa.evaluation.benchmarks.fanoutqa.settings import (
    DEFAULT_CONTEXT,
    MAX_SEARCHES,
    LeaderboardSetting,
    Solver,
    Sources,
    generation_for,
    setting_of,
    solver_for,
)
from ragqa.evaluation.benchmarks.fanoutqa.submission import SUBMISSION, answers_to, check_generations, read_generations
from ragqa.evaluation.files import has_answers
from ragqa.evaluation.loading import config_of, pipeline_for
from ragqa.generation.llm.client import ChatClient
from ragqa.infra.journal import digest
from ragqa.settings.config import Config, GenerationConfig
from ragqa.settings.environment import api_key, has_llm
from ragqa.settings.paths import Paths

SCHEMA_VERSION = 1


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Questions, model or answers, and metrics. Raises ConfigError, CorpusError, IndexingError, ModelError."""
    yield "Reading the questions"
    setting, questions = setting_of(settings["setting"]), load_fanoutqa(Path(settings["questions"]))
    given = Path(settings["generations"]) if settings["generations"] else None
    items = tuple(Item(number, question.question, question) for number, question in enumerate(questions, start=1))
    can_score = all(question.answer is not None for question in questions)
    if given and not can_score:
        check = check_generations(given, {question.question_id for question in questions})
        answers = read_generations(given) if check.is_valid else {}
        stamp = _stamp("FanOutQA, answers checked", questions, answers=asdict(check) | answers)
        return Task(items, stamp, FanOutContext(setting, answers=answers, check=check, n_questions=len(items)))
    answers = answers_to(questions, given) if given else {}
    yield "Loading the lemmatiser"
    normaliser = load_normaliser(settings["lemmatiser"])
    judged_by = JudgeSettings.from_env()
    judge = LlmJudge(judged_by) if judged_by and can_score else None
    metrics = load_metrics(normaliser, judge) if can_score else None
    if given:
        loaded, stamp = (
            FanOutContext(setting, None, answers, metrics),
            _stamp("FanOutQA, answers given", questions, answers),
        )
    else:
        config = generation_for(Config.from_env().generation)
        sources = yield from _sources(setting, settings, questions, normaliser, paths)
        solver = solver_for(setting, ChatClient(config, api_key()), config, sources)
        loaded, stamp = FanOutContext(setting, solver, None, metrics), stamp_of(questions, solver, config)
    return Task(
        items,
        stamp,
        loaded,
        COLUMNS if metrics else (),
        _scoring(metrics, judged_by) if metrics else {},
        settings["parallel"],
        partial(judge.caching, items) if judge else nullcontext,
    )


def _sources(
    setting: LeaderboardSetting,
    settings: Settings,
    questions: Sequence[FanOutQuestion],
    normaliser: Normaliser,
    paths: Paths,
) -> Generator[str, None, Sources]:
    """The sources of text of this setting; options of other settings are ignored."""
    index = pages = None
    if settings["index"] and setting is LeaderboardSetting.OPEN_BOOK:
        yield "Loading the index and its models (once)"
        index = index_search(pipeline_for(config_of({**settings, "generator": "none"}, paths), paths))
    if settings["pages"] and setting is not LeaderboardSetting.CLOSED_BOOK:
        yield "Reading the pages"
        pages = open_pages(settings["pages"], paths.home / "wikipedia", revisions_of(questions))
    return Sources(normaliser, pages, index, settings["context"], settings["searches"])


def stamp_of(questions: Sequence[FanOutQuestion], solver: Solver, config: GenerationConfig) -> dict[str, Any]:
    """What identifies a run: questions, setting, model and all that decides an answer; no key and no time limits."""
    return _stamp("FanOutQA", questions) | {
        "setting": str(solver.setting),
        "model": config.model,
        "base_url": config.without_credentials().base_url,
        **({"local_model": config.without_credentials().local_model} if config.local_model else {}),
        "temperature": config.temperature,
        "max_tokens": config.max_tokens,
        "seed": config.seed,
        **solver.described(),
    }


def _stamp(name: str, questions: Sequence[FanOutQuestion], answers: Json | None = None) -> dict[str, Any]:
    asked = [[question.question_id, question.question.text] for question in questions]
    stamp = {"schema_version": SCHEMA_VERSION, "benchmark": name, "questions_sha256": digest({"questions": asked})}
    return stamp if answers is None else stamp | {"answers_sha256": digest(answers)}


def _scoring(metrics: Metrics, judge: JudgeSettings | None) -> dict[str, Any]:
    return {
        "lemmatiser": metrics.normaliser.lemmatiser,
        "through": metrics.normaliser.through,
        "rouge": metrics.rouge is not None,
        "bleurt": metrics.bleurt is not None,
        "judge": judge.digest if judge else "",
    }


def solve(task: Task, item: Item) -> Json:
    """The answer, from the model or the file (None: it has none), with steps, tokens and a note for the reader."""
    loaded: FanOutContext = task.context
    if loaded.solver is None:
        return {**UNSOLVED, "answer": (loaded.answers or {}).get(item.question.question_id)}
    answer, steps = loaded.solver.solve(item.content)
    return {"answer": answer.text, "steps": list(steps), "usage": asdict(answer.usage), "note": answer.note}


def score(task: Task, item: Item, solution: Json) -> Json:
    """Every metric available; nothing for the test set. The next run tries again what the judge could not judge."""
    metrics = task.context.metrics
    if metrics is None:
        return {"status": Status.EMPTY, "note": solution["note"]}
    found = score_one(item.content, solution["answer"], metrics)
    return {
        "status": Status.EMPTY if solution["answer"] is None else Status.SCORED,
        "note": " ".join(filter(None, (solution["note"], found.note))),
        "again": metrics.judge is not None and found.judging is None,
        "score": asdict(found),
    }


def lacks(settings: Settings) -> str:
    """What is missing for a run with these settings, in words."""
    if settings["generations"]:
        return ""
    if not has_llm():
        return reporting.NO_MODEL
    has_text = settings["pages"] or (settings["index"] and settings["setting"] == LeaderboardSetting.OPEN_BOOK)
    if settings["setting"] == LeaderboardSetting.CLOSED_BOOK or has_text:
        return ""
    return "This setting needs the text of Wikipedia's pages: name a folder or file of them, or an api.php."


BENCHMARK: Final = Benchmark.of(
    vars(reporting) | globals(),
    name="fanoutqa",
    title="FanOutQA",
    description=(
        "Questions that many Wikipedia pages answer together. Needs a language model, or a file of answers to check "
        "and score.\n\nThe language model is the one of OPENAI_BASE_URL, OPENAI_API_KEY and RAGQA_MODEL; the judge has "
        "a key of its own (RAGQA_JUDGE_KEY) and is off without it."
    ),
    options=(
        Option(
            "questions",
            "fanout-final-dev.json or fanout-final-test.json.",
            "file",
            label="Questions",
            accepts="fanout-final-dev.json or fanout-final-test.json",
            counts=lambda path: len(load_fanoutqa(path)),
            suits=looks_like_fanoutqa,
        ),
        Option(
            "setting",
            "Setting of the benchmark and its leaderboard.",
            "choice",
            str(LeaderboardSetting.CLOSED_BOOK),
            choices=tuple(map(str, LeaderboardSetting)),
            label="Setting",
        ),
        Option(
            "generations",
            "Score these answers (JSON lines of {id, answer}) instead of asking a model; check those to the test set.",
            "file",
            label="Answers to score",
            accepts="JSON lines of {id, answer}",
            counts=lambda path: len(read_generations(path)),
            suits=has_answers,
            optional=True,
        ),
        Option(
            "pages",
            "Wikipedia's text: a folder or JSON lines of {title, text}, or an api.php.",
            label="Wikipedia pages",
            when=lambda settings: settings["setting"] != LeaderboardSetting.CLOSED_BOOK and not settings["generations"],
        ),
        Option(
            "index",
            "open-book: search this index instead of pages.",
            "index",
            label="Index instead of pages",
            optional=True,
            when=lambda settings: settings["setting"] == LeaderboardSetting.OPEN_BOOK and not settings["generations"],
        ),
        Option("context", "The model's context in tokens.", "int", DEFAULT_CONTEXT),
        Option("searches", "open-book: largest number of searches a question; 0: one, by ragqa.", "int", MAX_SEARCHES),
        Option("lemmatiser", "auto, none, or the folder of a spaCy pipeline.", default="auto"),
        replace(LIMIT, when=lambda settings: not settings["generations"]),  # scoring all takes seconds
        PARALLEL,
    ),
    published=reporting.published_report,
    right="every string of the reference stands in the answer",
    doing="Answering",
    outputs=tuple(file.name for file in FILES),
    commands=(SUBMISSION,),
)
