"""Which limit of the filter ends the list of passages, and what each would keep by itself, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragqa.settings.config import FilteringConfig
from ragqa.types import Candidate, Drop, Selection

THRESHOLD, MAX_DROP, TOP_K, CUT = "threshold", "max_drop", "top_k", "filter_method"


@dataclass(frozen=True, slots=True)
class Limits:
    """How many of the ``total`` candidates each limit alone would keep, and which of them end the list.

    ``words`` has a line for each limit, by the name of its setting; ``summary`` is one sentence on all three, and what
    another rule than these keeps behind the end, or leaves out before it.
    """

    total: int
    kept: int
    alone: dict[str, int]
    binding: tuple[str, ...]
    words: dict[str, str]
    summary: str


def limits(selection: Selection, filtering: FilteringConfig) -> Limits | None:
    """What ends the list; None where there is no list, or it is a union of several questions' lists."""
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda one: one.rank)
    if not candidates or any(one.drop is Drop.NOT_EVIDENCE for one in candidates):
        return None
    if filtering.method == "expected-f2":
        return _of_cut(selection, candidates, filtering)
    total, rest = len(candidates), candidates[1:]
    below = next((one for one in rest if one.relevance < filtering.threshold), None)
    fallen = next((one for one in rest if filtering.max_drop < 1 and one.fall >= filtering.max_drop), None)
    alone = {
        THRESHOLD: below.rank - 1 if below else total,
        MAX_DROP: fallen.rank - 1 if fallen else total,
        TOP_K: min(filtering.top_k, total),
    }
    end = min(alone.values())
    binding = tuple(name for name, count in alone.items() if count == end < total)
    reasons = {
        THRESHOLD: f"rank {below.rank} has a relevance of {below.relevance:.2f}" if below else "",
        MAX_DROP: f"rank {fallen.rank} falls {fallen.fall:.2f} below the one before" if fallen else "",
        TOP_K: f"there are {total} candidates",
    }
    words = {}
    for name, count in alone.items():
        if name in binding:
            words[name] = f"Ends the list here: {reasons[name]}."
        elif name == MAX_DROP and filtering.max_drop >= 1:
            words[name] = "Off."
        else:
            words[name] = f"By itself it would keep {_of(count, total)}."
    summary = _summary(end, total, binding, reasons, alone) + _holes(selection, end)
    return Limits(total, len(selection.kept), alone, binding, words, summary)


def _holes(selection: Selection, end: int) -> str:
    """What is kept though it lies behind the end of the list, and dropped though it lies before."""
    behind = _ranks(one for one in selection.kept if one.rank > end)
    before = _ranks(one for one in selection.dropped if one.rank <= end)
    return (f" Kept all the same: {behind}." if behind else "") + (
        f" Left out all the same: {before}." if before else ""
    )


def _ranks(candidates: Iterable[Candidate]) -> str:
    by_reason: dict[str, list[str]] = {}
    for one in candidates:
        by_reason.setdefault(_why(one), []).append(f"{one.rank}")
    return "; ".join(f"rank {', '.join(ranks)} ({why})" for why, ranks in by_reason.items())


def _why(one: Candidate) -> str:
    """Its reason without the decision, and without what the filter would have said."""
    return one.explanation.removeprefix("kept: ").removeprefix("dropped: ").partition("; by the filter")[0]


def _of_cut(selection: Selection, candidates: list[Candidate], filtering: FilteringConfig) -> Limits:
    """The same where the learned cut decides: it, or top-k before it."""
    total = len(candidates)
    after = next((one for one in candidates if one.drop is Drop.AFTER_CUT), None)
    name = CUT if after else TOP_K
    kept = after.rank - 1 if after else min(filtering.top_k, total)
    ends = f"ends the list after {kept}"
    words = {CUT: f"Ends the list here: after {kept} of {total}.", TOP_K: "Not reached."}
    if not after:
        words = {CUT: "By itself it would keep more." if kept < total else "Not reached.", TOP_K: "Ends the list here."}
    summary = (
        f"{'Expected F2' if after else 'Top-k'} {ends}: "
        + (after or candidates[-1]).explanation
        + _holes(selection, kept)
    )
    return Limits(total, kept, {name: kept}, (name,) if kept < total else (), words, summary)


def _of(count: int, total: int) -> str:
    return f"all {total}" if count == total else f"{count} of {total}"


_NAMES = {THRESHOLD: "the threshold", MAX_DROP: "max drop", TOP_K: "top-k"}


def _summary(end: int, total: int, binding: tuple[str, ...], reasons: dict[str, str], alone: dict[str, int]) -> str:
    if not binding:
        return f"No limit is reached: all {total} are kept."
    who = " and ".join(_NAMES[name] for name in binding)
    verb = "end" if len(binding) > 1 else "ends"
    others = ", ".join(f"{_NAMES[name]} keeps {_of(alone[name], total)}" for name in alone if name not in binding)
    beside = f" By themselves: {others}." if others else ""
    return f"{who[:1].upper()}{who[1:]} {verb} the list after {end}: {reasons[binding[0]]}.{beside}"


def fall_of(selection: Selection, filtering: FilteringConfig) -> Candidate | None:
    """The first candidate that falls by max drop or more; None where none does, or the rule is not used."""
    fallen = [
        one
        for one in (*selection.kept, *selection.dropped)
        if one.rank > 1 and filtering.max_drop < 1 and one.fall >= filtering.max_drop and filtering.method == "limits"
    ]
    return min(fallen, key=lambda one: one.rank, default=None)
