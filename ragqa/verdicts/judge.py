"""What the sources say of an answer: each rule in turn, and the first that decides gives verdict and reason.

Pure: raw probabilities of an NLI model in, verdicts out; no model is asked. RePASs is not changed by any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragqa.config import ScoringConfig
from ragqa.types import (
    AnswerSentence,
    Breakdown,
    Cover,
    ObligationVerdict,
    Passage,
    Premise,
    SentenceVerdict,
    Verdict,
)
from ragqa.verdicts import RULES_VERSION


class Judge:
    """Judges sentences of one answer against the source sentences of its passages. Share it within one scoring."""

    def __init__(self, premises: Sequence[Premise], passages: Sequence[Passage], config: ScoringConfig) -> None:
        """``premises`` are the source sentences of ``passages`` (kept, best first)."""
        self.premises = premises
        self.passages = passages
        self.threshold = config.verdict_threshold
        self.coverage_threshold = config.coverage_threshold

    def sentence(
        self, index: int, sentence: AnswerSentence, entailment: Sequence[float], contradiction: Sequence[float]
    ) -> SentenceVerdict:
        """The verdict on one answer sentence; a raw probability per source sentence, 0 where it is not known yet."""
        supporting = sorted((n for n, p in enumerate(entailment) if p >= self.threshold), key=lambda n: -entailment[n])
        against = sorted(
            (n for n, p in enumerate(contradiction) if p >= self.threshold), key=lambda n: -contradiction[n]
        )
        if supporting:
            passage = self.premises[supporting[0]].passage_index + 1
            reason = f"entailed by [{passage}], P {entailment[supporting[0]]:.2f}"
            return SentenceVerdict(
                index, Verdict.SUPPORTED, reason, "entailment", tuple(supporting), (), tuple(against)
            )
        if against:
            passage = self.premises[against[0]].passage_index + 1
            reason = f"contradicted by [{passage}], P {contradiction[against[0]]:.2f}"
            return SentenceVerdict(index, Verdict.CONTRADICTED, reason, "contradiction", (), tuple(against))
        return SentenceVerdict(index, Verdict.UNSUPPORTED, "no source sentence says this", "nothing")

    def obligation(
        self,
        index: int,
        obligation: Premise,
        said: Sequence[tuple[int, AnswerSentence]],
        entailment: Sequence[float],
    ) -> ObligationVerdict:
        """Whether the answer tells of this obligation.

        ``said`` are answer sentences with their indexes, ``entailment`` P(entailment) of each, 0 where not known yet.
        """
        best = max(range(len(said)), key=lambda n: entailment[n], default=None)
        if best is not None and entailment[best] > self.coverage_threshold:
            answer_index = said[best][0]
            return ObligationVerdict(
                index, Cover.COVERED, f"said by sentence {answer_index + 1}", "entailment", answer_index
            )
        return ObligationVerdict(index, Cover.NOT_COVERED, "no sentence of the answer says this", "nothing")


def judged(breakdown: Breakdown, judge: Judge) -> Breakdown:
    """The breakdown with the verdicts on its sentences and obligations; its numbers stay as they are."""
    rows = breakdown.entailment_matrix, breakdown.contradiction_matrix
    said = [(n, breakdown.sentences[n].sentence) for n in breakdown.looked_at]
    return replace(
        breakdown,
        verdicts=tuple(
            judge.sentence(
                score.index,
                score.sentence,
                [row[score.index] for row in rows[0]],
                [row[score.index] for row in rows[1]],
            )
            for score in breakdown.sentences
        ),
        obligation_verdicts=tuple(
            judge.obligation(score.index, score.obligation, said, breakdown.coverage_matrix[score.index])
            for score in breakdown.obligations
        ),
        verdict_rules=RULES_VERSION,
    )
