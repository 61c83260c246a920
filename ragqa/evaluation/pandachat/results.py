"""PandaChat-RAG's results: one row a system and k, the published rows as data, the benchmark's own list and table.

Its script appends to ``results.json`` whatever was there before, so that evaluating twice doubles a row; here a row
takes the place of the one with its scenario, system and k.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.json_items import read_items
from ragqa.evaluation.journal import write_whole

SCENARIO: Final = "aqa-sl"  # attributed question answering, Slovenian: the benchmark's one scenario so far
N_QUESTIONS: Final = 206
PUBLISHED_SOURCE: Final = (
    "TajaKuzman/pandachat-rag-benchmark, results/results.json as of commit 65283d1, read in November 2026"
)
RESULTS, TABLE = "results.json", f"results-{SCENARIO}.md"
_KEY = ("eval_scenario", "system", "evaluated-top-k")
_SECONDS, _COUNT, _PERCENT = "time_per_question (s)", "correct_retrieval_count", "correct_retrieval_per"


@dataclass(frozen=True, slots=True)
class PandachatRow:
    """How many of ``n_questions`` a system got right among its first ``top_k`` sources.

    ``seconds`` are the mean of a question; None where the submission does not say.
    """

    system: str
    top_k: int
    seconds: float | None
    n_right: int
    n_questions: int = N_QUESTIONS

    @property
    def percent(self) -> float:
        """Right ones of all, in [0, 100]; 0 of no question."""
        return self.n_right / self.n_questions * 100 if self.n_questions else 0.0

    def as_json(self) -> dict[str, Any]:
        """The row under the names of the benchmark's ``results.json``."""
        return {
            "eval_scenario": SCENARIO,
            "system": self.system,
            "evaluated-top-k": self.top_k,
            _SECONDS: self.seconds,
            _COUNT: self.n_right,
            _PERCENT: self.percent,
        }


PUBLISHED: Final = (  # in the order of the file
    PandachatRow("bge-m3", 2, 0.5793855849978993, 206),
    PandachatRow("gte-multilingual-base", 2, 0.3100063349436788, 204),
    PandachatRow("multilingual-e5-base", 2, 0.28573827141696967, 205),
    PandachatRow("multilingual-e5-large", 2, 0.5838590316402102, 206),
    PandachatRow("multilingual-e5-small", 2, 0.15391959032966096, 203),
    PandachatRow("text-embedding-3-large", 2, 1.1900231629899405, 204),
    PandachatRow("text-embedding-3-small", 2, 0.6923161988119477, 205),
    PandachatRow("text-embedding-ada-002", 2, 0.6312838966406665, 203),
    PandachatRow("qdrant-openai-embedding-3-small", 2, 0.42931009496299966, 199),
    PandachatRow("local-storage-text-embedding-3-small", 2, 0.6412383144341626, 205),
    PandachatRow("qdrant-docker-openai-embedding-3-small", 2, 0.39568439154949003, 205),
)


def merge_rows(before: Iterable[Mapping[str, Any]], new: Iterable[PandachatRow]) -> list[dict[str, Any]]:
    """``before`` with each new row in the place of the one with its scenario, system and k, else at the end.

    Rows are as in ``results.json``. Of several in ``before`` that share these three, the last counts.
    """
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in (*before, *(one.as_json() for one in new)):
        found[tuple(row.get(key) for key in _KEY)] = dict(row)
    return list(found.values())


def write_results(folder: Path, new: Sequence[PandachatRow]) -> tuple[Path, Path]:
    """Puts the rows into the folder's ``results.json`` and makes its table anew; gives both files.

    A ``results.json`` that is there, the benchmark's own or of an earlier run, keeps its other rows; without one the
    published rows come first. Raises CorpusError where it is no list of rows.
    """
    file, table = folder / RESULTS, folder / TABLE
    before = [item.values for item in read_items(file, file.name)] if file.exists() else _json(PUBLISHED)
    rows = merge_rows(before, new)
    write_whole(file, [json.dumps(rows, indent=2)])
    write_whole(table, [markdown_table([row for row in rows if row.get("eval_scenario") == SCENARIO])])
    return file, table


def _json(rows: Iterable[PandachatRow]) -> list[dict[str, Any]]:
    return [row.as_json() for row in rows]


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table as the benchmark's script writes it, character for character: best first, equal ones in their order.

    That is pandas' ``to_markdown(index=False)``: six significant digits, decimal points under each other.
    """
    ordered = sorted(rows, key=lambda row: -_number(row.get(_PERCENT)))
    columns = [
        (name, [_cell(row.get(name)) for row in ordered], name in _KEY[:2])
        for name in (*_KEY, _SECONDS, _COUNT, _PERCENT)
    ]
    lines: list[list[str]] = [[] for _ in range(len(ordered) + 2)]
    for name, cells, is_text in columns:
        aligned = cells if is_text else _aligned(cells)
        width = max(len(name) + 2, *map(len, aligned)) if aligned else len(name) + 2
        rule = f":{'-' * (width + 1)}" if is_text else f"{'-' * (width + 1)}:"
        padded = [cell.ljust(width) if is_text else cell.rjust(width) for cell in (name, *aligned)]
        for line, cell in zip(lines, (f" {padded[0]} ", rule, *(f" {cell} " for cell in padded[1:])), strict=True):
            line.append(cell)
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _cell(value: object) -> str:
    match value:
        case float():
            return f"{value:g}"
        case None:
            return "nan"
        case _:
            return str(value).replace("|", "\\|")


def _aligned(cells: Sequence[str]) -> list[str]:
    """The numbers with blanks behind them, so that their decimal points meet when they stand to the right."""
    behind = [len(cell) - (cell.rfind(".") if "." in cell else len(cell)) for cell in cells]
    return [cell + " " * (max(behind) - after) for cell, after in zip(cells, behind, strict=True)]
