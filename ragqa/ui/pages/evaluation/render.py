"""Values of an evaluation -> HTML. Pure; every text is escaped, whatever benchmark, file or model it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import quote

from ragqa.evaluation.benchmark import Benchmark, Settings
from ragqa.evaluation.report import CheckedSentence, Column, Comparison, Figure, Hit, Line, Row
from ragqa.types import Passage
from ragqa.types.scores import Verdict
from ragqa.ui.html.render import VERDICT_CLASS, badge_html, number_html, place, text_html
from ragqa.ui.pages.evaluation.runs import RunSummary

GONE = "The text of this passage is not at hand: its index is gone or was rebuilt."
_STATES = {"done": "good", "running": "plain", "stopped": "mixed", "interrupted": "mixed", "failed": "bad"}


def duration_words(seconds: float) -> str:
    """``"about 3 min"``: no more exact than an estimate is."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def figures_html(figures: Sequence[Figure]) -> str:
    """The run's numbers as tiles."""
    tiles = "".join(
        f'<div class="rq-tile"><span class="rq-tile-label">{escape(figure.label)}</span>'
        f'<span class="rq-tile-number">{escape(figure.text)}</span>'
        f'<span class="rq-part">{escape(figure.explanation)}</span></div>'
        for figure in figures
    )
    return f'<div class="rq-tiles" role="group" aria-label="Figures">{tiles}</div>'


def run_head_html(benchmark: Benchmark, settings: Settings) -> str:
    """Which run this is."""
    words = text_html(benchmark.words(settings))
    return f'<p class="rq-question">{escape(benchmark.title)}</p><p class="rq-fine">{words}</p>'


def steps_html(row: Row) -> str:
    """How the answer or the ranking came about, a line each."""
    return f'<p class="rq-fine">{"<br>".join(map(text_html, row.steps))}</p>'


def latest_html(rows: Sequence[Row], columns: Sequence[Column], benchmark: Benchmark) -> str:
    """The questions done last, newest first, while others are under way."""
    lines = "".join(
        f'<tr><td>{row.number}</td><td class="rq-wide">{text_html(_cut(row.question, 140))}</td>'
        f"<td>{_right_html(row, benchmark)}</td>{_value_cells(row, columns)}</tr>"
        for row in reversed(rows)
    )
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("#", "question", ""))
    heads += "".join(f'<th scope="col">{escape(column.heading)}</th>' for column in columns)
    return _scrolled(f'<table class="rq-table"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>', "Latest")


def comparison_html(comparison: Comparison) -> str:
    """This run's lines, marked as such, and others; a table that scrolls in itself."""
    has_origins = any(line.origin for line in comparison.lines)
    names = (comparison.first, *comparison.headings, *(("from",) if has_origins else ()))
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    lines = "".join(
        f'<tr class="{"rq-ours" if line.is_ours else ""}"><td class="rq-wide">{text_html(line.name)}</td>'
        f"{''.join(f'<td>{escape(cell)}</td>' for cell in line.cells)}"
        f"{'<td></td>' * (len(comparison.headings) - len(line.cells))}"
        f"{f'<td>{_origin_html(line)}</td>' if has_origins else ''}</tr>"
        for line in comparison.lines
    )
    kind = "rq-compared" if has_origins else "rq-compared rq-figures"
    table = f'<table class="rq-table {kind}"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>'
    return f'{_scrolled(table, "Comparison")}<p class="rq-fine">{escape(comparison.caption)}</p>'


def _origin_html(line: Line) -> str:
    return badge_html(line.origin, "good") if line.origin == "this run" else escape(line.origin)


def question_head_html(row: Row, columns: Sequence[Column], benchmark: Benchmark) -> str:
    """The question, whether it is right and what that means, and its values."""
    verdict = ""
    if row.right is not None:
        words = f"{benchmark.right}." if row.right else f"“{benchmark.verdicts[0]}” would mean: {benchmark.right}."
        verdict = f'<p class="rq-fine">{_right_html(row, benchmark)} {escape(words)}</p>'
    values = "".join(
        f"<span>{escape(column.heading)} <b>{number_html(row.values.get(column.key), column.decimals)}</b></span>"
        for column in columns
        if column.key in row.values
    )
    note = f'<p class="rq-fine">{text_html(row.note)}</p>' if row.note else ""
    return (
        f'<p class="rq-question">{row.number}. {text_html(row.question)}</p>'
        f'<p class="rq-fine">question {escape(row.question_id)}</p>'
        f'{verdict}<div class="rq-seconds">{values}</div>{note}'
    )


def hits_html(row: Row, passages: Mapping[str, Passage | None]) -> str:
    """What was found, best first, gold marked; each opens its text. Then the gold that is not among it."""
    rows = "".join(_hit(rank, hit, passages.get(hit.passage_id)) for rank, hit in enumerate(row.hits, start=1))
    found = {name for hit in row.hits if hit.is_gold for name in (hit.passage_id, hit.document_id)}
    missed = [name for name in row.gold if name not in found]
    table = f'<div class="rq-rows">{rows}</div>' if rows else '<p class="rq-fine">No passage was found.</p>'
    if not missed:
        return table
    gold = "".join(_missed(name, passages.get(name)) for name in missed)
    return f'{table}<p class="rq-fine">Gold that is not among these:</p><div class="rq-rows">{gold}</div>'


def _hit(rank: int, hit: Hit, passage: Passage | None) -> str:
    gold = badge_html("gold", "good") if hit.is_gold else ""
    score = "" if hit.score is None else f'<span class="rq-num">{hit.score:.3f}</span>'
    cells = f'<div class="rq-cells"><span class="rq-num">{rank}</span>{score}{gold}</div>'
    return _passage_row(cells, hit.passage_id, passage)


def _missed(name: str, passage: Passage | None) -> str:
    return _passage_row(f'<div class="rq-cells">{badge_html("gold, missed", "bad")}</div>', name, passage)


def _passage_row(cells: str, name: str, passage: Passage | None) -> str:
    where = place(passage) if passage else name
    shown = escape(_cut(" ".join(passage.text.split()), 160)) if passage else ""
    text = text_html(passage.text) if passage else GONE
    return (
        f'<details class="rq-row rq-found"><summary>{cells}<div><b>{escape(where)}</b>'
        f'<span class="rq-snippet">{shown}</span></div></summary><div class="rq-inside">'
        f'<p class="rq-fine">passage {escape(name)}</p><div class="rq-passage">{text}</div></div></details>'
    )


def answer_html(answer: str, sentences: Sequence[CheckedSentence]) -> str:
    """The answer's sentences with their verdicts, E, C and citations; its text alone where it was not scored."""
    if not sentences:
        return f'<div class="rq-answer">{text_html(answer) or "The answer is empty."}</div>'
    rows = "".join(
        f'<tr><td class="rq-wide">{text_html(one.text)}</td><td>{badge_html(one.verdict, _kind(one.verdict))}</td>'
        f"<td>{one.entailment:.3f}</td><td>{one.contradiction:.3f}</td><td>{escape(one.citations)}</td></tr>"
        for one in sentences
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("sentence", "verdict", "E", "C", "citations"))
    table = (
        f'<table class="rq-table rq-compared rq-checked"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    )
    return _scrolled(table, "Answer sentences")


def matches_html(row: Row) -> str:
    """The reference's strings, each with whether it stands in the answer."""
    items = "".join(
        f"<li>{badge_html('in the answer', 'good') if match.found else badge_html('missing', 'bad')} "
        f"{text_html(match.reference)}</li>"
        for match in row.matches
    )
    return f'<ul class="rq-list">{items}</ul>'


def runs_html(runs: Sequence[RunSummary]) -> str:
    """Earlier runs as a table; each links to its results."""
    heads = "".join(
        f'<th scope="col">{head}</th>' for head in ("time (UTC)", "benchmark", "state", "done", "figures", "of what")
    )
    lines = "".join(
        f"<tr><td>{escape(run.started[:16].replace('T', ' '))}</td>"
        f'<td><a href="evaluate?run={quote(run.run_id)}" target="_self">{escape(run.title)}</a></td>'
        f"<td>{badge_html(run.state, _STATES.get(run.state, 'plain'))}</td><td>{_done(run)}</td>"
        f'<td class="rq-wide">{escape(run.headline)}</td><td class="rq-wide">{escape(run.words)}</td></tr>'
        for run in runs
    )
    return (
        '<div class="rq-scroll rq-tall" tabindex="0" role="region" aria-label="Earlier runs"><table class="rq-table">'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _done(run: RunSummary) -> str:
    return f"{run.done:,} of {run.total:,}" if run.total else "–"


def _right_html(row: Row, benchmark: Benchmark) -> str:
    if row.right is None:
        return ""
    right, wrong = benchmark.verdicts
    return badge_html(right, "good") if row.right else badge_html(wrong, "bad")


def _value_cells(row: Row, columns: Sequence[Column]) -> str:
    return "".join(f"<td>{number_html(row.values.get(column.key), column.decimals)}</td>" for column in columns)


def _kind(verdict: str) -> str:
    return VERDICT_CLASS[Verdict(verdict)] if verdict in set(Verdict) else "plain"


def _scrolled(table: str, label: str) -> str:
    return f'<div class="rq-scroll" tabindex="0" role="region" aria-label="{escape(label)}">{table}</div>'


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + "…"
