"""What `pipeline.run` yields, in the order the work happens. The page, the command line and the evaluator read these.

::

    Retrieved -> Fused (-> Reranked) -> Selected -> Token* -> Answered
        (-> RelevanceMeasured) -> (SentenceScored | ObligationScored)* -> Scored -> Recorded

In the place of `Token`, generators that verify what they write say what they do (`ragqa.types.events.generation`);
`Stored` comes after each `BestSoFar`; of a fan-out `Selected` comes once all evidence is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragqa.types import Answer, Ranking, Selection
from ragqa.types.events.generation import GenerationEvent
from ragqa.types.events.scoring import ObligationScored, RelevanceMeasured, Scored, SentenceScored


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One ranking per retriever."""

    rankings: tuple[Ranking, ...]


@dataclass(frozen=True, slots=True)
class Fused:
    """The rankings merged into one; each hit carries its parts."""

    ranking: Ranking


@dataclass(frozen=True, slots=True)
class Reranked:
    """The fused ranking with its best passages in the order of a reranker; only where one is set."""

    ranking: Ranking


@dataclass(frozen=True, slots=True)
class Selected:
    """What the answer may be written from, and why the rest may not."""

    selection: Selection


@dataclass(frozen=True, slots=True)
class Stored:
    """The best answer so far is on disk under this id."""

    record_id: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The whole answer, split into sentences with verified citations."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Recorded:
    """The answer and its scores are on disk under this id. ``seconds`` is the pipeline's own work per stage."""

    record_id: str
    seconds: Mapping[str, float]


Event = (
    Retrieved
    | Fused
    | Reranked
    | Selected
    | GenerationEvent
    | Stored
    | Answered
    | RelevanceMeasured
    | SentenceScored
    | ObligationScored
    | Scored
    | Recorded
)
