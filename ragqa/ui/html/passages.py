"""The table of retrieved passages -> HTML: scores, ranks, decisions, matched words, neighbours. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from ragqa.plugins.registry import score_name
from ragqa.types import Drop, Passage, ScorePart, Selection, Span
from ragqa.ui.html.render import notice_html
from ragqa.ui.html.template import Templates, text_html

Matcher = Callable[[str], Sequence[Span]]  # from a passage's text to the words it shares with the question
Neighbours = Callable[
    [Passage], tuple[Passage | None, Passage | None]
]  # the passages before and after, in its document

SNIPPET_CHARS = 80
_TEMPLATES: Final = Templates("passages.html")
_DROP_CLASS = dict.fromkeys(Drop, "plain") | {Drop.AFTER_MAX_DROP: "mixed"}


def passage_table_html(selection: Selection, limit: int, matcher: Matcher | None = None) -> str:
    """The best ``limit`` candidates with all their scores and why each was kept or dropped.

    After reranking, the earlier rank is in the column "fused" and beside the present rank. Choosing a row shows its
    card, which `passage_cards_html` makes.
    """
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda c: c.rank)[:limit]
    if not candidates:
        return notice_html("No passage shares a word or a meaning with this question in this corpus.", "mixed")
    hits = [one.hit for one in candidates]  # one of a rule asked for by number may have no parts
    names, further = _longest([hit.parts for hit in hits]), _longest([hit.reranking for hit in hits])
    snippets = [_snippet(one.passage.text, _spans(one.passage, matcher)) for one in candidates]
    return _TEMPLATES.table(candidates, names, further, score_name, _DROP_CLASS, snippets)


def _longest(parts: Sequence[Sequence[ScorePart]]) -> list[str]:
    return [part.retriever for part in max(parts, key=len)]


def _spans(passage: Passage, matcher: Matcher | None) -> tuple[Span, ...]:
    return tuple(matcher(passage.text)) if matcher else ()


def passage_cards_html(
    selection: Selection, limit: int, matcher: Matcher | None = None, neighbours: Neighbours | None = None
) -> str:
    """The card of each row, hidden until the row is chosen: its whole text and its neighbours.

    The cards are apart from the table because the filter does not change them, so that the browser need not read them
    again when a limit moves. The decision and its reason are added from the row.
    """
    cards = []
    for candidate in sorted((*selection.kept, *selection.dropped), key=lambda c: c.rank)[:limit]:
        passage = candidate.passage
        text = _marked(passage.text, _spans(passage, matcher), 0, len(passage.text))
        cards.append((candidate.rank, passage, text, neighbours(passage) if neighbours else ()))
    return _TEMPLATES.cards(cards)


def _marked(text: str, spans: Sequence[Span], start: int, end: int) -> str:
    """``text[start:end]``, escaped, with its matched words marked."""
    pieces, position = [], start
    for span in spans:
        if span.start < position or span.end > end:
            continue
        pieces.append(text_html(text[position : span.start]))
        pieces.append(f"<mark>{escape(span.text)}</mark>")
        position = span.end
    pieces.append(text_html(text[position:end]))
    return "".join(pieces)


def _snippet(text: str, spans: Sequence[Span]) -> str:
    """One line of the text: the part with most matched words, or the beginning where none matches."""
    best, most = 0, 0
    for first in spans:
        count = sum(first.start <= span.start and span.end <= first.start + SNIPPET_CHARS for span in spans)
        if count > most:
            best, most = first.start, count
    start = text.rfind(" ", 0, max(0, best - 15)) + 1 if best > SNIPPET_CHARS // 2 else 0
    end = len(text) if len(text) - start <= SNIPPET_CHARS else max(text.rfind(" ", start, start + SNIPPET_CHARS), 0)
    end = end if end > start else start + SNIPPET_CHARS
    shown = _marked(text, spans, start, end).replace("<br>", " ")
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"
