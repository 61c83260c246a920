"""The protocols of the objects that stages use. `ragqa.pipeline` supplies the real ones, tests supply fakes.

A class of another package with these methods can replace a part of ragqa (`ragqa.plugins.registry`).

These objects are shared by every session of the page and must be safe to call from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Generator as Stream
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
NamesOf = Callable[[str], Mapping[str, frozenset[str]]]  # names of documents in a question, with the ids of each


class Retriever(Protocol):
    """Ranks the passages of one index for a question."""

    @property
    def name(self) -> str:
        """A short and stable name: ``"bm25"``, ``"dense"``; fusion weights are keyed by it."""
        ...

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """At most ``top_k`` hits; passages that score nothing are left out, so the ranking may be empty."""
        ...


class Search(Protocol):
    """The whole retrieval, for generators that ask several questions: every ranking, fused and perhaps reranked."""

    def __call__(self, question: str) -> Ranking: ...


class LinksOf(Protocol):
    """By position, the passages that each passage cites, and those that cite it; passages without any are left out."""

    @property
    def cites(self) -> Mapping[int, tuple[int, ...]]: ...

    @property
    def cited_by(self) -> Mapping[int, tuple[int, ...]]: ...


class WordCounts(Protocol):
    """The analyser of a corpus, and the rarity of words in it."""

    @property
    def analyser(self) -> Analyser: ...

    def rarities(self, tokens: Sequence[str]) -> dict[str, float]:
        """``ln((N + 1) / (df + 0.5))`` of each of these distinct tokens."""
        ...


class Corpus(Protocol):
    """What an open index offers about its passages in addition to their texts."""

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
        """The passages before and after it in its document."""
        ...

    def text_of(self, passage: Passage) -> str:
        """The text that the index's encoder reads: the passage's text, or title, section and text."""
        ...


class Selector(Protocol):
    """Reads a question and a sentence together and scores how likely the sentence answers the question."""

    @property
    def info(self) -> ModelInfo: ...

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """One finite number per text, in the order given, higher where it answers better."""
        ...


class Reranker(Protocol):
    """Scores the best fused passages again; slower than a retriever."""

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
    """A retriever that scores the passages that others found, and does not search itself."""

    def rescore(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Hits among ``passages`` only, with ``finds`` False; passages that score nothing are left out."""
        ...


@runtime_checkable
class Follower(Retriever, Protocol):
    """A retriever that starts from the passages that others ranked high; alone it finds nothing."""

    def follow(self, question: str, rankings: Sequence[Ranking], top_k: int) -> Ranking:
        """At most ``top_k`` hits, each with a note that names its source candidate; scores as in ``retrieve``."""
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
        """The name shown to readers: ``"extractive, no language model"`` or ``"LLM"``."""
        ...

    @property
    def model(self) -> str:
        """The language model's name, empty if it uses none."""
        ...

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[GenerationEvent, None, Answer]:
        """Yields the raw text piece by piece, and trace events; returns the answer. Raises GenerationError."""
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
        """Yields trace events and once `Selected`; returns the answer and the selection that its citations number.

        ``ranking`` is the result of ``search`` for the question itself. Raises GenerationError.
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
        """The results of those pairs that need no computing; a model without a memory knows none."""
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
        """Yields provisional, then final scores (`ragqa.types.events`); gives both breakdowns. Raises ScoringError."""
        ...


class Verifier(Scorer, Protocol):
    """RePASs for a generator that checks its own text; uses the models and memory of the final scoring."""

    def obligations(self, passages: Sequence[Passage]) -> tuple[tuple[str, ...], ...]:
        """For each passage, its obligations in order, verbatim. Raises ScoringError."""
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
        """The answer sentences with a contradiction above the mean, but never all: the least one is left out."""
        ...
