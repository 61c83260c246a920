"""Measures rankings against gold passages, for each question, by `ir-measures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from ragqa.errors import CorpusError

# As `ir-measures` names them: https://ir-measur.es/en/latest/measures.html
MEASURES = ("R@2", "R@5", "R@10", "R@100", "AP@10", "nDCG@10", "RR@10", "Success@1", "Success@2", "Success@10")
OVER_QUESTIONS = {"AP": "MAP", "RR": "MRR", "Success": "hit rate"}


def measure_run(
    gold: Sequence[frozenset[str]], run: Sequence[Sequence[str]], measures: Sequence[str] = MEASURES
) -> dict[str, list[float]]:
    """Each measure's values, in [0, 1], one per question in the order of the questions.

    ``gold[i]`` holds the ids of the passages that answer question i, ``run[i]`` the ids found for it, best first; both
    have length n_questions. A repeated id in a ranking counts at its first place only, and later ids move up. A
    question without hits has 0 for all measures; gold that no ranking contains counts as missed.

    The definitions are trec_eval's: AP@10 divides by the number of gold passages, even if there are more than ten; the
    ideal ranking of nDCG@10 ends at rank 10, gain 1 per gold passage, discount log2(1 + rank).

    Raises CorpusError if a question has no gold passage, and ValueError if the lengths differ.
    """
    if len(gold) != len(run):
        raise ValueError(f"expected one ranking per question, found {len(run):,} for {len(gold):,} questions")
    bare = [number for number, ids in enumerate(gold, start=1) if not ids]
    if bare:
        raise CorpusError(
            f"expected gold passages for every question, found none for {len(bare):,} of {len(gold):,}, first for "
            f"question {bare[0]:,}; leave these questions out, or check that the index is of the corpus they are about"
        )
    values = {name: [0.0] * len(gold) for name in measures}
    if not gold or not measures:
        return values
    import ir_measures

    qrels = {str(number): dict.fromkeys(sorted(ids), 1) for number, ids in enumerate(gold)}
    scored = {str(number): _scores(ids) for number, ids in enumerate(run)}
    names = {ir_measures.parse_measure(name): name for name in measures}
    for metric in ir_measures.iter_calc(list(names), qrels, scored):
        values[names[metric.measure]][int(metric.query_id)] = float(metric.value)
    return values


def _scores(ids: Sequence[str]) -> dict[str, float]:
    """Minus the first rank of each id. All scores differ, so libraries have no ties to break."""
    scores: dict[str, float] = {}
    for rank, passage_id in enumerate(ids, start=1):
        scores.setdefault(passage_id, -float(rank))
    return scores


def means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean of each measure over the questions; 0 without questions."""
    return {name: fmean(of_questions) if of_questions else 0.0 for name, of_questions in values.items()}


def display_name(measure: str) -> str:
    """The name of the mean over questions: ``"AP@10"`` -> ``"MAP@10"``, ``"Success@1"`` -> ``"hit rate@1"``."""
    name, at, cutoff = measure.partition("@")
    return OVER_QUESTIONS.get(name, name) + at + cutoff
