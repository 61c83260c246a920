"""`ragqa eval retrieval`: rankings of an index, alone, fused, reranked and fanned out, measured side by side."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from ragqa import loading
from ragqa.corpus.obliqa import load_item_ids
from ragqa.corpus.questions import load_gold
from ragqa.evaluation.benchmark import INDEX, LIMIT, PRESET, Benchmark, Item, Json, Option, Outcome, Settings, Task
from ragqa.evaluation.benchmarks.retrieval.breakdown import ranks_of
from ragqa.evaluation.benchmarks.retrieval.comparing import ids_of, ids_of_questions, stem_of, write_outputs
from ragqa.evaluation.benchmarks.retrieval.rankings import FILE, Ranker, ranking_cache
from ragqa.evaluation.benchmarks.retrieval.setups import FUSED, RetrievalContext, fitting, rankings_of, setups_of
from ragqa.evaluation.benchmarks.retrieval.tables import SHOWN, report_of, results_of, seconds_of
from ragqa.evaluation.files import has_gold, holds_gold, questions_with_gold
from ragqa.evaluation.loading import config_of, retrievers_of, stamp_of
from ragqa.evaluation.measures import MEASURES, display_name, measure_run
from ragqa.evaluation.report import Column, Figure, File, Hit, Report, Row, shown
from ragqa.infra.journal import digest
from ragqa.plugins import registry
from ragqa.plugins.protocols import Reranker
from ragqa.settings.config import Config, RerankingConfig
from ragqa.settings.paths import Paths
from ragqa.settings.preset_files import find_preset

SHOWN_HITS: Final = 10
EXPLAINED: Final = {
    "R": "share of the gold found",
    "AP": "mean average precision: gold early counts more",
    "nDCG": "discounted gain, against the ideal order",
    "RR": "mean of 1 / rank of the first gold",
    "Success": "share of questions with gold among the first",
}


def load(settings: Settings, paths: Paths) -> Generator[str, None, Task]:
    """Loads index, retrievers and gold. Raises ConfigError, CorpusError, IndexingError, ModelError."""
    yield "Loading the index and its models (once)"
    config, questions = Config.from_env(), Path(settings["questions"])
    docids = load_item_ids(Path(settings["docids"])) if settings.get("docids") else None
    given = [find_preset(name, paths.presets) for name in settings["preset"] or ()]
    deepest = max(config.retrieval.top_k, *(one.retrieval.top_k for one in given), 0)
    deep = replace(config, retrieval=replace(config.retrieval, top_k=deepest))
    asked = replace(config_of({"index": settings["index"]}, paths, reranks=False), retrieval=deep.retrieval)
    index, retrievers, _ = retrievers_of(asked, paths, every=True)
    presets = [fitting(one, index) for one in given]
    gold, unit = load_gold(questions, index.passages)
    measure_run([one.gold for one in gold], [()] * len(gold), ())  # raises if there is no gold
    ranker = Ranker(index, retrievers, deep, ranking_cache(paths.home / FILE))
    names = [retriever.name for retriever in ranker.retrievers]
    setups, baseline = setups_of(settings, names, presets, config)
    rerankers: dict[str, Reranker] = {}
    for setup in setups:
        if setup.reranking and setup.reranking.model not in rerankers:
            yield "Loading the reranker"
            rerankers[setup.reranking.model] = loading.load_reranker(setup.reranking.model)
    loaded = RetrievalContext(
        *(index, ranker, setups, presets[0].name if presets else FUSED, baseline, unit, config, rerankers, docids)
    )
    added = [name for name in names if name in registry.entry_points_of(registry.RETRIEVERS)]
    decided: dict[str, Any] = {"retrieval": asdict(deep.retrieval), **({"added": added} if added else {})}
    stamp = stamp_of(questions, index, **decided)
    scoring = {
        "setups": [asdict(setup) for setup in setups],
        "rerankers": {name: asdict(model.info) for name, model in rerankers.items()},
    }
    shas = (digest({"text": one.question.text, "gold": sorted(one.gold)}) for one in gold)
    items = [Item(n, one.question, one, sha) for n, (one, sha) in enumerate(zip(gold, shas, strict=True), start=1)]
    columns = tuple(Column(name, display_name(name)) for name in SHOWN[unit])
    written = (f"{stem_of(setup.name)}.{end}" for setup in setups for end in ("run", "questions.jsonl"))
    outputs = tuple(name for name in written if name not in BENCHMARK.outputs)
    return Task(items, stamp, loaded, columns, json.loads(json.dumps(scoring)), outputs=outputs)


def solve(task: Task, item: Item) -> Json:
    """Every retriever's ranking, as deep as any configuration needs it, with its seconds."""
    loaded: RetrievalContext = task.context
    ranked = loaded.ranker.rank(item.question.text)
    return {"rankings": [loaded.ranker.packed(ranking) for ranking in ranked.rankings], "seconds": dict(ranked.seconds)}


def score(task: Task, item: Item, solution: Json) -> Json:
    """Each configuration's measures, with reranker scores and fan-out results, so that neither is repeated."""
    loaded: RetrievalContext = task.context
    notes: dict[str, Any] = {}
    found = rankings_of(task, item, solution, notes)
    lists = [ids_of(ranking, loaded.unit) for ranking in found.values()]
    values = measure_run([item.content.gold] * len(lists), lists, MEASURES)
    by_name = {name: {m: values[m][n] for m in MEASURES} for n, name in enumerate(found)}
    ranks = {name: ranks_of(item.content.gold, ids) for name, ids in zip(found, lists, strict=True)}
    return {"values": by_name, "ranks": ranks, "notes": notes}


def row(task: Task, outcome: Outcome) -> Row:
    """The question with the values and the first hits of the configuration that is shown."""
    loaded: RetrievalContext = task.context
    gold, scores, solution = outcome.item.content, outcome.scores, outcome.solution
    plain = replace(outcome.row(), gold=tuple(sorted(gold.gold)))
    if scores is None or solution is None:
        return replace(plain, right=False)
    values = scores["values"][loaded.shown]
    ranking = rankings_of(task, outcome.item, solution, dict(scores["notes"]), loaded.shown)[loaded.shown]
    ids = ids_of(ranking, loaded.unit)
    hits = tuple(
        Hit(hit.passage.passage_id, hit.passage.document_id, float(hit.score), ids[n] in gold.gold)
        for n, hit in enumerate(ranking.hits[:SHOWN_HITS])
    )
    spent = seconds_of(solution)
    steps = () if spent is None else (f"Ranked in {1000 * spent:.0f} ms.",)
    return replace(
        plain,
        right=values["R@10"] >= 1,
        values={name: values[name] for name in SHOWN[loaded.unit]},
        hits=hits,
        steps=steps,
    )


def figures(task: Task, rows: Sequence[Row]) -> tuple[Figure, ...]:
    """The means of the configuration that is shown."""
    scored = [row.values for row in rows if row.values]
    found = []
    for name in SHOWN[task.context.unit]:
        kind, _, cutoff = name.partition("@")
        words = f"{EXPLAINED[kind]} {cutoff}" if kind == "Success" else EXPLAINED[kind]
        mean = fmean(values[name] or 0.0 for values in scored) if scored else None
        found.append(Figure(display_name(name), shown(mean), words))
    return tuple(found)


def report(task: Task, outcomes: Sequence[Outcome]) -> Report:
    """Every configuration compared with the baseline, then with published figures."""
    done = [outcome for outcome in outcomes if outcome.scores is not None]
    ids = ids_of_questions([outcome.item.content for outcome in done])
    notes = () if len(set(ids)) == len(ids) else ("Question ids repeat, so no TREC run was written.",)
    values = [(outcome.scores or {})["values"][task.context.shown] for outcome in done]
    rows = [Row(outcome.item.number, "", "", values=of_one) for outcome, of_one in zip(done, values, strict=True)]
    found = report_of(task, done)
    return replace(found, figures=figures(task, rows), notes=notes)


def export(task: Task, outcomes: Sequence[Outcome], report: Report, folder: Path) -> Sequence[File]:
    """Writes TREC runs, every question's values, and the report."""
    loaded: RetrievalContext = task.context
    done = [outcome for outcome in outcomes if outcome.scores is not None]
    rows = [rankings_of(task, one.item, one.solution or {}, dict((one.scores or {})["notes"])) for one in done]
    results = [
        replace(result, rankings=tuple(rankings[result.name] for rankings in rows))
        for result in results_of(loaded, done)
    ]
    names = write_outputs(folder, [one.item.content for one in done], results, report.data, loaded.docids)
    stem = stem_of(loaded.shown)
    files = (
        File("Ranking (TREC run)", f"{stem}.run", "text/plain"),
        File("Every question (JSON lines)", f"{stem}.questions.jsonl", "application/jsonl"),
        File("Report (JSON)", "report.json"),
    )
    return tuple(file for file in files if file.name in names)


def n_with_gold(path: Path) -> int:
    """The number of questions with gold in the file. Raises CorpusError."""
    return len(questions_with_gold(path))


QUESTIONS: Final = Option(
    "questions",
    "Questions with gold: ObliQA's schema, JSON lines, PandaChat.",
    "file",
    label="Questions",
    accepts="a JSON list in ObliQA's schema (QuestionID, Question, Passages), JSON lines of {question, "
    "gold_passage_ids}, or PandaChat's data set",
    counts=n_with_gold,
    suits=has_gold,
)
BENCHMARK: Final = Benchmark.of(
    globals(),
    name="retrieval",
    title="ObliQA retrieval",
    description="Ranks passages for questions whose answering passages are known: Recall, MAP, nDCG and MRR of the "
    "fused ranking and of each ranking alone. Any file with gold passages will do.",
    options=(
        QUESTIONS,
        INDEX,
        replace(PRESET, help="Measure this preset too, or a file of one; repeatable.", many=True),
        Option("baseline", "Baseline of the comparison.", default=FUSED, decides=False),
        Option("reranker", "Rerank the --baseline by this name, folder or API, and measure that too.", default=""),
        Option(
            "rerank_depth",
            "Passages that the reranker reads per question.",
            "int",
            RerankingConfig().depth,
            least=1,
            most=1000,
        ),
        Option("rerank_weight", "Weight of the reranker, 0 to 1; default: .3; repeatable.", "float", many=True),
        Option("fan_out", "Measure fan-out by rules beside --baseline.", "flag", default=False),
        Option("docids", "ObliQA's documents: runs name their item IDs, as the shared task asks.", "path"),
        LIMIT,
    ),
    right="every gold passage is among the first ten",
    doing="Retrieving",
    outputs=("fused.run", "fused.questions.jsonl", "report.json"),
    fits=holds_gold,
)
