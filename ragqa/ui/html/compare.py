"""A `SideBySide`, and points of a `Sweep`, -> HTML: what stands side by side. Pure, and every value escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ragqa.evaluation.sweep import Point
from ragqa.ui.html.render import VERDICT_CLASS, badge_html, changed_html, place, text_html
from ragqa.ui.state.comparison import PassageRow, Said, SentenceRow, SideBySide, ValueRow

_MATCHES = {"same": "plain", "reworded": "plain", "only A": "mixed", "only B": "mixed"}


def summary_html(comparison: SideBySide) -> str:
    """What differs in settings, and what came of it."""
    head = "What differs, A → B"
    settings = changed_html(head, comparison.differs) if comparison.differs else "<p>The settings are the same.</p>"
    words = "".join(f"<li>{escape(line)}</li>" for line in comparison.words)
    return f'<div class="rq-two"><div>{settings}</div><div><ul class="rq-list">{words}</ul></div></div>'


def values_html(rows: Sequence[ValueRow], label: str) -> str:
    """Numbers of A and B and the change, with a word for better or worse."""
    body = "".join(
        f'<tr><th scope="row">{escape(row.name)}</th><td>{_number(row.a, row)}</td><td>{_number(row.b, row)}</td>'
        f"<td>{_change(row)}</td></tr>"
        for row in rows
        if row.a is not None or row.b is not None
    )
    return _table(label, ("", "A", "B", "B − A"), body, "rq-values")


def _number(value: float | None, row: ValueRow) -> str:
    return "–" if value is None else f"{value:.{row.digits}f}"


def _change(row: ValueRow) -> str:
    change = row.change
    if change is None:
        return ""
    words = f"{change:+.{row.digits}f}".replace("-", "−")
    if abs(change) < 0.5 * 10**-row.digits:
        return "="
    if not row.higher:
        return words
    return f"{words} {badge_html('better' if change * row.higher > 0 else 'worse', 'plain')}"


def sentences_html(rows: Sequence[SentenceRow]) -> str:
    """A's sentences beside those of B that say the same."""
    body = "".join(
        f"<tr><td>{_said(row.a)}</td><td>{badge_html(row.match, _MATCHES[row.match])}</td><td>{_said(row.b)}</td></tr>"
        for row in rows
    )
    return _table("Sentences", ("A", "", "B"), body, "rq-sides")


def _said(one: Said | None) -> str:
    if one is None:
        return '<span class="rq-fine">–</span>'
    verdict = badge_html(str(one.verdict), VERDICT_CLASS[one.verdict]) if one.verdict else ""
    return f"{one.number}. {text_html(one.text)} {verdict}"


def passages_html(rows: Sequence[PassageRow]) -> str:
    """Ranks in A and in B, how far each moved, and who keeps it."""
    body = "".join(
        f"<tr><td>{_rank(row.rank_a, kept=row.kept_a)}</td><td>{_rank(row.rank_b, kept=row.kept_b)}</td>"
        f'<td>{_moved(row)}</td><td class="rq-wide"><b>{escape(place(row.passage))}</b>'
        f'<span class="rq-snippet">{text_html(_start(row.passage.text))}</span></td></tr>'
        for row in rows
    )
    return _table("Passages", ("A", "B", "moved", "Passage"), body, "rq-ranks")


def _rank(rank: int | None, *, kept: bool) -> str:
    if rank is None:
        return "–"
    return f"{rank} {badge_html('kept', 'good')}" if kept else str(rank)


def _moved(row: PassageRow) -> str:
    if row.moved is None:
        return "only B" if row.rank_a is None else "only A"
    return "=" if row.moved == 0 else f"{'↑' if row.moved > 0 else '↓'} {abs(row.moved)}"


def _start(text: str) -> str:
    return text if len(text) <= 110 else text[:110].rsplit(" ", 1)[0] + "…"


def points_html(rows: Sequence[tuple[str, Point]]) -> str:
    """Points as a table, a row each; a dash where there is no gold."""

    def cell(value: float | None, digits: int) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    body = "".join(
        f'<tr><th scope="row">{text_html(name)}</th><td>{cell(one.f2, 3)}</td><td>{cell(one.recall, 3)}</td>'
        f"<td>{cell(one.recall_at_10, 3)}</td><td>{cell(one.kept, 1)}</td></tr>"
        for name, one in rows
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("F2", "recall", "R@10", "kept"))
    return (
        '<div class="rq-scroll" tabindex="0" role="region" aria-label="Points"><table class="rq-table rq-values">'
        f"<thead><tr><td></td>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _table(label: str, heads: Sequence[str], body: str, kind: str) -> str:
    columns = "".join(f'<th scope="col">{escape(head)}</th>' if head else "<td></td>" for head in heads)
    return (
        f'<div class="rq-scroll rq-tall" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="rq-table {kind}"><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>'
    )
