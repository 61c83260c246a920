"""The frozen values of scoring: what RePASs and the verdicts say of an answer. Imports only `ragqa.types`.

Probabilities are floats in [0, 1]. A position is an index into a breakdown's sentences, premises or obligations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ragqa.types import AnswerSentence, ModelInfo, Span


class ScoringMode(StrEnum):
    """Which definition of RePASs: the paper's (RIRAG section 4) or the reference script's."""

    PAPER = "paper"
    SCRIPT = "script"


class Verdict(StrEnum):
    """What the passages say about an answer sentence.

    Raw verdicts are two thresholds on RePASs' maxima; `ragqa.scoring.verdicts` judges by rules and never says
    ``DISPUTED``.
    """

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    DISPUTED = "contradicted and supported"  # raw: both maxima reach the threshold
    DISAGREEING = "sources disagree"  # one source says it, another speaks of the same thing and says otherwise
    NONE = "no verdict"  # a language that the model cannot read


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
    """One answer sentence against every source sentence.

    ``entailment`` and ``contradiction`` are the maxima over the source sentences, in [0, 1]; the two premises are the
    source sentences that reached them (the first one at a tie), None only where there is no source sentence.
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
    sentences that the mode looks at, ``answer_index`` that sentence (None: there was none to look at).
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
    """What a language model said of a verdict: None, and in ``reason`` why, where it gave no opinion.

    ``cited`` are the source sentences that it named; ``tokens`` were sent and written, 0 where nobody counted.
    """

    model: str
    verdict: Verdict | None
    reason: str
    cited: tuple[str, ...] = ()
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SentenceVerdict:
    """What `ragqa.scoring.verdicts` says of one answer sentence; beside RePASs, never part of it.

    Positions are of the breakdown's ``premises``, the deciding one first. ``said`` are the deciding words of the
    sentence (offsets in its own text), ``found`` those of the deciding premise: that which contradicts, where one does.
    ``doubted`` are premises whose raw P(entailment) or P(contradiction) reaches the threshold and is not believed.
    """

    index: int
    verdict: Verdict
    reason: str  # one sentence, for the reader
    rule: str  # a short name of what decided: quotation, entailment, number, …
    supporting: tuple[int, ...] = ()
    contradicting: tuple[int, ...] = ()
    doubted: tuple[int, ...] = ()
    said: tuple[Span, ...] = ()
    found: tuple[Span, ...] = ()
    quoted: bool = False  # word for word from a source sentence; ``verdict`` is then supported, or sources disagree
    probability: float | None = None  # calibrated, of the verdict; None where a rule decided, and in older records
    unsure: bool = False  # the probability is near the line
    evidence: str = ""  # the words of the source that were read and decided
    second: SecondOpinion | None = None  # where a language model was asked

    @property
    def deciding(self) -> int | None:
        """The position of the premise whose words ``found`` are; None where no premise decided."""
        return next(iter((*self.contradicting, *self.supporting)), None)


class Cover(StrEnum):
    """Whether the answer tells of an obligation."""

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
        """Whether somebody has a duty by it."""
        return self in (Strength.MUST, Strength.MUST_NOT, Strength.MAY_ONLY)

    @property
    def is_listed(self) -> bool:
        """Whether it belongs among obligations: what binds, and recommendations, which are named so."""
        return self.binds or self is Strength.SHOULD


@dataclass(frozen=True, slots=True)
class ObligationVerdict:
    """The verdict on one obligation of RePASs.

    ``missing`` are the obligation's words that the answer lacks, or that it says otherwise where it is in conflict.
    ``answer_index`` is the answer sentence that covers it or a part of it, None where none does. ``strength`` says
    whether it binds at all (`listed_obligations`); None in older records. ``probability`` is given where policies are
    read: the verifier's P(contradiction) of a conflict, else its P(entailment), in [0, 1].
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
    """RePASs' obligations without those that, by the verdict on them, bind nobody; all where there are no verdicts."""
    strengths = {one.index: one.strength for one in verdicts}
    found = ((score, strengths.get(score.index)) for score in scores)
    return tuple(score for score, strength in found if strength is None or strength.is_listed)


class CitationStatus(StrEnum):
    """What the check of a sentence's citations came to; see `ragqa.scoring.repass.attribution`."""

    CONFIRMED = "confirmed"  # every passage it cites supports it
    CORRECTED = "corrected"  # those that do take the place of what was written
    REMOVED = "removed"  # it cites passages, and none of all supports it
    ADDED = "added"  # it cited nothing, and a passage supports it
    MISSING = "missing"  # it cites nothing, and none supports it

    @classmethod
    def _missing_(cls, value: object) -> CitationStatus | None:
        return cls.CONFIRMED if value == "kept" else None  # as records of version 0.1.0 have it


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
    """What answer sentence ``index`` cites as it was written, and what it may cite. Numbers from 1, ascending.

    ``verified`` is empty where no passage supports the sentence. ``support`` holds every passage that was written or
    supports it, by number.
    """

    index: int
    status: CitationStatus
    written: tuple[int, ...]
    verified: tuple[int, ...]
    support: tuple[PassageSupport, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How well one obligation is covered: the highest P(entailment), in [0, 1], and whether that is enough."""

    best: float
    covered: bool


@dataclass(frozen=True, slots=True)
class RePASs:
    """The three parts, each in [0, 1]. In mode ``script`` they are rounded to 5 decimals, as the script does."""

    entailment: float
    contradiction: float
    obligation_coverage: float

    @property
    def composite(self) -> float:
        """(E - C + OC + 1) / 3, RIRAG equation 4."""
        return (self.entailment - self.contradiction + self.obligation_coverage + 1) / 3


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A RePASs breakdown in one mode: every number and the pair of sentences that caused it.

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
    verdict_model: ModelInfo | None = None  # reads what verdicts rest on; None in older records: the entailment model
