"""The state of one question and how each event changes it, as the page and the terminal show it. Pure.

A `View` is built event by event while a question runs, or at once from a stored record; both are shown alike. Scores
come twice: first provisional ones from the most similar pairs alone, then the final ones, which replace them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Generic, TypeVar

from ragqa.filtering import as_asked
from ragqa.fusion import by_number, fuse, led_by, rerank, reranker_scores
from ragqa.generation.fanout.merging import reselected, with_passages
from ragqa.records.record import AnswerRecord
from ragqa.records.results import unsure
from ragqa.records.trace_words import trace_words
from ragqa.scoring.repass.explanation import Explanation, explain, mode_differences, verdict_by_index
from ragqa.settings.config import Config, FilteringConfig, FusionConfig, FusionMethod, IndexingConfig, RerankingConfig
from ragqa.types import Answer, Question, Ranking, Selection
from ragqa.types.events.generation import BestSoFar, Token, TraceEvent, Working
from ragqa.types.events.pipeline import Answered, Event, Fused, Recorded, Reranked, Retrieved, Selected, Stored
from ragqa.types.events.scoring import ObligationScored, Relevance, RelevanceMeasured, Scored, SentenceScored
from ragqa.types.scores import (
    Breakdown,
    CitationStatus,
    Cover,
    ObligationScore,
    ObligationVerdict,
    Premise,
    RePASs,
    ScoringMode,
    SentenceScore,
    SentenceVerdict,
    Verdict,
    listed_obligations,
)

WEAK_COSINE = 0.45  # MiniLM on ADGM: 2,787 of 2,788 ObliQA questions are above, 496 of 500 of HotpotQA below


@dataclass(frozen=True, slots=True)
class Explained:
    """How the final scores came about: each mode's explanation, and the differences between the modes."""

    paper: Explanation
    script: Explanation
    differences: tuple[str, ...]

    def of(self, mode: ScoringMode) -> Explanation:
        """The explanation for this mode."""
        return self.paper if mode is ScoringMode.PAPER else self.script


@dataclass(frozen=True, slots=True)
class View:
    """Everything shown for one question, or for one text that is checked; a field is empty until its stage is done."""

    asked: Question
    config: Config
    phase: str = "Starting"
    rankings: tuple[Ranking, ...] = ()
    encoder: str = ""  # the name of that of the dense ranking
    reranker_scores: Mapping[str, float] = field(default_factory=dict)  # raw, by passage_id; empty without a reranker
    selection: Selection | None = None  # what the answer was written from
    text: str = ""  # the raw answer so far
    trace: tuple[TraceEvent, ...] = ()  # the steps of LOC, VRR or a fan-out so far
    best: BestSoFar | None = None  # the best answer of these steps so far
    answer: Answer | None = None
    answer_relevance: Relevance | None = None  # None for a refusal, and in older records
    sentences: tuple[SentenceScore, ...] = ()  # the latest of each, by index; provisional unless in `final_sentences`
    final_sentences: frozenset[int] = frozenset()
    n_sentences: int = 0
    obligations: tuple[ObligationScore, ...] = ()  # as ``sentences``
    final_obligations: frozenset[int] = frozenset()
    n_obligations: int = 0
    verdicts: tuple[SentenceVerdict, ...] = ()  # as ``sentences``; () in records from before verdicts had rules
    obligation_verdicts: tuple[ObligationVerdict, ...] = ()
    scored: Scored | None = None
    explained: Explained | None = None
    record_id: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    running: bool = True

    @property
    def question(self) -> str:
        """The question's text, "" where a text is checked without one."""
        return self.asked.text


def advance(view: View, event: Event) -> View:
    """The view after this event."""
    match event:
        case Retrieved(rankings, encoder):
            counts = " + ".join(str(len(ranking.hits)) for ranking in rankings)
            return replace(view, rankings=rankings, encoder=encoder, phase=f"Retrieved {counts} passages")
        case Fused(ranking):
            return replace(view, phase=f"Fused into {len(ranking.hits)} candidates")
        case Reranked(ranking):
            scores = reranker_scores(ranking)
            return replace(view, reranker_scores=scores, phase=f"Reranked the best {len(scores)} candidates")
        case Selected(selection):
            kept, total = len(selection.kept), len(selection.kept) + len(selection.dropped)
            then = "comparing" if view.asked.given else "writing the answer"
            return replace(view, selection=selection, phase=f"Kept {kept} of {total}, {then}")
        case Token(text):
            return replace(view, text=view.text + text)
        case Working(phase, calls, characters):
            written = f": {calls} calls so far, {characters:,} characters" if calls else ""
            return replace(view, phase=phase + written)
        case Stored(record_id):
            return replace(view, record_id=record_id)
        case _ if isinstance(event, TraceEvent):
            if view.asked.given:  # the phase is set by `Working`, which names the sentence
                return replace(view, trace=(*view.trace, event))
            best, step = view.best, event
            if isinstance(event, BestSoFar):
                best, step = event, replace(event, scored=None, selection=None)
                view = replace(view, selection=event.selection or view.selection)
            return replace(view, trace=(*view.trace, step), best=best, phase=trace_words(event).partition("\n")[0])
        case Answered(answer):
            return replace(view, answer=answer, n_sentences=len(answer.sentences), phase="Scoring")
        case RelevanceMeasured(relevance):
            return replace(view, answer_relevance=relevance)
        case SentenceScored(score, _, total, final, verdict):
            known = view.final_sentences | {score.index} if final else view.final_sentences
            view = replace(view, verdicts=_put(view.verdicts, verdict)) if verdict else view
            sentences = _put(view.sentences, score)
            return _scoring(replace(view, sentences=sentences, final_sentences=known, n_sentences=total))
        case ObligationScored(obligation, _, total, final, cover):
            known = view.final_obligations | {obligation.index} if final else view.final_obligations
            view = replace(view, obligation_verdicts=_put(view.obligation_verdicts, cover)) if cover else view
            obligations = _put(view.obligations, obligation)
            return _scoring(replace(view, obligations=obligations, final_obligations=known, n_obligations=total))
        case Scored():
            return _with_scores(view, event)
        case Recorded(record_id, seconds):
            return replace(view, record_id=record_id, seconds=seconds, running=False, phase="Done")


def ended(view: View, error: str) -> View:
    """The view of a run that ended early: the best answer so far becomes the answer, with its scores."""
    view = replace(view, error=error, running=False, phase="Ended early")
    if view.answer or not view.best:
        return view
    answer, scored = view.best.answer, view.best.scored
    view = replace(view, answer=answer, n_sentences=len(answer.sentences))
    return _with_scores(view, scored) if scored else view


def from_record(record: AnswerRecord) -> View:
    """The view of a stored answer, as it was recorded."""
    config = Config(**{part.name: getattr(record, part.name) for part in fields(Config)})
    by_id = {passage.passage_id: passage for passage in record.passages}
    view = View(
        record.question,
        config,
        rankings=record.ranked,
        encoder=record.models["encoder"].name,
        reranker_scores=dict(record.reranker_scores),
        trace=with_passages(record.trace, by_id),
    )
    selection = record.selection(reselect(view, record.fusion, record.filtering, record.reranking))
    view = replace(
        view,
        selection=selection,
        text=record.answer.raw,
        best=next((event for event in reversed(record.trace) if isinstance(event, BestSoFar)), None),
        answer=record.answer,
        answer_relevance=record.answer_relevance,
        seconds=record.seconds,
        record_id=record.record_id,
        error=record.error,
        running=False,
        phase="Done",
    )
    return _with_scores(view, record.scored) if record.scored else view


def reselect(
    view: View, fusion: FusionConfig, filtering: FilteringConfig, reranking: RerankingConfig | None = None
) -> Selection:
    """The selection that these settings make from the retrieved passages, including those of sub-questions.

    Nothing is retrieved, reranked or generated. The answer's own settings give the selection it was written from.

    ``reranking`` applies the known scores if it names the reranker that has read these passages, and has no effect for
    another one. After a change of the fusion, the reranker may not have read some of the best passages: see `unread`.
    """
    own = view.config
    filtering, used = (as_asked(one, view.question, lambda: view.rankings)[0] for one in (filtering, own.filtering))
    if view.answer and view.selection and (fusion, filtering, reranking) == (own.fusion, used, own.reranking):
        return view.selection
    return _reselected(_Same(view), fusion.method, tuple(sorted(fusion.weights.items())), filtering, reranking)


T = TypeVar("T")


class _Same(Generic[T]):
    """Wraps an object as a cache key that compares by identity, because comparing by value would be slow."""

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.it is self.it


@lru_cache(maxsize=16)
def _reselected(
    same: _Same[View],
    method: FusionMethod,
    weights: tuple[tuple[str, float], ...],
    filtering: FilteringConfig,
    reranking: RerankingConfig | None,
) -> Selection:
    """Cached because one run of the page's script asks five times for the same selection."""
    view = same.it
    fused = _fused(_Same(view.rankings), method, weights)
    if reranking and _was_read_by(view, reranking):
        fused = rerank(fused, view.reranker_scores, reranking)
    return reselected(fused, view.trace, filtering)


@lru_cache(maxsize=16)
def _fused(same: _Same[tuple[Ranking, ...]], method: FusionMethod, weights: tuple[tuple[str, float], ...]) -> Ranking:
    """Cached because fusing is most of the cost of a new selection, and limits do not change its result."""
    return fuse(same.it, FusionConfig(method, dict(weights)))


def unread(view: View, fusion: FusionConfig, reranking: RerankingConfig) -> int:
    """How many of the best passages under these settings their reranker has not read."""
    if not reranking.model:
        return 0
    known = view.reranker_scores if _was_read_by(view, reranking) else {}
    ranking = led_by(fuse(view.rankings, fusion), by_number(view.selection) if view.selection else ())
    return sum(hit.passage.passage_id not in known for hit in ranking.hits[: reranking.depth])


def _was_read_by(view: View, reranking: RerankingConfig) -> bool:
    return bool(view.reranker_scores) and reranking.model == view.config.reranking.model


def weak_match(view: View) -> float | None:
    """The best cosine of the dense ranking if it is too low for a question that the corpus answers, else None.

    It is None for a rule that is asked for by its number, and with another encoder than the bundled one, because
    nobody measured where its cosines lie.
    """
    if view.selection and by_number(view.selection):
        return None
    is_known = view.encoder == IndexingConfig().encoder
    best = [one.hits[0].score for one in view.rankings if one.retriever == "dense" and one.hits]
    return best[0] if is_known and best and best[0] < WEAK_COSINE else None


def unsure_relevance(view: View) -> float | None:
    """The relevance of the answer's least sure part if it is too low for an answer, else None."""
    parts = view.answer_relevance.parts if view.answer_relevance else ()
    return unsure([(one.value, one.is_read) for one in parts])


def provisional(view: View) -> RePASs | None:
    """RePASs over the latest scores; None before the first sentence. Coverage is 0 until it is checked.

    E and C can still rise while sentences are not final; the means are over the sentences that have a score.
    """
    if not view.sentences:
        return None
    n_sentences, n_obligations = len(view.sentences), len(view.obligations)
    return RePASs(
        entailment=sum(score.entailment for score in view.sentences) / n_sentences,
        contradiction=sum(score.contradiction for score in view.sentences) / n_sentences,
        obligation_coverage=sum(score.covered for score in view.obligations) / n_obligations if n_obligations else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """The scores of a view in one mode, final ones where they exist, and the verdicts shown beside them.

    Obligations of RePASs that bind nobody by the verdicts are left out. Without verdicts (for raw verdicts, and in
    records from before verdicts had rules) all obligations of the scores are listed.
    """

    mode: ScoringMode
    evaluation: Breakdown | None
    explanation: Explanation | None
    sentences: tuple[SentenceScore, ...]
    obligations: tuple[ObligationScore, ...]
    verdicts: tuple[SentenceVerdict, ...]
    obligation_verdicts: tuple[ObligationVerdict, ...]

    @property
    def premises(self) -> tuple[Premise, ...]:
        """The source sentences that verdicts refer to by position; empty before the scores are final."""
        return self.evaluation.premises if self.evaluation else ()

    @property
    def sentences_with_problems(self) -> tuple[SentenceScore, ...]:
        """The sentences that are not supported, or whose citations are not confirmed."""
        verdicts, checks = verdict_by_index(self.sentences, self.verdicts), self.explanation
        return tuple(
            score
            for score in self.sentences
            if verdicts[score.index] is not Verdict.SUPPORTED
            or (checks and checks.citations[score.index].status is not CitationStatus.CONFIRMED)
        )

    @property
    def uncovered(self) -> tuple[ObligationScore, ...]:
        """The obligations that the answer does not cover, or covers only in part."""
        covered = {verdict.index: verdict.cover is Cover.COVERED for verdict in self.obligation_verdicts}
        return tuple(score for score in self.obligations if not covered.get(score.index, score.covered))


def shown(view: View, mode: ScoringMode, *, raw: bool = False) -> Shown:
    """The scores of this view in this mode (in its own mode until scoring ends); with ``raw`` without verdicts."""
    mode = mode if view.scored else view.config.scoring.mode
    of = view.scored.of(mode) if view.scored else None
    covers = () if raw else of.obligation_verdicts if of else view.obligation_verdicts
    return Shown(
        mode,
        of,
        view.explained.of(mode) if view.explained else None,
        of.sentences if of else view.sentences,
        listed_obligations(of.obligations if of else view.obligations, covers),
        () if raw else of.verdicts if of else view.verdicts,
        covers,
    )


Indexed = TypeVar("Indexed", SentenceScore, ObligationScore, SentenceVerdict, ObligationVerdict)


def _put(known: tuple[Indexed, ...], item: Indexed) -> tuple[Indexed, ...]:
    """All items in index order; ``item`` replaces an earlier one with its index."""
    by_index = {each.index: each for each in known} | {item.index: item}
    return tuple(by_index[index] for index in sorted(by_index))


def _scoring(view: View) -> View:
    """The view with a phase that says how many of its scores are final."""
    if not view.final_sentences and not view.final_obligations:
        return replace(view, phase="Scored provisionally: best premises only")
    phase = f"{len(view.final_sentences)} of {view.n_sentences} sentences final"
    if view.n_obligations:
        phase += f", {len(view.final_obligations)} of {view.n_obligations} obligations final"
    return replace(view, phase=phase)


def _with_scores(view: View, scored: Scored) -> View:
    evaluation = scored.of(view.config.scoring.mode)
    return replace(
        view,
        scored=scored,
        explained=_explain(view, scored),
        sentences=evaluation.sentences,
        final_sentences=frozenset(range(len(evaluation.sentences))),
        n_sentences=len(evaluation.sentences),
        obligations=evaluation.obligations,
        final_obligations=frozenset(range(len(evaluation.obligations))),
        n_obligations=len(evaluation.obligations),
        verdicts=evaluation.verdicts,
        obligation_verdicts=evaluation.obligation_verdicts,
        phase="Saving the record" if view.running else view.phase,
    )


def _explain(view: View, scored: Scored) -> Explained | None:
    if view.selection is None:
        return None
    passages = view.selection.passages
    return Explained(
        explain(scored.paper, passages), explain(scored.script, passages), mode_differences(scored.paper, scored.script)
    )
