"""Verdicts as shipped on labelled claims and on policies held against rules: rates, balanced accuracy, by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.lab.claims import Claim, ClaimedPassage, Gap, PolicyText
from ragqa.scoring.repass.breakdown import source_premises
from ragqa.scoring.repass.scorer import CosineOf, RepassScorer
from ragqa.scoring.strength import strength_of
from ragqa.scoring.verdicts.judge import Judge
from ragqa.types import AnswerSentence, Passage
from ragqa.types.scores import Cover, ObligationVerdict, Premise, ScoringMode, SentenceVerdict, Verdict

LABELS: tuple[str, ...] = ("supported", "contradicted", "unsupported")
GAP_LABELS: tuple[str, ...] = ("covered", "partly", "conflicts", "absent")
NAMED = 0.5  # share of a missing part's words that the words named as missing must have


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim and the verdict on it, with its own passage as the only source."""

    claim: Claim
    verdict: SentenceVerdict

    @property
    def said(self) -> str:
        """The verdict as one of `LABELS`."""
        verdict = self.verdict.verdict
        if verdict in (Verdict.SUPPORTED, Verdict.CONTRADICTED):
            return str(verdict)
        return "contradicted" if verdict is Verdict.DISAGREEING else "unsupported"


@dataclass(frozen=True, slots=True)
class JudgedPolicy:
    """A passage of a policy, what its rule's obligations come to, and whether what is missing was named."""

    policy: PolicyText
    said: str  # one of `GAP_LABELS`
    named: bool


def judge_claims(passages: Iterable[ClaimedPassage], scorer: RepassScorer) -> Iterator[list[JudgedClaim]]:
    """The claims of each passage, judged as in an answer, without RePASs, which decides nothing of it.

    Raises ScoringError.
    """
    for passage in passages:
        source = Passage(passage.id, passage.id, " ".join(passage.sentences), title=passage.title)
        judge = judge_of([source], scorer)
        unknown = [0.0] * len(judge.premises)
        said = [AnswerSentence(claim.text, 0, len(claim.text)) for claim in passage.claims]
        pairs = list(dict.fromkeys(pair for sentence in said for pair in judge.second_looks(sentence)))
        table = dict(zip(pairs, scorer.verdicts.predict(pairs), strict=True))
        yield [
            JudgedClaim(claim, judge.sentence(0, sentence, unknown, unknown, table))
            for claim, sentence in zip(passage.claims, said, strict=True)
        ]


def judge_gaps(gaps: Iterable[Gap], scorer: RepassScorer) -> Iterator[list[JudgedPolicy]]:
    """The policies of each rule: its sentences that oblige, or all where none does, against the policy's sentences."""
    for gap in gaps:
        source = Passage(gap.id, gap.id, gap.rule)
        judge = judge_of([source], scorer)
        rules = [one for one in judge.premises if strength_of(one.text).binds] or list(judge.premises)
        yield [_judged_policy(gap, policy, rules, judge, scorer) for policy in gap.texts]


def judge_of(passages: Sequence[Passage], scorer: RepassScorer) -> Judge:
    """The judge of these passages, as the scorer makes it for an answer."""
    premises = source_premises(passages, ScoringMode.PAPER, scorer.config.sentence_splitter)
    return Judge(premises, passages, scorer.config, CosineOf(scorer.encoder) if scorer.encoder else None)


def _judged_policy(
    gap: Gap, policy: PolicyText, rules: Sequence[Premise], judge: Judge, scorer: RepassScorer
) -> JudgedPolicy:
    spans = split_sentences(policy.text)
    said = [(n, AnswerSentence(span.text, span.start, span.end)) for n, span in enumerate(spans)]
    pairs = list(dict.fromkeys(pair for rule in rules for pair in judge.obligation_looks(rule, said)))
    table = dict(zip(pairs, scorer.verdicts.predict(pairs), strict=True))
    found = [judge.obligation(n, rule, said, table) for n, rule in enumerate(rules)]
    missing = read(" ".join(span.text for one in found for span in one.missing)).content
    wanted = [read(part.text).content for part in gap.parts if part.key in policy.missing]
    named = all(len(words & missing) >= NAMED * len(words) for words in wanted)
    return JudgedPolicy(policy, label_of(found), bool(wanted) and named)


def label_of(verdicts: Sequence[ObligationVerdict]) -> str:
    """What the verdicts on a rule's obligations come to, as one of `GAP_LABELS`."""
    covers = {one.cover for one in verdicts}
    if Cover.IN_CONFLICT in covers:
        return "conflicts"
    if covers == {Cover.COVERED}:
        return "covered"
    return "absent" if covers == {Cover.NOT_COVERED} else "partly"


@dataclass(frozen=True, slots=True)
class Rates:
    """``counts[gold][said]`` over labels, and by kind how many of each label were said."""

    counts: dict[str, Counter[str]]
    kinds: dict[tuple[str, str], Counter[str]]

    @property
    def balanced(self) -> float:
        """The mean over the gold labels of the share that is right, in [0, 1]."""
        return fmean(self.share(label, label) for label in self.counts) if self.counts else 0.0

    def share(self, gold: str, said: str) -> float:
        """Of those with this gold label, the share called so."""
        total = self.counts[gold].total()
        return self.counts[gold][said] / total if total else 0.0


def claim_rates(judged: Sequence[JudgedClaim]) -> Rates:
    """Over claims; kinds are (label, kind)."""
    found = Rates({}, {})
    for one in judged:
        found.counts.setdefault(one.claim.label, Counter())[one.said] += 1
        found.kinds.setdefault((one.claim.label, one.claim.kind), Counter())[one.said] += 1
    return found


def policy_rates(judged: Sequence[JudgedPolicy]) -> Rates:
    """Over policies; without kinds."""
    found = Rates({}, {})
    for one in judged:
        found.counts.setdefault(one.policy.label, Counter())[one.said] += 1
    return found
