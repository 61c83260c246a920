"""The versions that an answer goes through, each with its score, and the best of them."""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragqa.events.generation import BestSoFar, Working
from ragqa.events.scoring import Scored
from ragqa.generation.calls import Calls
from ragqa.generation.unfinished import unfinished
from ragqa.protocols import Verifier
from ragqa.types import Answer, Breakdown, Passage


@dataclass(frozen=True, slots=True)
class Version:
    """An answer with its breakdown in the configured mode, and the step that made it."""

    answer: Answer
    evaluation: Breakdown
    scored: Scored
    step: str

    @property
    def composite(self) -> float:
        return self.evaluation.repass.composite


class Versions:
    """Scores versions of one answer and remembers the best ever seen, the earliest at a tie."""

    def __init__(self, verifier: Verifier, passages: Sequence[Passage], calls: Calls) -> None:
        self.best: Version | None = None
        self._verifier, self._passages, self._calls = verifier, passages, calls

    def scoring(self, answer: Answer, step: str) -> Stream[Working, None, Version]:
        """The version of this answer, scored; yields while the models work. Raises ScoringError."""
        stream = self._verifier.stream(answer, self._passages)
        while True:
            try:
                next(stream)
            except StopIteration as end:
                scored: Scored = end.value
                return Version(answer, self._verifier.breakdown(scored), scored, step)
            yield Working(f"Scoring {step}", self._calls.made)

    def offer(self, version: Version) -> Iterator[BestSoFar]:
        """Takes it as the best if it is better than the best so far, and then says so."""
        if self.best is None or version.composite > self.best.composite:
            self.best = version
            answer = unfinished(version.answer, version.step)
            yield BestSoFar(answer, version.step, version.evaluation.repass, version.scored)
