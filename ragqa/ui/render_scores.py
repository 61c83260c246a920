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
    ObligationScore,
    Passage,
    Premise,
    RePASs,
    SentenceScore,
)
from ragqa.ui.render import VERDICT_CLASS, badge_html, place, text_html


def gauges_html(repass: RePASs, *, final: bool, mode: str, explanation: Explanation | None = None) -> str:
    """The three parts as bars, the composite, and the formula with its numbers.

    ``explanation`` adds how each part came about, and how much of the answer is copied.
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
        below = _copied(explanation.copied) + _parts(explanation.arithmetic.parts)
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
) -> str:
    """One row per answer sentence; opened, it shows the premises that decided it, marked in their passages.

    ``final`` are the indexes whose scores will not change (None: all); the others name their premise without its
    passage, so that the rows are cheap to draw again. ``explanation`` adds what the check made of
    the citations, and the share copied.
    """
    rows = "".join(
        _sentence_row(score, passages, threshold, explanation)
        if final is None or score.index in final
        else _provisional_sentence_row(score)
        for score in scores
    )
    return f'<div class="rq-rows">{rows}</div>'


def _sentence_row(
    score: SentenceScore, passages: Sequence[Passage], threshold: float, explanation: Explanation | None
) -> str:
    deciding = [
        _deciding("Entailment", score.entailment, score.entailment_premise, passages, threshold, "good"),
        _deciding("Contradiction", score.contradiction, score.contradiction_premise, passages, threshold, "bad"),
    ]
    if score.entailment < threshold and score.contradiction >= threshold:
        deciding.reverse()
    flag, inside = "", ""
    if explanation:
        check, copied = explanation.citations[score.index], explanation.copied.per_sentence[score.index]
        flag = _flag_html(check)
        inside = f"<p>{text_html(citation_words(check))} Copied from the passages: {copied:.0%} of its words.</p>"
    return (
        f'<details class="rq-row"><summary><span class="rq-cells">'
        f"{badge_html(score.verdict, VERDICT_CLASS[score.verdict])}"
        f'<span class="rq-num">E {score.entailment:.3f}</span><span class="rq-num">C {score.contradiction:.3f}</span>'
        f"{flag}</span><span>{score.index + 1}. {text_html(score.sentence.text)}</span></summary>"
        f'<div class="rq-inside">{inside}{"".join(deciding)}</div></details>'
    )


def _provisional_sentence_row(score: SentenceScore) -> str:
    badge = badge_html(f"so far {score.verdict}", VERDICT_CLASS[score.verdict])
    found = (("Entailment", score.entailment_premise), ("Contradiction", score.contradiction_premise))
    premises = "".join(
        f"<p>{label}, highest so far against: {text_html(premise.text)}</p>" for label, premise in found if premise
    )
    return (
        f'<details class="rq-row rq-provisional"><summary><span class="rq-cells">{badge}'
        f'<span class="rq-num">E at least {score.entailment:.3f}</span>'
        f'<span class="rq-num">C at least {score.contradiction:.3f}</span></span>'
        f"<span>{score.index + 1}. {text_html(score.sentence.text)}</span></summary>"
        f'<div class="rq-inside">{premises}<p>More source sentences are still to be compared.</p></div></details>'
    )


def _flag_html(check: CitationCheck) -> str:
    flag = citation_flag(check)
    kind = "plain" if check.status is CitationStatus.ADDED else "mixed"
    return badge_html(f"⚑ {flag}", kind) if flag else ""


def _deciding(
    label: str, value: float, premise: Premise | None, passages: Sequence[Passage], threshold: float, kind: str
) -> str:
    if premise is None:
        return f"<p>{label}: there was no source sentence to compare with.</p>"
    reached = "at or above" if value >= threshold else "below"
    mark = kind if value >= threshold else "plain"  # a premise that decides nothing is pointed at, not coloured
    return (
        f"<p><b>{label} {value:.3f}</b>, {reached} {threshold:.2f}; highest against "
        f"{_where(premise, passages)}:</p>{_marked(premise, passages, mark)}"
    )


def _where(premise: Premise, passages: Sequence[Passage]) -> str:
    name = escape(place(passages[premise.passage_index]))
    return f"characters {premise.start} to {premise.end} of [{premise.passage_index + 1}] {name}"


def _marked(premise: Premise, passages: Sequence[Passage], kind: str) -> str:
    """The premise's passage with the premise highlighted."""
    text = passages[premise.passage_index].text
    before, inside, after = text[: premise.start], text[premise.start : premise.end], text[premise.end :]
    mark = f'<mark class="rq-mark-{kind}">{text_html(inside)}</mark>'
    return f'<div class="rq-passage" tabindex="0">{text_html(before)}{mark}{text_html(after)}</div>'


# Obligations --------------------------------------------------------------------------------------------------------


def ledger_html(
    obligations: Sequence[ObligationScore],
    passages: Sequence[Passage],
    threshold: float,
    *,
    final: Collection[int] | None = None,
    explanation: Explanation | None = None,
) -> str:
    """One row per obligation: covered or not, by which answer sentence, with what margin to the threshold.

    ``final`` as in `sentence_table_html`; ``explanation`` adds the next best answer sentence.
    """
    runners_up = explanation.runners_up if explanation else ()
    rows = "".join(
        _obligation_row(o, passages, threshold, runners_up[o.index] if runners_up else None)
        if final is None or o.index in final
        else _provisional_obligation_row(o)
        for o in obligations
    )
    return f'<div class="rq-rows">{rows}</div>'


def _obligation_row(
    score: ObligationScore, passages: Sequence[Passage], threshold: float, runner_up: RunnerUp | None
) -> str:
    badge = badge_html("covered", "good") if score.covered else badge_html("not covered", "mixed")
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
    return (
        f'<details class="rq-row"><summary><span class="rq-cells">{badge}'
        f'<span class="rq-num">best {score.best:.3f}</span>'
        f'<span class="rq-num">margin {score.margin:+.3f}</span>'
        f'<span class="rq-num">{nearest}</span></span>'
        f"<span>{text_html(score.obligation.text)}</span></summary>"
        f'<div class="rq-inside">{by}<p>The obligation: {_where(score.obligation, passages)}:</p>'
        f"{_marked(score.obligation, passages, 'good')}</div></details>"
    )


def _provisional_obligation_row(score: ObligationScore) -> str:
    badge = badge_html(
        "so far " + ("covered" if score.covered else "not covered"), "good" if score.covered else "mixed"
    )
    return (
        f'<details class="rq-row rq-provisional"><summary><span class="rq-cells">{badge}'
        f'<span class="rq-num">best so far {score.best:.3f}</span></span>'
        f"<span>{text_html(score.obligation.text)}</span></summary>"
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
