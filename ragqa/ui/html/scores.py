"""RePASs -> HTML: the score line, gauges, sentences, obligations, every pair. Pure, like `ragqa.ui.html.render`.

A number that can still change is marked in words ("so far", "at least") and by a dashed edge, never by colour alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from markupsafe import Markup

from ragqa.records.words import QUOTED, counted_mark
from ragqa.scoring.repass.attribution import COPY_NOTE, MIN_RUN
from ragqa.scoring.repass.explanation import Explanation, PassageStep
from ragqa.types import Passage
from ragqa.types.events.scoring import Relevance
from ragqa.types.scores import (
    Breakdown,
    ObligationScore,
    ObligationVerdict,
    RePASs,
    SentenceScore,
    SentenceVerdict,
)
from ragqa.ui.html.cards import obligation_card
from ragqa.ui.html.render import mark_of
from ragqa.ui.html.template import ENVIRONMENT, Templates
from ragqa.ui.state.terms import term_html

_TEMPLATES: Final = Templates("scores.html")
_KINDS = {"entailment": "good", "contradiction": "bad"}
ENVIRONMENT.globals["term_of"] = lambda *values: Markup(term_html(*values))  # noqa: S704


def gauges_html(repass: RePASs, *, final: bool, mode: str, explanation: Explanation | None = None) -> str:
    """The three parts as bars, the composite, and the formula with its numbers.

    ``explanation`` adds how much of C the verdicts reject, how much of the answer is copied, and how each part
    came about.
    """
    formula = (
        f"({repass.entailment:.3f} − {repass.contradiction:.3f} + {repass.obligation_coverage:.3f} + 1) / 3 = "
        f"{repass.composite:.3f}"
    )
    if explanation:
        formula = explanation.arithmetic.formula.replace(" - ", " − ")
    doubted = explanation.doubted if explanation else 0.0
    return _TEMPLATES.gauges(repass, _parts(repass), final, mode, formula, explanation, (MIN_RUN, COPY_NOTE), doubted)


def _parts(repass: RePASs) -> tuple[tuple[str, str, float, str], ...]:
    """(short name, full name, value, colour) of E, C and OC."""
    return (
        ("E", "E, backed by sources", repass.entailment, "good"),
        ("C", "C, in conflict", repass.contradiction, "bad"),
        ("OC", "OC, obligations covered", repass.obligation_coverage, "good"),
    )


# Answer sentences and obligations -----------------------------------------------------------------------------------


def trust_html(
    marks: Iterable[tuple[str, str]], facts: Sequence[str], repass: RePASs | None, *, final: bool, mode: str
) -> str:
    """One line on trust: the number of sentences with each mark, then ``facts``; opened, the parts of RePASs.

    ``repass`` is None for a refusal, which is not scored. Where every sentence is quoted, the opened line says what
    RePASs does not say of quotations.
    """
    found = Counter(marks)
    counts = [(kind, counted_mark(word, n)) for (word, kind), n in found.items()]
    is_quoted = {kind for _, kind in found} == {QUOTED}
    return _TEMPLATES.trust(counts, facts, repass, _parts(repass) if repass else (), final, mode, is_quoted)


def relevance_html(relevance: Relevance) -> str:
    """The answer relevance, one line for each part of the question."""
    return _TEMPLATES.list([f"{part.text} {part.value:.2f}: {part.reason}" for part in relevance.parts])


def sentence_table_html(
    scores: Sequence[SentenceScore], verdicts: Sequence[SentenceVerdict] = (), final: Collection[int] | None = None
) -> str:
    """One row per answer sentence with its verdict and raw scores; choosing it shows the sentence's card.

    ``final`` are the indexes whose scores will not change (None: all). Without ``verdicts`` raw ones are shown.
    """
    judged, rows = {one.index: one for one in verdicts}, []
    for score in scores:
        verdict, is_final = judged.get(score.index), final is None or score.index in final
        found = verdict.verdict if verdict else score.verdict
        rows.append((score, verdict, *mark_of(found, verdict), is_final))
    return _TEMPLATES.sentences(rows)


def obligations_html(
    obligations: Sequence[ObligationScore],
    passages: Sequence[Passage],
    threshold: float,
    *,
    final: Collection[int] | None = None,
    explanation: Explanation | None = None,
    verdicts: Sequence[ObligationVerdict] = (),
) -> str:
    """One row per obligation: whether it is covered, by which answer sentence, and its margin to the threshold.

    Choosing it shows the obligation in its passage. ``final`` as in `sentence_table_html`; ``explanation`` adds the
    second best answer sentence, ``verdicts`` the missing words of an obligation that is covered in part.
    """
    runners_up, judged, rows = explanation.runners_up if explanation else (), {one.index: one for one in verdicts}, []
    for score in obligations:
        verdict, is_final = judged.get(score.index), final is None or score.index in final
        runner_up = runners_up[score.index] if runners_up else None
        card = obligation_card(score, verdict, passages, threshold, runner_up) if is_final else ""
        rows.append((score, verdict, is_final, card))
    return _TEMPLATES.obligations(rows)


# Pairs --------------------------------------------------------------------------------------------------------------


def pairs_html(evaluation: Breakdown, passages: Sequence[Passage], kind: str) -> str:
    """P(entailment) or P(contradiction) of every pair: source sentences as rows, answer sentences as columns.

    ``kind`` is ``"entailment"`` or ``"contradiction"``. A cell that the verdict rejects is hatched. A cell
    shows the source sentence in its passage.
    """
    matrix, doubted = _matrix(evaluation, kind), doubted_cells(evaluation, kind)
    return _TEMPLATES.pairs(evaluation, passages, kind, _KINDS[kind], matrix, doubted)


def doubted_cells(evaluation: Breakdown, kind: str) -> set[tuple[int, int]]:
    """(row, column) of the probabilities of this kind that reach the threshold but are rejected by the verdicts."""
    matrix = _matrix(evaluation, kind)
    cells = {(row, one.index) for one in evaluation.verdicts for row in one.doubted}
    return {(row, column) for row, column in cells if matrix[row][column] >= evaluation.verdict_threshold}


def _matrix(evaluation: Breakdown, kind: str) -> tuple[tuple[float, ...], ...]:
    return evaluation.entailment_matrix if kind == "entailment" else evaluation.contradiction_matrix


# How the numbers came about -----------------------------------------------------------------------------------------


def modes_html(paper: Breakdown, script: Breakdown, differences: Sequence[str] = ()) -> str:
    """Both definitions side by side, with their differences for this answer."""
    return _TEMPLATES.modes((paper, script), differences)


def growth_html(growth: Sequence[PassageStep]) -> str:
    """The chart beside it in words: E and C with the best passage alone and with all passages."""
    if not growth:
        return _TEMPLATES.fine("No passage was kept, so there is nothing to compare the answer with.")
    first, last = growth[0], growth[-1]
    words = f"With the best passage alone E is {first.entailment:.3f} and C {first.contradiction:.3f}"
    if len(growth) == 1:
        return _TEMPLATES.fine(words + "; it is the only one kept.")
    words += f"; with all {last.k} kept, E is {last.entailment:.3f} and C {last.contradiction:.3f}"
    return _TEMPLATES.fine(
        f"{words}. Both are maxima over the source sentences, so each passage more can only raise them: a longer list "
        "of passages finds more contradiction in the same answer."
    )


def provenance_html(facts: Sequence[tuple[str, str]]) -> str:
    """The models, definitions and thresholds behind the scores, as (name, value), one per line."""
    return _TEMPLATES.list([f"{what}: {value}" for what, value in facts])
