"""Published figures of retrieval, as data: other people's systems on ObliQA's test questions; none computed here."""

from __future__ import annotations

from dataclasses import dataclass

from ragqa.evaluation.published import AUEB, RIRAG


@dataclass(frozen=True, slots=True)
class PublishedRetrieval:
    """A row of a table: Recall@10 and MAP@10 over ObliQA's test questions, both in [0, 1]."""

    source: str
    table: str
    name: str
    recall: float
    mean_average_precision: float


def _rows(source: str, table: str, *rows: tuple[str, float, float]) -> list[PublishedRetrieval]:
    """Rows of (name, R@10, M@10) in percent, as the papers print them."""
    return [PublishedRetrieval(source, table, name, recall / 100, m / 100) for name, recall, m in rows]


PUBLISHED_RETRIEVAL: tuple[PublishedRetrieval, ...] = (
    *_rows(
        RIRAG,
        "4",
        ("BM25", 76.1, 62.4),
        ("BM25 + documents", 76.4, 62.5),
        ("DRAGON+", 74.3, 58.1),
        ("SPLADEv2", 75.7, 60.4),
        ("ColBERTv2", 77.7, 63.0),
        ("NV-Embed-v2", 78.3, 63.5),
        ("BGE-EN-ICL", 77.1, 62.4),
    ),
    *_rows(
        AUEB,
        "1",
        ("text-embedding-3-large", 73.9, 57.4),
        ("voyage-law-2", 77.1, 62.8),
        ("voyage-finance-2", 79.0, 65.6),
    ),
    *_rows(
        AUEB,
        "2",
        ("BM25 + OL3", 78.9, 65.0),
        ("VL2 + VF2", 79.4, 66.0),
        ("BM25 + VL2", 79.9, 66.5),
        ("BM25 + VF2", 80.4, 67.6),
        ("BM25 + VL2 + VF2", 81.1, 69.0),
    ),
)
