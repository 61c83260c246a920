"""Pair probabilities to scores: the sentence scores, the obligation scores and the whole evaluation of one mode.

A `View` is what one mode looks at. Everything here reads the table of pair probabilities; nothing calls a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ragqa.config import ScoringConfig
from ragqa.repass import arithmetic
from ragqa.sentences import splitter_name
from ragqa.types import (
    AnswerSentence,
    Breakdown,
    ModelInfo,
    NliProbabilities,
    ObligationScore,
    Premise,
    ScoringMode,
    SentenceScore,
    Verdict,
)

Pair = tuple[str, str]  # (premise, hypothesis)
PairTable = Mapping[Pair, NliProbabilities]


@dataclass(frozen=True, slots=True)
class ScoringModels:
    """What is said about the models behind a breakdown."""

    entailment: ModelInfo
    coverage: ModelInfo
    obligations: ModelInfo


@dataclass(frozen=True, slots=True)
class View:
    """What one mode looks at: its source sentences, the obligations among them, and the answer's sentences.

    ``is_obligation`` is the classifier's word on each answer sentence; ``looked_at`` are the positions of the answer
    sentences that may cover an obligation: all in mode ``paper``, only the obligations in mode ``script``.
    """

    mode: ScoringMode
    premises: tuple[Premise, ...]
    obligations: tuple[Premise, ...]
    sentences: tuple[AnswerSentence, ...]
    is_obligation: tuple[bool, ...]

    @property
    def looked_at(self) -> tuple[int, ...]:
        every = range(len(self.sentences))
        return tuple(every if self.mode is ScoringMode.PAPER else (n for n in every if self.is_obligation[n]))

    def sentence_pairs(self, index: int) -> list[Pair]:
        """Source sentence entails answer sentence? One pair per source sentence."""
        return [(premise.text, self.sentences[index].text) for premise in self.premises]

    def obligation_pairs(self, index: int) -> list[Pair]:
        """Answer sentence entails obligation? One pair per answer sentence looked at."""
        return [(self.sentences[n].text, self.obligations[index].text) for n in self.looked_at]

    def pairs(self) -> Iterator[list[Pair]]:
        """All pairs behind the breakdown, one list per answer sentence and then per obligation."""
        yield from (self.sentence_pairs(index) for index in range(len(self.sentences)))
        yield from (self.obligation_pairs(index) for index in range(len(self.obligations)))


def sentence_score(
    view: View, index: int, table: PairTable, config: ScoringConfig, *, only_known: bool = False
) -> SentenceScore:
    """The score of one answer sentence; without a source sentence both maxima are 0 and it is unsupported.

    ``only_known`` looks only at the source sentences whose pair is in the table; the others may raise both maxima.
    """
    wanted = view.sentence_pairs(index)
    positions = [n for n, pair in enumerate(wanted) if not only_known or pair in table]
    pairs = [table[wanted[n]] for n in positions]
    entailing = arithmetic.first_maximum([pair.entailment for pair in pairs])
    contradicting = arithmetic.first_maximum([pair.contradiction for pair in pairs])
    entailment = 0.0 if entailing is None else pairs[entailing].entailment
    contradiction = 0.0 if contradicting is None else pairs[contradicting].contradiction
    judged = arithmetic.verdict(entailment, contradiction, config.verdict_threshold) if pairs else Verdict.UNSUPPORTED
    return SentenceScore(
        index=index,
        sentence=view.sentences[index],
        entailment=entailment,
        contradiction=contradiction,
        entailment_premise=None if entailing is None else view.premises[positions[entailing]],
        contradiction_premise=None if contradicting is None else view.premises[positions[contradicting]],
        verdict=judged,
        is_obligation=view.is_obligation[index],
    )


def obligation_score(
    view: View, index: int, table: PairTable, config: ScoringConfig, *, only_known: bool = False
) -> ObligationScore:
    """The score of one source obligation; without an answer sentence to look at it is uncovered, best 0.

    ``only_known`` looks only at the answer sentences whose pair is in the table.
    """
    wanted = view.obligation_pairs(index)
    positions = [n for n, pair in enumerate(wanted) if not only_known or pair in table]
    cover = arithmetic.best_cover([table[wanted[n]] for n in positions], config.coverage_threshold, view.mode)
    answer_index = None if cover.position is None else view.looked_at[positions[cover.position]]
    return ObligationScore(
        index=index,
        obligation=view.obligations[index],
        covered=cover.covered,
        best=cover.best,
        margin=cover.best - config.coverage_threshold,
        answer_index=answer_index,
        answer_text="" if answer_index is None else view.sentences[answer_index].text,
    )


def evaluation(
    view: View, entailment: PairTable, coverage: PairTable, config: ScoringConfig, models: ScoringModels
) -> Breakdown:
    """The breakdown of one mode; its sentence pairs are in ``entailment``, its obligation pairs in ``coverage``."""
    columns = [[entailment[pair] for pair in view.sentence_pairs(n)] for n in range(len(view.sentences))]
    shape = (len(view.sentences), len(view.premises))
    entailing = np.array([[pair.entailment for pair in column] for column in columns], float).reshape(shape).T
    contradicting = np.array([[pair.contradiction for pair in column] for column in columns], float).reshape(shape).T
    obligations = tuple(obligation_score(view, n, coverage, config) for n in range(len(view.obligations)))
    return Breakdown(
        mode=view.mode,
        repass=arithmetic.repass(
            arithmetic.mean_of_maxima(entailing),
            arithmetic.mean_of_maxima(contradicting),
            arithmetic.obligation_coverage([score.covered for score in obligations]),
            view.mode,
        ),
        sentences=tuple(sentence_score(view, n, entailment, config) for n in range(len(view.sentences))),
        obligations=obligations,
        premises=view.premises,
        entailment_matrix=_as_tuples(entailing),
        contradiction_matrix=_as_tuples(contradicting),
        coverage_threshold=config.coverage_threshold,
        verdict_threshold=config.verdict_threshold,
        entailment_model=models.entailment,
        coverage_model=models.coverage,
        obligation_model=models.obligations,
        sentence_splitter=splitter_name(config.sentence_splitter),
        n_pairs=len({pair for pairs in view.pairs() for pair in pairs}),
        looked_at=view.looked_at,
        coverage_matrix=tuple(
            tuple(coverage[pair].entailment for pair in view.obligation_pairs(n)) for n in range(len(view.obligations))
        ),
    )


def _as_tuples(matrix: arithmetic.Matrix) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())
