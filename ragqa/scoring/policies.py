"""Verdicts on a rule by the sentences of a policy: the rule is covered, in part, in conflict, or not covered.

The judge's verdict on the rule as a whole is refined in both directions. If the rule entails a policy's sentence, the
policy states that part of the rule. If the policy entails the whole rule, it must also state each clause. Only the
policy's sentence that is nearest to the rule can conflict with it, because a policy covers many other subjects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragqa.english.clauses import Clause, clauses
from ragqa.english.reading import read
from ragqa.scoring.repass.breakdown import Pair, source_premises
from ragqa.scoring.repass.nli import PairResults
from ragqa.scoring.repass.scorer import CosineOf, RepassScorer
from ragqa.scoring.strength import strength_of
from ragqa.scoring.verdicts.judge import Judge
from ragqa.scoring.verdicts.obligations import CLASHES, ReadPart, Said, cover_of, numbers_missing, parts_read
from ragqa.scoring.verdicts.windows import Similarity
from ragqa.types import AnswerSentence, Passage, Span
from ragqa.types.scores import Cover, NliProbabilities, ObligationVerdict, Premise, ScoringMode

RULES_OF_POLICIES = "2"  # raise it with every change here, so that rows are read again
# Chosen on rules and policies that the verifier was not trained on.
ENTAILED = 0.25  # P(entailment) of a policy's nearest sentence by the rule, from which it states a part of the rule
WHOLE = 0.55  # P(entailment) of a rule by a policy, from which it states the rule if it states each clause, too
UNSAID = 0.2  # P(entailment) of a clause by a policy that states the whole rule, below which the clause is missing
SAID = 1.1  # P(entailment) plus the share of its words, from which a clause of a partly stated rule is stated

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

    Pass ``similarity`` to reuse encoded texts from rule to rule. Raises ScoringError.
    """
    similarity = similarity or similarity_of(scorer)
    judge = judge_of([rule], scorer, similarity)
    rules = [one for one in judge.premises if strength_of(one.text).binds] or list(judge.premises)
    said = [[(n, AnswerSentence(text, 0, len(text))) for n, text in enumerate(policy)] for policy in policies]
    both = [[_BothWays.of(one, policy, similarity) for one in rules] for policy in said]
    pairs = [pair for policy in said for one in rules for pair in judge.obligation_looks(one, policy)]
    results = PairResults(scorer.verdicts)
    for _ in results.compute([*pairs, *(pair for policy in both for one in policy for pair in one.pairs())]):
        pass
    return [
        tuple(
            way.looked_at(judge.obligation(n, one, policy, results.known), results.known)
            for n, (one, way) in enumerate(zip(rules, ways, strict=True))
        )
        for policy, ways in zip(said, both, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _BothWays:
    """A rule's sentence and its clauses, each with the nearest text of the policy."""

    rule: str
    said: Said
    whole: tuple[ReadPart, ...]
    clauses: tuple[tuple[Clause, ReadPart], ...]

    @classmethod
    def of(cls, rule: Premise, said: Said, similarity: Similarity | None) -> _BothWays:
        parts = ((one, parts_read(replace(rule, text=one.text), said, similarity)[:1]) for one in clauses(rule.text))
        near = tuple((one, read_of[0]) for one, read_of in parts if read_of)
        return cls(rule.text, said, tuple(parts_read(rule, said, similarity)), near)

    def pairs(self) -> Iterator[Pair]:
        """The pairs that the verifier must read in addition to the judge's."""
        for part in self.whole:
            if part.evidence:
                yield self.rule, self._nearest(part)
                yield part.evidence, part.text
        for clause, part in self.clauses:
            if part.evidence:
                yield part.evidence, clause.text
                yield self._nearest(part), clause.text

    def looked_at(self, verdict: ObligationVerdict, table: Table) -> ObligationVerdict:
        """The verdict of `_both_ways` with its probability: for a covered rule, that of its least covered part.

        A conflict that the verifier did not find, such as one of numbers, has no probability.
        """
        verdict = self._both_ways(verdict, table)
        if verdict.cover is Cover.IN_CONFLICT and verdict.rule != "contradiction":
            return verdict
        found = [table[part.evidence, part.text] for part in self.whole if part.evidence]
        told = [one.contradiction if verdict.cover is Cover.IN_CONFLICT else one.entailment for one in found]
        deciding = min if verdict.cover is Cover.COVERED else max
        return replace(verdict, probability=deciding(told) if told else None)

    def _both_ways(self, verdict: ObligationVerdict, table: Table) -> ObligationVerdict:
        """The verdict refined by clauses: it names those that are missing or clash, and may become (partly) covered."""
        if verdict.cover is Cover.IN_CONFLICT and verdict.answer_index not in {one.nearest for one in self.whole}:
            verdict = replace(cover_of(verdict.index, self.whole, table), strength=verdict.strength)
        place, whole = verdict.answer_index, self._said_as_a_whole(table)
        if verdict.rule == "entailment" or (verdict.rule == "nothing" and whole):
            place = whole.nearest if whole and place is None else place
            missing = [one for one, part in self.clauses if self._said(one, part, table).entailment < UNSAID]
        elif verdict.rule == "nothing" and (entailed := self._entailed(table)):
            place = entailed.nearest
            shares = {one: self._share(one, part, table) for one, part in self.clauses}
            missing = [one for one, share in shares.items() if share < SAID] or [
                min(shares, key=lambda one: shares[one])
            ]
        elif verdict.rule == "contradiction":
            return replace(verdict, missing=self._clashing(table) or verdict.missing)
        else:
            return replace(verdict, missing=self._widened(verdict.missing))
        if place is None:
            return verdict
        if not missing:
            reason = f"Sentence {place + 1} says it in other words."
            return replace(verdict, cover=Cover.COVERED, reason=reason, rule="entailment", answer_index=place)
        words = ", ".join(f"“{one.span.text}”" for one in missing)
        reason, spans = f"Sentence {place + 1} says it without {words}.", tuple(one.span for one in missing)
        return replace(verdict, cover=Cover.IN_PART, reason=reason, rule="part", answer_index=place, missing=spans)

    def _said_as_a_whole(self, table: Table) -> ReadPart | None:
        """The only part of a rule that is not a list, if the policy entails it and states its numbers."""
        if len(self.whole) != 1 or not self.whole[0].evidence:
            return None
        (part,) = self.whole
        is_said = table[part.evidence, part.text].entailment >= WHOLE and not numbers_missing(part)
        return part if is_said else None

    def _entailed(self, table: Table) -> ReadPart | None:
        """The first part whose nearest sentence the rule entails."""
        near = (part for part in self.whole if part.evidence)
        return next((one for one in near if table[self.rule, self._nearest(one)].entailment >= ENTAILED), None)

    def _clashing(self, table: Table) -> tuple[Span, ...]:
        """The clauses that the policy contradicts."""
        said = ((one, self._said(one, part, table)) for one, part in self.clauses)
        return tuple(one.span for one, p in said if p.contradiction >= CLASHES and p.contradiction > p.entailment)

    def _widened(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """These spans widened to the clauses around them; in a list they stay as they are."""
        if len(self.whole) > 1:
            return tuple(spans)
        found = [[one.span for one, _ in self.clauses if one.span.start <= span.start < one.span.end] for span in spans]
        return tuple(dict.fromkeys(each[0] if each else span for each, span in zip(found, spans, strict=True)))

    def _said(self, clause: Clause, part: ReadPart, table: Table) -> NliProbabilities:
        return table[part.evidence, clause.text] if part.evidence else NliProbabilities(0.0, 0.0, 1.0)

    def _share(self, clause: Clause, part: ReadPart, table: Table) -> float:
        """P(entailment) of the clause plus the share of its own words that its nearest sentence has."""
        if not part.evidence:
            return 0.0
        own, near = read(clause.span.text).content, self._nearest(part)
        words = len(own & read(near).content) / len(own) if own else 1.0
        return words + max(self._said(clause, part, table).entailment, table[near, clause.text].entailment)

    def _nearest(self, part: ReadPart) -> str:
        return next(sentence.text for n, sentence in self.said if n == part.nearest)


def cover_of_all(verdicts: Sequence[ObligationVerdict]) -> Cover:
    """The cover of a rule by the verdicts on its obligations: one conflict makes it a conflict."""
    covers = {one.cover for one in verdicts}
    if Cover.IN_CONFLICT in covers:
        return Cover.IN_CONFLICT
    return covers.pop() if len(covers) == 1 else Cover.IN_PART
