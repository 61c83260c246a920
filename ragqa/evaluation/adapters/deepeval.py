"""RePASs as a DeepEval metric: `assert_test(case, [RePASsMetric(threshold=0.6)])`; it needs no other model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from deepeval.metrics import BaseMetric

from ragqa.evaluation.adapters import reason
from ragqa.evaluation.metric import score

if TYPE_CHECKING:
    from deepeval.test_case import LLMTestCase


class RePASsMetric(BaseMetric):
    """The composite in [0, 1] of `actual_output` against `retrieval_context`, with its unsupported sentences."""

    async_mode = True

    def __init__(self, threshold: float = 0.5) -> None:
        """A case passes from ``threshold`` on, in [0, 1]."""
        self.threshold = threshold

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:  # noqa: ANN401 - what DeepEval hands on
        """The score, kept with its reason."""
        result = score(test_case.input, test_case.retrieval_context or [], test_case.actual_output or "")
        self.score, self.reason = result.repass.composite, reason(result)
        self.score_breakdown = {"supported": result.supported, "contradicted": result.contradicted}
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:  # noqa: ANN401
        """As `measure`, in a thread."""
        return await asyncio.to_thread(self.measure, test_case)

    def is_successful(self) -> bool:
        """Whether the last case passed."""
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "RePASs"
