"""Compares two runs of one benchmark on the same questions: differences in measures, and changed items. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ragqa.evaluation.report import Column, Comparison, Line, Row, shown
from ragqa.evaluation.significance import paired_tests

RIGHT: Final = Column("right", "right")
_CAPTION: Final = (
    "B − A is the mean over the questions that both runs have, with its 95 % interval (bootstrap); p by permutation, "
    "adjusted for all measures of the table (Holm)."
)

Pair = tuple[Row, Row]


def paired(first: Sequence[Row], second: Sequence[Row]) -> list[Pair]:
    """The questions that both runs have, by id and text, in the order of the first.

    An id alone names no question: probes of one kind share theirs, and two files may both number from 1. A question
    that a run has several times is paired in order.
    """
    others = _by_question(second)
    return [(row, others[key]) for key, row in _by_question(first).items() if key in others]


def _by_question(rows: Sequence[Row]) -> dict[tuple[str, str, int], Row]:
    """The rows by id and text, with the number of equal ones before."""
    found: dict[tuple[str, str, int], Row] = {}
    seen = Counter[tuple[str, str]]()
    for row in rows:
        key = row.question_id, row.question
        found[*key, seen[key]] = row
        seen[key] += 1
    return found


def turned(pairs: Sequence[Pair]) -> list[Pair]:
    """The questions that are right in one run and wrong in the other."""
    return [(a, b) for a, b in pairs if None not in {a.right, b.right} and a.right is not b.right]


def compared(pairs: Sequence[Pair], columns: Sequence[Column]) -> Comparison:
    """A line for each measure that any question has in both runs."""
    found: dict[Column, tuple[list[float], list[float]]] = {}
    for column in (RIGHT, *columns):
        both = [(_value(a, column), _value(b, column)) for a, b in pairs]
        values = [(x, y) for x, y in both if x is not None and y is not None]
        if values:
            found[column] = [x for x, _ in values], [y for _, y in values]
    tests = paired_tests([(b, a) for a, b in found.values()])
    lines = []
    for (column, (a, b)), (test, adjusted) in zip(found.items(), tests, strict=True):
        decimals = max(2, column.decimals)  # it is a mean, even of whole numbers
        difference, low, high = (f"{one:+.{decimals}f}" for one in (test.mean_difference, test.low, test.high))
        means = (shown(sum(one) / len(one), decimals) for one in (a, b))
        lines.append(Line(column.heading, (*means, f"{difference} [{low}, {high}]", f"{adjusted:.3f}", f"{len(a):,}")))
    return Comparison(("A", "B", "B − A", "p", "questions"), tuple(lines), _CAPTION, first="measure")


def _value(row: Row, column: Column) -> float | None:
    value = row.right if column is RIGHT else row.values.get(column.key)
    return None if value is None else float(value)
