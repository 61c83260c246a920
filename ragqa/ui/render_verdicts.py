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


def in_passage_html(
    premise: Premise, passages: Sequence[Passage], kind: str, words: Sequence[Span] = (), words_kind: str = ""
) -> str:
    """The premise's passage with the premise marked, and in it these words, by their offsets in the premise."""
    text = passages[premise.passage_index].text
    before, inside, after = text[: premise.start], text[premise.start : premise.end], text[premise.end :]
    mark = f'<mark class="rq-mark-{kind}">{marked_html(inside, words, words_kind or kind)}</mark>'
    return f'<div class="rq-passage" tabindex="0">{text_html(before)}{mark}{text_html(after)}</div>'


def decided_html(
    judged: SentenceVerdict, premises: Sequence[Premise], passages: Sequence[Passage], threshold: float
) -> str:
    """The rule that gave the verdict, then the source sentences that decided, the deciding one first.

    ``premises`` are those of the breakdown; empty while it is not there yet.
    """
    head = _rule(judged)
    if not premises:
        return head
    found = []
    for at in shown_places(judged):
        label, kind, places = ("Says so", "good", judged.supporting)
        if at in judged.contradicting:
            label, kind, places = ("Says otherwise", "bad", judged.contradicting)
        words = judged.found if at == judged.deciding else ()
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        found.append(
            f"<p><b>{label}</b>{more}: {where_html(premises[at], passages)}:</p>"
            f"{in_passage_html(premises[at], passages, kind, words)}"
        )
    return head + "".join(found) + _doubted(len(judged.doubted), threshold)


def _rule(judged: SentenceVerdict | ObligationVerdict) -> str:
    return f'<p class="rq-fine">Decided by the rule “{text_html(judged.rule)}”.</p>'


def shown_places(judged: SentenceVerdict) -> tuple[int, ...]:
    """Positions of the source sentences shown with a verdict: the best that says otherwise, the best that says so."""
    return (*judged.contradicting[:1], *judged.supporting[:1])


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
    """The rule that gave the verdict on an obligation, and what is missing."""
    missing = ", ".join(f"“{text_html(span.text)}”" for span in judged.missing)
    return _rule(judged) + (f"<p><b>Missing:</b> {missing}.</p>" if missing else "")
