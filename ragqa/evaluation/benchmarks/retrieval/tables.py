"""Reports measured retrieval: configurations, fan-out against single shot, and published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from ragqa.corpus.questions import GoldUnit
from ragqa.evaluation.benchmark import Json, Outcome, Task
from ragqa.evaluation.benchmarks.retrieval.breakdown import breakdown, pairs_beside
from ragqa.evaluation.benchmarks.retrieval.comparing import TESTED, Result, compare, compare_all_gold
from ragqa.evaluation.benchmarks.retrieval.rankings import median_ms
from ragqa.evaluation.benchmarks.retrieval.setups import RetrievalContext, Setup
from ragqa.evaluation.files import shipped_rows
from ragqa.evaluation.measures import MEASURES, display_name
from ragqa.evaluation.report import Comparison, Line, Report, shown

SHOWN: Final[Mapping[GoldUnit, tuple[str, ...]]] = {
    "passage": ("R@10", "AP@10", "nDCG@10", "RR@10", "Success@1", "R@100"),
    "document": ("Success@1", "Success@2", "R@2", "R@5", "R@10", "AP@10"),
}
OBLIQA_TEST: Final = (2_786, 40)  # its numbers of questions and documents, on which published rows were measured


def report_of(task: Task, done: Sequence[Outcome]) -> Report:
    """The tables, and their figures as JSON, for the finished questions."""
    loaded: RetrievalContext = task.context
    results = results_of(loaded, done)
    differences = compare(results, loaded.baseline) if done else ()
    spent = _milliseconds(loaded, done)
    manifest = loaded.index.manifest
    data: dict[str, Any] = {
        "index": manifest.name,
        "n_questions": len(done),
        "n_passages": manifest.n_passages,
        "index_bytes": manifest.size_bytes,
        "encoder": manifest.encoder,
        "analyser": asdict(manifest.analyser),
        "measures": {result.name: result.means for result in results},
        "milliseconds": spent,
        "comparisons": list(map(asdict, differences)),
    }
    tables = [_side_by_side(loaded, results, differences, spent, len(done))]
    for setup in loaded.setups:
        if setup.fan_out and done:
            by_name = {result.name: result for result in results}
            pairs = compare_all_gold(by_name[setup.base], by_name[setup.name])
            asked = fmean((outcome.scores or {})["notes"][setup.name]["asked"] for outcome in done)
            data["fan_out"] = {"sub_questions": asked, "measures": list(map(asdict, pairs))}
            tables.append(_fan_out_table(setup, pairs, asked, spent[setup.name]))
    if done:
        tables += _broken_down(loaded, done, data)
    if (len(done), manifest.n_documents) == OBLIQA_TEST:
        tables.append(published_table(results, loaded.shown))
    return Report((), task.columns, tuple(tables), data=data)


def _broken_down(loaded: RetrievalContext, done: Sequence[Outcome], data: dict[str, Any]) -> list[Comparison]:
    """The tables of pairs and of groups of questions; adds their figures to ``data``."""
    gold = [outcome.item.content for outcome in done]
    ranks = {setup.name: [(outcome.scores or {})["ranks"][setup.name] for outcome in done] for setup in loaded.setups}
    tables = []
    if pairs := pairs_beside(gold, ranks, loaded.baseline):
        tables.append(pairs[0])
        data["pairs"] = pairs[1]
    table, data["groups"] = breakdown(gold, ranks, loaded.shown, documents=loaded.unit == "passage")
    return [*tables, table]


def results_of(loaded: RetrievalContext, outcomes: Sequence[Outcome]) -> list[Result]:
    """Each configuration's values over these questions, without its rankings."""
    scores = [(outcome.scores or {})["values"] for outcome in outcomes]
    return [
        Result(setup.name, (), {m: [of_one[setup.name][m] for of_one in scores] for m in MEASURES})
        for setup in loaded.setups
    ]


def _milliseconds(loaded: RetrievalContext, outcomes: Sequence[Outcome]) -> dict[str, float | None]:
    """Median milliseconds per question: of a ranking alone, of all rankings for a fusion, else of the added step."""
    spent: dict[str, list[float | None]] = {setup.name: [] for setup in loaded.setups}
    for outcome in outcomes:
        solution, notes = outcome.solution or {}, (outcome.scores or {})["notes"]
        for setup in loaded.setups:
            if setup.fan_out:
                spent[setup.name].append(notes[setup.name]["seconds"])
            elif setup.reranking:
                read = (setup.reranking.model, setup.reranking.depth)
                spent[setup.name] += [
                    one["seconds"] for one in notes.values() if (one.get("model"), one.get("depth", read[1])) == read
                ]
            elif setup.fusion is None:
                spent[setup.name].append(solution["seconds"][setup.name])
            else:
                spent[setup.name].append(seconds_of(solution))
    return {name: median_ms(seconds) for name, seconds in spent.items()}


def _side_by_side(
    loaded: RetrievalContext,
    results: Sequence[Result],
    differences: Sequence[Any],
    spent: Mapping[str, float | None],
    n: int,
) -> Comparison:
    names, by_pair = SHOWN[loaded.unit], {(one.name, one.measure): one for one in differences}
    lines = []
    for result in results:
        cells = [f"{result.means[name]:.3f}" for name in names]
        for measure in TESTED:
            one = by_pair.get((result.name, measure))
            cells.append(f"{one.test.mean_difference:+.3f} ({one.adjusted_p:.3f})" if one else "")
        cells.append("" if spent[result.name] is None else f"{spent[result.name]:.1f}")
        lines.append(Line(result.name, tuple(cells), "this run", result.name == loaded.shown))
    manifest = loaded.index.manifest
    size = f"gold {loaded.unit}s, {manifest.n_passages:,} passages, {manifest.size_bytes / 1e6:.1f} MB"
    return Comparison(
        (*map(display_name, names), *(f"Δ {display_name(m)} (p)" for m in TESTED), "ms"),
        tuple(lines),
        f"Δ and p against {loaded.baseline}: paired permutation test, p adjusted for all of them (Holm). ms: median "
        "per question, of a reranked one for the reranking alone; none where it was cached.",
        f"{manifest.name}: {n:,} questions, {size}",
        "ranking",
    )


def _fan_out_table(setup: Setup, pairs: Sequence[Any], asked: float, spent: float | None) -> Comparison:
    lines = []
    for one in pairs:
        test = one.test
        interval = f"{test.mean_difference:+.3f} [{test.low:+.3f}, {test.high:+.3f}]"
        lines.append(Line(one.name, (f"{one.single:.3f}", f"{one.fan_out:.3f}", interval, f"{one.adjusted_p:.4f}")))
    return Comparison(
        ("single shot", "fan-out", "Δ [95 %]", "p"),
        tuple(lines),
        f"{asked:.2f} sub-questions a question on average, {shown(spent, 0)} ms for all of a question's (median). all "
        "gold@k: the share of questions with every gold passage among the first k. p: paired permutation test, "
        "adjusted for all six (Holm).",
        f"{setup.base}: fan-out by rules",
        "measure",
    )


def published_table(results: Sequence[Result], name: str) -> Comparison:
    """The configuration of this name compared with published figures for ObliQA's test questions."""
    ours = [
        Line(result.name, (f"{result.means['R@10']:.3f}", f"{result.means['AP@10']:.3f}"), "this run", True)
        for result in results
        if result.name == name
    ]
    published = [
        Line(
            row["name"],
            (f"{row['recall']:.3f}", f"{row['mean_average_precision']:.3f}"),
            f"{row['source'].partition(',')[0]}, table {row['table']}",
        )
        for row in sorted(published_rows(), key=lambda row: -row["recall"])
    ]
    words = "Published: other people's systems over these questions, as their papers of 2024 and 2025 print them."
    return Comparison(("R@10", "MAP@10"), (*ours, *published), words, "Beside published figures")


def published_rows() -> list[dict[str, Any]]:
    """{source, table, name, recall, mean_average_precision}, the last two in [0, 1]; none of them computed here."""
    return shipped_rows(Path(__file__).with_name("published.jsonl"))


def seconds_of(solution: Json) -> float | None:
    """The seconds of all retrievers together; None if one of them was cached."""
    seconds = list(solution["seconds"].values())
    return None if None in seconds else sum(seconds)
