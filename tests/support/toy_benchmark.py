"""A benchmark of numbers: each item is squared, each square is scored. As a process: ``python -m
tests.support.toy_benchmark FOLDER SECONDS N`` runs it, SECONDS an item, and says ``Ready`` when the first is begun.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragqa.errors import GenerationError
from ragqa.evaluation.benchmark import LIMIT, Benchmark, Item, Option, Task
from ragqa.evaluation.report import Column, Comparison, Figure, File, Line, Report, Row
from ragqa.evaluation.run import run
from ragqa.infra.files import write_whole
from ragqa.settings.paths import Paths
from ragqa.types import Question


@dataclass
class World:
    """What was done, and what shall fail."""

    solved: list[int] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    failing: frozenset[int] = frozenset()
    scores: Mapping[int, float] = field(default_factory=dict)
    on_solve: object = None
    seconds: float = 0.0
    scale: int = 1
    parallel: int = 1


def toy(world: World, **changes) -> Benchmark:
    def load(settings, paths):
        yield "Counting"
        items = [Item(n, Question(f"What is {n} squared?", f"q{n}")) for n in range(1, settings["size"] + 1)]
        columns, scoring = (Column("score", "score"),), {"scale": world.scale}
        return Task(items, {"power": settings["power"]}, world, columns, scoring, world.parallel)

    def solve(task, item):
        world.solved.append(item.number)
        if callable(world.on_solve):
            world.on_solve(item)
        time.sleep(world.seconds)
        if item.number in world.failing:
            msg = f"no answer to {item.number}"
            raise GenerationError(msg)
        return {"square": item.number ** task.stamp["power"]}

    def score(task, item, solution):
        world.scored.append(item.number)
        return {"score": world.scores.get(item.number, solution["square"] * world.scale)}

    def row(task, outcome):
        values = {"score": outcome.scores["score"]} if outcome.scores else {}
        item = outcome.item
        name, text = item.question.question_id, item.question.text
        return Row(item.number, name, text, bool(values), values, note=outcome.note, restored=outcome.restored)

    def figures(task, rows):
        return (Figure("Sum", f"{sum(row.values.get('score', 0) for row in rows):g}", "of all scores"),)

    def report(task, outcomes):
        total = sum(outcome.scores["score"] for outcome in outcomes if outcome.scores)
        table = Comparison(("sum",), (Line("toy", (f"{total:g}",), "this run", True),), "Squares.", "Toy")
        return Report((Figure("Sum", f"{total:g}"),), task.columns, (table,), data={"sum": total})

    def export(task, outcomes, report, folder):
        write_whole(folder / "sum.txt", [f"{report.data['sum']}\n"])
        return (File("The sum", "sum.txt", "text/plain"),)

    options = (
        Option("size", "How many numbers.", "int", 4, least=1, label="Size"),
        Option("power", "What they are raised to.", "int", 2, label="Power"),
        LIMIT,
    )
    parts = (load, solve, score, row, figures, report, export)
    return replace(Benchmark("toy", "Toy", "Squares numbers.", options, *parts, outputs=("sum.txt",)), **changes)


def main(folder: str, seconds: str, size: str) -> None:
    world = World(seconds=float(seconds), on_solve=lambda item: print("Ready", flush=True))
    benchmark = toy(world)
    for _ in run(benchmark, benchmark.settings(size=int(size)), Path(folder), Paths.from_env()):
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
