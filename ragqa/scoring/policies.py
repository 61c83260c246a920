"""Verdicts on a rule by the sentences of a policy: the rule is covered, in part, in conflict, or not covered.

A model of its own reads policies (`ragqa.loading.policy_scorer`): a policy that is stricter than the rule covers it,
while a claim that differs from its source contradicts it. It reads the policy against the rule as a whole and against
each unit of it: each item of a list after its lead-in, or each clause of a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragqa.english.clauses import clauses
from ragqa.english.phrases import DETERMINERS
from ragqa.english.quantities import Quantity, is_stricter, unmatched
from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.english.words import ENGLISH, language_of
from ragqa.scoring.repass.breakdown import Pair, source_premises
from ragqa.scoring.repass.nli import PairResults
from ragqa.scoring.repass.scorer import CosineOf, RepassScorer
from ragqa.scoring.strength import strength_of, strengths_of
from ragqa.scoring.verdicts.judge import Judge
from ragqa.scoring.verdicts.obligations import CLASHES, ReadPart, Said, parts_of, read_against
from ragqa.scoring.verdicts.obligations import WHOLE as READ_WHOLE
from ragqa.scoring.verdicts.windows import Similarity, covers
from ragqa.types import AnswerSentence, Passage, Span
from ragqa.types.scores import Cover, NliProbabilities, ObligationVerdict, Premise, ScoringMode

RULES_OF_POLICIES = "9"  # raise it with every change here, so that rows are read again
# Chosen on the policies of the writers held out, and checked on a held-out fold of gaps.jsonl (library/README.md).
DENIED = 0.3  # P(contradiction), if it is at least `CLASHES`, minus P(entailment) from which the policy conflicts
WHOLE = 0.6  # P(entailment) of the whole rule from which it is covered, if each unit is stated
STATED = 0.4  # P(entailment) from which a unit is stated
THIN = 50  # words of a policy's text below which the model, which learnt from about a hundred, contradicts too much:
ON_SUBJECT = 1.05  # then a sentence must be this near the rule for a conflict (share of its words, plus cosine)
BESIDE_RULE = 0.9  # nearness of the nearest sentence of a long policy below which it does not conflict
BARELY = 0.25  # P(entailment) of the whole rule and of every unit below which nothing is stated

FIRM = "the firm"
DETERMINER = rf"(?:{'|'.join(sorted(DETERMINERS))})"
NO_TEXT = NliProbabilities(0.0, 0.0, 1.0)

Table = Mapping[Pair, NliProbabilities]


@dataclass(frozen=True, slots=True)
class Firm:
    """What a rule calls those whom it binds, and what a policy calls its own firm; the model takes them for two."""

    addressed: str = ""
    name: str = ""

    def read_as(self, part: ReadPart, text: str) -> ReadPart:
        """The part with this text, with "the firm" for both names."""
        if self.addressed:
            own = rf"\b(?:{DETERMINER}\s+)?{re.escape(self.addressed)}(?!\w)"
            text = re.sub(own, FIRM, text, flags=re.IGNORECASE)
        evidence = re.sub(rf"\b{re.escape(self.name)}\b", FIRM, part.evidence) if self.name else part.evidence
        return replace(part, text=text, evidence=evidence)


NO_FIRM = Firm()


def judge_of(passages: Sequence[Passage], scorer: RepassScorer, similarity: Similarity | None = None) -> Judge:
    """The judge of these passages, like the one that the scorer creates for an answer."""
    premises = source_premises(passages, ScoringMode.PAPER, scorer.config.sentence_splitter)
    return Judge(premises, passages, scorer.config, similarity or similarity_of(scorer))


def similarity_of(scorer: RepassScorer) -> Similarity | None:
    """Cosines by the scorer's encoder, each text encoded once; None where the scorer has no encoder."""
    return CosineOf(scorer.encoder) if scorer.encoder else None


def policy_verdicts(
    rule: Passage,
    policies: Sequence[Sequence[str]],
    scorer: RepassScorer,
    similarity: Similarity | None = None,
    paragraphs: Sequence[Sequence[int]] = (),
    firm: Firm = NO_FIRM,
) -> list[tuple[ObligationVerdict, ...]]:
    """For each policy (its sentences), the verdicts on the rule's binding sentences, or on all if none binds.

    ``paragraphs`` gives, for each policy, the number of the paragraph of each sentence: the nearest ones are read.
    ``firm`` is what rule and policies call the firm. ``scorer.verdicts`` reads them. Pass ``similarity`` to reuse
    encoded texts from rule to rule. Raises ScoringError.
    """
    similarity = similarity or similarity_of(scorer)
    judge = judge_of([rule], scorer, similarity)
    strengths = strengths_of([one.text for one in judge.premises])
    binding = [one for one, strength in zip(judge.premises, strengths, strict=True) if strength.binds]
    rules = binding or list(judge.premises)
    said = [[(n, AnswerSentence(text, 0, len(text))) for n, text in enumerate(policy)] for policy in policies]
    places = paragraphs or [()] * len(said)
    readings = [
        [_RuleReading.of(one, policy, similarity, place, firm) for one in rules]
        for policy, place in zip(said, places, strict=True)
    ]
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
    is_spread: bool = False  # whether a long policy may state the items of a list in places that are read apart
    denial: ReadPart | None = None  # the rule with the text that may conflict with it; None if none may

    @classmethod
    def of(
        cls,
        rule: Premise,
        said: Said,
        similarity: Similarity | None,
        paragraphs: Sequence[int] = (),
        firm: Firm = NO_FIRM,
    ) -> _RuleReading:
        said = [(n, sentence) for n, sentence in said if language_of(sentence.text) == ENGLISH]
        paragraphs = [paragraphs[n] for n, _ in said] if paragraphs else ()
        if not said:
            return cls(None, ())
        texts = {n: sentence.text for n, sentence in said}
        items = parts_of(rule.text)
        is_list = len(items) > 1
        if not is_list:
            items = [(one.span, one.text) for one in clauses(rule.text)]
        whole = (Span(rule.text, 0, len(rule.text)), rule.text)
        near = read_against([whole, *items], said, similarity, paragraphs)
        parts = [firm.read_as(part, _in_its_numbers(part.text, texts[part.nearest])) for part in near]
        evidence, is_long = texts[parts[0].nearest], sum(map(len, texts.values())) > READ_WHOLE
        denial = None
        if is_long and parts[0].nearness >= BESIDE_RULE:
            denial = firm.read_as(replace(parts[0], evidence=evidence), parts[0].text)
        elif not is_long and _may_clash(rule.text, parts[0].evidence or evidence, similarity):
            denial = parts[0]
        return cls(parts[0], tuple(parts[1:]), is_long and is_list, denial)

    def pairs(self) -> Iterator[Pair]:
        """The pairs (policy, rule or unit) that the model must read."""
        parts = (*filter(None, (self.whole, self.denial)), *self.units)
        return ((one.evidence, one.text) for one in parts if one.evidence)

    def verdict(self, index: int, table: Table) -> ObligationVerdict:
        """The verdict with its probability: for a conflict that of the contradiction, else of the entailment."""
        if self.whole is None:
            return ObligationVerdict(
                index, Cover.NOT_COVERED, "The policy has no sentence that can be read.", "nothing"
            )
        said = {one: _said(one, table) for one in (self.whole, *self.units)}
        whole, stated = said[self.whole], {one: said[one].entailment for one in self.units}
        clashing = tuple(one.span for one in self.units if _clashes(said[one]) and _shares(one))
        denied = _said(self.denial, table) if self.denial else NO_TEXT
        if _clashes(denied) or (self.denial and clashing and not self.whole.evidence):
            clashing = clashing or (self.whole.span,)
            place = next((one for one in self.units if one.span in clashing), self.whole).nearest
            reason, probability = f"Sentence {place + 1} contradicts {_quoted(clashing)}.", denied.contradiction
            return ObligationVerdict(
                index, Cover.IN_CONFLICT, reason, "contradiction", place, clashing, probability=probability
            )
        best = max(said, key=lambda one: said[one].entailment)
        probability, place = whole.entailment, best.nearest
        if said[best].entailment < BARELY:
            reason = "No sentence of the policy says this."
            return ObligationVerdict(index, Cover.NOT_COVERED, reason, "nothing", probability=said[best].entailment)
        missing = tuple(one.span for one, entailment in stated.items() if entailment < STATED)
        if not missing and max(whole.entailment, min(stated.values()) if self.is_spread else 0.0) >= WHOLE:
            reason = f"Sentence {place + 1} says it in other words."
            return ObligationVerdict(index, Cover.COVERED, reason, "entailment", place, probability=probability)
        missing = missing or (min(stated, key=lambda one: stated[one]).span,)
        reason = f"Sentence {place + 1} says it without {_quoted(missing)}."
        return ObligationVerdict(index, Cover.IN_PART, reason, "part", place, missing, probability=probability)


def _said(part: ReadPart, table: Table) -> NliProbabilities:
    return table[part.evidence, part.text] if part.evidence else NO_TEXT


def _in_its_numbers(text: str, policy: str) -> str:
    """The rule with the policy's number where that is stricter: the model compares no numbers."""
    mine, theirs = read(text).quantities, read(policy).quantities
    others = unmatched(theirs, mine, Quantity.equals)
    for one in reversed(unmatched(mine, theirs, Quantity.equals)):
        alike = [other for other in others if other.dimension == one.dimension or is_stricter(text, one, other)]
        if len(alike) == 1 and is_stricter(text, one, alike[0]):
            text = text[: one.span.start] + alike[0].span.text + text[one.span.end :]
    return text


def _may_clash(rule: str, evidence: str, similarity: Similarity | None) -> bool:
    """Whether the evidence is long enough for the model, or one of its sentences is surely on the rule's subject."""
    if len(evidence.split()) >= THIN:
        return True
    sentences, known = [span.text for span in split_sentences(evidence)], [read(rule).content]
    shares = [covers(sentence, known)[0] for sentence in sentences]
    cosines = similarity(rule, sentences) if similarity else shares
    return any(share + float(cosine) >= ON_SUBJECT for share, cosine in zip(shares, cosines, strict=True))


def _shares(part: ReadPart) -> bool:
    """Whether the policy has words of this part itself, not of its lead-in alone."""
    return bool(read(part.span.text).content & read(part.evidence).content)


def _clashes(said: NliProbabilities) -> bool:
    return said.contradiction >= CLASHES and said.contradiction - said.entailment >= DENIED


def clash_words(rule: str, policy: str) -> tuple[str, str]:
    """The words of a rule and of a policy's sentence that clash: two numbers of the same kind, else all of both."""
    mine, theirs = read(rule).quantities, read(policy).quantities
    others = unmatched(theirs, mine, Quantity.equals)
    for one in unmatched(mine, theirs, Quantity.equals):
        alike = [other for other in others if (other.dimension, other.nouns) == (one.dimension, one.nouns)]
        if len(alike) == 1:
            return one.span.text, alike[0].span.text
    return " ".join(rule.split()), " ".join(policy.split())


def _quoted(spans: Sequence[Span]) -> str:
    return ", ".join(f"“{span.text.rstrip('.')}”" for span in spans)


def cover_of_all(verdicts: Sequence[ObligationVerdict]) -> Cover:
    """The cover of a rule by the verdicts on its obligations: one conflict makes it a conflict."""
    covers = {one.cover for one in verdicts}
    if Cover.IN_CONFLICT in covers:
        return Cover.IN_CONFLICT
    return covers.pop() if len(covers) == 1 else Cover.IN_PART
