"""Answers that every generator gives alike."""

from __future__ import annotations

from ragqa.types import Answer

__all__ = ["NOTHING_KEPT", "empty_answer", "nothing_kept"]

NOTHING_KEPT = (
    "No passage was kept, so there is nothing to answer from. Lower the threshold, raise the max drop, "
    "or ask in the words of the corpus."
)


def empty_answer(generator: str, model: str, note: str) -> Answer:
    """An answer without text or sentences, finish reason ``"empty"``, whose note says why and what to change."""
    return Answer(text="", sentences=(), generator=generator, model=model, finish_reason="empty", note=note)


def nothing_kept(generator: str, model: str) -> Answer:
    """What every generator returns, at once and without asking anybody, when filtering kept no passage."""
    return empty_answer(generator, model, NOTHING_KEPT)
