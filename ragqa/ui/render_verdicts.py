"""Verdicts -> HTML: how many of each, what decided one, sources that disagree. Pure, like `ragqa.ui.render`.

Verdicts are said in words; what RePASs alone would say stands beside them and is called raw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ragqa.repass.explanation import counted
from ragqa.types import Cover, ObligationVerdict, Passage, Premise, SentenceScore, SentenceVerdict, Span, Verdict
from ragqa.ui.render import VERDICT_CLASS, badge_html, marked_html, place, said_html, text_html

COVER_CLASS = {Cover.COVERED: "good", Cover.IN_PART: "mixed", Cover.NOT_COVERED: "mixed"}


def counts_html(verdicts: Iterable[Verdict], *, what: str) -> str:
    """How many sentences have which verdict, in one line; ``what`` says which verdicts these are."""
    badges = " ".join(badge_html(words, VERDICT_CLASS[verdict]) for verdict, words in counted(verdicts))
    return f'<p class="rq-counts">{escape(what)}: {badges}</p>' if badges else ""


def where_html(premise: Premise, passages: Sequence[Passage]) -> str:
    """Where a source sentence stands, with the number of its passage."""
    name = escape(place(passages[premise.passage_index]))
    return f"characters {premise.start} to {premise.end} of [{premise.passage_index + 1}] {name}"


def in_passage_html(premise: Premise, passages: Sequence[Passage], kind: str, words: Sequence[Span] = ()) -> str:
    """The premise's passage with the premise marked, and in it these words, by their offsets in the premise."""
    text = passages[premise.passage_index].text
    before, inside, after = text[: premise.start], text[premise.start : premise.end], text[premise.end :]
    mark = f'<mark class="rq-mark-{kind}">{marked_html(inside, words, kind)}</mark>'
    return f'<div class="rq-passage" tabindex="0">{text_html(before)}{mark}{text_html(after)}</div>'


def decided_html(
    judged: SentenceVerdict, premises: Sequence[Premise], passages: Sequence[Passage], threshold: float
) -> str:
    """The verdict with its reason and rule, then the source sentences that decided, the deciding one first.

    ``premises`` are those of the breakdown; empty while it is not there yet.
    """
    head = (
        f"<p>{badge_html(judged.verdict, VERDICT_CLASS[judged.verdict])} {text_html(judged.reason)} "
        f'<span class="rq-rule">Rule: {escape(judged.rule)}.</span></p>'
    )
    if not premises:
        return head
    sides = (("Says otherwise", judged.contradicting, "bad"), ("Says so", judged.supporting, "good"))
    found = []
    for label, places, kind in sides:
        if not places:
            continue
        premise = premises[places[0]]
        words = judged.found if places[0] == judged.deciding else ()
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        found.append(
            f"<p><b>{label}</b>{more}: {where_html(premise, passages)}:</p>"
            f"{in_passage_html(premise, passages, kind, words)}"
        )
    return head + "".join(found) + _doubted(len(judged.doubted), threshold)


def _doubted(count: int, threshold: float) -> str:
    if not count:
        return ""
    sentences, reach = ("source sentence", "reaches") if count == 1 else ("source sentences", "reach")
    return (
        f"<p>Not believed: {count:,} {sentences} whose raw probability of entailment or contradiction {reach} "
        f"{threshold:.2f}; hatched in the map of every pair.</p>"
    )


def disagreements_html(
    verdicts: Sequence[SentenceVerdict],
    scores: Sequence[SentenceScore],
    premises: Sequence[Premise],
    passages: Sequence[Passage],
) -> str:
    """A notice for each answer sentence on which sources disagree: one that says so beside one that says otherwise."""
    notices = []
    for judged in verdicts:
        if judged.verdict is not Verdict.DISAGREEING or not (judged.supporting and judged.contradicting):
            continue
        said = said_html(scores[judged.index].sentence.text, judged)
        sides = ((judged.supporting[0], "says so", ()), (judged.contradicting[0], "says otherwise", judged.found))
        columns = "".join(_side(premises[at], words, spans, passages) for at, words, spans in sides)
        notices.append(
            f'<div class="rq-notice rq-mixed" role="note"><b>Sources disagree on sentence {judged.index + 1}:</b> '
            f'{said} <div class="rq-sides">{columns}</div><p class="rq-fine">{text_html(judged.reason)}</p></div>'
        )
    return "".join(notices)


def _side(premise: Premise, words: str, spans: Sequence[Span], passages: Sequence[Passage]) -> str:
    number = premise.passage_index + 1
    return (
        f"<div><p><b>[{number}] {words}</b> <span>{escape(place(passages[premise.passage_index]))}</span></p>"
        f'<div class="rq-passage">{marked_html(premise.text, spans, "bad")}</div></div>'
    )


def covered_html(judged: ObligationVerdict) -> str:
    """The verdict on an obligation with its reason and rule."""
    missing = ", ".join(f"“{text_html(span.text)}”" for span in judged.missing)
    return (
        f"<p>{badge_html(judged.cover, COVER_CLASS[judged.cover])} {text_html(judged.reason)} "
        f'<span class="rq-rule">Rule: {escape(judged.rule)}.</span>'
        + (f" <b>Missing:</b> {missing}." if missing else "")
        + "</p>"
    )
