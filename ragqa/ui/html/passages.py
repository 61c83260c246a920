"""The table of retrieved passages -> HTML: scores, ranks, decisions, matched words, what stands around each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from ragqa.plugins.registry import score_name
from ragqa.types import Candidate, Drop, Passage, ScorePart, Selection, Span
from ragqa.ui.html.render import badge_html, notice_html, number_html, place, read_link_html, text_html

Matcher = Callable[[str], Sequence[Span]]  # a passage's text -> the words it shares with the question
Neighbours = Callable[
    [Passage], tuple[Passage | None, Passage | None]
]  # the passages before and after, in its document

SNIPPET_CHARS = 80
NEIGHBOUR_CHARS = 700
_DROP_CLASS = dict.fromkeys(Drop, "plain") | {Drop.AFTER_MAX_DROP: "mixed"}


def passage_table_html(selection: Selection, limit: int, matcher: Matcher | None = None) -> str:
    """The best ``limit`` candidates with every score they have and why each was kept or dropped.

    Where they were reranked, their rank before stands in the column "fused" and beside the rank they have now. Choosing
    a row shows its card, which `passage_cards_html` makes.
    """
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda c: c.rank)[:limit]
    if not candidates:
        return notice_html("No passage shares a word or a meaning with this question in this corpus.", "mixed")
    names = [part.retriever for part in candidates[0].hit.parts]
    names += [part.retriever for part in candidates[0].hit.reranking]
    heads = "".join(f'<th scope="col">{escape(score_name(name))}</th>' for name in names)
    rows = "".join(_row(candidate, matcher) for candidate in candidates)
    return (
        '<div class="rq-scroll" tabindex="0" role="region" aria-label="Retrieved passages"><table class="rq-table">'
        '<thead><tr><th scope="col">#</th><th scope="col">Passage</th><th scope="col">Decision</th>'
        f'<th scope="col">relevance</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def passage_cards_html(
    selection: Selection, limit: int, matcher: Matcher | None = None, neighbours: Neighbours | None = None
) -> str:
    """What choosing each row shows: its whole text and what stands around it, hidden until then.

    Apart from the table, since the filter changes nothing here: the browser need not read it again when a limit moves.
    The decision and its reason are added from the row.
    """
    cards = []
    for candidate in sorted((*selection.kept, *selection.dropped), key=lambda c: c.rank)[:limit]:
        passage = candidate.passage
        spans = tuple(matcher(passage.text)) if matcher else ()
        around = _around_html(*neighbours(passage)) if neighbours else ""
        cards.append(
            f'<div data-card="p{candidate.rank}"><p class="rq-card-head"><b>{escape(place(passage))}</b></p>'
            f'<div class="rq-passage">{_marked(passage.text, spans, 0, len(passage.text))}</div>'
            f"{read_link_html(passage)}{around}</div>"
        )
    return f'<div class="rq-hidden">{"".join(cards)}</div>'


def _row(candidate: Candidate, matcher: Matcher | None) -> str:
    drop, passage = candidate.drop, candidate.passage
    decision = badge_html("kept", "good") if drop is None else badge_html(drop, _DROP_CLASS[drop])
    parts = "".join(_part_cell(part) for part in (*candidate.hit.parts, *candidate.hit.reranking))
    name = f"{passage.title or passage.document_id} › {passage.number}" if passage.number else passage.title
    spans = tuple(matcher(passage.text)) if matcher else ()
    second = candidate.hit.reranking[1].retriever if candidate.hit.reranking else ""
    last = {"": "fused", "sub-question": "merged", "sentence": "merged"}.get(second, "reranked")
    shows = f"p{candidate.rank}"
    return (
        f'<tr class="{"rq-kept" if drop is None else "rq-dropped"}"><td>{candidate.rank}{_moved(candidate)}</td>'
        f'<td class="rq-wide"><button type="button" class="rq-pick" data-show="{shows}"><b>{escape(name)}</b>'
        f'<span class="rq-snippet">{_snippet(passage.text, spans)}</span></button></td>'
        f'<td data-lead="{shows}" title="{escape(candidate.explanation)}">{decision}</td>'
        f'<td>{number_html(candidate.relevance)}<span class="rq-norm">{last} {number_html(candidate.hit.score)}</span>'
        f"</td>{parts}</tr>"
    )


def _part_cell(part: ScorePart) -> str:
    """A retriever's own score, its rank in that list and the normalised score; a dash where it did not find this."""
    if part.rank is None:
        return '<td title="not in this list">–</td>'
    detail = f'<span class="rq-norm">#{part.rank} · {number_html(part.normalised, 2)}</span>'
    if part.note:
        linked = f'<span class="rq-norm">{escape(part.note)}</span>'
        return f'<td class="rq-noted" title="{escape(part.note)}">{number_html(part.raw)}{linked}</td>'
    return f'<td title="score; rank in this list; normalised score">{number_html(part.raw)}{detail}</td>'


def _moved(candidate: Candidate) -> str:
    """The rank before reranking, or for the question by itself, where there was any."""
    if not candidate.hit.reranking:
        return ""
    before = candidate.hit.reranking[0].rank
    if candidate.hit.reranking[1].retriever in {"sub-question", "sentence"}:
        place = "new" if before is None else f"alone {before}"
        return f'<span class="rq-norm" title="rank for the question or text as a whole">{place}</span>'
    return f'<span class="rq-norm" title="rank before reranking">was {before}</span>'


def _marked(text: str, spans: Sequence[Span], start: int, end: int) -> str:
    """``text[start:end]`` escaped, its matched words marked."""
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
    """One line of the text: the stretch that holds most matched words, the beginning where none matches."""
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


def _around_html(before: Passage | None, after: Passage | None) -> str:
    """The neighbours in the document, closed until asked for."""
    rows = "".join(
        f'<p class="rq-fine">{word} {escape(passage.number or passage.passage_id)}</p>'
        f'<div class="rq-passage">{text_html(_cut(passage.text))}</div>'
        for word, passage in (("before:", before), ("after:", after))
        if passage
    )
    return f'<details class="rq-around"><summary>Passages before and after</summary>{rows}</details>' if rows else ""


def _cut(text: str) -> str:
    return text if len(text) <= NEIGHBOUR_CHARS else text[:NEIGHBOUR_CHARS].rsplit(" ", 1)[0] + "…"
