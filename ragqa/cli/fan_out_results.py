"""Fan-out retrieval beside a fused ranking, for `ragqa eval retrieval --fan-out`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from ragqa.cli.evaluate_retrieval import drawn
from ragqa.cli.output import progress_bar
from ragqa.config import Config, FusionConfig
from ragqa.tables import plain

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion, GoldUnit
    from ragqa.evaluation.fan_out import FanOutMeasure
    from ragqa.evaluation.retrieval import Result
    from ragqa.protocols import Retriever


def fan_out_result(
    questions: Sequence[GoldQuestion],
    retrievers: Sequence[Retriever],
    single: Result,
    config: Config,
    fusion: FusionConfig,
    unit: GoldUnit,
) -> tuple[Result, float, float]:
    """The fan-out by rules over ``single`` and this fusion: its result, the median milliseconds of a question's
    sub-questions, and how many of those it has on average.
    """
    from ragqa.evaluation.fan_out import fan_out_all
    from ragqa.evaluation.retrieval import measured
    from ragqa.fusion import fuse
    from ragqa.retrieval import rank
    from ragqa.types import Ranking

    def search(question: str) -> Ranking:
        return fuse(rank(retrievers, question, config.retrieval.top_k), fusion)

    with progress_bar() as bar:
        steps = fan_out_all(questions, single.rankings, search, config.generation.max_sub_questions)
        rankings, milliseconds, n_asked = drawn(steps, bar, "fan-out", len(questions))
    return measured(f"{single.name}, fan-out", questions, rankings, unit), milliseconds, n_asked


def fan_out_table(measures: Sequence[FanOutMeasure], name: str, n_asked: float, milliseconds: float) -> Table:
    """A row per measure: single-shot retrieval, the fan-out, their difference with its interval, p."""
    table = Table(title=plain(f"{name}: fan-out by rules"))
    table.add_column("measure")
    for head in ("single shot", "fan-out", "Δ [95 %]", "p"):
        table.add_column(plain(head), justify="right")
    for one in measures:
        test = one.test
        interval = f"{test.mean_difference:+.3f} [{test.low:+.3f}, {test.high:+.3f}]"
        table.add_row(one.name, f"{one.single:.3f}", f"{one.fan_out:.3f}", plain(interval), f"{one.adjusted_p:.4f}")
    table.caption = plain(
        f"{n_asked:.2f} sub-questions a question on average, {milliseconds:.0f} ms for all of a question's (median). "
        "all gold@k: the share of questions with every gold passage among the first k. p: paired permutation test, "
        "adjusted for all six (Holm)."
    )
    return table
