"""The limits of the filter in words: which one ends the list, and what each alone would keep. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragqa.types import Candidate, Limit, Selection


@dataclass(frozen=True, slots=True)
class LimitTexts:
    """How many of the ``total`` candidates each limit alone would keep, and which limits end the list.

    ``words`` has a line for each limit, by the name of its setting. ``summary`` describes all limits, and the passages
    that other rules keep after the end of the list or drop before it.
    """

    total: int
    kept: int
    alone: dict[str, int]
    binding: tuple[str, ...]
    words: dict[str, str]
    summary: str


def limits(selection: Selection) -> LimitTexts | None:
    """The limits of this selection in words; None without limits, as for the union of a fan-out."""
    if not selection.limits:
        return None
    total = len(selection.kept) + len(selection.dropped)
    return LimitTexts(
        total,
        len(selection.kept),
        {one.setting: one.keeps for one in selection.limits},
        tuple(one.setting for one in selection.limits if one.ends),
        {one.setting: _words(one, total) for one in selection.limits},
        _summary(selection.limits, total) + _holes(selection, min(one.keeps for one in selection.limits)),
    )


def _words(limit: Limit, total: int) -> str:
    if limit.ends:
        return f"Ends the list here: {limit.reason.removesuffix('.')}."
    return f"Alone it keeps {_of(limit.keeps, total)}." if limit.label else "Off."


def _holes(selection: Selection, end: int) -> str:
    """The passages that are kept after the end of the list, and those dropped before it."""
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
    """The candidate's reason without the decision and without the filter's own reason."""
    return one.explanation.removeprefix("kept: ").removeprefix("dropped: ").partition("; by the filter")[0]


def _of(count: int, total: int) -> str:
    return f"all {total}" if count == total else f"{count} of {total}"


def _summary(rules: Sequence[Limit], total: int) -> str:
    binding = [one for one in rules if one.ends]
    if not binding:
        return f"No limit reached: all {total} kept."
    who = " and ".join(one.name for one in binding)
    others = ", ".join(f"{one.name} {_of(one.keeps, total)}" for one in rules if not one.ends)
    beside = f" The others alone would keep: {others}." if others else ""
    return f"List ends at rank {binding[0].keeps}, by {who}: {binding[0].reason}.{beside}"
