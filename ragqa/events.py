"""What `pipeline.run` yields, in the order the work happens. The page, the command line and the evaluator read these.

::

    Retrieved -> Fused -> Selected -> Token* -> Answered -> (SentenceScored | ObligationScored)* -> Scored -> Recorded
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragqa.types import Answer, Evaluation, ObligationScore, Ranking, ScoringMode, Selection, SentenceScore

__all__ = [
    "Answered",
    "Event",
    "Fused",
    "ObligationScored",
    "Recorded",
    "Retrieved",
    "Scored",
    "Selected",
    "SentenceScored",
    "Token",
]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One ranking per retriever."""

    rankings: tuple[Ranking, ...]


@dataclass(frozen=True, slots=True)
class Fused:
    """The rankings merged into one; each hit carries its parts."""

    ranking: Ranking


@dataclass(frozen=True, slots=True)
class Selected:
    """What the answer may be written from, and why the rest may not."""

    selection: Selection


@dataclass(frozen=True, slots=True)
class Token:
    """The next piece of the answer's raw text, as the generator wrote it."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The whole answer, split into sentences with verified citations."""

    answer: Answer


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


@dataclass(frozen=True, slots=True)
class ObligationScored:
    """The score of an obligation so far; ``done``, ``total`` and ``final`` as in `SentenceScored`."""

    score: ObligationScore
    done: int
    total: int
    final: bool = True


@dataclass(frozen=True, slots=True)
class Scored:
    """The final breakdown in both modes, from the same pair probabilities."""

    paper: Evaluation
    script: Evaluation

    def of(self, mode: ScoringMode) -> Evaluation:
        """The breakdown in this mode."""
        return self.paper if mode is ScoringMode.PAPER else self.script


@dataclass(frozen=True, slots=True)
class Recorded:
    """The answer and its scores are on disk under this id. ``seconds`` is the pipeline's own work per stage."""

    record_id: str
    seconds: Mapping[str, float]


Event = Retrieved | Fused | Selected | Token | Answered | SentenceScored | ObligationScored | Scored | Recorded
