"""RePASs of an answer, streamed: a whole provisional breakdown first, then each sentence and obligation when final.

What is asked of the models when is in `ragqa.repass.schedule`, what their numbers mean in `ragqa.repass.breakdown`.
"""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragqa.config import ScoringConfig
from ragqa.events.scoring import ObligationScored, Scored, SentenceScored
from ragqa.protocols import NliModel, ObligationClassifier
from ragqa.repass.attribution import check_citations
from ragqa.repass.breakdown import ScoringModels, View, evaluation, obligation_score, sentence_score
from ragqa.repass.premises import source_premises
from ragqa.repass.schedule import (
    PAIRS_PER_CALL,
    PROVISIONAL_ROUNDS,
    PairResults,
    Round,
    Unit,
    compute,
    count_missing,
    likeliest_first,
    translated,
    units_of,
)
from ragqa.types import Answer, Passage, ScoringMode

Event = SentenceScored | ObligationScored


class RepassScorer:
    """Scores answers with these models. Holds no state of its own: share it between threads."""

    def __init__(
        self, entailment: NliModel, coverage: NliModel, obligations: ObligationClassifier, config: ScoringConfig
    ) -> None:
        """``coverage`` may be the same object as ``entailment``: equal pairs are then computed once for both."""
        self.entailment = entailment
        self.coverage = coverage
        self.obligations = obligations
        self.config = config

    def stream(self, answer: Answer, passages: Sequence[Passage]) -> Stream[Event, None, Scored]:
        """Yields, in the configured mode, the answer's sentences and the obligations of the passages.

        All of them first, from the most similar pairs alone; then again those that a few more pairs change; then each
        one that is not final yet when it is, in order. Where at most one call's worth of pairs (48) must be computed
        there are no provisional rounds. After every call something is yielded, the same again where nothing is new:
        closing the stream stops the work within a call.

        Returns the breakdown in both modes, from the same pair probabilities: equal pairs are computed once, within a
        mode and across the two. The answer's sentences are taken as given, in both modes; the script would split its
        text again. An answer without sentences, or passages without any, cost no NLI call: E = C = 0.

        Raises ScoringError where a model fails or gives something that is not a probability.
        """
        views = self._views(answer, passages)
        entailment = PairResults(self.entailment)
        coverage = entailment if self.coverage is self.entailment else PairResults(self.coverage)
        for view in views.values():
            entailment.recall(pair for n in range(len(view.sentences)) for pair in view.sentence_pairs(n))
            coverage.recall(pair for n in range(len(view.obligations)) for pair in view.obligation_pairs(n))
        shown = views[self.config.mode]
        (other,) = (view for view in views.values() if view is not shown)
        yield from _Watched(shown, entailment, coverage, self.config).events(other)
        models = ScoringModels(self.entailment.info, self.coverage.info, self.obligations.info)
        found = (
            evaluation(views[mode], entailment.known, coverage.known, self.config, models)
            for mode in (ScoringMode.PAPER, ScoringMode.SCRIPT)
        )
        paper, script = (replace(one, citations=check_citations(one, passages)) for one in found)
        return Scored(paper, script)

    def _views(self, answer: Answer, passages: Sequence[Passage]) -> dict[ScoringMode, View]:
        premises = {mode: source_premises(passages, mode, self.config.sentence_splitter) for mode in ScoringMode}
        texts = {premise.text for found in premises.values() for premise in found}
        texts.update(sentence.text for sentence in answer.sentences)
        obliges = self.classify(sorted(texts))
        return {
            mode: View(
                mode=mode,
                premises=found,
                obligations=tuple(premise for premise in found if obliges[premise.text]),
                sentences=answer.sentences,
                is_obligation=tuple(obliges[sentence.text] for sentence in answer.sentences),
            )
            for mode, found in premises.items()
        }

    def classify(self, texts: Sequence[str]) -> dict[str, bool]:
        """Whether each of these distinct sentences obliges somebody. Raises ScoringError where the model fails."""
        if not texts:
            return {}
        with translated(f"the obligation classifier {self.obligations.info.name} failed on {len(texts)} sentences"):
            return dict(zip(texts, self.obligations.classify(texts), strict=True))


class _Watched:
    """The breakdown that somebody watches while it grows, and what they were told of it so far."""

    def __init__(self, view: View, entailment: PairResults, coverage: PairResults, config: ScoringConfig) -> None:
        self._view, self._entailment, self._coverage, self._config = view, entailment, coverage, config
        self._final: set[Unit] = set()
        self._told: dict[Unit, Event] = {}  # the latest event of each
        self._last: list[Event] = []  # the latest event of all, if there was one

    def events(self, other: View) -> Iterator[Event]:
        """Computes this view and then what the other one needs beyond it; yields after each call."""
        units = units_of(self._view, self._entailment, self._coverage)
        if count_missing(units) > PAIRS_PER_CALL:
            units = likeliest_first(self._view, units)
            for provisional in PROVISIONAL_ROUNDS:
                if count_missing(units) > PAIRS_PER_CALL:
                    for of_obligations in (False, True):  # sentences are read first and need not wait for the rest
                        some = [unit for unit in units if unit.of_obligation is of_obligations]
                        yield from self._round(some, provisional)
        yield from self._round(units, None, units_of(other, self._entailment, self._coverage))

    def _round(self, units: Sequence[Unit], provisional: Round | None, rest: Sequence[Unit] = ()) -> Iterator[Event]:
        watched = set(units)
        for n_calls, (done, under_way) in enumerate(compute([*units, *rest], provisional)):
            news = [event for unit in done if unit in watched for event in self._news(unit)]
            if not news and n_calls > 0:  # say where the work stands, so that it can be stopped
                open_ones = [unit for unit in (under_way, *done) if unit in watched and unit not in self._final]
                news = self._news(open_ones[0], again=True) if open_ones else self._last
            yield from news

    def _news(self, unit: Unit, *, again: bool = False) -> list[Event]:
        """The event of this unit, if it says more than the last one did or is wanted again."""
        if unit.is_known():
            self._final.add(unit)
        event = self._event(unit, final=unit in self._final)
        before = self._told.get(unit)
        if not again and before and (event.score, event.final) == (before.score, before.final):
            return []
        self._told[unit] = event
        self._last = [event]
        return self._last

    def _event(self, unit: Unit, *, final: bool) -> Event:
        done = sum(other.of_obligation is unit.of_obligation for other in self._final)
        if unit.of_obligation:
            known, total = self._coverage.known, len(self._view.obligations)
            obligation = obligation_score(self._view, unit.index, known, self._config, only_known=not final)
            return ObligationScored(obligation, done, total, final)
        known, total = self._entailment.known, len(self._view.sentences)
        sentence = sentence_score(self._view, unit.index, known, self._config, only_known=not final)
        return SentenceScored(sentence, done, total, final)
