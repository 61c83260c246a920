"""RePASs of an answer, streamed: a whole provisional breakdown first, then each sentence and obligation when final.

Reading order: `RepassScorer.stream` (the whole), `_Watched` (what is sent when), `PendingScore` (which pairs are
computed when). What the probabilities mean is in `ragqa.scoring.repass.breakdown`, how they are computed in
`ragqa.scoring.repass.nli`.
"""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

import numpy as np
import numpy.typing as npt

from ragqa.plugins.protocols import Encoder, NliModel, ObligationClassifier
from ragqa.scoring.repass.attribution import check_citations
from ragqa.scoring.repass.breakdown import (
    Pair,
    ScoringInput,
    ScoringModels,
    breakdown_of,
    obligation_score,
    sentence_score,
    source_premises,
)
from ragqa.scoring.repass.nli import PAIRS_PER_CALL, PairResults, translated
from ragqa.scoring.repass.similarity import by_similarity
from ragqa.scoring.strength import strengths_of
from ragqa.scoring.verdicts.judge import Judge, judged
from ragqa.settings.scoring import ScoringConfig
from ragqa.types import Answer, AnswerSentence, Passage
from ragqa.types.events.scoring import ObligationScored, Scored, SentenceScored
from ragqa.types.scores import NliProbabilities, ScoringMode, SentenceVerdict

Event = SentenceScored | ObligationScored

_UNKNOWN = NliProbabilities(0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Round:
    """The size of a provisional round: pairs per answer sentence, and pairs per obligation."""

    premises: int
    answer_sentences: int


# Measured with the embedded model on 34 published cases (in brackets: on 20 ADGM answers from ten passages). After the
# first round 16 % (6 %) of the pairs are known, and on average E is .052 (.000) too low and C .057 (.040). After the
# second round 30 % (21 %) are known, and the errors are .012 (.000) and .016 (.005). OC is off by .002 (.000) from the
# first round on, so one answer sentence per obligation is enough. The figures of the 34 again: `pytest
# tests/scoring/repass/test_repass_model.py -m "data and slow" -s`.
PROVISIONAL_ROUNDS = (Round(1, 1), Round(5, 1))


class RepassScorer:
    """Scores answers with these models. Holds no state of its own: share it between threads."""

    def __init__(
        self,
        entailment: NliModel,
        coverage: NliModel,
        obligations: ObligationClassifier,
        config: ScoringConfig,
        encoder: Encoder | None = None,
        verdicts: NliModel | None = None,
    ) -> None:
        """``coverage`` and ``verdicts`` may be the same object as ``entailment``: equal pairs are then computed once.

        ``encoder`` compares sentences for the verdicts; without it they rest on words and probabilities alone.
        ``verdicts`` reads the few pairs that verdicts rest on; by default ``entailment`` does.
        """
        self.entailment = entailment
        self.coverage = coverage
        self.obligations = obligations
        self.config = config
        self.encoder = encoder
        self.verdicts = verdicts or entailment

    def stream(self, answer: Answer, passages: Sequence[Passage]) -> Stream[Event, None, Scored]:
        """Yields, in the configured mode, the answer's sentences and the obligations of the passages.

        First come all of them, from the most similar pairs alone; then those that a few more pairs change; then each of
        the others once it is final, in order. There are no provisional rounds if one call of the model (48 pairs) is
        enough. Something is yielded after every call, repeated if nothing is new, so that closing the stream stops the
        work within a call.

        Returns the breakdown in both modes, from the same pair probabilities: equal pairs are computed once, within a
        mode and across the two. Both modes take the answer's sentences as given; the script would split its text again.
        An answer without sentences, or passages without any, cost no NLI call: E = C = 0.

        Raises ScoringError if a model fails or returns something that is not a probability.
        """
        inputs = self._inputs(answer, passages)
        results = Results.of(self)
        for each in inputs.values():
            results.entailment.recall(chain.from_iterable(map(each.sentence_pairs, range(len(each.sentences)))))
            results.coverage.recall(chain.from_iterable(map(each.obligation_pairs, range(len(each.obligations)))))
        other = ScoringMode.SCRIPT if self.config.mode is ScoringMode.PAPER else ScoringMode.PAPER
        similarity = CosineOf(self.encoder) if self.encoder else None
        judges = {mode: Judge(given.premises, passages, self.config, similarity) for mode, given in inputs.items()}
        shown = _Watched(inputs[self.config.mode], results, self.config, judges[self.config.mode])
        yield from shown.events(inputs[other], judges[other])
        models = ScoringModels(self.entailment.info, self.coverage.info, self.obligations.info, self.verdicts.info)
        verdicts = shown.verdicts()
        is_same = inputs[ScoringMode.PAPER].premises == inputs[ScoringMode.SCRIPT].premises
        by_mode = {mode: verdicts if is_same or mode is self.config.mode else {} for mode in ScoringMode}
        breakdowns = (
            judged(
                breakdown_of(inputs[mode], results.entailment.known, results.coverage.known, self.config, models),
                judges[mode],
                results.verdicts.known,
                by_mode[mode],
            )
            for mode in (ScoringMode.PAPER, ScoringMode.SCRIPT)
        )
        return Scored(*(replace(breakdown, citations=check_citations(breakdown, passages)) for breakdown in breakdowns))

    def _inputs(self, answer: Answer, passages: Sequence[Passage]) -> dict[ScoringMode, ScoringInput]:
        premises = {mode: source_premises(passages, mode, self.config.sentence_splitter) for mode in ScoringMode}
        texts = {premise.text for of_mode in premises.values() for premise in of_mode}
        texts.update(sentence.text for sentence in answer.sentences)
        obliges = self.classify(sorted(texts))
        return {
            mode: ScoringInput(
                mode=mode,
                premises=of_mode,
                obligations=tuple(premise for premise in of_mode if obliges[premise.text]),
                sentences=answer.sentences,
                is_obligation=tuple(obliges[sentence.text] for sentence in answer.sentences),
            )
            for mode, of_mode in premises.items()
        }

    def classify(self, texts: Sequence[str]) -> dict[str, bool]:
        """Whether each of these distinct sentences is an obligation. Raises ScoringError where the model fails."""
        if not texts:
            return {}
        with translated(f"the obligation classifier {self.obligations.info.name} failed on {len(texts)} sentences"):
            return dict(zip(texts, self.obligations.classify(texts), strict=True))


class _Watched:
    """A breakdown that is shown while it grows, with the latest event of each of its parts."""

    def __init__(self, shown: ScoringInput, results: Results, config: ScoringConfig, judge: Judge) -> None:
        self._shown, self._results, self._config, self._judge = shown, results, config, judge
        self._final: set[UnitKey] = set()
        self._told: dict[UnitKey, Event] = {}  # the latest event of each unit
        self._last: list[Event] = []  # the latest event of all, if there was one

    def events(self, other: ScoringInput, judge: Judge) -> Iterator[Event]:
        """Computes what is shown, then what the other mode and its judge need beyond it; yields after each call."""
        units = _units_of(self._shown, self._results)
        if _count_missing(units) > PAIRS_PER_CALL:
            units = _likeliest_first(self._shown, units)
            for provisional in PROVISIONAL_ROUNDS:
                if _count_missing(units) > PAIRS_PER_CALL:
                    for of_obligations in (False, True):  # sentences are read first and need not wait for the rest
                        some = [unit for unit in units if unit.of_obligation is of_obligations]
                        yield from self._round(some, provisional)
        rest = _with_second_looks(_units_of(other, self._results), other, judge, self._results)
        yield from self._round(_with_second_looks(units, self._shown, self._judge, self._results), None, rest)

    def verdicts(self) -> dict[int, SentenceVerdict]:
        """The final verdicts yielded so far, by the sentence's index."""
        events = (event for event in self._told.values() if isinstance(event, SentenceScored) and event.final)
        return {event.score.index: event.verdict for event in events if event.verdict}

    def _round(
        self, units: Sequence[PendingScore], provisional: Round | None, rest: Sequence[PendingScore] = ()
    ) -> Iterator[Event]:
        watched = set(units)
        for n_calls, (done, under_way) in enumerate(_compute([*units, *rest], provisional)):
            ready = {unit.key: unit for unit in done if unit in watched}  # once, though a sentence has two units
            news = [event for unit in (ready[key] for key in sorted(ready)) for event in self._news(unit)]
            if not news and n_calls > 0:  # report progress all the same, so that the caller can stop
                open_ones = [unit for unit in (under_way, *done) if unit in watched and unit.key not in self._final]
                news = self._news(open_ones[0], again=True) if open_ones else self._last
            yield from news

    def _news(self, unit: PendingScore, *, again: bool = False) -> list[Event]:
        """The event of this unit, if it differs from the last one or ``again`` is set."""
        if self._is_known(unit):
            self._final.add(unit.key)
        event = self._event(unit, final=unit.key in self._final)
        before = self._told.get(unit.key)
        if not again and before and (event.score, event.final) == (before.score, before.final):
            return []
        self._told[unit.key] = event
        self._last = [event]
        return self._last

    def _is_known(self, unit: PendingScore) -> bool:
        """Whether all pairs are known that its score and its verdict (two units) need."""
        shown, results = self._shown, self._results
        looks = _looks_of(unit, shown, self._judge)
        if unit.of_obligation:
            is_scored = not results.coverage.missing(shown.obligation_pairs(unit.index))
        else:
            is_scored = not results.entailment.missing(shown.sentence_pairs(unit.index))
        return is_scored and not results.verdicts.missing(looks)

    def _event(self, unit: PendingScore, *, final: bool) -> Event:
        done = sum(of_obligation is unit.of_obligation for of_obligation, _ in self._final)
        shown = self._shown
        if unit.of_obligation:
            strengths_of([one.text for one in shown.obligations])  # together, and remembered for each verdict
            known = self._results.coverage.known
            obligation = obligation_score(shown, unit.index, known, self._config, only_known=not final)
            if final:
                looks = self._results.verdicts.known
                cover = self._judge.obligation(unit.index, obligation.obligation, _said_of(shown), looks)
            else:
                cover = self._judge.obligation_so_far(obligation)
            return ObligationScored(obligation, done, len(shown.obligations), final, cover)
        known = self._results.entailment.known
        sentence = sentence_score(shown, unit.index, known, self._config, only_known=not final)
        probabilities = [known.get(pair, _UNKNOWN) for pair in shown.sentence_pairs(unit.index)]
        entailing, contradicting = (
            [pair.entailment for pair in probabilities],
            [pair.contradiction for pair in probabilities],
        )
        if not final:
            verdict = self._judge.so_far(unit.index, sentence.sentence, entailing)
            return SentenceScored(sentence, done, len(shown.sentences), final, verdict)
        looks = self._results.verdicts.known
        verdict = self._judge.sentence(unit.index, sentence.sentence, entailing, contradicting, looks)
        return SentenceScored(sentence, done, len(shown.sentences), final, verdict)


UnitKey = tuple[bool, int]


# Which pairs are computed when --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Results:
    """The results of the models in one scoring; the same object where one model has two roles."""

    entailment: PairResults
    coverage: PairResults
    verdicts: PairResults

    @classmethod
    def of(cls, scorer: RepassScorer) -> Results:
        """Empty results for the scorer's models."""
        first = PairResults(scorer.entailment)
        others = (scorer.coverage, scorer.verdicts)
        return cls(first, *(first if model is scorer.entailment else PairResults(model) for model in others))


class CosineOf:
    """Cosines of sentences by an encoder, for one scoring; each text is encoded once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    def __call__(self, text: str, others: Sequence[str]) -> list[float]:
        """The cosine of ``text`` to each of ``others``, in [-1, 1]. Raises ScoringError where the encoder fails."""
        new = [sentence for sentence in dict.fromkeys([text, *others]) if sentence not in self._vectors]
        if new:
            with translated(f"the encoder {self._encoder.info.name} failed on {len(new)} sentences"):
                self._vectors.update(zip(new, self._encoder.encode(new), strict=True))
        return [float(self._vectors[other] @ self._vectors[text]) for other in others]


@dataclass(frozen=True, slots=True, eq=False)
class PendingScore:
    """A score to be computed, of an answer sentence or an obligation (``index`` among its kind), and its pairs.

    The pairs of its verdict are a separate unit, for another model. ``pairs`` are in the order of computation. None can
    be left out once an obligation is covered: the breakdown shows the sentence that covers it best and by what margin,
    and any pair may still raise both.
    """

    index: int
    of_obligation: bool
    results: PairResults
    pairs: tuple[Pair, ...]

    @property
    def key(self) -> UnitKey:
        """Whether it belongs to an obligation, and its index."""
        return self.of_obligation, self.index

    def is_known(self, provisional: Round | None = None) -> bool:
        """Whether the pairs of this round are known (None: all pairs)."""
        return all(pair in self.results.known for pair in self.wanted(provisional))

    def wanted(self, provisional: Round | None) -> tuple[Pair, ...]:
        """The pairs of this round (None: all pairs)."""
        if provisional is None:
            return self.pairs
        return self.pairs[: provisional.answer_sentences if self.of_obligation else provisional.premises]


def _units_of(given: ScoringInput, results: Results) -> list[PendingScore]:
    """The answer's sentences and then the obligations, each with all its pairs in the order of ``given``."""
    of_obligations = range(len(given.obligations))
    return [
        *(
            PendingScore(n, False, results.entailment, tuple(given.sentence_pairs(n)))
            for n in range(len(given.sentences))
        ),
        *(PendingScore(n, True, results.coverage, tuple(given.obligation_pairs(n))) for n in of_obligations),
    ]


def _with_second_looks(
    units: Sequence[PendingScore], given: ScoringInput, judge: Judge, results: Results
) -> list[PendingScore]:
    """The same units, sentences before obligations, each kind preceded by the units of its verdicts.

    So a verdict is final when its score is, and the pairs of one model share calls.
    """
    pending = []
    for of_obligation in (False, True):
        some = [unit for unit in units if unit.of_obligation is of_obligation]
        wanted = ((unit, tuple(_looks_of(unit, given, judge))) for unit in some)
        pending += [PendingScore(unit.index, of_obligation, results.verdicts, looks) for unit, looks in wanted if looks]
        pending += some
    return pending


def _looks_of(unit: PendingScore, given: ScoringInput, judge: Judge) -> list[Pair]:
    """The pairs that the verdict on this sentence or obligation needs."""
    if unit.of_obligation:
        return judge.obligation_looks(given.obligations[unit.index], _said_of(given))
    return judge.second_looks(given.sentences[unit.index])


def _said_of(given: ScoringInput) -> list[tuple[int, AnswerSentence]]:
    """The answer sentences that may cover an obligation, with their indexes."""
    return [(n, given.sentences[n]) for n in given.looked_at]


def _compute(
    units: Sequence[PendingScore], provisional: Round | None
) -> Iterator[tuple[list[PendingScore], PendingScore | None]]:
    """Computes the pairs of this round (None: all pairs) of these units.

    Yields once before the first call of a model and then after each: the units that are done by now, in their order,
    and the next one, some of whose pairs may be known (None: all are done). Adjacent units of one model share calls.
    """
    waiting = list(units)
    calls = (
        call
        for results, group in groupby(units, key=lambda unit: unit.results)
        for call in results.compute(pair for unit in group for pair in unit.wanted(provisional))
    )
    for _ in chain([None], calls):
        n_done = next((n for n, unit in enumerate(waiting) if not unit.is_known(provisional)), len(waiting))
        done, waiting = waiting[:n_done], waiting[n_done:]
        yield done, waiting[0] if waiting else None


def _count_missing(units: Sequence[PendingScore]) -> int:
    """The number of pairs still to be computed for these units."""
    return len({(id(unit.results), pair) for unit in units for pair in unit.results.missing(unit.pairs)})


def _likeliest_first(given: ScoringInput, units: Sequence[PendingScore]) -> list[PendingScore]:
    """The same units in the same order, the pairs of each with the most similar premises first."""
    sentences = [sentence.text for sentence in given.sentences]
    looked_at = [sentences[n] for n in given.looked_at]
    orders = {
        False: by_similarity([premise.text for premise in given.premises], sentences),
        True: by_similarity(looked_at, [obligation.text for obligation in given.obligations]),
    }
    return [replace(unit, pairs=tuple(unit.pairs[n] for n in orders[unit.of_obligation][unit.index])) for unit in units]
