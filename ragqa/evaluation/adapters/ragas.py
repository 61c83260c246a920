"""RePASs as a Ragas metric: `evaluate(dataset, metrics=[RePASsMetric()])`. No model is asked but ragqa's own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragas.metrics.base import MetricType, SingleTurnMetric

from ragqa.evaluation.metric import score

if TYPE_CHECKING:
    from ragas.dataset_schema import SingleTurnSample
    from ragas.run_config import RunConfig


@dataclass
class RePASsMetric(SingleTurnMetric):
    """The composite in [0, 1] of `response` against `retrieved_contexts`."""

    name: str = "repass"
    _required_columns: dict[MetricType, set[str]] = field(
        default_factory=lambda: {MetricType.SINGLE_TURN: {"user_input:optional", "response", "retrieved_contexts"}}
    )

    def init(self, run_config: RunConfig) -> None:
        """Nothing is wanted of Ragas."""

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: object) -> float:
        del callbacks
        passages, answer = sample.retrieved_contexts or [], sample.response or ""
        result = await asyncio.to_thread(score, sample.user_input or "", passages, answer)
        return result.repass.composite
