"""`ragqa index advise`: recommends a preset for a corpus without real questions, by questions made from it.

Questions are made by rules from a bounded part of the index. Every preset that ranks differently is compared with the
default on them. The preset with the highest mean wins, provided that its interval does not reach more than
`MOST_LOST` below the default. The default wins if no preset gains, or if too few questions can be made.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from ragqa import loading
from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import CorpusError, RagqaError
from ragqa.evaluation.benchmark import INDEX, Benchmark, Option, Outcome, Settings, Task
from ragqa.evaluation.benchmarks.retrieval.benchmark import BENCHMARK as RETRIEVAL
from ragqa.evaluation.benchmarks.retrieval.setups import FUSED
from ragqa.evaluation.benchmarks.retrieval.tables import results_of
from ragqa.evaluation.report import Comparison, Figure, Line, Report
from ragqa.evaluation.report import Row as Shown
from ragqa.evaluation.significance import PairedTest, paired_test
from ragqa.index import Index, open_index
from ragqa.infra.files import write_whole
from ragqa.lab.dataset import rules
from ragqa.lab.dataset.exporting import obliqa
from ragqa.lab.dataset.finishing import duplicates
from ragqa.lab.dataset.selecting import Plan, passages_of
from ragqa.lab.dataset.stages import Row
from ragqa.lab.dataset.validating import COVERED, cover
from ragqa.plugins.protocols import ObligationClassifier
from ragqa.plugins.registry import is_api_name
from ragqa.retrieval.learned_ranker import rankings_read
from ragqa.retrieval.ranking import lacking_rankings
from ragqa.settings.config import Config, RerankingConfig
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import presets_in
from ragqa.settings.presets import PRESETS, Preset
from ragqa.types import Question

MOST_READ: Final = 8_000  # passages, drawn at random; reading them takes a few seconds
FEWEST: Final = 30  # questions; with fewer, an interval says nothing
MOST_LOST: Final = 0.005  # the largest accepted loss in the measure against the default
MEASURE: Final = "AP@10"
ASKED: Final = "questions.json"


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a run; ``retrieval`` is the context of that benchmark, None if too few questions were made."""

    retrieval: Any
    index: str
    n: int  # questions
    default: str  # preset
    presets: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PresetResult:
    """A preset's mean MAP@10 and Recall@10 in [0, 1], and the test of its MAP@10 against the default's."""

    name: str
    average_precision: float
    recall: float
    test: PairedTest

    @property
    def is_safe(self) -> bool:
        """Whether its interval does not reach below the default by more than `MOST_LOST`."""
        return self.test.low >= -MOST_LOST


def made_questions(index: Index, classifier: ObligationClassifier, n: int, seed: int) -> list[GoldQuestion]:
    """At most ``n`` questions with 1 or 2 gold passages, from at most `MOST_READ` passages; repeatable by seed.

    Empty if no sentence obliges, permits or defines in words that fit a template, as in most encyclopedias.
    """
    chance = random.Random(seed)
    shown = [position for position, hidden in enumerate(index.hidden) if not hidden]
    if len(shown) > MOST_READ:
        shown = sorted(chance.sample(shown, MOST_READ))
    try:
        rows = passages_of((index.passages[position] for position in shown), classifier, (), by_rules=True)
    except CorpusError:
        return []
    passages = {row["id"]: index.passages[index.position_of[row["id"]]] for row in rows}

    def asked(row: Row) -> str:
        of = [passages[one] for one in row["passages"]]
        drawn = random.Random(f"{seed}:{row['id']}")
        text = rules.question(of, row["kind"], row["persona"], row["form"], drawn)
        is_covered = all(cover(text, one) >= COVERED / len(of) ** 0.5 for one in of)
        return text if text and is_covered else ""

    plan = Plan(rows, {}, seed, lambda row: bool(asked(row)), [rules.joins(passages[row["id"]]) for row in rows])
    groups = plan.drawn(n, index.links.cites, index.position_of, by_rules=True)
    texts = [asked(row) for row in groups]
    found = [
        GoldQuestion(Question(text, row["id"]), frozenset(row["passages"]))
        for row, text, earlier in zip(groups, texts, duplicates(texts), strict=True)
        if earlier is None
    ]
    return sorted(chance.sample(found, n), key=lambda one: one.question.question_id) if len(found) > n else found


def _obliqa(one: GoldQuestion, index: Index) -> dict[str, Any]:
    gold = sorted(one.gold)
    row = {"id": one.question.question_id, "question": one.question.text, "group": len(gold)}
    return obliqa(row, [index.passages[index.position_of[name]] for name in gold])


def default_of(index: Index) -> Preset:
    """The default of this index: learning to rank where it fits, else fusion only."""
    reranking = loading.fitting_reranking(PRESETS[0].reranking, index.manifest)
    return next(one for one in PRESETS if one.reranking == reranking)


def candidates(index: Index, own: Sequence[Preset]) -> tuple[list[Preset], list[str]]:
    """The presets that rank this index differently from the default, without repeats; and why others are left out.

    Presets with a reranker on a server are left out, because it would be sent the passages.
    """
    default = default_of(index)
    seen = [(default.retrieval, default.fusion, default.reranking)]
    found, left_out = [], []
    for preset in (*PRESETS, *own):
        way = (preset.retrieval, preset.fusion, preset.reranking)
        has = index.manifest.retrievers
        lacking = lacking_rankings(preset.fusion, has, index.manifest.encoder)
        unread = {*rankings_read(preset.reranking.model)} - {*has}
        if way in seen or lacking or unread or is_api_name(preset.reranking.model):
            continue
        seen.append(way)
        if preset.reranking.model:
            try:
                loading.load_reranker(preset.reranking.model)
            except RagqaError as error:
                left_out.append(f"{preset.name}: {error}")
                continue
        found.append(preset)
    return found, left_out


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Makes questions, then loads the retrieval benchmark for them. Raises ConfigError, IndexingError, ModelError."""
    yield "Making questions"
    index = open_index(settings["index"], paths.indexes)
    classifier = loading.load_obligations(Config.from_env().scoring)
    made = made_questions(index, classifier, settings["questions"], settings["seed"])
    if len(made) < FEWEST:
        return Task((), {}, Context(None, index.name, len(made), default_of(index).name), solves=False)
    file = Path(settings["folder"]) / ASKED
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, [json.dumps([_obliqa(one, index) for one in made], indent=1, ensure_ascii=False) + "\n"])
    yield "Loading the presets"
    presets, left_out = candidates(index, presets_in(paths.presets)[0])
    default, names = default_of(index).name, tuple(one.name for one in presets)
    plain = {"questions": str(file), "index": index.name, "preset": [default, *names], "baseline": FUSED}
    rerank = {"reranker": "", "rerank_depth": RerankingConfig().depth, "rerank_weight": None}
    task = yield from RETRIEVAL.load({**plain, **rerank, "fan_out": False, "docids": None}, paths)
    return replace(task, context=Context(task.context, index.name, len(made), default, names, tuple(left_out)))


def _as_retrieval(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the retrieval benchmark, called with that benchmark's context."""
    return lambda task, *rest: function(replace(task, context=task.context.retrieval), *rest)


solve, score, row = _as_retrieval(RETRIEVAL.solve), _as_retrieval(RETRIEVAL.score), _as_retrieval(RETRIEVAL.row)


def figures(task: Task, rows: Sequence[Shown]) -> tuple[Figure, ...]:
    """The number of questions."""
    del rows
    return (Figure("Made questions", f"{task.context.n:,}", f"of {task.context.index}"),)


def measured(task: Task, done: Sequence[Outcome]) -> list[PresetResult]:
    """The default, then every other preset by descending mean."""
    results, default = {one.name: one for one in results_of(task.context.retrieval, done)}, task.context.default
    base = results[default]
    found = [
        PresetResult(
            name, one.means[MEASURE], one.means["R@10"], paired_test(one.values[MEASURE], base.values[MEASURE])
        )
        for name in (default, *task.context.presets)
        for one in (results[name],)
    ]
    return sorted(found, key=lambda one: (one.name != default, -one.average_precision))


def taken(found: Sequence[PresetResult]) -> str:
    """The name of the preset to take: the default if none is safe and better. ``found`` begins with the default."""
    safe = [one for one in found[1:] if one.is_safe and one.test.mean_difference > 0]
    return safe[0].name if safe else found[0].name


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """Every preset compared with the default, and which one to take."""
    context, done = task.context, [one for one in outcomes if one.scores is not None]
    data: dict[str, Any] = {"index": context.index, "n_questions": context.n, "take": context.default, "presets": []}
    if len(done) < FEWEST:
        note = (
            f"Take {context.default!r}, the default: {context.n:,} questions could be made by rule and at least "
            f"{FEWEST} are needed. They are made of sentences that oblige, permit or define, in English."
        )
        return Report(figures(task, ()), notes=(note,), data=data)
    found = measured(task, done)
    data |= {"take": taken(found), "presets": [asdict(one) | {"is_safe": one.is_safe} for one in found]}
    notes = [_words(data["take"], found), *(f"Left out: {one}" for one in context.left_out)]
    return Report(figures(task, ()), comparisons=(_table(context, found, len(done)),), notes=tuple(notes), data=data)


def _words(name: str, found: Sequence[PresetResult]) -> str:
    if name == found[0].name:
        return f"Take {name!r}, the default: no preset is better without the risk of losing {MOST_LOST}."
    one = next(one for one in found if one.name == name)
    test = f"{one.test.mean_difference:+.3f} [{one.test.low:+.3f}, {one.test.high:+.3f}]"
    return f"Take {name!r}: MAP@10 {test} beside the default. Real questions, where there are any, say more than these."


def _table(context: Context, found: Sequence[PresetResult], n: int) -> Comparison:
    lines = []
    for one in found:
        cells = [f"{one.average_precision:.3f}", f"{one.recall:.3f}"]
        if one.name != context.default:
            test = one.test
            cells += [f"{test.mean_difference:+.3f} [{test.low:+.3f}, {test.high:+.3f}]", f"{test.p_value:.4f}"]
            cells += ["yes" if one.is_safe else "no"]
        lines.append(Line("the default" if one.name == context.default else one.name, tuple(cells), "this run"))
    return Comparison(
        ("MAP@10", "R@10", "Δ MAP@10 [95 %]", "p", "safe"),
        tuple(lines),
        f"Δ and p: paired bootstrap and permutation test against the default. safe: the interval does not reach below "
        f"-{MOST_LOST}. Made questions are nearer to the words of their passages than real ones.",
        f"{context.index}: {n:,} questions made by rule",
        "preset",
    )


ADVISE: Final = Benchmark.of(
    globals(),
    name="advice",
    title="Which preset",
    description="Says which preset to take for an index nobody has asked about yet: makes questions of it by rule, "
    "measures every preset on them, and takes the best that is surely not worse than the default.",
    options=(
        replace(INDEX, positional=True),
        Option("questions", "Largest number of questions made.", "int", 200, least=FEWEST, most=10_000),
        Option("seed", "Seed of the random choices.", "int", 1, least=0, most=2**31),
    ),
    doing="Measuring",
    on_page=False,
    outputs=("report.json",),
)
