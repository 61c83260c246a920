"""RePASs while an answer is still being written: obligations, their coverage, and contradicted sentences.

It calls the same models as the final scoring, through their cache, so that no pair is computed twice. The rule for
dropping sentences is AUEB's (Chasandras et al. 2025, 4.5.2).
"""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Sequence
from statistics import fmean

from ragqa.plugins.protocols import Verifier
from ragqa.scoring.repass.breakdown import ScoringInput, obligation_score, source_premises
from ragqa.scoring.repass.nli import PairResults
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.types import Answer, Passage
from ragqa.types.events.scoring import ObligationScored, Scored, SentenceScored
from ragqa.types.scores import Breakdown, Coverage, Premise, ScoringMode


class RepassVerifier(Verifier):
    """A scorer with the interface that generators need. Holds no state of its own: share it between threads."""

    def __init__(self, scorer: RepassScorer) -> None:
        self._scorer = scorer

    def stream(
        self, answer: Answer, passages: Sequence[Passage]
    ) -> Stream[SentenceScored | ObligationScored, None, Scored]:
        """As `RepassScorer.stream`."""
        return self._scorer.stream(answer, passages)

    def obligations(self, passages: Sequence[Passage]) -> tuple[tuple[str, ...], ...]:
        """For each passage, the sentences that the classifier calls obligations; each passage is split alone."""
        premises = source_premises(passages, ScoringMode.PAPER, self._scorer.config.sentence_splitter)
        obliges = self._scorer.classify(sorted({premise.text for premise in premises}))
        return tuple(
            tuple(premise.text for premise in premises if premise.passage_index == index and obliges[premise.text])
            for index in range(len(passages))
        )

    def coverage(self, answer: Answer, obligation: str) -> Coverage:
        """The coverage of this obligation as in the final breakdown (configured mode); best 0 without a sentence."""
        scorer, sentences = self._scorer, answer.sentences
        obliges = scorer.classify(sorted({sentence.text for sentence in sentences}))
        given = ScoringInput(
            mode=scorer.config.mode,
            premises=(),
            obligations=(Premise(obligation, "", 0, 0, len(obligation)),),
            sentences=sentences,
            is_obligation=tuple(obliges[sentence.text] for sentence in sentences),
        )
        results = PairResults(scorer.coverage)
        results.recall(given.obligation_pairs(0))
        for _ in results.compute(given.obligation_pairs(0)):
            pass
        score = obligation_score(given, 0, results.known, scorer.config)
        return Coverage(score.best, score.covered)

    def breakdown(self, scored: Scored) -> Breakdown:
        """The breakdown in the configured mode."""
        return scored.of(self._scorer.config.mode)

    def mean_contradiction(self, evaluations: Sequence[Breakdown]) -> float:
        """See `mean_contradiction`."""
        return mean_contradiction(evaluations)

    def contradicted(self, evaluation: Breakdown, mean: float) -> tuple[int, ...]:
        """See `contradicted`."""
        return contradicted(evaluation, mean)


def mean_contradiction(evaluations: Sequence[Breakdown]) -> float:
    """``1/n sum_a C(a)`` over the answers a, in [0, 1]; 0 for none.

    AUEB average over the chosen answers of a whole data set; a single question has its own candidates only.
    """
    return fmean(evaluation.repass.contradiction for evaluation in evaluations) if evaluations else 0.0


def contradicted(evaluation: Breakdown, mean: float) -> tuple[int, ...]:
    """Indexes of the sentences whose contradiction is strictly above the mean, ascending.

    If that is every sentence, the least contradicted one stays (the first at a tie): an empty answer is no improvement.
    """
    scores = evaluation.sentences
    above = tuple(score.index for score in scores if score.contradiction > mean)
    if not above or len(above) < len(scores):
        return above
    least = min(scores, key=lambda score: score.contradiction)
    return tuple(index for index in above if index != least.index)
