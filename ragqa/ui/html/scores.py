"""RePASs -> HTML: the score line, gauges, sentences, obligations, every pair. Pure, like `ragqa.ui.html.render`.

A number that can still change says so in words ("so far", "at least") and by a dashed edge, never by colour alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape

from ragqa.scoring.repass.attribution import COPY_NOTE, MIN_RUN, Copied
from ragqa.scoring.repass.explanation import Explanation, PassageStep, counted
from ragqa.types import Passage
from ragqa.types.events.scoring import Relevance
from ragqa.types.scores import (
    Breakdown,
    ObligationScore,
    ObligationVerdict,
    RePASs,
    SentenceScore,
    SentenceVerdict,
    Verdict,
)
from ragqa.ui.html.cards import cover_badge, in_passage_html, obligation_card, reason_html, where_html
from ragqa.ui.html.render import VERDICT_CLASS, badge_html, marked_html, said_html, text_html
from ragqa.ui.state.terms import term_html


def gauges_html(repass: RePASs, *, final: bool, mode: str, explanation: Explanation | None = None) -> str:
    """The three parts as bars, the composite, and the formula with its numbers.

    ``explanation`` adds how much of C the verdicts reject, how much of the answer is copied, and how each part
    came about.
    """
    values = (
        ("E", "Entailment E", repass.entailment, "good"),
        ("C", "Contradiction C", repass.contradiction, "bad"),
        ("OC", "Obligation coverage OC", repass.obligation_coverage, "good"),
    )
    bars = "".join(_gauge(term, label, value, kind, final=final) for term, label, value, kind in values)
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


def _gauge(term: str, label: str, value: float, kind: str, *, final: bool) -> str:
    width = 100 * min(max(value, 0.0), 1.0)
    state = "" if final else " (provisional)"
    return (
        f'<div class="rq-gauge"><div class="rq-gauge-label"><span>{term_html(term, label, "gauge")}{state}</span>'
        f'<b>{value:.3f}</b></div><div class="rq-track" role="meter" aria-label="{label}{state}" aria-valuemin="0" '
        f'aria-valuemax="1" aria-valuenow="{value:.3f}">'
        f'<div class="rq-fill rq-fill-{kind}" style="width:{width:.1f}%"></div></div></div>'
    )


# Answer sentences and obligations -----------------------------------------------------------------------------------


def score_line_html(
    repass: RePASs,
    verdicts: Iterable[Verdict],
    *,
    final: bool,
    mode: str,
    raw: bool = False,
    covered: str = "",
) -> str:
    """RePASs and how many sentences have which verdict, in one line."""
    badges = " ".join(badge_html(words, VERDICT_CLASS[verdict]) for verdict, words in counted(verdicts))
    parts = (("E", repass.entailment), ("C", repass.contradiction), ("OC", repass.obligation_coverage))
    numbers = "".join(f"<span>{term_html(name, f'{name} {value:.2f}', 'line')}</span>" for name, value in parts)
    so_far = "" if final else badge_html("so far", "mixed")
    return (
        f'<div class="rq-line{"" if final else " rq-provisional"}">'
        f'<span class="rq-composite"><b class="rq-big">{repass.composite:.3f}</b> '
        f"{term_html('RePASs', f'RePASs, {escape(mode)}', 'line')}{so_far}</span>"
        f'<span class="rq-parts">{numbers}</span>'
        f'<span class="rq-counts">{"Raw verdicts: " if raw else ""}{badges} {covered}</span></div>'
    )


def relevance_html(relevance: Relevance) -> str:
    """Whether the answer answers what was asked, a line for each part of the question."""
    return _list([f"{part.text} {part.value:.2f}: {part.reason}" for part in relevance.parts])


def sentence_table_html(
    scores: Sequence[SentenceScore], verdicts: Sequence[SentenceVerdict] = (), final: Collection[int] | None = None
) -> str:
    """One row per answer sentence with its verdict and its raw scores; chosen, it shows the sentence's card.

    ``final`` are the indexes whose scores will not change (None: all). Without ``verdicts`` the raw ones are told.
    """
    judged, rows = {one.index: one for one in verdicts}, []
    for score in scores:
        verdict, is_final = judged.get(score.index), final is None or score.index in final
        found = verdict.verdict if verdict else score.verdict
        so_far, least = ("", "") if is_final else ("so far ", "at least ")
        cells = (
            badge_html(f"{so_far}{found}", VERDICT_CLASS[found])
            + f'<span class="rq-num">E {least}{score.entailment:.3f}</span>'
            + f'<span class="rq-num">C {least}{score.contradiction:.3f}</span>'
        )
        words = f"{score.index + 1}. {said_html(score.sentence.text, verdict)}{reason_html(verdict)}"
        rows.append(_row(f"s{score.index}", cells, words, is_final=is_final))
    return f'<div class="rq-rows">{"".join(rows)}</div>'


def _row(shows: str, cells: str, words: str, *, is_final: bool, card: str = "") -> str:
    """A row that shows a card beside the answer: one that the answer has, or its own ``card``."""
    hidden = f'<div data-card="{shows}" class="rq-hidden">{card}</div>' if card else ""
    return (
        f'<button type="button" class="rq-row rq-pick{"" if is_final else " rq-provisional"}" data-show="{shows}">'
        f'<span class="rq-cells">{cells}</span><span>{words}</span></button>{hidden}'
    )


def obligations_html(
    obligations: Sequence[ObligationScore],
    passages: Sequence[Passage],
    threshold: float,
    *,
    final: Collection[int] | None = None,
    explanation: Explanation | None = None,
    verdicts: Sequence[ObligationVerdict] = (),
) -> str:
    """One row per obligation: covered or not, by which answer sentence, with what margin to the threshold.

    Chosen, it shows the obligation in its passage. ``final`` as in `sentence_table_html`; ``explanation`` adds the next
    best answer sentence, ``verdicts`` what is missing where an obligation is covered in part.
    """
    runners_up, judged, rows = explanation.runners_up if explanation else (), {one.index: one for one in verdicts}, []
    for score in obligations:
        verdict, is_final = judged.get(score.index), final is None or score.index in final
        cells = cover_badge(score, verdict, "" if is_final else "so far ")
        cells += f'<span class="rq-num">{"raw: " if verdict else ""}best {score.best:.3f}</span>'
        if is_final:
            cells += f'<span class="rq-num">margin {score.margin:+.3f}</span>'
        words = marked_html(score.obligation.text, verdict.missing if verdict else (), "mixed") + reason_html(verdict)
        runner_up = runners_up[score.index] if runners_up else None
        card = obligation_card(score, verdict, passages, threshold, runner_up) if is_final else ""
        rows.append(_row(f"o{score.index}", cells, words, is_final=is_final, card=card))
    return f'<div class="rq-rows">{"".join(rows)}</div>'


# Pairs --------------------------------------------------------------------------------------------------------------


def pairs_html(evaluation: Breakdown, passages: Sequence[Passage], kind: str) -> str:
    """P(entailment) or P(contradiction) of every pair: source sentences down, answer sentences across.

    ``kind`` is ``"entailment"`` or ``"contradiction"``. A cell that the verdict rejects is hatched. A cell
    shows the source sentence in its passage.
    """
    matrix, doubted = _matrix(evaluation, kind), doubted_cells(evaluation, kind)
    heads = "".join(f'<th scope="col">{score.index + 1}</th>' for score in evaluation.sentences)
    rows, cards = [], []
    for at, premise in enumerate(evaluation.premises):
        cells = "".join(
            f'<td data-show="x{at}.{column}" style="--p:{value:.2f}" title="P({kind}) {value:.3f}'
            + (', not believed" class="rq-hatched">' if (at, column) in doubted else '">')
            + f'<span class="rq-unseen">{value:.2f}</span></td>'
            for column, value in enumerate(matrix[at])
        )
        rows.append(f'<tr><th scope="row">{at + 1} · [{premise.passage_index + 1}]</th>{cells}</tr>')
        inside = f"<p>{where_html(premise, passages)}</p>{in_passage_html(premise, passages, _KINDS[kind])}"
        cards.append(f'<div data-card="m{at}" class="rq-hidden">{inside}</div>')
    first = rows[0].replace("<td ", '<td tabindex="0" ', 1) if rows else ""
    return (
        f'<div class="rq-scroll rq-pairs rq-{_KINDS[kind]}-pairs"><table class="rq-table"><thead><tr>'
        f'<th scope="col">source sentence · [passage]</th>{heads}</tr></thead><tbody>{first}{"".join(rows[1:])}</tbody>'
        f"</table></div>{''.join(cards)}"
    )


_KINDS = {"entailment": "good", "contradiction": "bad"}


def doubted_cells(evaluation: Breakdown, kind: str) -> set[tuple[int, int]]:
    """(row, column) of the probabilities of this kind that reach the threshold and are not believed."""
    matrix = _matrix(evaluation, kind)
    cells = {(row, one.index) for one in evaluation.verdicts for row in one.doubted}
    return {(row, column) for row, column in cells if matrix[row][column] >= evaluation.verdict_threshold}


def _matrix(evaluation: Breakdown, kind: str) -> tuple[tuple[float, ...], ...]:
    return evaluation.entailment_matrix if kind == "entailment" else evaluation.contradiction_matrix


# How the numbers came about -----------------------------------------------------------------------------------------


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
