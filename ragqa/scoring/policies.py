"""What the sentences of a policy come to for a rule: the rule is covered, in part, in conflict, or not covered."""

from __future__ import annotations

from collections.abc import Sequence

from ragqa.scoring.repass.breakdown import source_premises
from ragqa.scoring.repass.nli import PairResults
from ragqa.scoring.repass.scorer import CosineOf, RepassScorer
from ragqa.scoring.strength import strength_of
from ragqa.scoring.verdicts.judge import Judge
from ragqa.types import AnswerSentence, Passage
from ragqa.types.scores import Cover, ObligationVerdict, ScoringMode


def judge_of(passages: Sequence[Passage], scorer: RepassScorer) -> Judge:
    """The judge of these passages, as the scorer makes it for an answer."""
    premises = source_premises(passages, ScoringMode.PAPER, scorer.config.sentence_splitter)
    return Judge(premises, passages, scorer.config, CosineOf(scorer.encoder) if scorer.encoder else None)


def policy_verdicts(
    rule: Passage, policies: Sequence[Sequence[str]], scorer: RepassScorer
) -> list[tuple[ObligationVerdict, ...]]:
    """For each policy, given as its sentences, the verdicts on the rule's sentences that bind, or on all if none does.

    Raises ScoringError.
    """
    judge = judge_of([rule], scorer)
    rules = [one for one in judge.premises if strength_of(one.text).binds] or list(judge.premises)
    said = [[(n, AnswerSentence(text, 0, len(text))) for n, text in enumerate(policy)] for policy in policies]
    results = PairResults(scorer.verdicts)
    for _ in results.compute(pair for policy in said for one in rules for pair in judge.obligation_looks(one, policy)):
        pass
    return [tuple(judge.obligation(n, one, policy, results.known) for n, one in enumerate(rules)) for policy in said]


def cover_of_all(verdicts: Sequence[ObligationVerdict]) -> Cover:
    """What the verdicts on a rule's obligations come to: one conflict is one of the rule."""
    covers = {one.cover for one in verdicts}
    if Cover.IN_CONFLICT in covers:
        return Cover.IN_CONFLICT
    return covers.pop() if len(covers) == 1 else Cover.IN_PART
