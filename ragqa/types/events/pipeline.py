"""The events that `pipeline.run` yields, in order. The page, the command line and the evaluator read them.

::

    Retrieved -> Fused (-> Reranked) -> Selected -> Token* -> Answered
        (-> RelevanceMeasured) -> (SentenceScored | ObligationScored)* -> Scored -> Recorded

Generators that verify their drafts yield the events of `ragqa.types.events.generation` in place of `Token`. `Stored`
follows each `BestSoFar`. In a fan-out, `Selected` comes after all evidence is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ragqa.types import Answer, Ranking, Selection
from ragqa.types.events.generation import EvidenceFound, GenerationEvent, SubQuestionAnswered
from ragqa.types.events.scoring import ObligationScored, RelevanceMeasured, Scored, SentenceScored

FIRST_WORDS = "first words"  # in `Recorded.seconds`: the part of the stage "generation" until its first words


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One ranking per retriever. ``encoder`` is the name of that of the dense ranking."""

    rankings: tuple[Ranking, ...]
    encoder: str = ""


@dataclass(frozen=True, slots=True)
class Fused:
    """The fused ranking; each hit has the parts of its score."""

    ranking: Ranking


@dataclass(frozen=True, slots=True)
class Reranked:
    """The reranked ranking; yielded only if a reranker is set."""

    ranking: Ranking


@dataclass(frozen=True, slots=True)
class Selected:
    """The passages that the answer may be written from, and the dropped passages with reasons."""

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
    """The answer and its scores are on disk under this id. ``seconds`` is the time of each stage of the pipeline."""

    record_id: str
    seconds: Mapping[str, float]


STAGES: Final[Mapping[type, str]] = MappingProxyType(
    {  # the stage that ends with each event, in order
        Retrieved: "retrieval",
        Fused: "fusion",
        Reranked: "reranking",
        EvidenceFound: "sub-questions",
        SubQuestionAnswered: "sub-questions",
        Selected: "filtering",
        Answered: "generation",
        Scored: "scoring",
    }
)
STAGE_NAMES: Final = tuple(dict.fromkeys(STAGES.values()))
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
