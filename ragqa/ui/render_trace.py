"""How LOC and VRR came to their answer -> HTML: plan, candidates, rounds, tries. Pure, everything escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ragqa.events.generation import (
    BestSoFar,
    CallsPlanned,
    CandidateScored,
    CandidateWritten,
    MissingObligation,
    ObligationAnswered,
    ObligationsInserted,
    RemovedSentence,
    SentencesRemoved,
    TraceEvent,
)
from ragqa.generation.trace_words import plan_words
from ragqa.types import RePASs
from ragqa.ui.render import badge_html, text_html

SHOWN_CHARS = 160  # of a text in a closed row


@dataclass(frozen=True, slots=True)
class PathStep:
    """A point of the score path."""

    step: str
    repass: RePASs


def score_path(trace: Sequence[TraceEvent]) -> tuple[PathStep, ...]:
    """The best candidate and then every step of every round, in order; empty before the first score.

    While candidates come the first point is the best of those so far.
    """
    scored = [event.repass for event in trace if isinstance(event, CandidateScored)]
    if not scored:
        return ()
    path = [PathStep("verify", max(scored, key=lambda repass: repass.composite))]
    for event in trace:
        if isinstance(event, SentencesRemoved):
            path.append(PathStep(f"remove {event.round}", event.repass))
        elif isinstance(event, ObligationsInserted):
            path.append(PathStep(f"insert {event.round}", event.repass))
    return tuple(path)


def best_html(best: BestSoFar) -> str:
    """Which version of the answer is shown while the work goes on."""
    score = f", RePASs {best.repass.composite:.3f}" if best.repass else ""
    return f'<p class="rq-fine">{badge_html("best so far", "mixed")} {escape(best.step)}{score}</p>'


def trace_html(trace: Sequence[TraceEvent]) -> str:
    """The plan, then a row per candidate, step or obligation; opened, a row shows the text and the reasons."""
    plan = "".join(f'<p class="rq-fine">{text_html(plan_words(e))}</p>' for e in trace if isinstance(e, CallsPlanned))
    rows = [*_candidates(trace), *_rounds(trace), *_obligations(trace)]
    return plan + (f'<div class="rq-rows rq-trace">{"".join(rows)}</div>' if rows else "")


def _candidates(trace: Sequence[TraceEvent]) -> list[str]:
    scores = {event.number: event.repass for event in trace if isinstance(event, CandidateScored)}
    best = max(scores, key=lambda number: (scores[number].composite, -number), default=None)
    written = sorted((e for e in trace if isinstance(e, CandidateWritten)), key=lambda event: event.number)
    return [_candidate(event, scores.get(event.number), is_best=event.number == best) for event in written]


def _candidate(event: CandidateWritten, repass: RePASs | None, *, is_best: bool) -> str:
    state, kind = ("best", "good") if is_best else ("", "plain")
    if event.is_refusal:
        state, kind = "refusal", "mixed"
    elif not repass:
        state, kind = ("not scored", "mixed") if event.text else (event.finish_reason, "bad")
    badge = badge_html(f"candidate {event.number}" + (f", {state}" if state else ""), kind)
    return _row(badge, repass, event.text or event.note, _text(event.text) + _note(event.note))


def _rounds(trace: Sequence[TraceEvent]) -> list[str]:
    rows = []
    for event in trace:
        if isinstance(event, SentencesRemoved):
            n = len(event.removed)
            words = f"{n} sentence{'s' * (n != 1)} above the mean contradiction of {event.mean:.3f}"
            inside = _list([_removed(sentence, event.mean) for sentence in event.removed])
            badge = badge_html(f"removal {event.round}", "bad" if n else "plain")
            rows.append(_row(badge, event.repass, words, inside + _note(event.note)))
        elif isinstance(event, ObligationsInserted):
            covered = sum(obligation.covered for obligation in event.obligations)
            words = f"{covered} of {len(event.obligations)} missing obligations covered by the correction"
            inside = _list([_inserted(obligation) for obligation in event.obligations])
            badge = badge_html(f"insertion {event.round}", "good" if covered else "mixed")
            rows.append(_row(badge, event.repass, words, inside + _text(event.text) + _note(event.note)))
    return rows


def _removed(sentence: RemovedSentence, mean: float) -> str:
    why = f"C {sentence.contradiction:.3f} > {mean:.3f}"
    if sentence.passage_index is not None:
        why += f", against [{sentence.passage_index + 1}] {sentence.premise}"
    return f"<del>{text_html(sentence.text)}</del><br>{text_html(why)}"


def _inserted(obligation: MissingObligation) -> str:
    badge = badge_html("covered", "good") if obligation.covered else badge_html("still missing", "mixed")
    numbers = f"{obligation.before:.2f} → {obligation.after:.2f}"
    return f"{badge} {numbers} [{obligation.passage_index + 1}] {text_html(obligation.text)}"


def _obligations(trace: Sequence[TraceEvent]) -> list[str]:
    tries: dict[int, list[ObligationAnswered]] = {}
    for event in trace:
        if isinstance(event, ObligationAnswered):
            tries.setdefault(event.number, []).append(event)
    return [_obligation(tries[number]) for number in sorted(tries)]


def _obligation(tries: Sequence[ObligationAnswered]) -> str:
    best = max(tries, key=lambda one: (one.covered, one.best or 0.0))
    if best.best is None:
        state, kind = "nothing to cover", "plain"
    else:
        state, kind = ("covered", "good") if best.covered else ("not covered", "mixed")
    badge = badge_html(f"obligation {best.number} of {best.total}: {state}", kind)
    lines = [
        f"try {one.attempt}" + ("" if one.best is None else f", {one.best:.2f}") + f": {text_html(one.text or '–')}"
        + _note(one.note)
        for one in tries
    ]  # fmt: skip
    where = f"[{best.passage_index + 1}] {best.obligation}"
    return _row(badge, None, where, f"<p>{text_html(where)}</p>{_list(lines)}")


def _row(badge: str, repass: RePASs | None, words: str, inside: str) -> str:
    numbers = ""
    if repass:
        parts = (
            ("RePASs", repass.composite),
            ("E", repass.entailment),
            ("C", repass.contradiction),
            ("OC", repass.obligation_coverage),
        )
        numbers = "".join(f'<span class="rq-num">{name} {value:.3f}</span>' for name, value in parts)
    shown = words if len(words) <= SHOWN_CHARS else words[:SHOWN_CHARS].rstrip() + "…"
    return (
        f'<details class="rq-row"><summary><span class="rq-cells">{badge}{numbers}</span>'
        f'<span>{text_html(shown)}</span></summary><div class="rq-inside">{inside}</div></details>'
    )


def _list(items: Sequence[str]) -> str:
    """``items`` are HTML already."""
    return f'<ul class="rq-list">{"".join(f"<li>{item}</li>" for item in items)}</ul>' if items else ""


def _text(text: str) -> str:
    return f'<div class="rq-passage">{text_html(text)}</div>' if text else ""


def _note(note: str) -> str:
    return f'<p class="rq-fine">{text_html(note)}</p>' if note else ""
