"""Whether a question is answered, as the generator says it: the one place that reads that of an answer. Pure."""

from __future__ import annotations

from ragqa.types import Answer


def outcome(answer: Answer) -> tuple[str, tuple[str, ...]]:
    """``"answered"``, ``"partly"`` or ``"not found"``, and the parts of the question that are missing."""
    if answer.is_refusal:
        return "not found", ()
    missing = tuple(one.text for one in getattr(answer, "parts", ()) if one.state != "answered")
    return ("partly" if missing else "answered"), missing
