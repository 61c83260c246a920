"""What a scorer yields: scores so far, provisional and then final, and at last both breakdowns."""

from __future__ import annotations

from dataclasses import dataclass

from ragqa.types import Breakdown, ObligationScore, ObligationVerdict, ScoringMode, SentenceScore, SentenceVerdict


@dataclass(frozen=True, slots=True)
class SentenceScored:
    """The score of an answer sentence so far. ``done`` of ``total`` sentences have a final one.

    While ``final`` is false it has met only the most similar source sentences: both maxima can still rise. The same
    sentence (``score.index``) comes again, at last with ``final``.
    """

    score: SentenceScore
    done: int
    total: int
    final: bool = True
    verdict: SentenceVerdict | None = None  # from the same pairs; None where the scorer judges nothing


@dataclass(frozen=True, slots=True)
class ObligationScored:
    """The score of an obligation so far; ``done``, ``total`` and ``final`` as in `SentenceScored`."""

    score: ObligationScore
    done: int
    total: int
    final: bool = True
    verdict: ObligationVerdict | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """The final breakdown in both modes, from the same pair probabilities."""

    paper: Breakdown
    script: Breakdown

    def of(self, mode: ScoringMode) -> Breakdown:
        """The breakdown in this mode."""
        return self.paper if mode is ScoringMode.PAPER else self.script
