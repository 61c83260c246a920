"""Why the two definitions of RePASs give what they give on one answer, from its own numbers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragqa.repass import arithmetic
from ragqa.types import Breakdown, ObligationScore, Premise, ScoringMode

CHANGED = 0.0005  # a probability that moves less than this shows the same three decimals, or nearly
SHOWN_NUMBERS = 8


def mode_differences(paper: Breakdown, script: Breakdown) -> tuple[str, ...]:
    """One sentence for each way in which the modes treat this answer differently; at least one sentence.

    Where a way changes nothing here it is said to change nothing, so that equal numbers are explained too.
    """
    return (
        _source_sentences(paper, script),
        *_obligations(paper, script),
        *_who_may_cover(paper, script),
        *_likeliest_label(script),
        _rounding(script),
    )


def _source_sentences(paper: Breakdown, script: Breakdown) -> str:
    n_paper, n_script = len(paper.premises), len(script.premises)
    joins = "script joins the passages before it splits them into sentences"
    if _keys(paper.premises) == _keys(script.premises):
        return f"{joins}, which changes nothing here: source sentences {n_script:,} in both modes, the same."
    only_script = len(set(_keys(script.premises)) - set(_keys(paper.premises)))
    text = (
        f"{joins}: source sentences {n_script:,} instead of {n_paper:,}, of which {only_script:,} cut otherwise "
        "than in paper (a passage without a full stop runs on into the next)"
    )
    return f"{text}; {_changed_sentences(paper, script)}."


def _keys(premises: Sequence[Premise]) -> list[tuple[int, int, str]]:
    return [(premise.passage_index, premise.start, premise.text) for premise in premises]


def _changed_sentences(paper: Breakdown, script: Breakdown) -> str:
    changed = [
        one.index + 1
        for one, other in zip(paper.sentences, script.sentences, strict=True)
        if abs(one.entailment - other.entailment) > CHANGED or abs(one.contradiction - other.contradiction) > CHANGED
    ]
    if not changed:
        return "no answer sentence's E or C moves by it"
    return f"that moves E or C of {len(changed)} of {len(paper.sentences)} answer sentences (number {_listed(changed)})"


def _obligations(paper: Breakdown, script: Breakdown) -> tuple[str, ...]:
    n_paper, n_script = len(paper.obligations), len(script.obligations)
    if n_paper == n_script:
        return ()
    return (f"obligations found among these source sentences: script {n_script:,}, paper {n_paper:,}.",)


def _who_may_cover(paper: Breakdown, script: Breakdown) -> tuple[str, ...]:
    if not script.sentences or not script.obligations:
        return ()
    n_all, n_may = len(script.sentences), sum(score.is_obligation for score in script.sentences)
    if n_may == n_all:
        return (
            "script lets only obligations cover an obligation, which changes nothing here: all answer sentences are.",
        )
    best = {_key(score): score.best for score in script.obligations}  # above the threshold: lost by another rule
    lost = [
        score.index + 1
        for score in paper.obligations
        if score.covered and best.get(_key(score), 1.0) <= script.coverage_threshold
    ]
    effect = (
        f"obligations that lose their cover by it: number {_listed(lost)}"
        if lost
        else "no obligation loses its cover by it"
    )
    return (
        f"script lets {n_may} of {n_all} answer sentences cover an obligation (those that are obligations); {effect}.",
    )


def _key(score: ObligationScore) -> tuple[int, int, str]:
    premise = score.obligation
    return premise.passage_index, premise.start, premise.text


def _likeliest_label(script: Breakdown) -> tuple[str, ...]:
    """Only below a threshold of 0.5 can a probability exceed it without being the largest of the three."""
    above = sum(score.best > script.coverage_threshold and not score.covered for score in script.obligations)
    if not above:
        return ()
    return (
        f"script wants entailment to be the likeliest label too; obligations that lose their cover by it: {above}.",
    )


def _rounding(script: Breakdown) -> str:
    shape = (len(script.premises), len(script.sentences))
    exact = arithmetic.repass(
        arithmetic.mean_of_maxima(np.array(script.entailment_matrix, float).reshape(shape)),
        arithmetic.mean_of_maxima(np.array(script.contradiction_matrix, float).reshape(shape)),
        arithmetic.obligation_coverage([score.covered for score in script.obligations]),
        ScoringMode.PAPER,
    )
    moved = script.repass.composite - exact.composite
    effect = f"that moves RePASs by {moved:+.7f}" if abs(moved) >= 5e-8 else "that moves nothing here"
    return f"script rounds E, C and OC to 5 decimals: {effect}."


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:SHOWN_NUMBERS])
    return shown + (" …" if len(numbers) > SHOWN_NUMBERS else "")
