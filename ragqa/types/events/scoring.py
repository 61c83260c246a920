"""The events of scoring an answer: its relevance, provisional and final scores, and at last both breakdowns."""

from __future__ import annotations

from dataclasses import dataclass

from ragqa.types.scores import (
    Breakdown,
    ObligationScore,
    ObligationVerdict,
    ScoringMode,
    SentenceScore,
    SentenceVerdict,
)


@dataclass(frozen=True, slots=True)
class PartRelevance:
    """How far the answer answers one part of the question: ``value``, ``cover`` and ``fit`` in [0, 1]."""

    text: str  # of the part
    asked: str  # the kind of answer that the part asks for: "a date", "who", …
    value: float
    similarity: float  # cosine between the part and the best-fitting answer sentence, which is ``index``
    cover: float  # the share of the part's words that occur in the answer
    fit: float  # whether that sentence gives the kind of answer that the part asks for
    index: int
    reason: str  # one sentence, for the reader
    is_read: bool = False  # whether ``value`` is the answer selector's probability


@dataclass(frozen=True, slots=True)
class Relevance:
    """How far the answer answers the question, in [0, 1]: the mean over its parts. Beside RePASs, never part of it."""

    value: float
    parts: tuple[PartRelevance, ...]


@dataclass(frozen=True, slots=True)
class RelevanceMeasured:
    """Follows an answer that has sentences and is not a refusal; see `ragqa.generation.relevance`."""

    relevance: Relevance


@dataclass(frozen=True, slots=True)
class SentenceScored:
    """The score of an answer sentence so far. ``done`` of ``total`` sentences have a final score.

    While ``final`` is false, the sentence has been compared only with the most similar source sentences, and both
    maxima can still rise. Further events for the same sentence (``score.index``) follow, the last one with ``final``.
    """

    score: SentenceScore
    done: int
    total: int
    final: bool = True
    verdict: SentenceVerdict | None = None  # from the same pairs; None if the scorer gives no verdicts


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
