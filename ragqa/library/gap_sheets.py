"""A gap run as sheets: rows with both texts, the matrix by chapter and policy, statements that no rule asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ragqa.infra.sheets import Sheet, Value, write_sheets
from ragqa.library import edits
from ragqa.library.gap_rows import LABELS, SAID, Correction, GapRow, GapRun, PolicyReading
from ragqa.library.register_sheets import row_cells

HEADS: Final = (
    "id", "document", "rule", "strength", "text", "result", "policy", "passages", "policy says", "missing or clashing",
    "read again since", *edits.names_of(Correction), edits.WRITTEN,
)  # fmt: skip
_WIDTHS: Final = {"id": 14, "text": 70, "policy says": 70, "missing or clashing": 50, "comment": 40, "chapter": 50}


def write_gaps(path: Path, run: GapRun) -> None:
    """Writes the run as ``.xlsx``, or its rows as ``.csv``; `edits.read_edits` reads it back. Raises CorpusError."""
    rows = Sheet("Gaps", HEADS, list(_rows(run)), _WIDTHS, {"said": SAID}, edits.WRITTEN)
    counts: list[tuple[Value, ...]] = [
        (chapter, policy, *(counts[label] for label in LABELS)) for (chapter, policy), counts in run.matrix.items()
    ]
    matrix = Sheet("Matrix", ("chapter", "policy", *LABELS), counts, _WIDTHS)
    unasked = [(one.passage_id, one.text) for one in run.unasked]
    write_sheets(path, [rows, matrix, Sheet("Statements without a rule", ("passage", "policy says"), unasked, _WIDTHS)])


def _rows(run: GapRun) -> Iterator[tuple[Value, ...]]:
    for gap in run.gaps:
        stale = "yes" if gap.row.obligation_id in run.stale else ""
        yield (*row_cells(gap.row)[:5], run.label(gap), *evidence(gap), stale, *edits.cells_of(run.correction(gap)))


def evidence(gap: GapRow) -> tuple[str, str, str, str]:
    """The deciding policies, their passage ids, their statements, and the words that are missing or clash."""
    said = [one for reading in gap.deciding for one in reading.statements]
    return (
        "; ".join(reading.title for reading in gap.deciding),
        "; ".join(dict.fromkeys(one.passage_id for one in said)),
        " … ".join(dict.fromkeys(one.text for one in said)),
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
