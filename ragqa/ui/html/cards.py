"""Evidence -> HTML: the cards of sentences, citations and obligations, with the deciding text marked. Pure.

Verdicts are in words; the verdict of RePASs alone is below them and is called raw.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import Final

from ragqa.corpus.citing import title_words
from ragqa.records.view import Shown
from ragqa.records.words import cited_by, place
from ragqa.scoring.repass.explanation import Explanation, RunnerUp
from ragqa.types import Passage, Span
from ragqa.types.scores import (
    CitationCheck,
    Cover,
    ObligationScore,
    ObligationVerdict,
    Premise,
    SentenceScore,
    SentenceVerdict,
)
from ragqa.ui.html.render import badge_html, mark_of, marked_html, read_link_html
from ragqa.ui.html.template import Templates, shared, text_html

_TEMPLATES: Final = Templates("cards.html")
COVER_CLASS = {Cover.COVERED: "good", Cover.IN_PART: "mixed", Cover.IN_CONFLICT: "bad", Cover.NOT_COVERED: "mixed"}


def sentence_cards(
    found: Shown, passages: Sequence[Passage], threshold: float, final: Collection[int] | None = None
) -> dict[str, str]:
    """The cards of every sentence that has a score (``s0``) and of each of its citations (``s0.2``).

    ``final`` are the sentences whose scores will not change (None: all); cards of others only name their premises.
    """
    judged = {one.index: one for one in found.verdicts}
    cards = {}
    for score in found.sentences:
        verdict = judged.get(score.index)
        if final is not None and score.index not in final:
            mark = mark_of(verdict.verdict if verdict else score.verdict, verdict)
            cards[f"s{score.index}"] = _TEMPLATES.so_far(score, verdict, mark)
            continue
        check = found.explanation.citations[score.index] if found.explanation else None
        cards[f"s{score.index}"] = _sentence(score, verdict, found.premises, passages, threshold, found.explanation)
        for number in cited_by(score.sentence, check):
            if number <= len(passages):
                cards[f"s{score.index}.{number}"] = _cited(score, verdict, found.premises, passages, number, check)
    return cards


def _sentence(
    score: SentenceScore,
    judged: SentenceVerdict | None,
    premises: Sequence[Premise],
    passages: Sequence[Passage],
    threshold: float,
    explanation: Explanation | None,
) -> str:
    """The card of a sentence with what decided its verdict; ``premises`` are empty before the scores are final."""
    copied = explanation.copied.per_sentence[score.index] if explanation else None
    deciding = []
    if judged and premises:
        for at in _shown_places(judged):
            marked = judged.found if at == judged.deciding else ()
            deciding.append((premises[at], at in judged.contradicting, marked))
    marks = mark_of(judged.verdict if judged else score.verdict, judged), mark_of(score.verdict)
    return _TEMPLATES.sentence(score, judged, *marks, deciding, passages, threshold, copied)


def _cited(
    score: SentenceScore,
    judged: SentenceVerdict | None,
    premises: Sequence[Premise],
    passages: Sequence[Passage],
    number: int,
    check: CitationCheck | None,
) -> str:
    """The card of a cited passage, with the source sentences that the sentence's verdict rests on."""
    marks = []
    if judged and premises:  # none are known before the scores are final
        for kind, places in (("good", judged.supporting), ("bad", judged.contradicting)):
            marks += [(premises[at], kind) for at in places if premises[at].passage_index == number - 1]
    says = f"Cited by sentence {score.index + 1}."
    if check and number not in check.verified:
        says = f"Cited by sentence {score.index + 1}, which it does not support."
    elif check and number not in check.written:
        says = f"Not cited by sentence {score.index + 1}, which it supports."
    return _TEMPLATES.cited(number, passages[number - 1], says, marks)


@shared
def passage_html(text: str, marks: Sequence[tuple[Premise, str]] = ()) -> str:
    """A passage with these source sentences marked by kind; one that overlaps an earlier one is not marked."""
    pieces, position = [], 0
    for premise, kind in sorted(marks, key=lambda one: one[0].start):
        if premise.start >= position:
            inside = text_html(text[premise.start : premise.end])
            pieces += [text_html(text[position : premise.start]), f'<mark class="rq-mark-{kind}">{inside}</mark>']
            position = premise.end
    return f'<div class="rq-passage">{"".join(pieces)}{text_html(text[position:])}</div>'


@shared
def where_html(premise: Premise, passages: Sequence[Passage]) -> str:
    """The place of a source sentence."""
    passage = passages[premise.passage_index]
    words = f"characters {premise.start} to {premise.end}"
    words += f" of {passage.title}" if passage.title != title_words(passage.title) else ""
    return f'<span title="{escape(words)}">{escape(place(passage))}</span>'


@shared
def in_passage_html(
    premise: Premise, passages: Sequence[Passage], kind: str, words: Sequence[Span] = (), words_kind: str = ""
) -> str:
    """The premise's passage with the premise marked, and within it ``words``, by their offsets in the premise."""
    passage = passages[premise.passage_index]
    text = passage.text
    before, inside, after = text[: premise.start], text[premise.start : premise.end], text[premise.end :]
    mark = f'<mark class="rq-mark-{kind}">{marked_html(inside, words, words_kind or kind)}</mark>'
    link = read_link_html(passage, (premise.start, premise.end))
    return f'<div class="rq-passage">{text_html(before)}{mark}{text_html(after)}</div>{link}'


def _shown_places(judged: SentenceVerdict) -> tuple[int, ...]:
    """Positions of the source sentences shown with a verdict: the best contradicting and the best supporting one."""
    return (*judged.contradicting[:1], *judged.supporting[:1])


def obligation_card(
    score: ObligationScore,
    judged: ObligationVerdict | None,
    passages: Sequence[Passage],
    threshold: float,
    runner_up: RunnerUp | None,
) -> str:
    """An obligation in its passage, its missing words, and the answer sentence that covers it or is nearest."""
    return _TEMPLATES.obligation(score, judged, passages, threshold, runner_up)


@shared
def cover_badge(score: ObligationScore, judged: ObligationVerdict | None, so_far: str = "") -> str:
    """A badge that says whether the obligation is covered."""
    cover = judged.cover if judged else Cover.COVERED if score.covered else Cover.NOT_COVERED
    return badge_html(f"{so_far}{cover}", COVER_CLASS[cover])


@shared
def reason_html(judged: ObligationVerdict | SentenceVerdict | None) -> str:
    """The reason of a verdict."""
    return f'<span class="rq-reason">{text_html(judged.reason)}</span>' if judged else ""
