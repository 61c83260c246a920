"""RePASs as a Phoenix evaluator: `repass.evaluate({"input": …, "context": […], "output": …})`, or over a data frame."""

from __future__ import annotations

from phoenix.evals import Score, create_evaluator

from ragqa.evaluation.adapters import reason
from ragqa.evaluation.metric import score


@create_evaluator(name="repass", kind="code", direction="maximize")
def repass(input: str, context: list[str], output: str) -> Score:
    """The composite in [0, 1] of an output against its context, with its unsupported sentences."""
    result = score(input, context, output)
    shares = {"supported": result.supported, "contradicted": result.contradicted}
    return Score(score=result.repass.composite, explanation=reason(result), metadata=shares)
