"""RePASs and verdicts as a metric for any answer and its passages.

::

    from ragqa import score
    result = score("How long are records kept?", ["A Firm must keep records for six years."], "Six years.")
    result.repass.composite, result.supported, result.breakdown.verdicts

The models are loaded once for each `ScoringConfig`, a second or two at the first call, and shared between threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragqa.generation.answers import answer_of_text, passages_of_texts
from ragqa.generation.relevance import relevance
from ragqa.loading import load_scorer, load_selector
from ragqa.plugins.protocols import Selector
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.settings.scoring import scoring_from_env
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.scoring import Relevance, Scored
from ragqa.types.scores import Breakdown, RePASs, ScoringMode, Verdict
from ragqa.types.streams import returned

Triple = tuple[str, Sequence[str | Passage], str | Answer]  # question ("" for none), passages, answer


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The scores of an answer. ``scored`` holds both definitions of RePASs; ``mode`` says which one is shown."""

    scored: Scored
    mode: ScoringMode
    relevance: Relevance | None  # whether the answer answers the question; None without a question

    @property
    def breakdown(self) -> Breakdown:
        """Every sentence, obligation, pair and verdict, in the mode that is shown."""
        return self.scored.of(self.mode)

    @property
    def repass(self) -> RePASs:
        """Entailment, contradiction, obligation coverage and their composite, each in [0, 1]."""
        return self.breakdown.repass

    @property
    def supported(self) -> float:
        """The share of the answer's sentences that the verdicts call supported, in [0, 1]; 0 without sentences."""
        return self._share(Verdict.SUPPORTED)

    @property
    def contradicted(self) -> float:
        """The share of the answer's sentences that the verdicts call contradicted, in [0, 1]; 0 without sentences."""
        return self._share(Verdict.CONTRADICTED)

    def _share(self, verdict: Verdict) -> float:
        verdicts = self.breakdown.verdicts
        return sum(one.verdict is verdict for one in verdicts) / len(verdicts) if verdicts else 0.0


def score(
    question: str, passages: Sequence[str | Passage], answer: str | Answer, *, config: ScoringConfig | None = None
) -> AnswerResult:
    """The scores of one answer. Citations of an `Answer` number the passages from 1.

    Settings default to those of the environment. Raises ModelError, ScoringError.
    """
    return next(score_all([(question, passages, answer)], config=config))


def score_all(triples: Iterable[Triple], *, config: ScoringConfig | None = None) -> Iterator[AnswerResult]:
    """The scores of each (question, passages, answer) in turn, as soon as they are known. Raises as `score`."""
    config = config or scoring_from_env()
    scorer, selector = _models(config)
    for question, texts, answer in triples:
        passages = passages_of_texts(texts)
        written = answer_of_text(answer, config.sentence_splitter) if isinstance(answer, str) else answer
        asked = Question(question)
        found = relevance(asked, written, passages, scorer.encoder, selector) if scorer.encoder else None
        yield AnswerResult(returned(scorer.stream(written, passages)), config.mode, found)


@lru_cache(maxsize=2)
def _models(config: ScoringConfig) -> tuple[RepassScorer, Selector]:
    return load_scorer(config), load_selector(config)
