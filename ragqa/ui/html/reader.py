"""A document -> HTML: its outline, its text with numbers and tables, search results. Pure, every value escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import pairwise
from typing import Final
from urllib.parse import urlencode

from ragqa.corpus.asked_items import asked_parts, spans_in
from ragqa.corpus.citing import cited_number, short_name, short_names
from ragqa.corpus.documents.places import place_words
from ragqa.library.document import Entry, TextMatch
from ragqa.library.related import Related
from ragqa.types import Passage, Span
from ragqa.ui.html.template import Templates, text_html

SHOWN_DOCUMENTS: Final = 100
SHOWN_ALSO = 6  # links of each kind below a source
WIDEST = 14  # most column separators of a table row; a line with more is text that has such marks
_AROUND = 90  # characters on each side of the first word found
_TEMPLATES: Final = Templates("reader.html")
Link = Callable[[Passage], str]  # a passage's address


def read_address(corpus: str, passage_id: str, span: tuple[int, int] | None = None, words: str = "") -> str:
    """The address of a passage in the reader, with characters ``span`` marked and the search ``words`` kept."""
    values = {"corpus": corpus, "passage": passage_id}
    values |= {"from": str(span[0]), "to": str(span[1])} if span else {}
    values |= {"find": words} if words else {}
    return f"read?{urlencode(values)}"


def passage_address(corpus: str, passage: Passage) -> str:
    """The address of a passage."""
    return read_address(corpus, passage.passage_id)


def documents_html(corpus: str, titles: Mapping[str, str]) -> str:
    """Links to the documents of a corpus; ``titles`` are by document id."""
    rows = [(f"read?{urlencode({'corpus': corpus, 'document': name})}", titles[name] or name) for name in titles]
    return _TEMPLATES.documents(rows[:SHOWN_DOCUMENTS], len(rows) - SHOWN_DOCUMENTS)


def outline_html(entries: Sequence[Entry], addresses: Mapping[int, str], here: range) -> str:
    """The outline as links; the lines of the shown leaf are marked."""
    return _TEMPLATES.outline(entries, addresses, here)


def leaf_html(
    passages: Sequence[Passage],
    link: Link,
    chosen: str = "",
    span: tuple[int, int] | None = None,
    words: Callable[[str], Sequence[Span]] | None = None,
    refers: Callable[[Passage], Sequence[Mark]] | None = None,
) -> str:
    """The passages in order under their headings; ``span`` of the chosen one is marked, references are links."""
    pieces: list[str] = []
    before = where = ""
    for passage, after in zip(passages, (*passages[1:], None), strict=True):
        named = after.section.rpartition(" › ")[2] if after and after.section != passage.section else ""
        says = {
            passage.text,
            *(f"{number} {passage.text}" for number in (passage.number, cited_number(passage.number))),
        }
        is_heading = bool(named) and named in says  # of the next passage
        within = is_heading and f"{before} › ".startswith(f"{passage.section} › ")  # the chapter's heading is above
        heading = passage.section.rpartition(" › ")[2] if passage.section != before and not within else ""
        is_chosen, is_own = passage.passage_id == chosen, heading in says  # the heading of its own section
        if heading and not (pieces and pieces[-1].endswith(f">{escape(heading)}</h3>")):
            pieces.append(_TEMPLATES.heading(heading, is_chosen and is_own))
        before = passage.section
        if is_own:
            continue
        if is_heading:
            pieces.append(_TEMPLATES.heading(named, is_chosen))
            continue
        marks = [Mark(one.start, one.end, "mixed") for one in words(passage.text)] if words else []
        marks = [Mark(*span, "good")] if is_chosen and span else marks
        text = passage_text_html(passage.text, [*marks, *(refers(passage) if refers else ())])
        place = ", ".join(filter(None, (place_words(passage.place), passage.days)))
        shown = place if place != where else ""
        pieces.append(_TEMPLATES.unit(cited_number(passage.number), link(passage), shown, text, is_chosen))
        where = place
    return f'<article class="rq-leaf">{"".join(pieces)}</article>'


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters ``start`` to ``end`` of a text that are marked or linked.

    The browser shows ``title`` on hover; ``tip``, the meaning of a defined term, also appears on focus.
    """

    start: int
    end: int
    kind: str = ""
    href: str = ""
    title: str = ""
    tip: str = ""


def passage_text_html(text: str, marks: Sequence[Mark] = ()) -> str:
    """A passage's text with its tables as tables, and these characters marked or linked."""
    pieces: list[str] = []
    rows: list[str] = []
    position = 0
    for line in text.split("\n"):
        inside = _moved(marks, position, len(line))
        position += len(line) + 1
        if 0 < line.count(" | ") <= WIDEST and len(line) < 4_000:
            rows.append(_row(line, inside))
            continue
        pieces += [_table(rows), f"<p>{_marked(line, inside)}</p>" if line.strip() else ""]
        rows = []
    return "".join((*pieces, _table(rows)))


def _moved(marks: Sequence[Mark], start: int, length: int) -> list[Mark]:
    """The marks within ``length`` characters from ``start``, with offsets relative to ``start``."""
    moved = (replace(one, start=max(one.start - start, 0), end=min(one.end - start, length)) for one in marks)
    return [one for one in moved if one.start < one.end]


def _row(line: str, marks: Sequence[Mark]) -> str:
    cells, position = [], 0
    for cell in line.split(" | "):
        cells.append(f"<td>{_marked(cell, _moved(marks, position, len(cell)))}</td>")
        position += len(cell) + 3
    return f"<tr>{''.join(cells)}</tr>"


def _table(rows: Sequence[str]) -> str:
    return f'<div class="rq-scroll"><table class="rq-table rq-cells-left">{"".join(rows)}</table></div>' if rows else ""


def _marked(text: str, marks: Sequence[Mark]) -> str:
    """The text, escaped and marked; where marks overlap, a link stays a link within the mark."""
    cuts = sorted({0, len(text), *(edge for one in marks for edge in (one.start, one.end) if 0 < edge < len(text))})
    pieces = []
    for start, end in pairwise(cuts):
        words = text_html(text[start:end])
        over = [one for one in marks if one.start <= start and end <= one.end]
        link = next((one for one in over if one.href and not one.tip), None)
        term = next((one for one in over if one.tip), None)
        kind = next((one.kind for one in over if one.kind), "")
        if term and not link:
            words = _TEMPLATES.term(words, term)
        elif link:
            words = _TEMPLATES.link(words, link)
        pieces.append(f'<mark class="rq-mark-{kind}">{words}</mark>' if kind else words)
    return "".join(pieces)


def hits_html(hits: Sequence[TextMatch], addresses: Sequence[str], where: str, *, documents: bool = False) -> str:
    """Search results as links: number (and document), and the words around the first hit; ``where`` was searched."""
    rows = zip(addresses, (_named(hit.passage, documents=documents) for hit in hits), map(_snippet, hits), strict=True)
    return _TEMPLATES.hits(list(rows), where)


def _named(passage: Passage, *, documents: bool) -> str:
    return (short_name(passage) if documents else cited_number(passage.number)) or "¶"


def _snippet(hit: TextMatch) -> str:
    text = hit.passage.text
    first = hit.spans[0].start if hit.spans else 0
    start = text.rfind(" ", 0, max(0, first - _AROUND)) + 1 if first > _AROUND else 0
    end = min(len(text), first + 2 * _AROUND)
    inside = _moved([Mark(one.start, one.end, "mixed") for one in hit.spans], start, end - start)
    marked = _marked(text[start:end], inside).replace("<br>", " ")
    return f"{'…' if start else ''}{marked}{'…' if end < len(text) else ''}"


def beside_html(found: Related, corpus: str) -> str:
    """The references of a passage with their targets (or why there are none), then the passages that refer to it."""
    rows = []
    for one in found.refers:
        texts = "".join(passage_text_html(target.text[:1_200]) for target in one.targets[:2])
        address = read_address(corpus, one.targets[0].passage_id) if one.targets else ""
        rows.append((one.words, address, one.targets, texts, one.reason))
    return _TEMPLATES.beside(rows, [(read_address(corpus, one.passage_id), one) for one in found.referring])


def rule_html(passages: Sequence[Passage], others: Sequence[Passage], found: Related, corpus: str, asked: str) -> str:
    """The whole rule whose number is ``asked`` for, its item marked, with related passages; ``others`` have it, too."""
    link, titles = partial(passage_address, corpus), Counter(one.title for one in (passages[0], *others))
    first, *names = (
        one.title if titles[one.title] < 2 else f"{one.title} ({one.document_id})" for one in (passages[0], *others)
    )
    rows = sorted(zip(names, map(link, others), others, strict=True), key=lambda row: row[0].casefold())
    parts = asked_parts(asked, passages)
    items = {one.text: spans_in(one, parts) for one in passages}
    text = leaf_html(passages, link, words=items.__getitem__)
    return _TEMPLATES.rule(first, text, rows, also_html(found, corpus), parts)


def also_html(found: Related, corpus: str) -> str:
    """The references of a source in a few lines, with the defined terms that it uses."""
    refers = {one.targets[0].passage_id: one.targets[0] for one in found.refers if one.targets}.values()
    rows = [
        (words, _links([*passages][:SHOWN_ALSO], corpus))
        for words, passages in (("Refers to", refers), ("Referred to by", found.referring))
        if passages
    ]
    terms = [(read_address(corpus, use.definition.passage_id), use.definition) for use in found.terms[:SHOWN_ALSO]]
    return _TEMPLATES.also(rows, terms)


def _links(passages: Sequence[Passage], corpus: str) -> list[tuple[str, Passage, str]]:
    """(address, passage, name) of each, for a list in which no two documents have the same name.

    After a passage of the same document, the number is enough.
    """
    links, before = [], ""
    for one, name in zip(passages, short_names(passages), strict=True):
        number = cited_number(one.number) if one.document_id == before else ""
        links.append((passage_address(corpus, one), one, number or name))
        before = one.document_id
    return links
