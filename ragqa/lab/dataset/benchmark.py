"""`ragqa dataset make`: the stages as one run of the engine that runs benchmarks.

::

    passages ──> topics ──> groups ──solve──> questions ──score──> validated ──> split, exported
    1-….jsonl    2-….json   3-….jsonl         4-….jsonl            5-….jsonl     6-….jsonl, export/, card.md

An item is a group. Its number is a digest of its content, so that a question that was written (and paid for) for the
same group is never requested again, whatever is edited before it.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from ragqa import loading
from ragqa.corpus.files import read_utf8
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.benchmark import INDEX, PARALLEL, Benchmark, Item, Json, Option, Outcome, Settings, Task
from ragqa.evaluation.loading import config_of, retrievers_of
from ragqa.evaluation.report import Comparison, Figure, File, Line, Report
from ragqa.evaluation.report import Row as Shown
from ragqa.generation.prompts import load_prompt
from ragqa.index import Index
from ragqa.infra.files import write_whole
from ragqa.infra.journal import digest, held, translated
from ragqa.infra.version import __version__
from ragqa.lab.dataset import rules
from ragqa.lab.dataset.exporting import export as export_files
from ragqa.lab.dataset.finishing import card, duplicates, in_proportion, relevant_only, split, statistics
from ragqa.lab.dataset.review import LABELS, decisions
from ragqa.lab.dataset.selecting import Plan, passages_of, topics_of
from ragqa.lab.dataset.stages import (
    GROUPS,
    PASSAGES,
    QUESTIONS,
    SPLIT,
    TOPICS,
    VALIDATED,
    Row,
    Stages,
    as_lines,
    rows_in,
    sha256_of,
    topics_in,
)
from ragqa.lab.dataset.validating import FUSED, RULES, SAID, Validator, judged
from ragqa.lab.dataset.writing import PROMPT, written
from ragqa.settings.config import Config, GenerationConfig, IndexingConfig, ScoringConfig
from ragqa.settings.environment import has_llm, prompt_folder
from ragqa.settings.paths import Paths
from ragqa.types import Passage, Question

VERSION: Final = 1  # of the stages' code; raise it to remake their files
CARD, REPORT = "card.md", "report.json"
BY_RULES: Final = "rules"
_GROUP: Final = ("id", "kind", "persona", "form", "passages")


@dataclass(frozen=True, slots=True)
class Made:
    """The context of a run. ``questions`` describes what the fourth file is made from."""

    stages: Stages
    settings: Settings
    index: Index
    config: GenerationConfig | None  # None: by rules
    validator: Validator
    questions: Json
    texts: Mapping[str, Row]  # the rows of the first stage by passage id

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """The passages of these ids. Raises CorpusError for an id that the index does not have."""
        lacking = [one for one in ids if one not in self.index.position_of]
        if lacking or not ids:
            found = f"{lacking[0]!r}, which it has not" if lacking else "none"
            msg = f"expected ids of passages of the index {self.index.name}, found {found}; correct the edited file"
            raise CorpusError(msg)
        return [self.index.passages[self.index.position_of[one]] for one in ids]


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Runs the first three stages and prepares the others. No other process may be writing into the folder.

    Raises ConfigError, CorpusError, IndexingError, ModelError, RecordError.
    """
    with held(Path(settings["folder"]), "writing"):
        return (yield from _loaded(settings, paths))


def _loaded(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    stages, by_rules = Stages(Path(settings["folder"])), settings["writer"] == BY_RULES
    yield "Loading the index and the models"
    config = config_of({"index": settings["index"]}, paths, reranks=False)
    writer = None if by_rules else _writer()
    index, retrievers, fusion = retrievers_of(config, paths)
    obligations = loading.load_obligations(config.scoring)
    nli = loading.load_nli(ScoringConfig().entailment_model, paths=paths)
    encoder = loading.load_encoder(IndexingConfig().encoder)
    index_sha = digest({"files": [entry.sha256 for entry in index.manifest.files]})
    base = {"version": VERSION, "index": index_sha, "seed": settings["seed"], "by_rules": by_rules}
    if settings["restart"]:  # not before all that it needs is there
        with translated(stages.folder):
            stages.forget()
    yield "Passages that oblige"
    shown = [one for one, hidden in zip(index.passages, index.hidden, strict=True) if not hidden]
    only = list(settings["only"] or ())
    text = stages.made(
        PASSAGES,
        {**base, "only": only, "obligations": obligations.info.fingerprint},
        lambda: as_lines(passages_of(shown, obligations, only, by_rules=by_rules)),
    )
    rows = rows_in(text, PASSAGES, ("id", "document", "section", "kinds", "text"))
    yield "Topics"
    given = settings["topics"]
    listed = read_utf8(Path(given), Path(given).name) if given else ""
    found = stages.made(
        TOPICS,
        {**base, "passages": sha256_of(stages.folder / PASSAGES), "given": listed},
        lambda: json.dumps(_topics(rows, listed, settings), indent=1, ensure_ascii=False) + "\n",
    )
    topics = topics_in(found, TOPICS)
    yield "Groups of related passages"
    made = Made(
        *(stages, settings, index, writer, Validator(index, retrievers, fusion, nli, encoder), {}),
        {row["id"]: row for row in rows},
    )
    plan = {**base, "topics": sha256_of(stages.folder / TOPICS), "passages": sha256_of(stages.folder / PASSAGES)}
    text = stages.made(
        GROUPS, {**plan, "n": settings["questions"]}, lambda: as_lines(_planned(made, rows, topics, by_rules=by_rules))
    )
    prompt = load_prompt(PROMPT, prompt_folder())
    stamp = {
        "input": index.name,
        "index_sha256": index_sha,
        "seed": settings["seed"],
        "writer": BY_RULES if writer is None else f"{writer.model or writer.local_model} ({prompt.version.version})",
        "generation": None if writer is None else _deciding(writer),
    }
    made = replace(made, questions={"groups": sha256_of(stages.folder / GROUPS), "stamp": stamp})
    scoring = {"version": VERSION, "nli": asdict(nli.info), "rankings": [one.name for one in retrievers]}
    scoring["fusion"] = asdict(fusion)
    items = _items(made, rows_in(text, GROUPS, _GROUP))
    return Task(items, stamp, made, (), json.loads(json.dumps(scoring, default=str)), settings["parallel"])


def _writer() -> GenerationConfig:
    if not has_llm():
        raise ConfigError(
            "expected a language model to write the questions, found none: set OPENAI_BASE_URL and RAGQA_MODEL, or "
            "RAGQA_LOCAL_MODEL (`ragqa models fetch`), or leave out --writer"
        )
    return replace(Config.from_env().generation, temperature=0.7)


def _deciding(config: GenerationConfig) -> Row:
    plain = asdict(config.without_credentials())
    return {name: plain[name] for name in ("model", "local_model", "temperature", "seed")}


def _topics(rows: Sequence[Row], listed: str, settings: Settings) -> dict[str, list[str]]:
    if listed:
        return topics_in(listed, str(settings["topics"]))
    return topics_of([row["text"] for row in rows], settings["seed"])


def _planned(made: Made, rows: Sequence[Row], topics: Mapping[str, Sequence[str]], *, by_rules: bool) -> list[Row]:
    def makes(row: Row) -> bool:
        return not by_rules or bool(_by_rules(row, made.passages(row["passages"]), made.settings["seed"]))

    joins = [not by_rules or rules.joins(made.passages([row["id"]])[0]) for row in rows]
    plan = Plan(rows, topics, made.settings["seed"], makes, joins)
    wanted = made.settings["questions"]
    return plan.drawn(wanted, made.index.links.cites, made.index.position_of, by_rules=by_rules)


def _by_rules(row: Row, passages: Sequence[Passage], seed: int) -> str:
    chance = random.Random(f"{seed}:{row['id']}")
    return rules.question(passages, row["kind"], row["persona"], row["form"], chance)


def _items(made: Made, groups: Sequence[Row]) -> list[Item]:
    """One item per entry of the third file, or of the fourth if it was edited; edited questions are kept."""
    if made.stages.is_edited(QUESTIONS) and made.stages.is_of(QUESTIONS, made.questions):
        text = read_utf8(made.stages.folder / QUESTIONS, QUESTIONS)
        edited = rows_in(text, QUESTIONS, (*_GROUP, "question"))
        groups = [_as_planned(row) for row in edited]
    items = []
    for row in groups:
        made.passages(row["passages"])
        identity = digest({key: row[key] for key in (*_GROUP, "question") if key in row})
        items.append(
            Item(int(identity[:12], 16), Question(str(row.get("question", row["id"])), row["id"]), row, identity)
        )
    return items


def _as_planned(row: Row) -> Row:
    """The group of a question; it includes the question if somebody edited that."""
    plain = {name: row.get(name, "") for name in ("id", "topic", "from", *_GROUP[1:])}
    is_as_written = row.get("written") == digest({"question": row["question"]})[:12]
    return plain if is_as_written else {**plain, "question": row["question"]}


def solve(task: Task, item: Item) -> Json:
    """The question; empty, with a note, if none could be written."""
    made, row = task.context, item.content
    passages = made.passages(row["passages"])
    if "question" in row:
        return {"question": row["question"], "by": "hand", "note": ""}
    if made.config is not None:
        return written(row, passages, made.config)
    return {"question": _by_rules(row, passages, made.settings["seed"]), "by": BY_RULES, "note": ""}


def score(task: Task, item: Item, solution: Json) -> Json:
    """The results of the models and rankings for the question, without a decision."""
    made, row = task.context, item.content
    if not solution["question"]:
        return {"status": "empty", "note": solution["note"] or "no template makes a question of it"}
    return made.validator.validated(solution["question"], made.passages(row["passages"]), row["kind"])  # type: ignore[no-any-return]


def row(task: Task, outcome: Outcome) -> Shown:
    """The question, its passages, and whether it is kept."""
    found, solution, scores = outcome.row(), outcome.solution, outcome.scores
    if solution is None or scores is None or "passages" not in scores:
        return found
    stay, why = judged(scores, task.context.settings["validation"])
    gold = tuple(outcome.item.content["passages"])
    return replace(found, question=solution["question"], right=bool(stay), gold=gold, note=why)


def figures(_: Task, rows: Sequence[Shown]) -> tuple[Figure, ...]:
    """The number of questions written, and the share that passed validation."""
    judged_rows = [one.right for one in rows if one.right is not None]
    share = f"{sum(judged_rows) / len(judged_rows):.2f}" if judged_rows else "–"
    return (
        Figure("Questions", f"{len(judged_rows):,}", "written so far"),
        Figure("Passed", share, "share that validation keeps"),
    )


def finished(task: Task, outcomes: Sequence[Outcome]) -> tuple[list[Row], dict[str, Any]]:
    """Runs stages four to six; returns the rows of the last one and the statistics."""
    made, stages = task.context, task.context.stages
    settings = made.settings
    with translated(stages.folder):
        done = [(one, one.solution or {}, one.scores or {}) for one in outcomes if one.is_done]
        asked = [(one, solution, scores) for one, solution, scores in done if solution.get("question")]
        if not stages.is_edited(QUESTIONS):
            stages.write(QUESTIONS, made.questions, as_lines(_question_row(one, text) for one, text, _ in asked))
        rule = {"rule": settings["validation"], "version": VERSION, "scoring": task.scoring}
        text = stages.made(
            VALIDATED,
            {**rule, "questions": sha256_of(stages.folder / QUESTIONS)},
            lambda: as_lines(_validated(asked, settings["validation"])),
        )
        validated = rows_in(text, VALIDATED, (*_GROUP, "question", "out", "ranks"))
        labels = decisions(stages.folder)
        last = {"validated": sha256_of(stages.folder / VALIDATED), "labels": sha256_of(stages.folder / LABELS)}
        last |= {key: settings[key] for key in ("questions", "seed", "harder_than")}
        text = stages.made(SPLIT, last, lambda: as_lines(_split(made, validated, labels)))
    rows = rows_in(text, SPLIT, (*_GROUP, "question", "split", "group", "ranks"))
    counts = {
        "passages in the corpus": len(made.index.passages),
        "passages that oblige, permit or define": len(made.texts),
        "of these, a kind of question fits": sum(bool(one["kinds"]) for one in made.texts.values()),
        "groups planned": len(outcomes),
        "questions written": len(asked),
        "passed validation": sum(not one["out"] or one["out"].startswith("near") for one in validated),
        "no near duplicate": sum(not one["out"] for one in validated),
        "in the data set": len(rows),
    }
    return rows, statistics(rows, counts, labels)


def _question_row(outcome: Outcome, solution: Json) -> Row:
    text = solution["question"]
    plain = {name: value for name, value in outcome.item.content.items() if name != "question"}
    return {**plain, "question": text, "by": solution["by"], "written": digest({"question": text})[:12]}


def _validated(asked: Sequence[tuple[Outcome, Json, Json]], rule: str) -> list[Row]:
    rows: list[Row] = []
    for outcome, solution, scores in asked:
        stay, why = judged(scores, rule)
        plain = _question_row(outcome, solution)
        del plain["written"]
        places = stay or range(len(plain["passages"]))  # a dropped question keeps all, in case somebody restores it
        kept = [plain["passages"][place] for place in places]
        ranks = {name: [of[place] for place in places] for name, of in scores["ranks"].items()}
        rows.append(
            {**plain, "passages": kept, "group": len(plain["passages"]), "out": why}
            | {"ranks": ranks, "checks": scores["passages"]}
        )
    staying = [row for row in rows if not row["out"]]
    for row, earlier in zip(staying, duplicates([row["question"] for row in staying]), strict=True):
        if earlier is not None:
            row["out"] = f"near duplicate of {staying[earlier]['id']}"
    return rows


def _split(made: Made, validated: Sequence[Row], labels: Mapping[str, str]) -> list[Row]:
    """As many questions as requested, in order, without passages that experts found irrelevant; each with its split."""
    rows: list[Row] = []
    for row in (relevant_only(one, labels) for one in validated):
        last = made.settings["harder_than"]
        is_hard = not last or any(rank is None or rank > last for rank in row["ranks"].get(FUSED, []))
        if not row["out"] and row["passages"] and is_hard:
            rows.append({key: row[key] for key in row if key not in ("out", "checks")})
    kept = in_proportion(rows, made.settings["questions"])
    sections = {
        one.passage_id: f"{one.document_id}\n{one.section}" if one.section else one.passage_id
        for row in kept
        for one in made.passages(row["passages"])
    }
    parts = split(kept, sections, made.settings["seed"])
    return [{**row, "split": part} for row, part in zip(kept, parts, strict=True)]


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """Counts of each stage and of the finished set."""
    rows, found = finished(task, outcomes)
    shown = [row(task, one) for one in outcomes if one.is_done]
    tables = [("Stages", found["stages"]), ("Splits", found["by_split"]), ("Kinds", found["by_kind"])]
    notes = Counter(re.split("[“(]", one.note)[0] for one in shown if one.note)
    tables.append(("Left out, because", dict(notes.most_common(8))))
    comparisons = tuple(
        Comparison(("questions",), tuple(Line(name, (f"{n:,}",)) for name, n in of.items()), title=title, first="")
        for title, of in tables
        if of
    )
    data = {"run": dict(task.stamp), "n": len(rows), **found}
    return Report(figures(task, shown), comparisons=comparisons, data=data)


def export(task: Task, outcomes: Sequence[Outcome], report: Report, folder: Path) -> Sequence[File]:
    """Writes the data card and every exported format."""
    made = task.context
    text = read_utf8(folder / SPLIT, SPLIT)
    rows = rows_in(text, SPLIT, (*_GROUP, "question", "split", "group"))
    gold = {one.passage_id: one for row in rows for one in made.passages(row["passages"])}
    shown = [one for one, hidden in zip(made.index.passages, made.index.hidden, strict=True) if not hidden]
    names = export_files(folder, rows, gold, shown)
    settings = made.settings
    command = (
        f"ragqa dataset make {settings['index']} --writer {settings['writer']} --questions {settings['questions']}"
    )
    stamp = {**task.stamp, "ragqa_version": __version__}
    with translated(folder):
        write_whole(folder / CARD, [card(made.index.name, report.data, stamp, f"{command} --seed {settings['seed']}")])
    del outcomes
    return [File("Data card", CARD, "text/markdown"), *(File(name, name) for name in names if "/all" in name)]


MAKE: Final = Benchmark.of(
    globals(),
    name="dataset",
    title="Data set",
    description="Makes a benchmark and training set of a corpus, as ObliQA was made: passages that oblige, topics, "
    "groups of related passages, questions, validation, splits. Each stage is a file that may be edited before the "
    "next stage begins.",
    options=(
        replace(INDEX, positional=True),
        Option(
            "questions",
            "Number of questions in the finished set.",
            "int",
            400,
            least=1,
            most=100_000,
            label="Questions",
        ),
        Option("writer", "Writer of the questions.", "choice", BY_RULES, (BY_RULES, "llm"), label="Written by"),
        Option(
            "validation", "Rule by which a question is kept.", "choice", "ours", RULES, label="Validation", said=SAID
        ),
        Option("seed", "Seed of the random choices.", "int", 1, least=0, most=2**31, label="Seed"),
        Option("only", "Documents by id or title, sections by words of them; repeatable.", many=True),
        Option("topics", "Topics with key terms, as RIRAG's, in place of the built-in ones.", "file", optional=True),
        Option(
            *("harder_than", "Only questions with gold beyond this rank of the fused ranking; 0: all.", "int", 0),
            least=0,
        ),
        PARALLEL,
    ),
    right="validation keeps it",
    verdicts=("kept", "left out"),
    doing="Writing and validating",
    outputs=(CARD, REPORT),
)
