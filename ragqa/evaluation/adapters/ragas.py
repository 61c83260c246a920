"""RePASs as a Ragas metric: `await repass.ascore(user_input=…, retrieved_contexts=[…], response=…)`.

Ragas 0.4.3 is imported only beside `langchain-community<0.4.2`, and installs an `openai` older than ragqa's own.
"""

from __future__ import annotations

import asyncio

from ragas.metrics import MetricResult, numeric_metric

from ragqa.evaluation.adapters import reason
from ragqa.evaluation.metric import score


@numeric_metric(name="repass", allowed_values=(0.0, 1.0))
async def repass(user_input: str, retrieved_contexts: list[str], response: str) -> MetricResult:
    """The composite in [0, 1] of a response against its contexts, with its unsupported sentences."""
    result = await asyncio.to_thread(score, user_input, retrieved_contexts, response)
    return MetricResult(value=result.repass.composite, reason=reason(result))
