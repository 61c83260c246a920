"""Measures shipped verdicts on labelled claims and on policies compared with rules: rates, balanced accuracy, kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.lab.claims import Claim, ClaimedPassage, Gap, PolicyText
from ragqa.scoring.policies import cover_of_all, judge_of, policy_verdicts, similarity_of
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.types import AnswerSentence, Passage
from ragqa.types.scores import Cover, ObligationVerdict, SentenceVerdict, Verdict

LABELS: tuple[str, ...] = ("supported", "contradicted", "unsupported")
GAP_LABELS: tuple[str, ...] = ("covered", "partly", "conflicts", "absent")
_LABEL_OF = dict(zip((Cover.COVERED, Cover.IN_PART, Cover.IN_CONFLICT, Cover.NOT_COVERED), GAP_LABELS, strict=True))
NAMED = 0.5  # share of a missing part's words that must be named as missing


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim and the verdict on it."""

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
    """A passage of a policy, the verdict on its rule, and whether the missing parts were named."""

    policy: PolicyText
    said: str  # one of `GAP_LABELS`
    named: bool


def judge_claims(
    passages: Iterable[ClaimedPassage],
    scorer: RepassScorer,
    retrieved: Callable[[str], Sequence[Passage]] | None = None,
) -> Iterator[list[JudgedClaim]]:
    """The claims of each passage, judged as in an answer, but without RePASs, which does not affect verdicts.

    ``retrieved`` finds the sources of a claim; without it the claim's own passage is the only one. Raises ScoringError.
    """
    similarity = similarity_of(scorer)
    for passage in passages:
        own = Passage(passage.id, passage.id, " ".join(passage.sentences), title=passage.title)
        sources = [retrieved(claim.text) if retrieved else [own] for claim in passage.claims]
        judges = [judge_of(given, scorer, similarity) for given in sources]
        said = [AnswerSentence(claim.text, 0, len(claim.text)) for claim in passage.claims]
        looks = (judge.second_looks(sentence) for judge, sentence in zip(judges, said, strict=True))
        pairs = list(dict.fromkeys(chain.from_iterable(looks)))
        table = dict(zip(pairs, scorer.verdicts.predict(pairs), strict=True))
        found = []
        for claim, sentence, judge in zip(passage.claims, said, judges, strict=True):
            unknown = [0.0] * len(judge.premises)
            found.append(JudgedClaim(claim, judge.sentence(0, sentence, unknown, unknown, table)))
        yield found


def judge_gaps(gaps: Iterable[Gap], scorer: RepassScorer) -> Iterator[list[JudgedPolicy]]:
    """The policies of each rule, judged as in `ragqa gaps`. Raises ScoringError."""
    for gap in gaps:
        sentences = [[span.text for span in split_sentences(policy.text)] for policy in gap.texts]
        found = policy_verdicts(Passage(gap.id, gap.id, gap.rule), sentences, scorer)
        yield [_judged_policy(gap, policy, verdicts) for policy, verdicts in zip(gap.texts, found, strict=True)]


def _judged_policy(gap: Gap, policy: PolicyText, verdicts: Sequence[ObligationVerdict]) -> JudgedPolicy:
    missing = read(" ".join(span.text for one in verdicts for span in one.missing)).content
    wanted = [read(part.text).content for part in gap.parts if part.key in policy.missing]
    named = all(len(words & missing) >= NAMED * len(words) for words in wanted)
    return JudgedPolicy(policy, _LABEL_OF[cover_of_all(verdicts)], bool(wanted) and named)


@dataclass(frozen=True, slots=True)
class Rates:
    """``counts[gold][said]`` over labels, and the counts of given labels by kind."""

    counts: dict[str, Counter[str]]
    kinds: dict[tuple[str, str], Counter[str]]

    @property
    def balanced(self) -> float:
        """The mean over the gold labels of the share that is right, in [0, 1]."""
        return fmean(self.share(label, label) for label in self.counts) if self.counts else 0.0

    def share(self, gold: str, said: str) -> float:
        """The share of items with this gold label that were called ``said``."""
        total = self.counts[gold].total()
        return self.counts[gold][said] / total if total else 0.0


def claim_rates(judged: Sequence[JudgedClaim]) -> Rates:
    """The rates over claims; kinds are (label, kind)."""
    found = Rates({}, {})
    for one in judged:
        found.counts.setdefault(one.claim.label, Counter())[one.said] += 1
        found.kinds.setdefault((one.claim.label, one.claim.kind), Counter())[one.said] += 1
    return found


def policy_rates(judged: Sequence[JudgedPolicy]) -> Rates:
    """The rates over policies, without kinds."""
    found = Rates({}, {})
    for one in judged:
        found.counts.setdefault(one.policy.label, Counter())[one.said] += 1
    return found
