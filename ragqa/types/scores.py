"""The frozen values of scoring: RePASs and the verdicts on an answer. Imports only `ragqa.types`.

Probabilities are floats in [0, 1]. A position is an index into a breakdown's sentences, premises or obligations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ragqa.types import AnswerSentence, ModelInfo, Span


class ScoringMode(StrEnum):
    """The definition of RePASs: that of the paper (RIRAG section 4) or of the reference script."""

    PAPER = "paper"
    SCRIPT = "script"


class Verdict(StrEnum):
    """What the passages say about an answer sentence.

    A raw verdict compares the two RePASs maxima with a threshold. `ragqa.scoring.verdicts` judges by rules and never
    gives ``DISPUTED``.
    """

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    DISPUTED = "contradicted and supported"  # raw: both maxima reach the threshold
    DISAGREEING = "sources disagree"  # one source supports it, another on the same subject contradicts it
    NONE = "no verdict"  # the sentence is in a language that the model cannot read


@dataclass(frozen=True, slots=True)
class NliProbabilities:
    """P(contradiction), P(entailment), P(neutral) of one (premise, hypothesis) pair; they sum to 1."""

    contradiction: float
    entailment: float
    neutral: float


@dataclass(frozen=True, slots=True)
class Premise:
    """A source sentence: ``passages[passage_index].text[start:end]`` of the kept passages (0-based index)."""

    text: str
    passage_id: str
    passage_index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """One answer sentence compared with every source sentence.

    ``entailment`` and ``contradiction`` are the maxima over the source sentences, in [0, 1]. The two premises are the
    source sentences with these maxima (the first at a tie); None only if there is no source sentence.
    """

    index: int
    sentence: AnswerSentence
    entailment: float
    contradiction: float
    entailment_premise: Premise | None
    contradiction_premise: Premise | None
    verdict: Verdict  # raw: the two maxima against the verdict threshold
    is_obligation: bool


@dataclass(frozen=True, slots=True)
class ObligationScore:
    """One obligation of the passages and the answer sentence that covers it best.

    ``best`` is the highest P(entailment | premise = answer sentence, hypothesis = obligation) among the answer
    sentences that the scoring mode considers, and ``answer_index`` is that sentence (None if it considers none).
    """

    index: int
    obligation: Premise
    covered: bool
    best: float
    margin: float  # best minus the coverage threshold
    answer_index: int | None
    answer_text: str


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """The verdict of a language model on an answer sentence; None if it gave none, and ``reason`` says why.

    ``cited`` are the source sentences that it named. ``tokens`` counts sent and written tokens, 0 if not counted.
    """

    model: str
    verdict: Verdict | None
    reason: str
    cited: tuple[str, ...] = ()
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SentenceVerdict:
    """The verdict of `ragqa.scoring.verdicts` on one answer sentence; beside RePASs, never part of it.

    ``supporting``, ``contradicting`` and ``doubted`` are positions in the breakdown's ``premises``; the deciding one
    comes first. ``said`` are the deciding words of the sentence (offsets in its own text), ``found`` those of the
    deciding premise, which is a contradicting one if there is one. ``doubted`` are premises whose raw P(entailment) or
    P(contradiction) reaches the threshold but is rejected by the rules.
    """

    index: int
    verdict: Verdict
    reason: str  # one sentence, for the reader
    rule: str  # short name of the deciding rule: quotation, entailment, number, …
    supporting: tuple[int, ...] = ()
    contradicting: tuple[int, ...] = ()
    doubted: tuple[int, ...] = ()
    said: tuple[Span, ...] = ()
    found: tuple[Span, ...] = ()
    quoted: bool = False  # word for word from a source sentence; ``verdict`` is then supported, or sources disagree
    probability: float | None = None  # calibrated probability of the verdict; None if a rule decided or in old records
    unsure: bool = False  # the probability is near the decision threshold
    evidence: str = ""  # the words of the source that decided
    second: SecondOpinion | None = None  # None if no language model was asked

    @property
    def deciding(self) -> int | None:
        """The position of the premise that contains ``found``; None if no premise decided."""
        return next(iter((*self.contradicting, *self.supporting)), None)


class Cover(StrEnum):
    """How far the answer covers an obligation."""

    COVERED = "covered"
    IN_PART = "covered in part"
    IN_CONFLICT = "in conflict"
    NOT_COVERED = "not covered"


class Strength(StrEnum):
    """How strongly a sentence binds somebody."""

    MUST = "must"
    MUST_NOT = "must not"
    MAY_ONLY = "may only"  # a permission that restricts
    SHOULD = "should"  # a recommendation, guidance
    MAY = "may"  # a permission, a power
    NONE = "none"  # a definition, a date of effect, a heading, a fact

    @property
    def binds(self) -> bool:
        """Whether it puts a duty on somebody."""
        return self in (Strength.MUST, Strength.MUST_NOT, Strength.MAY_ONLY)

    @property
    def is_listed(self) -> bool:
        """Whether it is listed with the obligations: duties, and recommendations, which are labelled as such."""
        return self.binds or self is Strength.SHOULD


@dataclass(frozen=True, slots=True)
class ObligationVerdict:
    """The verdict on one obligation of RePASs.

    ``missing`` are the obligation's words that the answer lacks or, in a conflict, contradicts. ``answer_index`` is the
    answer sentence that covers the obligation or a part of it, None if no sentence does. ``strength`` says whether the
    obligation binds anybody (`listed_obligations`); None in older records. ``probability`` is given when policies are
    checked: the verifier's P(contradiction) for a conflict, else its P(entailment), in [0, 1].
    """

    index: int
    cover: Cover
    reason: str
    rule: str
    answer_index: int | None = None
    missing: tuple[Span, ...] = ()
    strength: Strength | None = None
    probability: float | None = None


def listed_obligations(
    scores: Sequence[ObligationScore], verdicts: Sequence[ObligationVerdict]
) -> tuple[ObligationScore, ...]:
    """The RePASs obligations except those that bind nobody by their verdict; all if there are no verdicts."""
    strengths = {one.index: one.strength for one in verdicts}
    found = ((score, strengths.get(score.index)) for score in scores)
    return tuple(score for score, strength in found if strength is None or strength.is_listed)


class CitationStatus(StrEnum):
    """The result of checking a sentence's citations; see `ragqa.scoring.repass.attribution`."""

    CONFIRMED = "confirmed"  # every cited passage supports the sentence
    CORRECTED = "corrected"  # the written citations were replaced by the passages that support the sentence
    REMOVED = "removed"  # the sentence had citations, but no kept passage supports it
    ADDED = "added"  # the sentence had no citation, but a passage supports it
    MISSING = "missing"  # the sentence had no citation, and no passage supports it

    @classmethod
    def _missing_(cls, value: object) -> CitationStatus | None:
        return cls.CONFIRMED if value == "kept" else None  # the value in records of version 0.1.0


@dataclass(frozen=True, slots=True)
class PassageSupport:
    """A kept passage, by number from 1, and the highest raw P(entailment) among its source sentences, in [0, 1].

    ``quoted``: the answer sentence is one of its source sentences, word for word.
    """

    number: int
    entailment: float
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """The written and the verified citations of answer sentence ``index``: passage numbers from 1, ascending.

    ``verified`` is empty if no passage supports the sentence. ``support`` has every passage that the sentence cites or
    that supports it, by number.
    """

    index: int
    status: CitationStatus
    written: tuple[int, ...]
    verified: tuple[int, ...]
    support: tuple[PassageSupport, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of one obligation: the highest P(entailment), in [0, 1], and whether it reaches the threshold."""

    best: float
    covered: bool


@dataclass(frozen=True, slots=True)
class RePASs:
    """The three parts, each in [0, 1]. In mode ``script`` they are rounded to 5 decimals, as in the script."""

    entailment: float
    contradiction: float
    obligation_coverage: float

    @property
    def composite(self) -> float:
        """(E - C + OC + 1) / 3, RIRAG equation 4."""
        return (self.entailment - self.contradiction + self.obligation_coverage + 1) / 3


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A RePASs breakdown in one mode: every number and the sentence pair behind it.

    The matrices have shape (n_source_sentences, n_answer_sentences): rows follow ``premises``, columns ``sentences``.
    """

    mode: ScoringMode
    repass: RePASs
    sentences: tuple[SentenceScore, ...]
    obligations: tuple[ObligationScore, ...]
    premises: tuple[Premise, ...]
    entailment_matrix: tuple[tuple[float, ...], ...]
    contradiction_matrix: tuple[tuple[float, ...], ...]
    coverage_threshold: float
    verdict_threshold: float
    entailment_model: ModelInfo
    coverage_model: ModelInfo
    obligation_model: ModelInfo
    sentence_splitter: str
    n_pairs: int  # distinct (premise, hypothesis) pairs behind the breakdown
    looked_at: tuple[int, ...] = ()  # answer sentences that may cover an obligation; () in records before version 2
    coverage_matrix: tuple[tuple[float, ...], ...] = ()  # P(entailment), (n_obligations, n_looked_at)
    citations: tuple[CitationCheck, ...] = ()  # one per sentence; () in older records
    verdicts: tuple[SentenceVerdict, ...] = ()  # one per sentence; () in records before the rules of verdicts
    obligation_verdicts: tuple[ObligationVerdict, ...] = ()  # one per obligation; likewise
    verdict_rules: str = ""  # version of the rules of `ragqa.scoring.verdicts`
    verdict_model: ModelInfo | None = None  # the NLI model of the verdicts; None in older records: the entailment model
