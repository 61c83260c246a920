"""What stands around the scores -> HTML: both modes, growth with the passages, provenance. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ragqa.repass.explanation import PassageStep
from ragqa.types import Breakdown
from ragqa.ui.render import text_html


def modes_html(paper: Breakdown, script: Breakdown, differences: Sequence[str] = ()) -> str:
    """Both definitions side by side, with what they treat differently in this answer."""
    rows = "".join(
        f"<tr><td>{text_html(e.mode)}</td><td>{e.repass.entailment:.3f}</td><td>{e.repass.contradiction:.3f}</td>"
        f"<td>{e.repass.obligation_coverage:.3f}</td><td>{e.repass.composite:.3f}</td></tr>"
        for e in (paper, script)
    )
    return (
        '<table class="rq-table rq-small"><thead><tr><th scope="col">mode</th><th scope="col">E</th>'
        '<th scope="col">C</th><th scope="col">OC</th><th scope="col">RePASs</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>" + (_list(differences) if differences else "")
    )


def growth_html(growth: Sequence[PassageStep]) -> str:
    """In words what the chart beside it draws: E and C with the best passage alone, half way and with all."""
    if not growth:
        return _fine("No passage was kept, so there is nothing to compare the answer with.")
    first, last = growth[0], growth[-1]
    words = f"With the best passage alone E is {first.entailment:.3f} and C {first.contradiction:.3f}"
    if len(growth) == 1:
        return _fine(words + "; it is the only one kept.")
    words += f"; with all {last.k} kept, E is {last.entailment:.3f} and C {last.contradiction:.3f}"
    return _fine(
        f"{words}. Both are maxima over the source sentences, so each passage more can only raise them: a longer list "
        "of passages finds more contradiction in the same answer."
    )


def provenance_html(facts: Sequence[tuple[str, str]]) -> str:
    """(what, value) of everything the numbers rest on, one a line."""
    return _list([f"{what}: {value}" for what, value in facts])


def _list(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{text_html(line)}</li>" for line in lines)
    return f'<ul class="rq-fine rq-list">{items}</ul>'


def _fine(text: str) -> str:
    return f'<p class="rq-fine">{text_html(text)}</p>'
