"""RePASs as a scorer of inspect_ai: `Task(…, scorer=repass())`; a sample's metadata holds its `passages`."""

from __future__ import annotations

import asyncio

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from ragqa.evaluation.adapters import reason
from ragqa.evaluation.metric import score


@scorer(metrics=[mean(), stderr()])
def repass() -> Scorer:
    """The composite in [0, 1] of the completion against the sample's passages, with its unsupported sentences."""

    async def scored(state: TaskState, target: Target) -> Score:
        del target
        passages, answer = state.metadata["passages"], state.output.completion
        result = await asyncio.to_thread(score, state.input_text, passages, answer)
        shares = {"supported": result.supported, "contradicted": result.contradicted}
        return Score(value=result.repass.composite, answer=answer, explanation=reason(result), metadata=shares)

    return scored
