"""What is measured of an answer: its relevance, scores so far, provisional and then final, at last both breakdowns."""

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
    asked: str  # the kind of answer that it wants: "a date", "who", …
    value: float
    similarity: float  # cosine of the answer's sentence ``index``, which fits best, and the part
    cover: float  # the share of the part's words that the answer has
    fit: float  # whether the sentence has the kind of answer that is wanted
    index: int
    reason: str  # one sentence, for the reader


@dataclass(frozen=True, slots=True)
class Relevance:
    """Whether the answer answers what was asked, in [0, 1]: the mean of its parts. Beside RePASs, never part of it."""

    value: float
    parts: tuple[PartRelevance, ...]


@dataclass(frozen=True, slots=True)
class RelevanceMeasured:
    """Follows an answer that has sentences and is no refusal; see `ragqa.generation.relevance`."""

    relevance: Relevance


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
