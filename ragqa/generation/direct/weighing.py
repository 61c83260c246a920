"""How well each sentence answers a part of a question, and how likely the best one does: two linear functions.

Their weights are fitted by `ragqa train refusal`. Pure but for encoder and selector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from ragqa.english.words import ENGLISH, language_of, words_of
from ragqa.generation.direct.asking import Part
from ragqa.generation.direct.candidates import Evidence, Source, stems_of
from ragqa.generation.direct.selector import log_odds
from ragqa.plugins.protocols import Encoder, Selector
from ragqa.types import AnswerState

READ: Final = 32  # sentences that are compared, all parts of a question together
LINE: Final = 0.5  # of a part's probability: below it the part counts as not answered
FAR: Final = 0.35  # a cosine below it is said to be far
# `ragqa train refusal`, on questions of a fold that the selector has not seen; without a selector, by nearness alone.
CHOICE: Final = {"log_odds": 0.5, "cosine": 7.0, "read_cover": 2.0}
ANSWERED: Final = {"bias": -0.5, "log_odds": 0.47, "cosine": 2.1, "read_cover": 0.5, "absent": -0.3}
NEARNESS: Final = {"bias": -2.2, "cosine": 4.0, "read_cover": 2.0}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a sentence has of a part of a question; all but ``log_odds`` and ``cosine`` in [0, 1]."""

    log_odds: float  # the selector's, that it answers; 0 where none reads
    cosine: float  # with the part
    cover: float  # the share of the part's words that it has, rare ones counting more
    read_cover: float  # the same with what it is read with: headings, lead-in, sentence before
    passage_cover: float  # the same of its passage with title and headings
    relevance: float  # of its passage
    in_part: bool = False  # the selector finds it likelier to answer in part than fully


@dataclass(frozen=True, slots=True)
class Weighed:
    """A part of a question with the sentences that were compared, the best first."""

    part: Part
    sources: tuple[Source, ...]
    measured: tuple[Measured, ...]
    scores: tuple[float, ...]
    value: float  # how likely the best one answers, in [0, 1]
    absent: tuple[str, ...]  # words of the part that nothing has that was retrieved

    @property
    def is_answered(self) -> bool:
        return self.value >= LINE

    def lacks(self, source: Source, evidence: Evidence) -> tuple[str, ...]:
        """Words of the part that neither the sentence's passage nor what stands above it has."""
        stems = stems_of(evidence.passages[source.rank])
        words = [word.lower for word in words_of(self.part.text) if word.stem in self.part.content - stems]
        return tuple(dict.fromkeys(words))

    @property
    def state(self) -> AnswerState:
        """It is answered in part where the selector says so and the corpus lacks words of it."""
        if not self.is_answered:
            return "not found"
        return "partly" if self.measured[0].in_part and self.absent else "answered"

    @property
    def reasons(self) -> tuple[str, ...]:
        """What speaks against the best one, in words."""
        reasons = []
        if self.absent:
            reasons.append("no passage found has " + ", ".join(f"“{word}”" for word in self.absent))
        if self.measured[0].cosine < FAR:
            reasons.append(f"the nearest sentence is far from the question (cosine {self.measured[0].cosine:.2f})")
        return tuple(reasons)


def weighed(part: Part, evidence: Evidence, most: int, encoder: Encoder, selector: Selector | None) -> Weighed:
    """The part's nearest ``most`` sentences, best first."""
    sources = [evidence.sources[place] for place in evidence.nearest(part, most)]
    reads = selector is not None and language_of(part.asked) == ENGLISH
    values = measured(part, sources, evidence, encoder, selector if reads else None)
    scores = [added(CHOICE if reads else NEARNESS, one) for one in values]
    order = sorted(range(len(sources)), key=lambda place: (-scores[place], place))
    values = [values[place] for place in order]
    absent = evidence.absent(part)
    words = dict.fromkeys(word.lower for word in words_of(part.text) if word.stem in absent)
    further = of_best(values, len(absent) / max(1, len(part.content)), len(evidence.sources))
    total = added(ANSWERED if reads else NEARNESS, values[0], further)
    return Weighed(
        part,
        tuple(sources[place] for place in order),
        tuple(values),
        tuple(scores[place] for place in order),
        1.0 if evidence.n_named else 1.0 / (1.0 + math.exp(-total)),
        tuple(words),
    )


def of_best(values: Sequence[Measured], absent: float, n_sources: int) -> dict[str, float]:
    """What else decides whether the first answers: its lead, the words that are missing, how many were read."""
    others = [one.log_odds for one in values[1:4]]
    lead = values[0].log_odds - (math.fsum(others) / len(others) if others else 0.0)
    return {"bias": 1.0, "lead": lead, "absent": absent, "n_read": math.log(1 + n_sources)}


def added(weights: Mapping[str, float], value: Measured, further: Mapping[str, float] | None = None) -> float:
    """The sum of these values, each by its weight; a value without one counts nothing."""
    values = asdict(value) | {"bias": 1.0, "absent": 0.0} | dict(further or {})
    return math.fsum(weight * values[name] for name, weight in weights.items())


def measured(
    part: Part, sources: Sequence[Source], evidence: Evidence, encoder: Encoder, selector: Selector | None
) -> list[Measured]:
    """What each of these sentences has of the part; without a selector it has no log odds."""
    cosines = (
        encoder.encode([f"{one.lead} {one.text}".strip() for one in sources]) @ encoder.encode_query(part.asked)[0]
    )
    found = selector.answering(part.asked, [one.shown for one in sources]) if selector else None
    odds = log_odds(found) if found is not None else [0.0] * len(sources)
    return [
        Measured(
            odds[n],
            float(cosines[n]),
            evidence.cover(part, one.reading.stems),
            evidence.cover(part, one.stems),
            evidence.cover(part, stems_of(evidence.passages[one.rank])),
            one.relevance,
            found is not None and bool(found[n, 1] > found[n, 2]),
        )
        for n, one in enumerate(sources)
    ]
