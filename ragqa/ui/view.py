"""What the page knows about one question, and how each event adds to it. Pure: no streamlit here.

A `View` is made event by event while a question runs, or at once from a stored record; the page draws either alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ragqa.config import Config, FilteringConfig, FusionConfig
from ragqa.events import (
    Answered,
    Event,
    Fused,
    ObligationScored,
    Recorded,
    Retrieved,
    Scored,
    Selected,
    SentenceScored,
    Token,
)
from ragqa.filtering import select
from ragqa.fusion import fuse
from ragqa.records import AnswerRecord
from ragqa.types import Answer, ObligationScore, Ranking, RePASs, Selection, SentenceScore

__all__ = ["View", "advance", "from_record", "provisional", "reselect"]


@dataclass(frozen=True, slots=True)
class View:
    """Everything shown for one question; a field is empty until its stage is done."""

    question: str
    config: Config
    phase: str = "Starting"
    rankings: tuple[Ranking, ...] = ()
    selection: Selection | None = None  # what the answer was written from
    text: str = ""  # the raw answer so far
    answer: Answer | None = None
    sentences: tuple[SentenceScore, ...] = ()  # final ones so far, in order
    n_sentences: int = 0
    obligations: tuple[ObligationScore, ...] = ()
    n_obligations: int = 0
    scored: Scored | None = None
    record_id: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    running: bool = True


def advance(view: View, event: Event) -> View:
    """The view after this event."""
    match event:
        case Retrieved(rankings):
            counts = " + ".join(str(len(ranking.hits)) for ranking in rankings)
            return replace(view, rankings=rankings, phase=f"Retrieved {counts} passages")
        case Fused(ranking):
            return replace(view, phase=f"Fused into {len(ranking.hits)} candidates")
        case Selected(selection):
            kept, total = len(selection.kept), len(selection.kept) + len(selection.dropped)
            return replace(view, selection=selection, phase=f"Kept {kept} of {total}, writing the answer")
        case Token(text):
            return replace(view, text=view.text + text)
        case Answered(answer):
            return replace(view, answer=answer, n_sentences=len(answer.sentences), phase="Scoring the answer")
        case SentenceScored(score, done, total):
            phase = f"Scored {done} of {total} answer sentences"
            return replace(view, sentences=(*view.sentences, score), n_sentences=total, phase=phase)
        case ObligationScored(score, done, total):
            phase = f"Checked {done} of {total} obligations"
            return replace(view, obligations=(*view.obligations, score), n_obligations=total, phase=phase)
        case Scored():
            return _with_scores(view, event)
        case Recorded(record_id, seconds):
            return replace(view, record_id=record_id, seconds=seconds, running=False, phase="Done")


def from_record(record: AnswerRecord) -> View:
    """The view of a stored answer, as it was when it was recorded."""
    config = Config(
        index=record.index,
        retrieval=record.retrieval,
        fusion=record.fusion,
        filtering=record.filtering,
        generation=record.generation,
        scoring=record.scoring,
    )
    view = View(record.question.text, config, rankings=record.ranked)
    selection = reselect(view, record.fusion, record.filtering)
    view = replace(
        view,
        selection=selection,
        text=record.answer.raw,
        answer=record.answer,
        seconds=record.seconds,
        record_id=record.record_id,
        error=record.error,
        running=False,
        phase="Done",
    )
    return _with_scores(view, record.scored) if record.scored else view


def reselect(view: View, fusion: FusionConfig, filtering: FilteringConfig) -> Selection:
    """What these settings would keep of the passages already retrieved; nothing is retrieved or generated."""
    return select(fuse(view.rankings, fusion), filtering)


def provisional(view: View) -> RePASs | None:
    """The three parts over what is scored so far; None before the first sentence. Coverage is 0 until it is checked."""
    if not view.sentences:
        return None
    n_sentences, n_obligations = len(view.sentences), len(view.obligations)
    return RePASs(
        entailment=sum(score.entailment for score in view.sentences) / n_sentences,
        contradiction=sum(score.contradiction for score in view.sentences) / n_sentences,
        obligation_coverage=sum(score.covered for score in view.obligations) / n_obligations if n_obligations else 0.0,
    )


def _with_scores(view: View, scored: Scored) -> View:
    evaluation = scored.of(view.config.scoring.mode)
    return replace(
        view,
        scored=scored,
        sentences=evaluation.sentences,
        n_sentences=len(evaluation.sentences),
        obligations=evaluation.obligations,
        n_obligations=len(evaluation.obligations),
        phase="Saving the record",
    )
