"""A gap run -> HTML: counts, a row with both texts, the heat map, statements that no rule asks for. Pure, escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from ragqa.corpus.citing import document_name, short_name, short_names
from ragqa.library.gap_rows import (
    ALL,
    MEASURED,
    ORDER,
    WEAKNESS,
    GapRow,
    GapRun,
    Label,
    PolicyReading,
    Statement,
    chapter_of,
)  # fmt: skip
from ragqa.library.register_search import rule_name
from ragqa.types import Passage, Span
from ragqa.ui.html.reader import Mark, passage_text_html, read_address
from ragqa.ui.html.render import marked_html
from ragqa.ui.html.template import Templates

SHOWN_STATEMENTS: Final = 200
_TEMPLATES: Final = Templates("gaps.html")
_KINDS: Final[dict[Label, str]] = {
    "conflicts": "bad",
    "covered": "good",
    "partly": "mixed",
    "not found": "none",
    "not applicable": "plain",
}
_WORDS: Final[dict[Label, str]] = {"conflicts": "Words that clash", "partly": "Missing"}
Find = Callable[[str], Passage | None]  # gives a passage of the policies by its id; None where it is gone


def standing_html(run: GapRun, address: Callable[[str], str] = "?result={}".format) -> str:
    """The number of rows with each label, how many labels people found right, and the measured error rates.

    ``address`` gives the address of the rows with a label.
    """
    counts = Counter(map(run.label, run.gaps))
    shown = [label for label in ORDER if counts[label] or label == "covered"]
    badges = [(f"{counts[label]:,} {label}", _KINDS[label], address(label)) for label in shown]
    return _TEMPLATES.standing(badges, *run.agreement, run.opinions, run.n_near, WEAKNESS, MEASURED)


def row_html(gap: GapRow, run: GapRun, corpus: str, policies: str, find: Find, version: str) -> str:
    """A row: the rule beside the policies' statements with the deciding words marked, else the nearest passage.

    ``version`` says since when the rule has this text.
    """
    label, said = run.label(gap), run.correction(gap)
    words = [words for one in gap.deciding for words in ([rule for rule, _ in one.clashes] or one.words)]
    starts = ((gap.row.text.find(one), one) for one in words)
    spans = [Span(one, start, start + len(one)) for start, one in starts if start >= 0]
    text = marked_html(gap.row.text, spans, "bad" if gap.label == "conflicts" else "mixed")
    rule = read_address(corpus, gap.row.passage_id, (gap.row.start, gap.row.end))
    shown = [(one, _KINDS[one.label], _WORDS.get(one.label, ""), _said(one, policies, find)) for one in gap.deciding]
    said_near = None if shown else gap.nearest
    nearest = "" if shown else said_near.passage_id if said_near else next(iter(gap.near), "")
    passage = find(nearest) if nearest else None
    marks = [Mark(said_near.start, said_near.end, "mixed")] if said_near and passage else []
    near = passage and (passage, read_address(policies, nearest), passage_text_html(passage.text, marks), bool(marks))
    others = [(one, _KINDS[one.label]) for one in gap.readings if one not in gap.deciding]
    judged, is_stale = "" if label == gap.label else gap.label, gap.row.obligation_id in run.stale
    head = (gap.row, rule_name(gap.row), label, _KINDS[label], judged, said, gap.second, is_stale, version)
    return _TEMPLATES.row(*head, rule, text, shown, near, others)


def _said(reading: PolicyReading, policies: str, find: Find) -> list[tuple[str, str, str]]:
    """(number, address, text) of each deciding passage, statements marked; only statements where it has changed."""
    found = []
    for name in dict.fromkeys(one.passage_id for one in reading.statements):
        own = [one for one in reading.statements if one.passage_id == name]
        passage, kind = find(name), "bad" if reading.label == "conflicts" else "good"
        if passage and all(passage.text[one.start : one.end] == one.text for one in own):
            marks = [Mark(one.start, one.end, kind) for one in own]
            address = read_address(policies, name, (own[0].start, own[0].end))
            found.append((short_name(passage), address, passage_text_html(passage.text, marks)))
        else:
            found.append(("", "", passage_text_html("\n".join(one.text for one in own))))
    return found


def matrix_html(run: GapRun, address: Callable[[str, str], str]) -> str:
    """The heat map: a cell's colour is the share of its rows that the policy does not cover; its text has the counts.

    A single policy is the only column, with people's corrections.
    ``address`` gives the address of the rows of a chapter and a policy ("": all policies).
    """
    titles = sorted({policy for _, policy in run.matrix} - {ALL})
    policies, rows = [ALL, *titles] if len(titles) > 1 else titles or [ALL], []
    names = {chapter_of(gap.row): chapter_of(gap.row, document_name) for gap in run.gaps}
    known = Counter(names.values())
    for chapter in dict.fromkeys(chapter for chapter, _ in run.matrix):
        cells = []
        for policy in policies:
            counts = run.matrix.get((chapter, policy if len(titles) > 1 else ALL), Counter())
            total = counts.total() - counts["not applicable"]
            told = ", ".join(f"{counts[label]:,} {label}" for label in ORDER if counts[label])
            link = address(chapter, "" if policy == ALL else policy)
            cells.append((policy, counts["covered"], total, told, 1 - counts["covered"] / total if total else 0, link))
        rows.append((names[chapter] if known[names[chapter]] == 1 else chapter, cells))
    return _TEMPLATES.matrix(policies, rows)


def unasked_html(statements: Sequence[Statement], policies: str, find: Find) -> str:
    """Statements of the policies on which no row rests, each with a link to its place."""
    shown = [(one, passage) for one in statements[:SHOWN_STATEMENTS] if (passage := find(one.passage_id))]
    named = short_names([passage for _, passage in shown])
    rows = [
        (one.whole, name, read_address(policies, one.passage_id, (one.start, one.end)))
        for (one, _), name in zip(shown, named, strict=True)
    ]
    return _TEMPLATES.unasked(rows, len(statements))
