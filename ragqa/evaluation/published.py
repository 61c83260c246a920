"""Published figures of answer generation, as data: other models on other retrievers, beside which ours may be read.

None of them was computed here. RePASs depends on the retriever, the language model and the scoring models; figures from
the embedded scoring models are not on the scale of these.
"""

from __future__ import annotations

from dataclasses import dataclass

RIRAG = "Gokhan et al. 2024, arXiv:2409.05677"
AUEB = "Chasandras et al. 2025, AUEB-Archimedes at RIRAG-2025"


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of a table: RePASs and its parts in [0, 1], None where the table does not give them."""

    source: str
    table: str
    name: str
    composite: float
    entailment: float | None = None
    contradiction: float | None = None
    obligation_coverage: float | None = None


def _rows(
    source: str, table: str, *rows: tuple[str, float, float | None, float | None, float | None]
) -> list[PublishedRow]:
    """Rows of (name, RePASs, obligation coverage, entailment, contradiction): the order in which AUEB print them."""
    return [PublishedRow(source, table, name, repass, e, c, oc) for name, repass, oc, e, c in rows]


PUBLISHED: tuple[PublishedRow, ...] = (
    *_rows(
        RIRAG,
        "5",
        ("BM25 (passage-only) + GPT-4, ObliQA test", 0.466, 0.214, 0.308, 0.123),
        ("BM25 (rank fusion) + GPT-4, ObliQA test", 0.470, 0.222, 0.320, 0.131),
    ),
    *_rows(
        AUEB,
        "3",
        ("threshold .70, max drop .20", 0.4708, None, None, None),
        ("threshold .75, max drop .05", 0.5006, None, None, None),
        ("threshold .80, max drop .05", 0.5050, None, None, None),
        ("threshold .85, max drop .15", 0.5001, None, None, None),
        ("threshold .90, max drop .10", 0.5117, None, None, None),
    ),
    *_rows(
        AUEB,
        "4",
        ("passages", 0.411, 0.147, 0.177, 0.090),
        ("obligations", 0.413, 0.156, 0.172, 0.090),
        ("obligations + prompt", 0.512, 0.278, 0.366, 0.109),
    ),
    *_rows(
        AUEB,
        "5",
        ("GPT-4o baseline", 0.583, 0.220, 0.769, 0.238),
        ("human experts", 0.859, 1.000, 0.837, 0.260),
        ("Indic aiDias", 0.973, 0.993, 0.987, 0.062),
        ("Ocean's Eleven", 0.971, 0.991, 0.986, 0.065),
        ("NOC", 0.947, 0.951, 0.986, 0.096),
        ("VRR, GPT-4o", 0.639, 0.502, 0.446, 0.031),
        ("AICOE", 0.601, 0.230, 0.827, 0.254),
        ("LOC, GPT-4o-mini", 0.562, 0.423, 0.375, 0.110),
    ),
    *_rows(
        AUEB,
        "7",
        ("preprocessing", 0.506, 0.246, 0.408, 0.136),
        ("verify", 0.611, 0.389, 0.527, 0.083),
        ("removal 1", 0.638, 0.389, 0.554, 0.030),
        ("insertion 1", 0.634, 0.465, 0.490, 0.053),
        ("removal 2", 0.643, 0.464, 0.497, 0.032),
        ("insertion 2", 0.637, 0.496, 0.464, 0.049),
        ("removal 3", 0.643, 0.494, 0.467, 0.030),
        ("insertion 3", 0.642, 0.527, 0.446, 0.046),
        ("removal 4", 0.647, 0.525, 0.446, 0.031),
        ("insertion 4", 0.641, 0.538, 0.430, 0.045),
    ),
)


def published(source: str, table: str) -> tuple[PublishedRow, ...]:
    """The rows of one table, in its order; none where it is not here."""
    return tuple(row for row in PUBLISHED if row.source == source and row.table == table)
