"""A gap run as a memo: counts, the rows that are not covered with both texts, and the review page. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ragqa.english.words import quantity
from ragqa.infra.version import __version__
from ragqa.library.gap_rows import MEASURED, ORDER, WEAKNESS, GapRun
from ragqa.library.gap_sheets import evidence
from ragqa.library.register_search import rule_name
from ragqa.records.memo import Block, Grid, Memo, MemoSection, Paragraph, Points, review_page
from ragqa.records.sign_off import SignOff

MOST: Final = 500  # rows of each label, and statements; the sheet has all of them
_OPEN: Final = ORDER[:3]


def gap_memo(
    run: GapRun,
    corpus: str,
    policies: str,
    versions: Mapping[str, str],
    signed: Sequence[SignOff] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> Memo:
    """The memo on this run; ``corpus`` and ``policies`` are the titles of both corpora.

    ``names`` are those of the policies' passages, from `cited_names`, ``versions`` names and fingerprints,
    ``signed`` the decisions on the run, for the review page.
    """
    made = Grid(("What", "Value"), (("ragqa", __version__), *versions.items()), (35, 65))
    blocks = (*_blocks(run, names), MemoSection("Settings and fingerprints", 1), made, *review_page(signed))
    return Memo(f"{policies} held against {corpus}", blocks)


def _blocks(run: GapRun, names: Mapping[str, str]) -> Iterator[Block]:
    counts = Counter(map(run.label, run.gaps))
    yield MemoSection("Result", 1)
    told = ", ".join(f"{counts[label]:,} {label}" for label in ORDER if counts[label])
    yield Paragraph(f"{quantity(len(run.gaps), 'row')}: {told}", is_strong=True)
    right, n_said = run.agreement
    yield Paragraph(f"People judged {n_said:,} of the present results and found {right:,} right. {WEAKNESS} {MEASURED}")
    for label in _OPEN:
        rows = [(gap, run.correction(gap), evidence(gap)) for gap in run.gaps if run.label(gap) == label]
        if rows:
            yield MemoSection(label.capitalize(), 1)
            cells = (
                (
                    rule_name(gap.row),
                    gap.row.text,
                    f"{titles}: {says}" if titles else says or "–",
                    "; ".join(filter(None, (lacking, said.comment))),
                )
                for gap, said, (titles, says, lacking) in rows[:MOST]
            )
            yield Grid(("Rule", "Text", "Policy says", "Missing, clashing, comment"), tuple(cells), (18, 32, 29, 21))
            yield from _more(len(rows))
    if run.unasked:
        yield MemoSection("Statements of the policies on which no row rests", 1)
        told_by = ((one.whole, names.get(one.passage_id)) for one in run.unasked[:MOST])
        yield Points(tuple(f"{text} ({name})" if name else text for text, name in told_by))
        yield from _more(len(run.unasked))


def _more(n: int) -> Iterator[Block]:
    if n > MOST:
        yield Paragraph(f"and {n - MOST:,} more, which the sheet of this run has.")
