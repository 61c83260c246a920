"""RePASs -> HTML: gauges, the sentence table, the obligation ledger. Pure, like `ragqa.ui.render`.

A number that can still change says so in words ("so far", "at least") and by a dashed edge, never by colour alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from ragqa.repass.attribution import COPY_NOTE, MIN_RUN, Copied, citation_flag, citation_words
from ragqa.repass.explanation import Explanation, PassageStep, RunnerUp
from ragqa.types import (
    Breakdown,
    CitationCheck,
    CitationStatus,
    Cover,
    ObligationScore,
    ObligationVerdict,
    Passage,
    Premise,
    RePASs,
    SentenceScore,
    SentenceVerdict,
)
from ragqa.ui.render import VERDICT_CLASS, badge_html, marked_html, said_html, text_html
from ragqa.ui.render_verdicts import COVER_CLASS, covered_html, decided_html, in_passage_html, shown_places, where_html


def gauges_html(repass: RePASs, *, final: bool, mode: str, explanation: Explanation | None = None) -> str:
    """The three parts as bars, the composite, and the formula with its numbers.

    ``explanation`` adds how much of C the verdicts do not believe, how much of the answer is copied, and how each part
    came about.
    """
    values = (
        ("Entailment E", repass.entailment, "good"),
        ("Contradiction C", repass.contradiction, "bad"),
        ("Obligation coverage OC", repass.obligation_coverage, "good"),
    )
    bars = "".join(_gauge(label, value, kind, final=final) for label, value, kind in values)
    state = "final" if final else badge_html("provisional: not all is compared", "mixed")
    written = (
        f"({repass.entailment:.3f} − {repass.contradiction:.3f} + {repass.obligation_coverage:.3f} + 1) / 3 = "
        f"{repass.composite:.3f}"
    )
    below = ""
    if explanation:
        written = explanation.arithmetic.formula.replace(" - ", " − ")
        doubt = f'<p class="rq-doubt">{text_html(explanation.doubt)}</p>' if explanation.doubt else ""
        below = doubt + _copied(explanation.copied) + _parts(explanation.arithmetic.parts)
    return (
        f'<div class="rq-gauges{"" if final else " rq-provisional"}"><div class="rq-composite">'
        f'<span class="rq-big">{repass.composite:.3f}</span>'
        f"<span>RePASs, {escape(mode)} mode<br>{state}</span></div>{bars}</div>"
        f'<div class="rq-formula">(E − C + OC + 1) / 3 = {escape(written)}</div>{below}'
    )


def _copied(copied: Copied) -> str:
    """How much of the answer is copied, and what that takes from the composite above it."""
    if not copied.n_words:
        return ""
    return (
        f'<p class="rq-copied"><b>Copied: {copied.share:.0%}</b> of the answer’s words ({copied.n_copied:,} of '
        f"{copied.n_words:,}) stand word for word in a passage, in runs of {MIN_RUN} or more or as a whole sentence. "
        f"{text_html(COPY_NOTE)}</p>"
    )


def _parts(parts: Sequence[str]) -> str:
    """How E, C and OC came about, a line each."""
    return f'<ul class="rq-fine rq-list">{"".join(f"<li>{text_html(part)}</li>" for part in parts)}</ul>'


def _gauge(label: str, value: float, kind: str, *, final: bool) -> str:
    width = 100 * min(max(value, 0.0), 1.0)
    state = "" if final else " (provisional)"
    return (
        f'<div class="rq-gauge" role="meter" aria-label="{label}{state}" aria-valuemin="0" aria-valuemax="1" '
        f'aria-valuenow="{value:.3f}"><div class="rq-gauge-label"><span>{label}{state}</span><b>{value:.3f}</b></div>'
        f'<div class="rq-track"><div class="rq-fill rq-fill-{kind}" style="width:{width:.1f}%"></div></div></div>'
    )


# Answer sentences ---------------------------------------------------------------------------------------------------


def sentence_table_html(
    scores: Sequence[SentenceScore],
    passages: Sequence[Passage],
    threshold: float,
    *,
    final: Collection[int] | None = None,
    explanation: Explanation | None = None,
    verdicts: Sequence[SentenceVerdict] = (),
    premises: Sequence[Premise] = (),
) -> str:
    """One row per answer sentence; opened, it shows the premises that decided it, marked in their passages.

    ``final`` are the indexes whose scores will not change (None: all); the others name their premise without its
    passage, so that the rows are cheap to draw again. ``explanation`` adds what the check made of
    the citations, and the share copied. With ``verdicts``, whose positions are of ``premises``, those are told first
    and the raw scores after them; without, the raw verdicts are.
    """
    judged = {one.index: one for one in verdicts}
    rows = "".join(
        _sentence_row(score, judged.get(score.index), passages, premises, threshold, explanation)
        if final is None or score.index in final
        else _provisional_sentence_row(score, judged.get(score.index))
        for score in scores
    )
    return f'<div class="rq-rows">{rows}</div>'


def _sentence_row(
    score: SentenceScore,
    judged: SentenceVerdict | None,
    passages: Sequence[Passage],
    premises: Sequence[Premise],
    threshold: float,
    explanation: Explanation | None,
) -> str:
    told = [premises[place] for place in shown_places(judged)] if judged and premises else []
    deciding = [
        _deciding("Entailment", score.entailment, score.entailment_premise, passages, threshold, "good", told),
        _deciding("Contradiction", score.contradiction, score.contradiction_premise, passages, threshold, "bad", told),
    ]
    if score.entailment < threshold and score.contradiction >= threshold:
        deciding.reverse()
    flag, inside = "", ""
    if explanation:
        check, copied = explanation.citations[score.index], explanation.copied.per_sentence[score.index]
        flag = _flag_html(check)
        inside = f"<p>{text_html(citation_words(check))} Copied from the passages: {copied:.0%} of its words.</p>"
    if judged:
        raw = badge_html(score.verdict, VERDICT_CLASS[score.verdict])
        inside = decided_html(judged, premises, passages, threshold) + inside
        inside += f'<div class="rq-raw"><p><b>RePASs raw:</b> {raw}</p>{"".join(deciding)}</div>'
    else:
        inside += "".join(deciding)
    return (
        f'<details class="rq-row"><summary><span class="rq-cells">{_verdict_badge(score, judged)}'
        f'<span class="rq-num">{"RePASs raw: " if judged else ""}E {score.entailment:.3f}</span>'
        f'<span class="rq-num">C {score.contradiction:.3f}</span>'
        f"{flag}</span>{_sentence_cell(score, judged)}</summary>"
        f'<div class="rq-inside">{inside}</div></details>'
    )


def _verdict_badge(score: SentenceScore, judged: SentenceVerdict | None, so_far: str = "") -> str:
    verdict = judged.verdict if judged else score.verdict
    return badge_html(f"{so_far}{verdict}", VERDICT_CLASS[verdict])


def _sentence_cell(score: SentenceScore, judged: SentenceVerdict | None) -> str:
    return f"<span>{score.index + 1}. {said_html(score.sentence.text, judged)}{_reason(judged)}</span>"


def _reason(judged: SentenceVerdict | ObligationVerdict | None) -> str:
    return f'<span class="rq-reason">{text_html(judged.reason)}</span>' if judged else ""


def _provisional_sentence_row(score: SentenceScore, judged: SentenceVerdict | None) -> str:
    badge = _verdict_badge(score, judged, "so far ")
    found = (("Entailment", score.entailment_premise), ("Contradiction", score.contradiction_premise))
    premises = "".join(
        f"<p>{label}, highest so far against: {text_html(premise.text)}</p>" for label, premise in found if premise
    )
    return (
        f'<details class="rq-row rq-provisional"><summary><span class="rq-cells">{badge}'
        f'<span class="rq-num">E at least {score.entailment:.3f}</span>'
        f'<span class="rq-num">C at least {score.contradiction:.3f}</span></span>'
        f"{_sentence_cell(score, judged)}</summary>"
        f'<div class="rq-inside">{premises}<p>More source sentences are still to be compared.</p></div></details>'
    )


def _flag_html(check: CitationCheck) -> str:
    flag = citation_flag(check)
    kind = "plain" if check.status is CitationStatus.ADDED else "mixed"
    return badge_html(f"⚑ {flag}", kind) if flag else ""


def _deciding(
    label: str,
    value: float,
    premise: Premise | None,
    passages: Sequence[Passage],
    threshold: float,
    kind: str,
    told: Collection[Premise],
) -> str:
    """The raw maximum and the source sentence that reached it, in its passage unless it was ``told`` already."""
    if premise is None:
        return f"<p>{label}: there was no source sentence to compare with.</p>"
    reached = "at or above" if value >= threshold else "below"
    mark = kind if value >= threshold else "plain"  # a premise that decides nothing is pointed at, not coloured
    words = f"<p><b>{label} {value:.3f}</b>, {reached} {threshold:.2f}; highest against"
    if premise in told:
        return f"{words} the source sentence above, of [{premise.passage_index + 1}].</p>"
    return f"{words} {where_html(premise, passages)}:</p>{in_passage_html(premise, passages, mark)}"


# Obligations --------------------------------------------------------------------------------------------------------


def ledger_html(
    obligations: Sequence[ObligationScore],
    passages: Sequence[Passage],
    threshold: float,
    *,
    final: Collection[int] | None = None,
    explanation: Explanation | None = None,
    verdicts: Sequence[ObligationVerdict] = (),
) -> str:
    """One row per obligation: covered or not, by which answer sentence, with what margin to the threshold.

    ``final`` as in `sentence_table_html`; ``explanation`` adds the next best answer sentence, ``verdicts`` what is
    missing where an obligation is covered in part.
    """
    runners_up = explanation.runners_up if explanation else ()
    judged = {one.index: one for one in verdicts}
    rows = "".join(
        _obligation_row(o, judged.get(o.index), passages, threshold, runners_up[o.index] if runners_up else None)
        if final is None or o.index in final
        else _provisional_obligation_row(o, judged.get(o.index))
        for o in obligations
    )
    return f'<div class="rq-rows">{rows}</div>'


def _obligation_row(
    score: ObligationScore,
    judged: ObligationVerdict | None,
    passages: Sequence[Passage],
    threshold: float,
    runner_up: RunnerUp | None,
) -> str:
    if score.answer_index is None:
        by, nearest = "<p>No answer sentence was compared with this obligation in this mode.</p>", "nothing compared"
    else:
        verb = "Covered by" if score.covered else "Best near miss:"
        by = (
            f"<p><b>{verb}</b> answer sentence {score.answer_index + 1}; P(entailment) {score.best:.3f} is "
            f"{abs(score.margin):.3f} {'above' if score.margin > 0 else 'short of'} the threshold {threshold:.2f}:</p>"
            f'<div class="rq-passage">{text_html(score.answer_text)}</div>'
        )
        nearest = f"{'by' if score.covered else 'nearest'} sentence {score.answer_index + 1}"
    if runner_up:
        by += f"<p>Next best: answer sentence {runner_up.answer_index + 1} with {runner_up.probability:.3f}.</p>"
    missing = judged.missing if judged else ()
    obligation = (
        f"<p>The obligation: {where_html(score.obligation, passages)}:</p>"
        f"{in_passage_html(score.obligation, passages, 'good', missing, 'mixed')}"
    )
    inside = by + obligation
    if judged:
        inside = f'{covered_html(judged)}{obligation}<div class="rq-raw"><p><b>RePASs raw</b></p>{by}</div>'
    return (
        f'<details class="rq-row"><summary><span class="rq-cells">{_cover_badge(score, judged)}'
        f'<span class="rq-num">{"raw: " if judged else ""}best {score.best:.3f}</span>'
        f'<span class="rq-num">margin {score.margin:+.3f}</span>'
        f'<span class="rq-num">{nearest}</span></span>'
        f"{_obligation_cell(score, judged)}</summary>"
        f'<div class="rq-inside">{inside}</div></details>'
    )


def _cover_badge(score: ObligationScore, judged: ObligationVerdict | None, so_far: str = "") -> str:
    cover = judged.cover if judged else Cover.COVERED if score.covered else Cover.NOT_COVERED
    return badge_html(f"{so_far}{cover}", COVER_CLASS[cover])


def _obligation_cell(score: ObligationScore, judged: ObligationVerdict | None) -> str:
    words = marked_html(score.obligation.text, judged.missing if judged else (), "mixed")
    return f"<span>{words}{_reason(judged)}</span>"


def _provisional_obligation_row(score: ObligationScore, judged: ObligationVerdict | None) -> str:
    return (
        f'<details class="rq-row rq-provisional"><summary><span class="rq-cells">'
        f"{_cover_badge(score, judged, 'so far ')}"
        f'<span class="rq-num">best so far {score.best:.3f}</span></span>'
        f"{_obligation_cell(score, judged)}</summary>"
        '<div class="rq-inside"><p>More answer sentences are still to be compared.</p></div></details>'
    )


def modes_html(paper: Breakdown, script: Breakdown, differences: Sequence[str] = ()) -> str:
    """Both definitions side by side, with what they treat differently in this answer."""
    rows = "".join(
        f"<tr><td>{text_html(e.mode)}</td><td>{e.repass.entailment:.3f}</td><td>{e.repass.contradiction:.3f}</td>"
        f"<td>{e.repass.obligation_coverage:.3f}</td><td>{e.repass.composite:.3f}</td></tr>"
        for e in (paper, script)
    )
    return (
        '<table class="rq-table rq-small"><thead><tr><th scope="col">mode</th><th scope="col">E</th>'
        '<th scope="col">C</th><th scope="col">OC</th><th scope="col">RePASs</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>" + (_list(differences) if differences else "")
    )


def growth_html(growth: Sequence[PassageStep]) -> str:
    """In words what the chart beside it draws: E and C with the best passage alone, half way and with all."""
    if not growth:
        return _fine("No passage was kept, so there is nothing to compare the answer with.")
    first, last = growth[0], growth[-1]
    words = f"With the best passage alone E is {first.entailment:.3f} and C {first.contradiction:.3f}"
    if len(growth) == 1:
        return _fine(words + "; it is the only one kept.")
    words += f"; with all {last.k} kept, E is {last.entailment:.3f} and C {last.contradiction:.3f}"
    return _fine(
        f"{words}. Both are maxima over the source sentences, so each passage more can only raise them: a longer list "
        "of passages finds more contradiction in the same answer."
    )


def provenance_html(facts: Sequence[tuple[str, str]]) -> str:
    """(what, value) of everything the numbers rest on, one a line."""
    return _list([f"{what}: {value}" for what, value in facts])


def _list(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{text_html(line)}</li>" for line in lines)
    return f'<ul class="rq-fine rq-list">{items}</ul>'


def _fine(text: str) -> str:
    return f'<p class="rq-fine">{text_html(text)}</p>'
