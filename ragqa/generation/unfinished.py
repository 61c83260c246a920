"""Words for an answer whose work is not done, or was ended early. Pure."""

from __future__ import annotations

from dataclasses import replace

from ragqa.errors import RagqaError, ScoringError
from ragqa.types import Answer


def unfinished(answer: Answer, step: str) -> Answer:
    """The answer as it stands after this step, marked so that nobody takes it for the end of the work."""
    note = f"The best answer when the work stopped, after {step}; it may lack what was still to come."
    return replace(answer, finish_reason="unfinished", note=note)


def budget_note(budget: int) -> str:
    """Why the work ended, and what to change."""
    return (
        f"The budget of {budget:,} calls was used up before the work was done; this is the best answer until then. "
        "Raise the most calls in the settings for more."
    )


def failure_note(error: RagqaError) -> str:
    """What ended the work, and that the best answer until then is kept."""
    what = "could not be checked" if isinstance(error, ScoringError) else "could not be carried on"
    return f"The answer {what}, and the best until then is kept: {str(error).rstrip('.')}."
