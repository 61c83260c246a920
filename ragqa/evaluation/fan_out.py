"""Fan-out retrieval by rules beside single-shot retrieval: recall, and whether all gold of a question was found."""

from __future__ import annotations

import time
from collections.abc import Generator as Stream
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragqa.config import FilteringConfig, GenerationConfig
from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.retrieval import Rankings, Result
from ragqa.evaluation.significance import PairedTest, holm, paired_test
from ragqa.generation.fanout.generator import searched_by_rules
from ragqa.generation.fanout.merging import Tree, merge
from ragqa.protocols import Search

CUTOFFS = (2, 5, 10)


@dataclass(frozen=True, slots=True)
class FanOutMeasure:
    """One measure of both, in [0, 1]; p adjusted for all measures (Holm)."""

    name: str
    single: float
    fan_out: float
    test: PairedTest
    adjusted_p: float


def fan_out_all(
    questions: Sequence[GoldQuestion],
    rankings: Rankings,
    search: Search,
    most: int = GenerationConfig().max_sub_questions,
) -> Stream[int, None, tuple[Rankings, float, float]]:
    """Yields the number of questions done; returns their merged rankings, the median milliseconds, and how many
    sub-questions a question has on average.

    ``rankings`` are what ``search`` gives for each question; the milliseconds are those of all that comes after.
    """
    merged, spent, n_asked = [], [], 0
    for done, (gold, ranking) in enumerate(zip(questions, rankings, strict=True), start=1):
        began = time.perf_counter()
        tree = Tree(ranking, FilteringConfig())
        for _ in searched_by_rules(gold.question, tree, search, most):
            pass
        merged.append(merge(ranking, [node.found for node in tree.nodes]))
        spent.append(1000 * (time.perf_counter() - began))
        n_asked += len(tree.nodes)
        yield done
    return tuple(merged), float(np.median(spent)), n_asked / len(questions)


def compare_fan_out(single: Result, fan_out: Result, seed: int = 0) -> tuple[FanOutMeasure, ...]:
    """Recall at 2, 5 and 10, the mean over the questions of the share of their gold that was found, and ``all gold``,
    the share of questions with every gold passage among the first so many: the stricter "both" of two-hop questions.
    """
    pairs: list[tuple[str, list[float], list[float]]] = []
    for cutoff in CUTOFFS:
        before, after = (result.values[f"R@{cutoff}"] for result in (single, fan_out))
        pairs.append((f"R@{cutoff}", before, after))
        pairs.append((f"all gold@{cutoff}", [float(one == 1) for one in before], [float(one == 1) for one in after]))
    tests = [paired_test(after, before, seed) for _, before, after in pairs]
    adjusted = holm([test.p_value for test in tests])
    return tuple(
        FanOutMeasure(name, float(np.mean(before)), float(np.mean(after)), test, p)
        for (name, before, after), test, p in zip(pairs, tests, adjusted, strict=True)
    )
