"""The seams: what a stage needs from a loaded object. `ragqa.pipeline` puts real ones in, tests put fakes in.

A class of another package that has these methods is a part as good as ragqa's own (`ragqa.plugins.registry`).

Objects behind these protocols are shared by every session of the page and must be safe to call from several threads.
"""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ragqa.english.words import Analyser
from ragqa.types import Answer, ModelInfo, Passage, Question, Ranking, ScoredPassage, Selection
from ragqa.types.events.generation import GenerationEvent
from ragqa.types.events.pipeline import Selected
from ragqa.types.events.scoring import ObligationScored, Scored, SentenceScored
from ragqa.types.scores import Breakdown, Coverage, NliProbabilities

FloatMatrix = npt.NDArray[np.float32]


class Retriever(Protocol):
    """Ranks the passages of one index for a question."""

    @property
    def name(self) -> str:
        """Short and stable: ``"bm25"``, ``"dense"``; fusion weights are keyed by it."""
        ...

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` hits; passages that score nothing are left out, so the ranking may be empty."""
        ...


class Search(Protocol):
    """Retrieval as a whole, for those who ask more than one question: every ranking, fused and perhaps reranked."""

    def __call__(self, question: str) -> Ranking: ...


class LinksOf(Protocol):
    """Which passages each passage cites, and which cite it, by position; those without any left out."""

    @property
    def cites(self) -> Mapping[int, tuple[int, ...]]: ...

    @property
    def cited_by(self) -> Mapping[int, tuple[int, ...]]: ...


class WordCounts(Protocol):
    """How a corpus reads words, and how rare they are in it."""

    @property
    def analyser(self) -> Analyser: ...

    def rarities(self, tokens: Sequence[str]) -> dict[str, float]:
        """``ln((N + 1) / (df + 0.5))`` of each of these distinct tokens."""
        ...


class Corpus(Protocol):
    """What an open index knows of its passages beyond their texts."""

    @property
    def position_of(self) -> Mapping[str, int]:
        """Places in reading order, by passage id."""
        ...

    @property
    def bm25s(self) -> WordCounts: ...

    @property
    def links(self) -> LinksOf:
        """Which passages cite which, by position."""
        ...

    def neighbours(self, passage: Passage) -> tuple[Passage | None, Passage | None]:
        """Those before and after it in its document."""
        ...

    def text_of(self, passage: Passage) -> str:
        """What the index's encoder reads of it: its text, or that with title and section before it."""
        ...


class Selector(Protocol):
    """Reads a question and a sentence together and says how likely the one answers the other."""

    @property
    def info(self) -> ModelInfo: ...

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One finite number per text, in the order given, higher where it answers better."""
        ...


class Reranker(Protocol):
    """Looks at the best fused passages once more: slower than a retriever, for the best few."""

    @property
    def info(self) -> ModelInfo: ...

    def score_hits(self, question: str, hits: Sequence[ScoredPassage], depth: int, corpus: Corpus) -> list[float]:
        """One finite number for each of the best ``depth`` hits, in their order, higher where it answers better.

        ``hits`` is a whole fused ranking, each hit with what every retriever found (``parts``). No unit, no fixed
        range. Raises ModelError.
        """
        ...


@runtime_checkable
class Rescorer(Retriever, Protocol):
    """A retriever that does not search where others have: it scores what they found."""

    def rescore(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Hits among ``passages`` alone, with ``finds`` False; passages that score nothing are left out."""
        ...


@runtime_checkable
class Follower(Retriever, Protocol):
    """A retriever that goes on from what the others ranked high; by itself it finds nothing."""

    def follow(self, question: str, rankings: Sequence[Ranking], top_k: int) -> Ranking:
        """At most ``top_k`` hits, each with a note that says from which candidate; scores as in ``retrieve``."""
        ...


class Encoder(Protocol):
    """Texts to unit vectors."""

    @property
    def info(self) -> ModelInfo: ...

    def encode(self, texts: Sequence[str]) -> FloatMatrix:
        """For passages: float32 array of shape (n_texts, dimension), rows of length 1; row i is ``texts[i]``."""
        ...

    def encode_query(self, text: str) -> FloatMatrix:
        """For a question: float32 array of shape (1, dimension), of length 1."""
        ...


class Generator(Protocol):
    """Writes an answer from the kept passages."""

    @property
    def name(self) -> str:
        """What a reader is told: ``"extractive, no language model"`` or ``"LLM"``."""
        ...

    @property
    def model(self) -> str:
        """The language model's name, empty where there is none."""
        ...

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[GenerationEvent, None, Answer]:
        """Yields the raw text piece by piece, or what is being done; returns the answer. Raises GenerationError."""
        ...


@runtime_checkable
class SearchingGenerator(Protocol):
    """Writes an answer from passages that it searches for itself."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    def stream_searching(
        self, question: Question, ranking: Ranking, search: Search
    ) -> Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]]:
        """Yields what is done and, once, what is `Selected`; returns the answer with what its citations count.

        ``ranking`` is what ``search`` gives for the question itself. Raises GenerationError.
        """
        ...


class NliModel(Protocol):
    """Three-way natural language inference."""

    @property
    def info(self) -> ModelInfo: ...

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[NliProbabilities]:
        """One result per (premise, hypothesis), in the order given; equal pairs are computed once."""
        ...

    def known(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], NliProbabilities]:
        """Those of these pairs whose result needs no computing, with it; a model without a memory knows none."""
        return {}


class ObligationClassifier(Protocol):
    """Tells sentences that oblige somebody from those that do not."""

    @property
    def info(self) -> ModelInfo: ...

    def classify(self, sentences: Sequence[str]) -> list[bool]:
        """One answer per sentence, in the order given."""
        ...


class Scorer(Protocol):
    """RePASs of an answer against the passages it was written from."""

    def stream(
        self, answer: Answer, passages: Sequence[Passage]
    ) -> Stream[SentenceScored | ObligationScored, None, Scored]:
        """Yields scores so far, then final ones (`ragqa.types.events`); gives both breakdowns. Raises ScoringError."""
        ...


class Verifier(Scorer, Protocol):
    """RePASs for a generator that checks what it writes; the same models and memory as the final scoring."""

    def obligations(self, passages: Sequence[Passage]) -> tuple[tuple[str, ...], ...]:
        """For each passage its sentences that oblige somebody, in order, verbatim. Raises ScoringError."""
        ...

    def coverage(self, answer: Answer, obligation: str) -> Coverage:
        """How well the answer's sentences cover this obligation. Raises ScoringError."""
        ...

    def breakdown(self, scored: Scored) -> Breakdown:
        """The breakdown in the configured mode: the one that decides which answer is better."""
        ...

    def mean_contradiction(self, evaluations: Sequence[Breakdown]) -> float:
        """C averaged over these answers, in [0, 1]; 0 where there is none."""
        ...

    def contradicted(self, evaluation: Breakdown, mean: float) -> tuple[int, ...]:
        """The answer sentences whose contradiction lies above the mean, never all of them: the least stays."""
        ...
