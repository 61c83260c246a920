"""Pair probabilities to scores: source sentences, sentence scores, obligation scores and the breakdown of one mode.

A `ScoringInput` is the input of one mode. Everything here reads tables of pair probabilities; nothing calls a model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ragqa.english.sentences import split_sentences, splitter_name
from ragqa.scoring.repass import arithmetic
from ragqa.settings.scoring import ScoringConfig
from ragqa.types import AnswerSentence, ModelInfo, Passage
from ragqa.types.scores import (
    Breakdown,
    NliProbabilities,
    ObligationScore,
    Premise,
    ScoringMode,
    SentenceScore,
    Verdict,
)


def source_premises(passages: Sequence[Passage], mode: ScoringMode, splitter: str = "nupunkt") -> tuple[Premise, ...]:
    """The sentences of these passages in reading order; none where all passages are blank.

    Mode ``paper`` splits each passage alone. Mode ``script`` joins the passages with one space and splits the whole, as
    RegNLP/RePASs ``scripts/evaluate_model.py`` does, so a passage without a full stop (a heading) runs into the next.
    """
    return (_split_alone if mode is ScoringMode.PAPER else _split_joined)(passages, splitter)


def _split_alone(passages: Sequence[Passage], splitter: str) -> tuple[Premise, ...]:
    return tuple(
        Premise(span.text, passage.passage_id, number, span.start, span.end)
        for number, passage in enumerate(passages)
        for span in split_sentences(passage.text, splitter)
    )


def _split_joined(passages: Sequence[Passage], splitter: str) -> tuple[Premise, ...]:
    """Sentences of the joined text, each placed in the passage where it begins.

    ``text`` is the whole sentence, as the model reads it; the offsets are clipped to that passage, so they select only
    the part of the sentence that is in it.
    """
    starts = [0, *accumulate(len(passage.text) + 1 for passage in passages)]
    premises = []
    for span in split_sentences(" ".join(passage.text for passage in passages), splitter):
        number = bisect_right(starts, span.start) - 1
        text, start = passages[number].text, span.start - starts[number]
        end = start + len(text[start : span.end - starts[number]].rstrip())
        premises.append(Premise(span.text, passages[number].passage_id, number, start, end))
    return tuple(premises)


Pair = tuple[str, str]  # (premise, hypothesis)
PairTable = Mapping[Pair, NliProbabilities]


@dataclass(frozen=True, slots=True)
class ScoringModels:
    """Name, fingerprint and arithmetic of the models behind a breakdown."""

    entailment: ModelInfo
    coverage: ModelInfo
    obligations: ModelInfo
    verdicts: ModelInfo


@dataclass(frozen=True, slots=True)
class ScoringInput:
    """The input of one mode: its source sentences, the obligations among them, and the answer's sentences.

    ``is_obligation`` says which answer sentences the classifier calls obligations. ``looked_at`` are the positions of
    the answer sentences that may cover an obligation: all in mode ``paper``, only the obligations in mode ``script``.
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
        """The pairs (source sentence, answer sentence), one per source sentence."""
        return [(premise.text, self.sentences[index].text) for premise in self.premises]

    def obligation_pairs(self, index: int) -> list[Pair]:
        """The pairs (answer sentence, obligation), one per answer sentence looked at."""
        return [(self.sentences[n].text, self.obligations[index].text) for n in self.looked_at]

    def pairs(self) -> Iterator[list[Pair]]:
        """All pairs behind the breakdown, one list per answer sentence and then per obligation."""
        yield from (self.sentence_pairs(index) for index in range(len(self.sentences)))
        yield from (self.obligation_pairs(index) for index in range(len(self.obligations)))


def sentence_score(
    given: ScoringInput, index: int, table: PairTable, config: ScoringConfig, *, only_known: bool = False
) -> SentenceScore:
    """The score of one answer sentence; without a source sentence both maxima are 0 and it is unsupported.

    ``only_known`` uses only the source sentences whose pair is in the table; the others may still raise both maxima.
    """
    wanted = given.sentence_pairs(index)
    positions = [n for n, pair in enumerate(wanted) if not only_known or pair in table]
    pairs = [table[wanted[n]] for n in positions]
    entailing = arithmetic.first_maximum([pair.entailment for pair in pairs])
    contradicting = arithmetic.first_maximum([pair.contradiction for pair in pairs])
    entailment = 0.0 if entailing is None else pairs[entailing].entailment
    contradiction = 0.0 if contradicting is None else pairs[contradicting].contradiction
    judged = arithmetic.verdict(entailment, contradiction, config.verdict_threshold) if pairs else Verdict.UNSUPPORTED
    return SentenceScore(
        index=index,
        sentence=given.sentences[index],
        entailment=entailment,
        contradiction=contradiction,
        entailment_premise=None if entailing is None else given.premises[positions[entailing]],
        contradiction_premise=None if contradicting is None else given.premises[positions[contradicting]],
        verdict=judged,
        is_obligation=given.is_obligation[index],
    )


def obligation_score(
    given: ScoringInput, index: int, table: PairTable, config: ScoringConfig, *, only_known: bool = False
) -> ObligationScore:
    """The score of one source obligation; without an answer sentence to look at it is uncovered, best 0.

    ``only_known`` uses only the answer sentences whose pair is in the table.
    """
    wanted = given.obligation_pairs(index)
    positions = [n for n, pair in enumerate(wanted) if not only_known or pair in table]
    cover = arithmetic.best_cover([table[wanted[n]] for n in positions], config.coverage_threshold, given.mode)
    answer_index = None if cover.position is None else given.looked_at[positions[cover.position]]
    return ObligationScore(
        index=index,
        obligation=given.obligations[index],
        covered=cover.covered,
        best=cover.best,
        margin=cover.best - config.coverage_threshold,
        answer_index=answer_index,
        answer_text="" if answer_index is None else given.sentences[answer_index].text,
    )


def breakdown_of(
    given: ScoringInput, entailment: PairTable, coverage: PairTable, config: ScoringConfig, models: ScoringModels
) -> Breakdown:
    """The breakdown of one mode; its sentence pairs are in ``entailment``, its obligation pairs in ``coverage``."""
    pairs = [entailment[pair] for n in range(len(given.sentences)) for pair in given.sentence_pairs(n)]
    shape = (len(given.sentences), len(given.premises))
    entailing = np.array([pair.entailment for pair in pairs], float).reshape(shape).T
    contradicting = np.array([pair.contradiction for pair in pairs], float).reshape(shape).T
    obligations = tuple(obligation_score(given, n, coverage, config) for n in range(len(given.obligations)))
    return Breakdown(
        mode=given.mode,
        repass=arithmetic.repass_of(entailing, contradicting, [score.covered for score in obligations], given.mode),
        sentences=tuple(sentence_score(given, n, entailment, config) for n in range(len(given.sentences))),
        obligations=obligations,
        premises=given.premises,
        entailment_matrix=_as_tuples(entailing),
        contradiction_matrix=_as_tuples(contradicting),
        coverage_threshold=config.coverage_threshold,
        verdict_threshold=config.verdict_threshold,
        entailment_model=models.entailment,
        coverage_model=models.coverage,
        obligation_model=models.obligations,
        verdict_model=models.verdicts,
        sentence_splitter=splitter_name(config.sentence_splitter),
        n_pairs=len({pair for pairs in given.pairs() for pair in pairs}),
        looked_at=given.looked_at,
        coverage_matrix=tuple(
            tuple(coverage[pair].entailment for pair in given.obligation_pairs(n))
            for n in range(len(given.obligations))
        ),
    )


def _as_tuples(matrix: arithmetic.Matrix) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())
