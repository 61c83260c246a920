"""Verdicts on a rule by the sentences of a policy: the rule is covered, in part, in conflict, or not covered.

A model of its own reads policies (`ragqa.loading.policy_scorer`): a policy that is stricter than the rule covers it,
while a claim that differs from its source contradicts it. The model reads the policy against the rule as a whole and
against each unit of it: each item of a list after its lead-in, or each clause of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragqa.english.clauses import clauses
from ragqa.scoring.repass.breakdown import Pair, source_premises
from ragqa.scoring.repass.nli import PairResults
from ragqa.scoring.repass.scorer import CosineOf, RepassScorer
from ragqa.scoring.strength import strength_of
from ragqa.scoring.verdicts.judge import Judge
from ragqa.scoring.verdicts.obligations import ReadPart, Said, parts_read, read_against
from ragqa.scoring.verdicts.windows import Similarity
from ragqa.types import AnswerSentence, Passage, Span
from ragqa.types.scores import Cover, NliProbabilities, ObligationVerdict, Premise, ScoringMode

RULES_OF_POLICIES = "3"  # raise it with every change here, so that rows are read again
# Chosen on the policies of the writer held out, and checked on a held-out fold of gaps.jsonl (verdicts/README.md).
DENIED = 0.3  # P(contradiction) minus P(entailment) of the whole rule from which the policy conflicts with it
WHOLE = 0.5  # P(entailment) of the whole rule from which it is covered, if each unit is stated
STATED = 0.4  # P(entailment) from which a unit is stated
BARELY = 0.3  # P(entailment) of the whole rule and of every unit below which nothing is stated

Table = Mapping[Pair, NliProbabilities]


def judge_of(passages: Sequence[Passage], scorer: RepassScorer, similarity: Similarity | None = None) -> Judge:
    """The judge of these passages, like the one that the scorer creates for an answer."""
    premises = source_premises(passages, ScoringMode.PAPER, scorer.config.sentence_splitter)
    return Judge(premises, passages, scorer.config, similarity or similarity_of(scorer))


def similarity_of(scorer: RepassScorer) -> Similarity | None:
    """Cosines by the scorer's encoder, each text encoded once; None where the scorer has no encoder."""
    return CosineOf(scorer.encoder) if scorer.encoder else None


def policy_verdicts(
    rule: Passage, policies: Sequence[Sequence[str]], scorer: RepassScorer, similarity: Similarity | None = None
) -> list[tuple[ObligationVerdict, ...]]:
    """For each policy (its sentences), the verdicts on the rule's binding sentences, or on all if none binds.

    ``scorer.verdicts`` reads them. Pass ``similarity`` to reuse encoded texts from rule to rule. Raises ScoringError.
    """
    similarity = similarity or similarity_of(scorer)
    judge = judge_of([rule], scorer, similarity)
    rules = [one for one in judge.premises if strength_of(one.text).binds] or list(judge.premises)
    said = [[(n, AnswerSentence(text, 0, len(text))) for n, text in enumerate(policy)] for policy in policies]
    readings = [[_RuleReading.of(one, policy, similarity) for one in rules] for policy in said]
    results = PairResults(scorer.verdicts)
    for _ in results.compute([pair for policy in readings for one in policy for pair in one.pairs()]):
        pass
    return [
        tuple(
            replace(judge.unread(n, one, policy) or reading.verdict(n, results.known), strength=strength_of(one.text))
            for n, (one, reading) in enumerate(zip(rules, each, strict=True))
        )
        for policy, each in zip(said, readings, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _RuleReading:
    """A rule's sentence as a whole and its units, each with the text of the policy that is read for it."""

    whole: ReadPart | None  # None for a policy without sentences
    units: tuple[ReadPart, ...]

    @classmethod
    def of(cls, rule: Premise, said: Said, similarity: Similarity | None) -> _RuleReading:
        if not said:
            return cls(None, ())
        whole = (Span(rule.text, 0, len(rule.text)), rule.text)
        units = parts_read(rule, said, similarity)
        if len(units) == 1:  # no list
            units = read_against([(one.span, one.text) for one in clauses(rule.text)], said, similarity)
        return cls(read_against([whole], said, similarity)[0], tuple(units))

    def pairs(self) -> Iterator[Pair]:
        """The pairs (policy, rule or unit) that the model must read."""
        read = (self.whole, *self.units) if self.whole else ()
        return ((one.evidence, one.text) for one in read if one.evidence)

    def verdict(self, index: int, table: Table) -> ObligationVerdict:
        """The verdict with its probability: for a conflict that of the contradiction, else of the entailment."""
        if self.whole is None:
            return ObligationVerdict(index, Cover.NOT_COVERED, "The policy has no sentence.", "nothing")
        place, whole = self.whole.nearest, _said(self.whole, table)
        stated = {one: _said(one, table).entailment for one in self.units}
        if whole.contradiction - whole.entailment >= DENIED:
            clashing = tuple(one.span for one in self.units if _clashes(_said(one, table))) or (self.whole.span,)
            reason = f"Sentence {place + 1} contradicts {_quoted(clashing)}."
            return ObligationVerdict(
                index, Cover.IN_CONFLICT, reason, "contradiction", place, clashing, probability=whole.contradiction
            )
        best = max(whole.entailment, *stated.values())
        if best < BARELY:
            reason = "No sentence of the policy says this."
            return ObligationVerdict(index, Cover.NOT_COVERED, reason, "nothing", probability=best)
        missing = tuple(one.span for one, said in stated.items() if said < STATED)
        if not missing and whole.entailment >= WHOLE:
            reason = f"Sentence {place + 1} says it in other words."
            return ObligationVerdict(index, Cover.COVERED, reason, "entailment", place, probability=whole.entailment)
        missing = missing or (min(stated, key=lambda one: stated[one]).span,)
        reason = f"Sentence {place + 1} says it without {_quoted(missing)}."
        return ObligationVerdict(index, Cover.IN_PART, reason, "part", place, missing, probability=whole.entailment)


def _said(part: ReadPart, table: Table) -> NliProbabilities:
    return table[part.evidence, part.text] if part.evidence else NliProbabilities(0.0, 0.0, 1.0)


def _clashes(said: NliProbabilities) -> bool:
    return said.contradiction - said.entailment >= DENIED


def _quoted(spans: Sequence[Span]) -> str:
    return ", ".join(f"“{span.text.rstrip('.')}”" for span in spans)


def cover_of_all(verdicts: Sequence[ObligationVerdict]) -> Cover:
    """The cover of a rule by the verdicts on its obligations: one conflict makes it a conflict."""
    covers = {one.cover for one in verdicts}
    if Cover.IN_CONFLICT in covers:
        return Cover.IN_CONFLICT
    return covers.pop() if len(covers) == 1 else Cover.IN_PART
