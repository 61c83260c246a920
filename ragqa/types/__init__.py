"""The frozen values that travel between the stages. This module imports nothing from ragqa.

Ids are strings, scores are plain floats, sequences are tuples; numpy stays inside a stage. Offsets count characters
(not bytes) and select a verbatim slice: ``text[start:end]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal


def min_max_norm(scores: Sequence[float], bounds: tuple[float, float] | None = None) -> list[float]:
    """The scores mapped linearly so that the lowest is 0 and the highest 1 (RIRAG eq. 5).

    ``bounds`` are the lowest and highest where these are not all the scores there are. Where both are equal, a single
    score included, all are 1: each is the best there is. An empty list stays empty.
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
    ``start`` and ``end`` are character offsets in the source document, both 0 where the source has none. ``place``
    points into a file: ``page=12&box=72,540,520,610``, ``anchor=ID``; see `ragqa.corpus.documents.model`. It stands so
    since ``effective`` and until ``until``, days as YYYY-MM-DD, where its source says so. ``items`` are the items and
    rows of its text that have a number of their own: a line each, where it begins, where it ends, its number.
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

    def places(self) -> tuple[tuple[str, str], ...]:
        """Number and text of each of its items."""
        found = (line.split(" ", 2) for line in self.items.split("\n") if line)
        return tuple((number, self.text[int(start) : int(end)]) for start, end, number in found)

    def is_in_force(self, day: str) -> bool:
        """Whether it stands so on this day, YYYY-MM-DD, as far as its source says."""
        return self.effective <= day and (not self.until or day < self.until)

    @property
    def days(self) -> str:
        """From when and until when it stands so, in words; empty where its source does not say."""
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
    """How a question was asked in the light of earlier ones, the last of which ``record_id`` holds.

    ``asked`` is as it was typed, ``rewritten`` as it was proposed to stand alone, by rules or by a language model; what
    was asked in the end is the question's text. ``note`` says what a reader must know about the rewriting. ``context``
    is the question before, where this one could not be made to stand alone and is read with it.
    """

    record_id: str
    asked: str
    rewritten: str
    by: str = "rules"
    note: str = ""
    context: str = ""


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
        """What passages are retrieved for: the question, the text that is checked, or one after the other.

        Before a follow-up that does not stand alone stands the question before.
        """
        return "\n".join(part for part in (self.context, self.text, self.given) if part)

    @property
    def context(self) -> str:
        """The question that this one is read with; empty where it stands alone, as a rewriting of it does."""
        found = self.follow_up
        return found.context if found and self.text == found.asked else ""

    @property
    def title(self) -> str:
        """The question, or how the text that is checked begins, on one line."""
        words = " ".join(word for word in self.given.split() if word.strip("#"))
        return self.text or (words if len(words) <= TITLE_CHARS else f"{words[:TITLE_CHARS].rsplit(' ', 1)[0]} …")


TITLE_CHARS = 100  # of a text that stands for itself in a list


# Retrieval and fusion -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one retriever contributed to a fused score.

    ``raw`` is the retriever's own score (BM25, cosine) and ``rank`` its rank from 1; both None where the retriever did
    not return the passage. ``normalised`` lies in [0, 1]. ``contribution`` is this retriever's share of the fused
    score: ``weight * normalised`` under a weighted sum, ``1 / (60 + rank)`` under reciprocal rank fusion.

    A reranked score is explained alike, by a part called ``"fused"`` and one called ``"reranker"``. ``note`` says in
    words where the score is from, where the retriever can say it. ``via`` is the id of a passage that this one is read
    together with: where that is kept, this one may be (`ragqa.filtering`).
    """

    retriever: str
    raw: float | None
    rank: int | None
    normalised: float
    weight: float
    contribution: float
    note: str = ""
    via: str = ""


BY_NUMBER = "named in the question by its number"  # the note of a hit that leads for it


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage with its score in one ranking; ``parts`` is filled by fusion only, ``reranking`` by reranking only.

    ``reranking`` is empty, or the two parts whose contributions add up to ``score``: ``"fused"``, with the fused score
    and the rank before, and ``"reranker"``, with its raw score and the rank it gives by itself. ``note`` and ``via``
    are as in `ScorePart`.
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
        cls, retriever: str, hits: list[ScoredPassage], *, finds: bool = True, bounds: tuple[float, float] | None = None
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
    AFTER_CUT = "after the cut"  # of the method expected-f2
    NOT_IN_FORCE = "not in force"  # on the day that is asked about
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
    """What one limit of the filter does to a list: ``keeps`` passages by itself; ``ends``: the list ends with it.

    ``setting`` is its key among the settings, ``name`` what a sentence calls it, ``label`` what a drawing does (empty
    where it is off), ``reason`` why it keeps no more. It lies at the relevance ``height``, or behind the last it keeps.
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
    """What filtering kept, best first, and everything it dropped with the reason; together they are the ranking.

    ``limits`` say what ended the list; () where it is empty, or a union of several lists.
    """

    kept: tuple[Candidate, ...]
    dropped: tuple[Candidate, ...]
    limits: tuple[Limit, ...] = field(default=(), compare=False)  # two that decide alike are equal

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
    says that the passages do not answer the question. ``not_found`` are the parts of the question without an answer,
    ``choices`` narrower questions that a vague one may have meant.
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
    not_found: tuple[str, ...] = ()  # () of a generator that reads no parts, and in older records
    choices: tuple[str, ...] = ()  # likewise

    @property
    def state(self) -> Literal["answered", "partly", "not found"]:
        """Whether the question is answered, as far as the generator says."""
        if self.is_refusal or self.finish_reason == "empty":
            return "not found"
        return "partly" if self.not_found else "answered"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that produced numbers: its name, the sha256 of its weights and the arithmetic precision."""

    name: str
    fingerprint: str
    precision: str = "fp32"
