"""The parts of a shown answer that were made with other settings than the present ones, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ragqa.records.differences import WRITER, differences
from ragqa.records.view import View, reselect
from ragqa.settings.config import Config


@dataclass(frozen=True, slots=True)
class Stale:
    """One part of an answer that was made with other settings: a short label and a sentence."""

    label: str
    words: str
    of_passages: bool = False  # whether it also concerns the list of passages, which else follows the settings


def stale(view: View, settings: Config) -> tuple[Stale, ...]:
    """Every such part, the most important first; () where these settings would give the shown answer.

    For another corpus nothing else is listed, because all passages differ.
    """
    if settings.index != view.config.index:
        words = f"Corpus of this answer: {view.config.index}. Corpus chosen now: {settings.index}."
        return (Stale("other corpus", words, of_passages=True),)
    found = [
        _reranker(view, settings) or _selection(view, settings),
        _candidates(view, settings),
        *_writer(view, settings),
    ]
    if view.best and view.config.scoring.mode != settings.scoring.mode:
        words = f"RePASs mode of this answer: {view.config.scoring.mode}. Mode chosen now: {settings.scoring.mode}."
        found.append(Stale("other mode", words))
    return tuple(one for one in found if one)


def _selection(view: View, settings: Config) -> Stale | None:
    """Whether the settings would now keep other passages than those of the answer."""
    if view.selection is None:
        return None
    current = reselect(view, settings.fusion, settings.filtering, settings.reranking)
    if {one.passage.passage_id for one in current.kept} == {one.passage.passage_id for one in view.selection.kept}:
        return None
    changed = [
        name
        for name, same in (
            ("filter", settings.filtering == view.config.filtering),
            ("weights", settings.fusion == view.config.fusion),
            ("reranker", settings.reranking == view.config.reranking),
        )
        if not same
    ]
    words = f"Passages kept for this answer: {len(view.selection.kept)}. Passages kept now: {len(current.kept)}."
    return Stale(f"earlier {' and '.join(changed) or 'selection'}", words)


def _reranker(view: View, settings: Config) -> Stale | None:
    """Whether another reranker is chosen, whose scores are unknown until the question is asked again."""
    before, now = view.config.reranking.model, settings.reranking.model
    if view.selection is None or before == now or not now:
        return None
    words = f"Reranker of this answer: {before or 'none'}. Reranker chosen now: {now}."
    return Stale("before reranking" if not before else "other reranker", words, of_passages=True)


def _candidates(view: View, settings: Config) -> Stale | None:
    """Whether another number of candidates is chosen, which takes effect only when the question is asked again."""
    before, now = view.config.retrieval.top_k, settings.retrieval.top_k
    if before == now:
        return None
    words = f"Candidates of each ranking: {before}. Candidates asked for now: {now}."
    return Stale("other candidates", words, of_passages=True)


def _writer(view: View, settings: Config) -> list[Stale]:
    if view.asked.given:  # a checked text was not written here
        return []
    rows = [row for row in differences(view.config, settings) if row.part == WRITER]
    by_name = {row.name: row for row in rows}
    if "Generator" in by_name:
        row = by_name["Generator"]
        return [Stale("other generator", f"Generator of this answer: {row.a}. Generator chosen now: {row.b}.")]
    if "Language model" in by_name:
        row = by_name["Language model"]
        return [Stale("other model", f"Model of this answer: {row.a}. Model chosen now: {row.b}.")]
    if rows:
        words = "; ".join(f"{row.name.lower()} {row.a}, now {row.b}" for row in rows)
        return [Stale("other options", f"Options of this answer: {words}.")]
    return []
