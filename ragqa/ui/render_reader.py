"""A document -> HTML: its outline, its text with numbers and tables, what a search found. Pure, every value escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from urllib.parse import urlencode

from ragqa.library.document import DocumentView, Entry, Hit, place_words
from ragqa.types import Passage, Span
from ragqa.ui.render import text_html

_AROUND = 90  # characters on each side of the first word found
Link = Callable[[Passage], str]  # a passage's address


def read_address(corpus: str, passage_id: str, span: tuple[int, int] | None = None, words: str = "") -> str:
    """The address of a place: a passage, characters ``span`` of it marked, a search kept."""
    values = {"corpus": corpus, "passage": passage_id}
    values |= {"from": str(span[0]), "to": str(span[1])} if span else {}
    values |= {"find": words} if words else {}
    return f"read?{urlencode(values)}"


def outline_html(entries: Sequence[Entry], addresses: Mapping[int, str], here: range) -> str:
    """The outline as links; the lines of what is shown are marked."""
    rows = "".join(
        f'<li style="--depth: {min(one.depth, 8)}"{_current(one.position in here)}>'
        f'<a href="{escape(addresses[one.position])}" target="_self">{escape(one.text)}</a></li>'
        for one in entries
    )
    return f'<nav class="rq-outline rq-contents" aria-label="Contents"><ul>{rows}</ul></nav>' if rows else ""


def _current(is_here: bool) -> str:
    return ' class="rq-here" aria-current="true"' if is_here else ""


def leaf_html(
    passages: Sequence[Passage],
    link: Link,
    chosen: str = "",
    span: tuple[int, int] | None = None,
    words: Callable[[str], Sequence[Span]] | None = None,
) -> str:
    """The passages in a row under their headings; ``span`` of the chosen one is marked."""
    pieces: list[str] = []
    before = where = ""
    for passage, after in zip(passages, (*passages[1:], None), strict=True):
        heading = passage.section.rpartition(" › ")[2] if passage.section != before else ""
        if heading and not (pieces and pieces[-1].endswith(f">{escape(heading)}</h3>")):
            pieces.append(f"<h3>{escape(heading)}</h3>")
        before = passage.section
        is_chosen = passage.passage_id == chosen
        named = after.section.rpartition(" › ")[2] if after and after.section != before else ""
        if named and named in {passage.text, f"{passage.number} {passage.text}"}:  # it is the heading of what follows
            pieces.append(f"<h3{_anchor(is_chosen)}>{escape(named)}</h3>")
            continue
        marks = [Span("", *span)] if is_chosen and span else list(words(passage.text)) if words else []
        place, where = (
            place_words(passage.place) if place_words(passage.place) != where else "",
            place_words(passage.place),
        )
        pieces.append(
            _unit(
                passage, link(passage), place, passage_text_html(passage.text, marks, _kind(span, is_chosen)), is_chosen
            )
        )
    return f'<article class="rq-leaf">{"".join(pieces)}</article>'


def _kind(span: tuple[int, int] | None, is_chosen: bool) -> str:
    return "good" if is_chosen and span else "mixed"


def _unit(passage: Passage, address: str, place: str, text: str, is_chosen: bool) -> str:
    where = f'<span class="rq-where">{escape(place)}</span>' if place else ""
    return (
        f'<div class="rq-unit{" rq-unit-chosen" if is_chosen else ""}"{_anchor(is_chosen)}>'
        f'<a class="rq-label" href="{escape(address)}" target="_self" title="The address of this place">'
        f'{escape(passage.number) or "¶"}</a><div class="rq-unit-text">{where}{text}</div></div>'
    )


def _anchor(is_chosen: bool) -> str:
    return ' id="rq-place" aria-current="location"' if is_chosen else ""


def passage_text_html(text: str, marks: Sequence[Span] = (), kind: str = "mixed") -> str:
    """A passage's text, its tables as tables, these characters of it marked."""
    pieces, position, rows = [], 0, []
    for line in text.split("\n"):
        start, position = position, position + len(line) + 1
        inside = [Span("", max(one.start - start, 0), min(one.end - start, len(line))) for one in marks]
        if line.count(" | ") and len(line) < 4_000:
            rows.append(_row(line, inside, kind))
            continue
        pieces += [_table(rows), f"<p>{_marked(line, inside, kind)}</p>" if line.strip() else ""]
        rows = []
    return "".join((*pieces, _table(rows)))


def _row(line: str, marks: Sequence[Span], kind: str) -> str:
    cells, position = [], 0
    for cell in line.split(" | "):
        inside = [Span("", max(one.start - position, 0), min(one.end - position, len(cell))) for one in marks]
        cells.append(f"<td>{_marked(cell, inside, kind)}</td>")
        position += len(cell) + 3
    return f"<tr>{''.join(cells)}</tr>"


def _table(rows: Sequence[str]) -> str:
    return f'<div class="rq-scroll"><table class="rq-table rq-cells-left">{"".join(rows)}</table></div>' if rows else ""


def _marked(text: str, marks: Sequence[Span], kind: str) -> str:
    pieces, position = [], 0
    for one in sorted(marks, key=lambda mark: mark.start):
        start, end = max(one.start, position), min(one.end, len(text))
        if start < end:
            pieces += [
                text_html(text[position:start]),
                f'<mark class="rq-mark-{kind}">{text_html(text[start:end])}</mark>',
            ]
            position = end
    return "".join(pieces) + text_html(text[position:])


def hits_html(hits: Sequence[Hit], addresses: Sequence[str], document: DocumentView) -> str:
    """What a search found: number, heading, and the words around the first place, each a link."""
    rows = "".join(
        f'<li><a href="{escape(address)}" target="_self"><b>{escape(hit.passage.number or "¶")}</b> '
        f"{_snippet(hit)}</a></li>"
        for hit, address in zip(hits, addresses, strict=True)
    )
    return (
        f'<div class="rq-scroll rq-hits" tabindex="0" role="region" aria-label="Found in {escape(document.title)}">'
        f"<ol>{rows}</ol></div>"
    )


def _snippet(hit: Hit) -> str:
    text = hit.passage.text
    first = hit.spans[0].start if hit.spans else 0
    start = text.rfind(" ", 0, max(0, first - _AROUND)) + 1 if first > _AROUND else 0
    end = min(len(text), first + 2 * _AROUND)
    inside = [
        Span("", one.start - start, one.end - start) for one in hit.spans if start <= one.start and one.end <= end
    ]
    marked = _marked(text[start:end], inside, "mixed").replace("<br>", " ")
    return f"{'…' if start else ''}{marked}{'…' if end < len(text) else ''}"
