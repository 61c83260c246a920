"""The frozen values that travel between the stages. This module imports nothing from ragqa.

Ids are strings, scores are plain floats, sequences are tuples; numpy stays inside a stage. Offsets count characters
(not bytes) and select a verbatim slice: ``text[start:end]``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

# Corpus -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrievable piece of a document.

    ``passage_id`` is unique in its corpus. ``number`` is the passage's own name in its document: the section number of
    a rulebook (ObliQA's PassageID) or the ordinal of a chunk. ``section`` is the readable path of headings above it.
    ``start`` and ``end`` are character offsets in the source document, both 0 where the source has none. ``place``
    points into a file: ``page=12&box=72,540,520,610``, ``anchor=ID``; see `ragqa.corpus.documents.model`.
    """

    passage_id: str
    document_id: str
    text: str
    title: str = ""
    section: str = ""
    number: str = ""
    start: int = 0
    end: int = 0
    place: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A verbatim slice of a text: ``text == source[start:end]``."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FollowUp:
    """How a question was asked in the light of earlier ones, the last of which ``record_id`` holds.

    ``asked`` is as it was typed, ``rewritten`` as it was proposed to stand alone, by rules or by a language model; what
    was asked in the end is the question's text. ``note`` says what a reader must know about the rewriting.
    """

    record_id: str
    asked: str
    rewritten: str
    by: str = "rules"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What the analyst asks. ``question_id`` is empty for a question typed by hand.

    ``given`` is a text that is checked, in place of an answer that is written; ``text`` may be empty then.
    """

    text: str
    question_id: str = ""
    follow_up: FollowUp | None = None
    given: str = ""

    @property
    def query(self) -> str:
        """What passages are retrieved for: the question, the text that is checked, or one after the other."""
        return "\n".join(part for part in (self.text, self.given) if part)

    @property
    def title(self) -> str:
        """The question, or how the text that is checked begins, on one line."""
        words = " ".join(self.given.split())
        return self.text or (words if len(words) <= TITLE_CHARS else f"{words[:TITLE_CHARS].rsplit(' ', 1)[0]} …")


TITLE_CHARS = 100  # of a text that stands for itself in a list


# Retrieval and fusion -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one retriever contributed to a fused score.

    ``raw`` is the retriever's own score (BM25, cosine) and ``rank`` its rank from 1; both None where the retriever did
    not return the passage. ``normalised`` lies in [0, 1]. ``contribution`` is this retriever's share of the fused
    score: ``weight * normalised`` under a weighted sum, ``1 / (60 + rank)`` under reciprocal rank fusion.

    A reranked score is explained alike, by a part called ``"fused"`` and one called ``"reranker"``.
    """

    retriever: str
    raw: float | None
    rank: int | None
    normalised: float
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage with its score in one ranking; ``parts`` is filled by fusion only, ``reranking`` by reranking only.

    ``reranking`` is empty, or the two parts whose contributions add up to ``score``: ``"fused"``, with the fused score
    and the rank before, and ``"reranker"``, with its raw score and the rank it gives by itself.
    """

    passage: Passage
    score: float
    parts: tuple[ScorePart, ...] = ()
    reranking: tuple[ScorePart, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits of one retriever (or of fusion), sorted by (-score, passage_id); rank = position + 1.

    After reranking equal scores are in the order before it.
    ``finds`` is False where the retriever only scored what others found: fusion takes no passage from it. ``bounds``
    are the scores that normalisation maps to 0 and 1; None: the lowest and highest of the hits.
    """

    retriever: str
    hits: tuple[ScoredPassage, ...]
    finds: bool = True
    bounds: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        retriever: str,
        hits: list[ScoredPassage],
        *,
        finds: bool = True,
        bounds: tuple[float, float] | None = None,
    ) -> Ranking:
        """The ranking of these hits in the one order that is used everywhere."""
        ordered = tuple(sorted(hits, key=lambda hit: (-hit.score, hit.passage.passage_id)))
        return cls(retriever, ordered, finds, bounds)


# Filtering ----------------------------------------------------------------------------------------------------------


class Drop(StrEnum):
    """Why a candidate was not kept."""

    BELOW_THRESHOLD = "below threshold"
    AFTER_MAX_DROP = "after max drop"
    BEYOND_TOP_K = "beyond top-k"
    NOT_EVIDENCE = "not evidence"  # fan-out: neither the question nor a sub-question (or sentence) keeps it


@dataclass(frozen=True, slots=True)
class Candidate:
    """One fused hit as filtering saw it.

    ``relevance`` is the fused score re-normalised to [0, 1] over all candidates, ``fall`` how far it lies below the
    previous candidate's (0 for the first). ``drop`` is None for a kept passage; ``explanation`` says in words, with the
    numbers, why it was kept or dropped.
    """

    hit: ScoredPassage
    rank: int
    relevance: float
    fall: float
    drop: Drop | None
    explanation: str

    @property
    def passage(self) -> Passage:
        return self.hit.passage


@dataclass(frozen=True, slots=True)
class Selection:
    """What filtering kept, best first, and everything it dropped with the reason; together they are the ranking."""

    kept: tuple[Candidate, ...]
    dropped: tuple[Candidate, ...]

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The kept passages, best first: citation [n] means ``passages[n - 1]``."""
        return tuple(candidate.passage for candidate in self.kept)


# Fan-out ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A question that another one was taken apart into; together they are a tree.

    ``number`` counts from 1 in the order they were asked, ``parent`` is that of the question it is part of, 0 for the
    analyst's own. ``reason`` says in words why it is asked. ``name`` is what it is about, where that is a name: a
    passage with this title is the corpus's own on it. ``is_bridge``: the name was found in a passage, not in a
    question. ``is_sentence``: it is no question, but a sentence of a text that is checked.
    """

    number: int
    text: str
    parent: int = 0
    reason: str = ""
    name: str = ""
    is_bridge: bool = False
    is_sentence: bool = False

    @property
    def kind(self) -> str:
        """What a reader calls it."""
        return "sentence" if self.is_sentence else "sub-question"


# Generation ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence of the answer, a verbatim slice of ``Answer.text``.

    ``citations`` are 1-based numbers of kept passages; a number the generator invented is never among them.
    """

    text: str
    start: int
    end: int
    citations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them; 0 where it did not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class PromptVersion:
    """Which prompt was used: its name, the first 12 digits of its sha256, whether a user's file took its place."""

    name: str
    version: str
    overridden: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A generated answer. ``text`` carries no citation marks; ``raw`` is what the generator wrote, marks included.

    ``rejected_citations`` are numbers the generator wrote that name no passage it was given. ``finish_reason`` is
    ``"stop"``, ``"length"``, ``"interrupted"`` (the stream broke, or something failed; what there was is kept),
    ``"budget"`` (no call was left for the rest), ``"unfinished"`` (the best answer when the reader stopped) or
    ``"empty"``. ``note`` says in words what a reader must know about how the answer came about. ``is_refusal``: it
    says that the passages do not answer the question.
    """

    text: str
    sentences: tuple[AnswerSentence, ...]
    generator: str
    model: str
    raw: str = ""
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    rejected_citations: tuple[int, ...] = ()
    note: str = ""
    is_refusal: bool = False
    prompts: tuple[PromptVersion, ...] = ()  # () without a language model, and in older records


# RePASs -------------------------------------------------------------------------------------------------------------


class ScoringMode(StrEnum):
    """Which definition of RePASs: the paper's (RIRAG section 4) or the reference script's."""

    PAPER = "paper"
    SCRIPT = "script"


class Verdict(StrEnum):
    """What the passages say about an answer sentence.

    Raw verdicts are two thresholds on RePASs' maxima; `ragqa.verdicts` judges by rules and never says ``DISPUTED``.
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
class SentenceVerdict:
    """What `ragqa.verdicts` says of one answer sentence; beside RePASs, never part of it.

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

    @property
    def deciding(self) -> int | None:
        """The position of the premise whose words ``found`` are; None where no premise decided."""
        return next(iter((*self.contradicting, *self.supporting)), None)


class Cover(StrEnum):
    """Whether the answer tells of an obligation."""

    COVERED = "covered"
    IN_PART = "covered in part"
    NOT_COVERED = "not covered"


@dataclass(frozen=True, slots=True)
class ObligationVerdict:
    """What `ragqa.verdicts` says of one obligation; ``missing`` are the obligation's words that the answer lacks.

    ``answer_index`` is the answer sentence that covers it or a part of it, None where none does.
    """

    index: int
    cover: Cover
    reason: str
    rule: str
    answer_index: int | None = None
    missing: tuple[Span, ...] = ()


class CitationStatus(StrEnum):
    """What the check of a sentence's citations came to; see `ragqa.repass.attribution`."""

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
class ModelInfo:
    """A model that produced numbers: its name, the sha256 of its weights and the arithmetic precision."""

    name: str
    fingerprint: str
    precision: str = "fp32"


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
    verdict_rules: str = ""  # version of the rules of `ragqa.verdicts`
