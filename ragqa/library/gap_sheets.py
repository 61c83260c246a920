"""A gap run as sheets: rows with both texts, the matrix by chapter and policy, statements that no rule asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.citing import short_names
from ragqa.infra.sheets import Sheet, Value, write_sheets
from ragqa.library import edits
from ragqa.library.gap_rows import LABELS, SAID, Correction, GapRow, GapRun, PolicyReading
from ragqa.library.register_sheets import row_cells
from ragqa.types import Passage

HEADS: Final = (
    "id", "document", "rule", "strength", "text", "result", "policy", "passages", "policy says", "missing or clashing",
    "read again since", *edits.names_of(Correction), edits.WRITTEN,
)  # fmt: skip
_WIDTHS: Final = {"id": 14, "text": 70, "policy says": 70, "missing or clashing": 50, "comment": 40, "chapter": 50}


def write_gaps(path: Path, run: GapRun, policies: Sequence[Passage]) -> None:
    """Writes the run as ``.xlsx``, or its rows as ``.csv``; `edits.read_edits` reads it back. Raises CorpusError.

    ``policies`` are the passages of the policies, which are cited by name.
    """
    names = cited_names(policies)
    rows = Sheet("Gaps", HEADS, list(_rows(run, names)), _WIDTHS, {"said": SAID}, edits.WRITTEN)
    counts: list[tuple[Value, ...]] = [
        (chapter, policy, *(counts[label] for label in LABELS)) for (chapter, policy), counts in run.matrix.items()
    ]
    matrix = Sheet("Matrix", ("chapter", "policy", *LABELS), counts, _WIDTHS)
    unasked = [(names.get(one.passage_id, ""), one.whole) for one in run.unasked]
    write_sheets(path, [rows, matrix, Sheet("Statements without a rule", ("passage", "policy says"), unasked, _WIDTHS)])


def cited_names(policies: Sequence[Passage]) -> dict[str, str]:
    """The name by which each of these passages is cited, by its id."""
    return dict(zip((one.passage_id for one in policies), short_names(policies), strict=True))


def _rows(run: GapRun, names: Mapping[str, str]) -> Iterator[tuple[Value, ...]]:
    for gap in run.gaps:
        stale = "yes" if gap.row.obligation_id in run.stale else ""
        titles, says, lacking = evidence(gap)
        said = [names.get(one.passage_id, reading.title) for reading in gap.deciding for one in reading.statements]
        shown = (titles, "; ".join(dict.fromkeys(said)), says, lacking, stale)
        yield (*row_cells(gap.row)[:5], run.label(gap), *shown, *edits.cells_of(run.correction(gap)))


def evidence(gap: GapRow) -> tuple[str, str, str]:
    """The deciding policies, their statements (else the nearest one), and the words that are missing or clash."""
    said = [one for reading in gap.deciding for one in reading.statements]
    near = f"nearest: {gap.nearest.text}" if gap.nearest else ""
    return (
        "; ".join(reading.title for reading in gap.deciding),
        " … ".join(dict.fromkeys(one.text for one in said)) or near,
        "; ".join(dict.fromkeys(words for reading in gap.deciding for words in _lacking(reading))),
    )


def _lacking(reading: PolicyReading) -> Sequence[str]:
    """The missing words; of a conflict the rule's words and the policy's."""
    return [f"“{rule}” against “{policy}”" for rule, policy in reading.clashes] or reading.words


def as_json(run: GapRun) -> dict[str, Any]:
    """The run as plain values: rows with every policy's reading, matrix, statements, agreement."""
    right, n_said = run.agreement
    return {
        "rows": [
            asdict(gap)
            | asdict(run.correction(gap))
            | {"result": run.label(gap), "read_again": gap.row.obligation_id in run.stale}
            for gap in run.gaps
        ],
        "matrix": [
            {"chapter": chapter, "policy": policy, **counts} for (chapter, policy), counts in run.matrix.items()
        ],
        "unasked": [asdict(one) for one in run.unasked],
        "agreement": {"right": right, "of": n_said},
    }
