"""Evidence -> HTML: the card of a sentence, a citation, an obligation: what decided it, marked in its passage. Pure.

Verdicts are said in words; what RePASs alone would say stands below them and is called raw.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from ragqa.scoring.repass.attribution import citation_words
from ragqa.scoring.repass.explanation import RunnerUp
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
from ragqa.ui.html.render import (
    VERDICT_CLASS,
    badge_html,
    cited_by,
    marked_html,
    place,
    read_link_html,
    said_html,
    text_html,
)
from ragqa.ui.state.view import Shown

COVER_CLASS = {Cover.COVERED: "good", Cover.IN_PART: "mixed", Cover.IN_CONFLICT: "bad", Cover.NOT_COVERED: "mixed"}


def sentence_cards(
    found: Shown, passages: Sequence[Passage], threshold: float, final: Collection[int] | None = None
) -> dict[str, str]:
    """The cards of every sentence that has a score (``s0``) and of each of its citations (``s0.2``).

    ``final`` are the sentences whose scores will not change (None: all); the others name their premises only.
    """
    judged = {one.index: one for one in found.verdicts}
    cards = {}
    for score in found.sentences:
        verdict = judged.get(score.index)
        if final is not None and score.index not in final:
            cards[f"s{score.index}"] = _so_far(score, verdict)
            continue
        check = found.explanation.citations[score.index] if found.explanation else None
        copied = found.explanation.copied.per_sentence[score.index] if found.explanation else None
        cards[f"s{score.index}"] = _sentence(score, verdict, found.premises, passages, threshold, check, copied)
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
    check: CitationCheck | None,
    copied: float | None,
) -> str:
    told = [premises[at] for at in _shown_places(judged)] if judged and premises else []
    deciding = [
        _deciding("Entailment", score.entailment, score.entailment_premise, passages, threshold, "good", told),
        _deciding("Contradiction", score.contradiction, score.contradiction_premise, passages, threshold, "bad", told),
    ]
    if score.entailment < threshold and score.contradiction >= threshold:
        deciding.reverse()
    raw = "".join(deciding)
    fine = f'<p class="rq-fine">{text_html(citation_words(check))}</p>' if check else ""
    if copied is not None:
        fine += f'<p class="rq-fine">Copied from the passages: {copied:.0%} of its words.</p>'
    if not judged:
        return _head(score, None) + raw + fine
    verdict = badge_html(score.verdict, VERDICT_CLASS[score.verdict])
    raw = f'<details class="rq-raw"><summary><b>RePASs raw:</b> {verdict}</summary>{raw}</details>'
    return _head(score, judged) + _decided(judged, premises, passages, threshold) + fine + raw


def _head(score: SentenceScore, judged: SentenceVerdict | None, so_far: str = "") -> str:
    verdict = judged.verdict if judged else score.verdict
    reason = f'<p class="rq-reason">{text_html(judged.reason)}</p>' if judged else ""
    return (
        f'<p class="rq-card-head"><b>Sentence {score.index + 1}</b> '
        f"{badge_html(f'{so_far}{verdict}', VERDICT_CLASS[verdict])}</p>"
        f'<p class="rq-quote">{said_html(score.sentence.text, judged)}</p>{reason}'
    )


def _so_far(score: SentenceScore, judged: SentenceVerdict | None) -> str:
    found = (
        ("Entailment", score.entailment, score.entailment_premise),
        ("Contradiction", score.contradiction, score.contradiction_premise),
    )
    premises = "".join(
        f"<p>{label} at least {value:.3f}, highest so far against: {text_html(premise.text)}</p>"
        for label, value, premise in found
        if premise
    )
    return f"{_head(score, judged, 'so far ')}{premises}<p>More source sentences are still to be compared.</p>"


def _cited(
    score: SentenceScore,
    judged: SentenceVerdict | None,
    premises: Sequence[Premise],
    passages: Sequence[Passage],
    number: int,
    check: CitationCheck | None,
) -> str:
    """The passage that a sentence cites, with the source sentences that the verdict on it rests on."""
    marks = []
    if judged and premises:  # none are known before the scores are final
        for kind, places in (("good", judged.supporting), ("bad", judged.contradicting)):
            marks += [(premises[at], kind) for at in places if premises[at].passage_index == number - 1]
    says = f"Cited by sentence {score.index + 1}."
    if check and number not in check.verified:
        says = f"Cited by sentence {score.index + 1}, which it does not support."
    elif check and number not in check.written:
        says = f"Not cited by sentence {score.index + 1}, which it supports."
    passage = passages[number - 1]
    return (
        f'<p class="rq-card-head"><b>[{number}] {escape(place(passage))}</b></p><p class="rq-reason">{says}</p>'
        f"{passage_html(passage.text, marks)}{read_link_html(passage, _first(marks))}"
    )


def _first(marks: Sequence[tuple[Premise, str]]) -> tuple[int, int] | None:
    return next(((premise.start, premise.end) for premise, _ in marks), None)


def passage_html(text: str, marks: Sequence[tuple[Premise, str]] = ()) -> str:
    """A passage with these source sentences of it marked, each in its kind; one that overlaps another is not."""
    pieces, position = [], 0
    for premise, kind in sorted(marks, key=lambda one: one[0].start):
        if premise.start >= position:
            inside = text_html(text[premise.start : premise.end])
            pieces += [text_html(text[position : premise.start]), f'<mark class="rq-mark-{kind}">{inside}</mark>']
            position = premise.end
    return f'<div class="rq-passage">{"".join(pieces)}{text_html(text[position:])}</div>'


def where_html(premise: Premise, passages: Sequence[Passage]) -> str:
    """Where a source sentence stands, with the number of its passage."""
    name = escape(place(passages[premise.passage_index]))
    words = f"characters {premise.start} to {premise.end}"
    return f'<span title="{words}">[{premise.passage_index + 1}] {name}</span>'


def in_passage_html(
    premise: Premise, passages: Sequence[Passage], kind: str, words: Sequence[Span] = (), words_kind: str = ""
) -> str:
    """The premise's passage with the premise marked, and in it these words, by their offsets in the premise."""
    passage = passages[premise.passage_index]
    text = passage.text
    before, inside, after = text[: premise.start], text[premise.start : premise.end], text[premise.end :]
    mark = f'<mark class="rq-mark-{kind}">{marked_html(inside, words, words_kind or kind)}</mark>'
    link = read_link_html(passage, (premise.start, premise.end))
    return f'<div class="rq-passage">{text_html(before)}{mark}{text_html(after)}</div>{link}'


def _decided(
    judged: SentenceVerdict, premises: Sequence[Premise], passages: Sequence[Passage], threshold: float
) -> str:
    """The source sentences that decided, the deciding one first, then the rule that gave the verdict.

    ``premises`` are those of the breakdown; empty while it is not there yet.
    """
    found = []
    for at in _shown_places(judged) if premises else ():
        label, kind, places = ("Says so", "good", judged.supporting)
        if at in judged.contradicting:
            label, kind, places = ("Says otherwise", "bad", judged.contradicting)
        words = judged.found if at == judged.deciding else ()
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        found.append(
            f"<p><b>{label}</b>{more}: {where_html(premises[at], passages)}</p>"
            f"{in_passage_html(premises[at], passages, kind, words)}"
        )
    return "".join(found) + _rule(judged) + _doubted(len(judged.doubted), threshold)


def _rule(judged: SentenceVerdict | ObligationVerdict) -> str:
    return f'<p class="rq-fine">Decided by the rule “{text_html(judged.rule)}”.</p>'


def _shown_places(judged: SentenceVerdict) -> tuple[int, ...]:
    """Positions of the source sentences shown with a verdict: the best that says otherwise, the best that says so."""
    return (*judged.contradicting[:1], *judged.supporting[:1])


def _doubted(count: int, threshold: float) -> str:
    if not count:
        return ""
    sentences, reach = ("source sentence", "reaches") if count == 1 else ("source sentences", "reach")
    return (
        f'<p class="rq-fine">Not believed: {count:,} {sentences} whose raw probability of entailment or contradiction '
        f"{reach} {threshold:.2f}; hatched under Pairs.</p>"
    )


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


def obligation_card(
    score: ObligationScore,
    judged: ObligationVerdict | None,
    passages: Sequence[Passage],
    threshold: float,
    runner_up: RunnerUp | None,
) -> str:
    """An obligation in its passage, what is missing of it, and which answer sentence covers it or comes nearest."""
    if score.answer_index is None:
        by = "<p>No answer sentence was compared with this obligation in this mode.</p>"
    else:
        verb = "Covered by" if score.covered else "Best near miss:"
        by = (
            f"<p><b>{verb}</b> answer sentence {score.answer_index + 1}; P(entailment) {score.best:.3f} is "
            f"{abs(score.margin):.3f} {'above' if score.margin > 0 else 'short of'} the threshold {threshold:.2f}:</p>"
            f'<div class="rq-passage">{text_html(score.answer_text)}</div>'
        )
    if runner_up:
        by += f"<p>Next best: answer sentence {runner_up.answer_index + 1} with {runner_up.probability:.3f}.</p>"
    spans = judged.missing if judged else ()
    head = (
        f'<p class="rq-card-head"><b>Obligation {score.index + 1}</b> {cover_badge(score, judged)}</p>'
        f"{reason_html(judged)}<p>{where_html(score.obligation, passages)}</p>"
        f"{in_passage_html(score.obligation, passages, 'good', spans, 'mixed')}"
    )
    if not judged:
        return head + by
    missing = ", ".join(f"“{text_html(span.text)}”" for span in judged.missing)
    lacking = f"<p><b>Missing:</b> {missing}.</p>" if missing else ""
    return f'{head}{lacking}{_rule(judged)}<details class="rq-raw"><summary><b>RePASs raw</b></summary>{by}</details>'


def cover_badge(score: ObligationScore, judged: ObligationVerdict | None, so_far: str = "") -> str:
    """Covered or not, in words."""
    cover = judged.cover if judged else Cover.COVERED if score.covered else Cover.NOT_COVERED
    return badge_html(f"{so_far}{cover}", COVER_CLASS[cover])


def reason_html(judged: ObligationVerdict | SentenceVerdict | None) -> str:
    """Why, in the words of the verdict."""
    return f'<span class="rq-reason">{text_html(judged.reason)}</span>' if judged else ""
