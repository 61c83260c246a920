"""The frozen values that travel between the stages. This module imports nothing from ragqa.

Ids are strings, scores are plain floats, sequences are tuples; numpy stays inside a stage. Offsets count characters
(not bytes) and select a verbatim slice: ``text[start:end]``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import Literal


def min_max_norm(scores: Sequence[float], bounds: tuple[float, float] | None = None) -> list[float]:
    """The scores mapped linearly so that the lowest is 0 and the highest 1 (RIRAG eq. 5).

    ``bounds`` are the lowest and highest score, if ``scores`` is only a part of all scores. If both are equal, as for a
    single score, every result is 1. An empty list stays empty.
    """
    if not scores:
        return []
    low, high = bounds or (min(scores), max(scores))
    if high == low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


# Corpus -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrievable piece of a document.

    ``passage_id`` is unique in its corpus. ``number`` is the passage's own name in its document: the section number of
    a rulebook (ObliQA's PassageID) or the ordinal of a chunk. ``section`` is the readable path of headings above it.
    ``start`` and ``end`` are character offsets in the source document, both 0 if the source has none. ``place`` points
    into a file: ``page=12&box=72,540,520,610``, ``anchor=ID``; see `ragqa.corpus.documents.model`. ``effective`` is the
    first day on which the text is in force and ``until`` the first day on which it no longer is, as YYYY-MM-DD; both
    are empty if the source does not state them. ``items`` lists the numbered items and rows of the text, one a line:
    start offset, end offset, number. A line ``0 -3 NUMBER`` is a unit that begins with this passage and was
    cut into 3 passages.
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
    effective: str = ""
    until: str = ""
    items: str = ""

    def spans(self) -> tuple[tuple[int, int, str], ...]:
        """Start, end and number of each of ``items``."""
        found = (line.split(" ", 2) for line in self.items.split("\n") if line)
        return tuple((int(start), int(end), number) for start, end, number in found)

    def places(self) -> tuple[tuple[str, str], ...]:
        """The number and text of each numbered item."""
        return tuple((number, self.text[start:end]) for start, end, number in self.spans() if start < end)

    def is_in_force(self, day: str) -> bool:
        """Whether the passage is in force on this day, YYYY-MM-DD. A date that the source omits sets no limit."""
        return self.effective <= day and (not self.until or day < self.until)

    @property
    def days(self) -> str:
        """The dates between which the passage is in force, in words; empty if its source states none."""
        since = f"in force since {self.effective}" if self.effective else ""
        return ", ".join(filter(None, (since, f"until {self.until}" if self.until else "")))


@dataclass(frozen=True, slots=True)
class Span:
    """A verbatim slice of a text: ``text == source[start:end]``."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FollowUp:
    """How a follow-up was asked and rewritten. ``record_id`` is the record of the question before it.

    ``asked`` is the question as typed. ``rewritten`` is the proposed question that stands alone, ``by`` rules or a
    language model. ``Question.text`` is the question that was asked in the end. ``note`` tells the reader about the
    rewriting. ``context`` is the previous question, if this one could not be made to stand alone and is read with it.
    ``thread`` is the previous question with the beginning of its answer, which passages are retrieved for as well.
    """

    record_id: str
    asked: str
    rewritten: str
    by: str = "rules"
    note: str = ""
    context: str = ""
    thread: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What the analyst asks. ``question_id`` is empty for a question typed by hand.

    ``given`` is a text to check; it takes the place of a generated answer, and ``text`` may then be empty.
    """

    text: str
    question_id: str = ""
    follow_up: FollowUp | None = None
    given: str = ""

    @property
    def query(self) -> str:
        """The text that is answered: the question, the text to check, or both.

        A follow-up that does not stand alone is preceded by the previous question.
        """
        return "\n".join(part for part in (self.context, self.text, self.given) if part)

    @property
    def searched(self) -> str:
        """The text that retrieval reads: of a follow-up the question twice, as it has fewer words, and the thread.

        The thread stands last: an encoder cuts the end.
        """
        found = self.follow_up
        if self.given or not found or not found.thread or self.text not in {found.asked, found.rewritten}:
            return self.query
        return f"{self.text}\n{self.text}\n{found.thread}"

    @property
    def context(self) -> str:
        """The previous question that this one is read with; empty if it stands alone or was rewritten."""
        found = self.follow_up
        return found.context if found and self.text == found.asked else ""

    @property
    def title(self) -> str:
        """The question, or the beginning of the text to check, on one line."""
        words = " ".join(word for word in self.given.split() if word.strip("#"))
        return self.text or (words if len(words) <= TITLE_CHARS else f"{words[:TITLE_CHARS].rsplit(' ', 1)[0]} …")


TITLE_CHARS = 100  # of a text to check that has no question


# Retrieval and fusion -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one retriever contributed to a fused score.

    ``raw`` is the retriever's own score (BM25, cosine) and ``rank`` its rank from 1; both are None if the retriever did
    not return the passage. ``normalised`` lies in [0, 1]. ``contribution`` is this retriever's share of the fused
    score: ``weight * normalised`` under a weighted sum, ``1 / (60 + rank)`` under reciprocal rank fusion.

    A reranked score likewise has two parts, called ``"fused"`` and ``"reranker"``. ``note`` is the retriever's own
    explanation of the score, if it has one. ``via`` is the id of a passage that this passage is read together with: if
    that passage is kept, this one may be kept too (`ragqa.filtering`).
    """

    retriever: str
    raw: float | None
    rank: int | None
    normalised: float
    weight: float
    contribution: float
    note: str = ""
    via: str = ""


BY_NUMBER = "named in the question by its number"  # the note of a hit that comes first for this reason


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage with its score in one ranking; ``parts`` is filled by fusion only, ``reranking`` by reranking only.

    ``reranking`` is empty, or has the two parts whose contributions add up to ``score``: ``"fused"``, with the fused
    score and rank, and ``"reranker"``, with its raw score and the rank by that score alone. ``note`` and ``via`` are as
    in `ScorePart`.
    """

    passage: Passage
    score: float
    parts: tuple[ScorePart, ...] = ()
    reranking: tuple[ScorePart, ...] = ()
    note: str = ""
    via: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits of one retriever (or of fusion), sorted by (-score, passage_id); rank = position + 1.

    After reranking, hits with equal scores keep their order from before it.
    ``finds`` is False if the retriever only scored passages that others found: fusion takes no passage from it.
    ``bounds`` are the scores that normalisation maps to 0 and 1; None: the lowest and highest score of the hits.
    """

    retriever: str
    hits: tuple[ScoredPassage, ...]
    finds: bool = True
    bounds: tuple[float, float] | None = None

    def within(self, documents: Collection[str], most: int) -> Ranking:
        """The first ``most`` hits in these documents, by id."""
        hits = (hit for hit in self.hits if hit.passage.document_id in documents)
        return replace(self, hits=tuple(islice(hits, most)))

    @classmethod
    def of(
        cls, retriever: str, hits: list[ScoredPassage], *, finds: bool = True, bounds: tuple[float, float] | None = None
    ) -> Ranking:
        """The ranking of these hits, sorted by (-score, passage_id)."""
        ordered = tuple(sorted(hits, key=lambda hit: (-hit.score, hit.passage.passage_id)))
        return cls(retriever, ordered, finds, bounds)


# Filtering ----------------------------------------------------------------------------------------------------------


class Drop(StrEnum):
    """Why a candidate was not kept."""

    BELOW_THRESHOLD = "below threshold"
    AFTER_MAX_DROP = "after max drop"
    BEYOND_TOP_K = "beyond top-k"
    AFTER_CUT = "after the cut"  # of the method expected-f2
    NOT_IN_FORCE = "not in force"  # on the day of the question
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
class Limit:
    """The effect of one limit of the filter: it alone ``keeps`` so many passages; ``ends`` says if it ended the list.

    ``setting`` is its key among the settings, ``name`` its name in a sentence, ``label`` its name in the curve (empty
    if the limit is off), and ``reason`` says why it keeps no more. The curve shows it at the relevance ``height``, or
    after the last passage that it keeps if that is None.
    """

    setting: str
    name: str
    label: str = ""
    reason: str = ""
    height: float | None = None
    keeps: int = 0
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """The candidates that filtering kept, best first, and those that it dropped; together they are the ranking.

    ``limits`` say what ended the list; () for an empty list or a union of several lists.
    """

    kept: tuple[Candidate, ...]
    dropped: tuple[Candidate, ...]
    limits: tuple[Limit, ...] = field(default=(), compare=False)  # selections that keep the same are equal

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The kept passages, best first: citation [n] means ``passages[n - 1]``."""
        return tuple(candidate.passage for candidate in self.kept)


# Fan-out ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A question that is part of another question; all sub-questions of a fan-out form a tree.

    ``number`` counts from 1 in the order of asking. ``parent`` is the number of the question that it is part of, 0 for
    the analyst's own. ``reason`` says in words why it is asked. ``name`` is the subject of the sub-question, if that is
    a name: a passage with this title is the corpus's own passage about it. ``is_bridge`` says that the name was found
    in a passage, not in a question. ``is_sentence`` says that it is no question but a sentence of a text to check.
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
        """The word for it in texts that a user reads."""
        return "sentence" if self.is_sentence else "sub-question"


# Generation ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence of the answer, a verbatim slice of ``Answer.text``.

    ``citations`` are 1-based numbers of kept passages; they never include a number that the generator invented.
    """

    text: str
    start: int
    end: int
    citations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens as the server counted them; 0 if it gave no count."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class PromptVersion:
    """The prompt that was used: its name, the first 12 digits of its sha256, and whether a user's file replaced it."""

    name: str
    version: str
    overridden: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A generated answer. ``text`` carries no citation marks; ``raw`` is what the generator wrote, marks included.

    ``rejected_citations`` are numbers in the generator's text that match none of its passages. ``finish_reason`` is
    ``"stop"``, ``"length"``, ``"interrupted"`` (the stream broke or something failed; the text so far is kept),
    ``"budget"`` (no call was left for the rest), ``"unfinished"`` (the best answer when the user pressed stop) or
    ``"empty"``. ``note`` tells the reader how the answer came about. ``is_refusal`` is true if the answer says that the
    passages do not answer the question. ``not_found`` are the parts of the question without an answer. ``choices`` are
    narrower questions that a vague question may have meant, or the rules that have the number that it names.
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
    not_found: tuple[str, ...] = ()  # () from a generator that does not split questions, and in older records
    choices: tuple[str, ...] = ()  # likewise

    @property
    def state(self) -> Literal["answered", "partly", "not found"]:
        """Whether the question is answered, according to the generator."""
        if self.is_refusal or self.finish_reason == "empty":
            return "not found"
        return "partly" if self.not_found else "answered"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that produced numbers: its name, the sha256 of its weights and the arithmetic precision."""

    name: str
    fingerprint: str
    precision: str = "fp32"
