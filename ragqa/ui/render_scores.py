"""RePASs -> HTML: gauges, the sentence table, the obligation ledger, both modes. Pure, like `ragqa.ui.render`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ragqa.types import Evaluation, ObligationScore, Passage, Premise, RePASs, SentenceScore
from ragqa.ui.render import VERDICT_CLASS, badge_html, place, text_html

__all__ = ["gauges_html", "ledger_html", "modes_html", "sentence_table_html"]


def gauges_html(repass: RePASs, *, final: bool, mode: str) -> str:
    """The three parts as bars, the composite, and the formula with its numbers."""
    bars = "".join(
        _gauge(label, value, kind)
        for label, value, kind in (
            ("Entailment E", repass.entailment, "good"),
            ("Contradiction C", repass.contradiction, "bad"),
            ("Obligation coverage OC", repass.obligation_coverage, "good"),
        )
    )
    formula = (
        f"(E − C + OC + 1) / 3 = ({repass.entailment:.3f} − {repass.contradiction:.3f} + "
        f"{repass.obligation_coverage:.3f} + 1) / 3 = {repass.composite:.3f}"
    )
    state = "final" if final else "provisional: scoring goes on"
    return (
        f'<div class="rq-gauges"><div class="rq-composite"><span class="rq-big">{repass.composite:.3f}</span>'
        f"<span>RePASs, {escape(mode)} mode<br>{state}</span></div>{bars}</div>"
        f'<div class="rq-formula">{formula}</div>'
    )


def _gauge(label: str, value: float, kind: str) -> str:
    width = 100 * min(max(value, 0.0), 1.0)
    return (
        f'<div class="rq-gauge" role="meter" aria-label="{label}" aria-valuemin="0" aria-valuemax="1" '
        f'aria-valuenow="{value:.3f}"><div class="rq-gauge-label"><span>{label}</span><b>{value:.3f}</b></div>'
        f'<div class="rq-track"><div class="rq-fill rq-fill-{kind}" style="width:{width:.1f}%"></div></div></div>'
    )


def sentence_table_html(scores: Sequence[SentenceScore], passages: Sequence[Passage], threshold: float) -> str:
    """One row per answer sentence; opened, it shows the premises that decided it, marked in their passages."""
    rows = "".join(_sentence_row(score, passages, threshold) for score in scores)
    return f'<div class="rq-rows">{rows}</div>'


def _sentence_row(score: SentenceScore, passages: Sequence[Passage], threshold: float) -> str:
    deciding = [
        _deciding("Entailment", score.entailment, score.entailment_premise, passages, threshold, "good"),
        _deciding("Contradiction", score.contradiction, score.contradiction_premise, passages, threshold, "bad"),
    ]
    if score.entailment < threshold and score.contradiction >= threshold:
        deciding.reverse()
    badge = badge_html(score.verdict, VERDICT_CLASS[score.verdict])
    return (
        f'<details class="rq-row"><summary><span class="rq-cells">{badge}'
        f'<span class="rq-num">E {score.entailment:.3f}</span><span class="rq-num">C {score.contradiction:.3f}</span>'
        f"</span><span>{score.index + 1}. {text_html(score.sentence.text)}</span></summary>"
        f'<div class="rq-inside">{"".join(deciding)}</div></details>'
    )


def _deciding(
    label: str, value: float, premise: Premise | None, passages: Sequence[Passage], threshold: float, kind: str
) -> str:
    if premise is None:
        return f"<p>{label}: there was no source sentence to compare with.</p>"
    reached = "at or above" if value >= threshold else "below"
    mark = kind if value >= threshold else "plain"  # a premise that decides nothing is pointed at, not coloured
    number = premise.passage_index + 1
    return (
        f"<p><b>{label} {value:.3f}</b>, {reached} {threshold:.2f}; highest against this sentence of [{number}] "
        f"{escape(place(passages[premise.passage_index]))}:</p>{_marked(premise, passages, mark)}"
    )


def _marked(premise: Premise, passages: Sequence[Passage], kind: str) -> str:
    """The premise's passage with the premise highlighted."""
    text = passages[premise.passage_index].text
    before, inside, after = text[: premise.start], text[premise.start : premise.end], text[premise.end :]
    mark = f'<mark class="rq-mark-{kind}">{text_html(inside)}</mark>'
    return f'<div class="rq-passage">{text_html(before)}{mark}{text_html(after)}</div>'


def ledger_html(obligations: Sequence[ObligationScore], passages: Sequence[Passage], threshold: float) -> str:
    """One row per obligation: covered or not, by which answer sentence, with what margin to the threshold."""
    return f'<div class="rq-rows">{"".join(_obligation_row(o, passages, threshold) for o in obligations)}</div>'


def _obligation_row(score: ObligationScore, passages: Sequence[Passage], threshold: float) -> str:
    badge = badge_html("covered", "good") if score.covered else badge_html("not covered", "mixed")
    if score.answer_index is None:
        by = "<p>No answer sentence was compared with this obligation in this mode.</p>"
    else:
        verb = "Covered by" if score.covered else "Nearest, but not above the threshold"
        by = (
            f"<p><b>{verb}</b> answer sentence {score.answer_index + 1} (P(entailment) {score.best:.3f}, threshold "
            f'{threshold:.2f}):</p><div class="rq-passage">{text_html(score.answer_text)}</div>'
        )
    premise = score.obligation
    where = f"[{premise.passage_index + 1}] {escape(place(passages[premise.passage_index]))}"
    return (
        f'<details class="rq-row"><summary><span class="rq-cells">{badge}'
        f'<span class="rq-num">best {score.best:.3f}</span>'
        f'<span class="rq-num">margin {score.margin:+.3f}</span></span>'
        f"<span>{text_html(premise.text)}</span></summary>"
        f'<div class="rq-inside">{by}<p>The obligation stands in {where}:</p>'
        f"{_marked(premise, passages, 'good')}</div></details>"
    )


def modes_html(paper: Evaluation, script: Evaluation) -> str:
    """Both definitions side by side, with why they differ."""
    rows = "".join(
        f"<tr><td>{escape(e.mode)}</td><td>{e.repass.entailment:.3f}</td><td>{e.repass.contradiction:.3f}</td>"
        f"<td>{e.repass.obligation_coverage:.3f}</td><td>{e.repass.composite:.3f}</td></tr>"
        for e in (paper, script)
    )
    return (
        '<table class="rq-table rq-small"><thead><tr><th scope="col">mode</th><th scope="col">E</th>'
        '<th scope="col">C</th><th scope="col">OC</th><th scope="col">RePASs</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        '<p class="rq-fine">paper: any answer sentence may cover an obligation. script: only answer sentences that are '
        "themselves obligations may, entailment must also be the likeliest label, and passages are joined before they "
        "are split into sentences.</p>"
    )
