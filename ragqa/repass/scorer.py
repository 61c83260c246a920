"""RePASs of an answer, streamed: each sentence and each obligation as soon as its own pairs are known.

The models are called from here only; what their probabilities mean is in `ragqa.repass.breakdown`.
"""

from __future__ import annotations

import math
from collections.abc import Generator as Stream
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ragqa.config import ScoringConfig
from ragqa.errors import ScoringError
from ragqa.events import ObligationScored, Scored, SentenceScored
from ragqa.protocols import NliModel, ObligationClassifier
from ragqa.repass.breakdown import Pair, ScoringModels, View, evaluation, obligation_score, sentence_score
from ragqa.repass.premises import source_premises
from ragqa.types import Answer, NliProbabilities, Passage, ScoringMode

__all__ = ["RepassScorer"]

PAIRS_PER_CALL = 32  # obligations wait for each other until this many pairs can be computed together


class RepassScorer:
    """Scores answers with these two models. Holds no state of its own: share it between threads."""

    def __init__(
        self, entailment: NliModel, coverage: NliModel, obligations: ObligationClassifier, config: ScoringConfig
    ) -> None:
        """``coverage`` may be the same object as ``entailment``: equal pairs are then computed once for both."""
        self.entailment = entailment
        self.coverage = coverage
        self.obligations = obligations
        self.config = config

    def stream(
        self, answer: Answer, passages: Sequence[Passage]
    ) -> Stream[SentenceScored | ObligationScored, None, Scored]:
        """Yields, in the configured mode, the answer's sentences in order and then the obligations of the passages.

        Returns the breakdown in both modes, from the same pair probabilities: equal pairs are computed once, within a
        mode and across the two. The answer's sentences are taken as given, in both modes; the script would split its
        text again. An answer without sentences, or passages without any, cost no NLI call: E = C = 0.

        Raises ScoringError where a model fails or gives something that is not a probability.
        """
        views = self._views(answer, passages)
        table = _Table(self.entailment)
        coverage = table if self.coverage is self.entailment else _Table(self.coverage)
        yield from self._sentences(views[self.config.mode], table)
        yield from self._obligations(views[self.config.mode], coverage)
        for view in views.values():  # what the other mode needs beyond that
            for index in range(len(view.sentences)):
                table.compute(view.sentence_pairs(index))
            for index in range(len(view.obligations)):
                coverage.compute(view.obligation_pairs(index))
        models = ScoringModels(self.entailment.info, self.coverage.info, self.obligations.info)
        paper, script = (
            evaluation(views[mode], table.known, coverage.known, self.config, models)
            for mode in (ScoringMode.PAPER, ScoringMode.SCRIPT)
        )
        return Scored(paper, script)

    def _sentences(self, view: View, table: _Table) -> Iterator[SentenceScored]:
        for index in range(len(view.sentences)):
            table.compute(view.sentence_pairs(index))
            score = sentence_score(view, index, table.known, self.config)
            yield SentenceScored(score, done=index + 1, total=len(view.sentences))

    def _obligations(self, view: View, table: _Table) -> Iterator[ObligationScored]:
        total = len(view.obligations)
        step = max(1, PAIRS_PER_CALL // max(1, len(view.looked_at)))
        for first in range(0, total, step):
            group = range(first, min(first + step, total))
            table.compute(pair for index in group for pair in view.obligation_pairs(index))
            for index in group:
                score = obligation_score(view, index, table.known, self.config)
                yield ObligationScored(score, done=index + 1, total=total)

    def _views(self, answer: Answer, passages: Sequence[Passage]) -> dict[ScoringMode, View]:
        premises = {mode: source_premises(passages, mode) for mode in ScoringMode}
        texts = {premise.text for found in premises.values() for premise in found}
        texts.update(sentence.text for sentence in answer.sentences)
        obliges = self._classify(sorted(texts))
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

    def _classify(self, texts: Sequence[str]) -> dict[str, bool]:
        if not texts:
            return {}
        with _translated(f"the obligation classifier {self.obligations.info.name} failed on {len(texts)} sentences"):
            return dict(zip(texts, self.obligations.classify(texts), strict=True))


class _Table:
    """The pair probabilities known so far in one scoring."""

    def __init__(self, nli: NliModel) -> None:
        self.known: dict[Pair, NliProbabilities] = {}
        self._nli = nli

    def compute(self, pairs: Iterable[Pair]) -> None:
        """Makes these pairs known; the model is asked only for the ones that are new."""
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self.known]
        if not missing:
            return
        with _translated(f"the NLI model {self._nli.info.name} failed on {len(missing)} sentence pairs"):
            found = dict(zip(missing, self._nli.predict(missing), strict=True))
        for (premise, hypothesis), result in found.items():
            if not _is_probabilities(result):
                msg = (
                    f"RePASs could not be computed: the NLI model {self._nli.info.name} gave {result} for the premise "
                    f"'{premise[:80]}' and the hypothesis '{hypothesis[:80]}', expected numbers in [0, 1]. "
                    "The answer is kept; check the model's files, or reinstall ragqa."
                )
                raise ScoringError(msg)
        self.known.update(found)


def _is_probabilities(result: NliProbabilities) -> bool:
    values = (result.contradiction, result.entailment, result.neutral)
    return all(math.isfinite(value) and 0.0 <= value <= 1.0 for value in values)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Any error of a model as a ScoringError that says what happened and that the answer is kept."""
    try:
        yield
    except ScoringError:
        raise
    except Exception as error:
        detail = str(error).strip() or "no further message"
        msg = f"RePASs could not be computed: {what} ({type(error).__name__}: {detail[:300]}). "
        msg += "The answer is kept; ask again to have it scored."
        raise ScoringError(msg) from error
