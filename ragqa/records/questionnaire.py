"""A questionnaire: an XLSX or CSV file with a column of questions, to which the answers are added row by row.

The answers go into another file, which is complete after each row. After a restart, answered rows are not asked again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final, TypeAlias

from ragqa.corpus.citing import short_name
from ragqa.corpus.documents.sheets import decoded
from ragqa.errors import ConfigError, QuestionError
from ragqa.infra.cleaning import cell, writable
from ragqa.infra.files import replacing
from ragqa.infra.sheets import Value, open_book, put
from ragqa.records.memo import rules_of, trust_marks
from ragqa.records.view import View, shown
from ragqa.records.words import headline

HEADS: Final = tuple(
    f"ragqa {name}" for name in ("result", "answer", "rules", "verdicts", "confidence", "RePASs", "record")
)
QUESTION: Final = "question"
HEAD_ROWS: Final = 20  # rows in which the head of the question column is searched
_WIDE: Final = 60  # width in characters of the answer column in a workbook; other columns have a third


def reply(view: View) -> tuple[Value, ...]:
    """The cells for an answered question, in the order of `HEADS`.

    Confidence is the lowest calibrated probability of its verdicts, in [0, 1]; empty where rules decided all of them.
    """
    found = shown(view, view.config.scoring.mode)
    result, _ = headline(view, found)
    missing = "; ".join(view.answer.not_found) if view.answer else ""
    rules = dict.fromkeys(short_name(passage) for cited in rules_of(view, found) for passage in cited)
    sure = [one.probability for one in found.verdicts if one.probability is not None]
    scored = found.evaluation if view.answer and not view.answer.is_refusal else None
    return (
        f"{result}. Not found: {missing}" if missing else result,
        view.answer.text if view.answer else "",
        "; ".join(rules),
        "; ".join(trust_marks(found)),
        round(min(sure), 3) if sure else "",
        round(scored.repass.composite, 3) if scored else "",
        view.record_id,
    )


def failure(error: Exception) -> tuple[Value, ...]:
    """The cells for a question that failed, with the reason. Without a record it is asked again in the next run."""
    return (f"Failed: {error}", *[""] * (len(HEADS) - 1))


_Sheet: TypeAlias = "_Csv | _Book"


class Questionnaire:
    """The rows of a file and their answers so far. Only one process may use it on one ``out``.

    The questions are below the head ``column``, by default "question". The rest of the file is copied. Where ``out``
    exists, its answers are kept for rows with the same question. Raises QuestionError for a file that cannot be read or
    has no such head, ConfigError where ``out`` has another suffix or holds something else.
    """

    def __init__(self, file: Path, out: Path, column: str = "") -> None:
        if file.suffix.lower() != out.suffix.lower():
            msg = f"--out: expected a file that ends in {file.suffix.lower()} as the questions do, found {out.name}"
            raise ConfigError(msg)
        column = column or QUESTION
        self._out, self._sheet = out, _opened(file, column)
        self._head, self._column = _place_of(self._sheet, column, file.name)
        known = {self._sheet.text(self._head, at): at for at in range(1, self._sheet.n_columns + 1)}
        new = iter(range(self._sheet.n_columns + 1, self._sheet.n_columns + 1 + len(HEADS)))
        self._own = [known.get(head) or next(new) for head in HEADS]
        self._sheet.put(self._head, dict(zip(self._own, HEADS, strict=True)))
        if out.exists() and not out.samefile(file):
            self._take_over(_opened(out, column), column)

    @property
    def questions(self) -> dict[int, str]:
        """The questions by row number, counted from 1."""
        rows = range(self._head + 1, self._sheet.n_rows + 1)
        return {row: text for row in rows if (text := self._sheet.text(row, self._column).strip())}

    @property
    def waiting(self) -> dict[int, str]:
        """The questions that have no answer yet."""
        return {row: text for row, text in self.questions.items() if not self._sheet.text(row, self._own[-1])}

    def put(self, row: int, values: Sequence[Value]) -> None:
        """Writes these values, in the order of `HEADS`, into a row and saves the file."""
        self._sheet.put(row, dict(zip(self._own, values, strict=True)))
        self.save()

    def save(self) -> None:
        """Replaces the file ``out`` as a whole."""
        with replacing(self._out) as beside:
            self._sheet.save(beside)

    def _take_over(self, before: _Sheet, column: str) -> None:
        head, at = _place_of(before, column, self._out.name)
        own = {before.text(head, place): place for place in range(1, before.n_columns + 1)}
        if not set(HEADS) <= set(own):
            msg = f"{self._out.name} exists and has no answers of ragqa; name another file, or move it away"
            raise ConfigError(msg)
        for row, question in self.questions.items():
            if before.text(row, own[HEADS[-1]]) and before.text(row, at).strip() == question:
                values = [before.value(row, own[name]) for name in HEADS]
                self._sheet.put(row, dict(zip(self._own, values, strict=True)))


def _opened(file: Path, head: str) -> _Sheet:
    kinds: dict[str, Callable[[Path, str], _Sheet]] = {".xlsx": _Book, ".csv": _Csv}
    if file.suffix.lower() not in kinds:
        msg = f"expected questions in a file that ends in .xlsx or .csv, found {file.name}; save it as one of these"
        raise QuestionError(msg)
    try:
        return kinds[file.suffix.lower()](file, head)
    except csv.Error as error:
        msg = f"{file.name}: expected rows of cells, found {error}; close the quotation mark of each cell"
        raise QuestionError(msg) from error
    except OSError as error:
        msg = f"expected a file of questions, found {file} ({error.strerror or error}); name another"
        raise QuestionError(msg) from error


def _place_of(sheet: _Sheet, head: str, name: str) -> tuple[int, int]:
    """(row, column) of the cell with this head, from 1. Raises QuestionError."""
    rows = range(1, min(sheet.n_rows, HEAD_ROWS) + 1)
    columns = range(1, sheet.n_columns + 1)
    for row in rows:
        for column in columns:
            if _is_head(sheet.text(row, column), head):
                return row, column
    first = next((heads for row in rows if (heads := [sheet.text(row, c) for c in columns if sheet.text(row, c)])), [])
    found = ", ".join(repr(one[:30]) for one in first[:10]) or "nothing"
    msg = f"{name}: expected a column with the head {head!r}, found {found}; name the column of questions by --column"
    raise QuestionError(msg)


def _is_head(text: str, head: str) -> bool:
    return text.strip().rstrip(":").casefold() == head.strip().casefold()


class _Csv:
    """A CSV file, written in UTF-8 with the byte order mark that it was read with and the delimiter beside the head.

    Rows and columns are counted from 1; a missing cell is "". Added cells are escaped so that none is a formula.
    """

    def __init__(self, file: Path, head: str) -> None:
        data = file.read_bytes()
        text = decoded(data)
        self._encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"

        def read(delimiter: str) -> Iterator[list[str]]:
            return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)

        def fits(delimiter: str) -> tuple[bool, int]:
            first = list(islice(read(delimiter), HEAD_ROWS))
            heads = [row for row in first if any(_is_head(one, head) for one in row)]
            return bool(heads), len((heads or first or [[]])[0])

        self._delimiter = max(",;\t", key=fits)
        self._rows = list(read(self._delimiter))
        self.n_rows, self.n_columns = len(self._rows), max(map(len, self._rows), default=0)

    def value(self, row: int, column: int) -> Value:
        return self.text(row, column)

    def text(self, row: int, column: int) -> str:
        cells = self._rows[row - 1] if row <= self.n_rows else []
        return cells[column - 1] if column <= len(cells) else ""

    def put(self, row: int, values: dict[int, Value]) -> None:
        cells = self._rows[row - 1]
        cells += [""] * (max(values) - len(cells))
        for column, value in values.items():
            cells[column - 1] = cell(writable(str(value)))

    def save(self, path: Path) -> None:
        with path.open("w", encoding=self._encoding, newline="") as file:
            csv.writer(file, delimiter=self._delimiter).writerows(self._rows)


class _Book:
    """The first sheet of a workbook with the head of the questions, else the first; other sheets stay unchanged."""

    def __init__(self, file: Path, head: str) -> None:
        try:
            self._book, computed = open_book(file), open_book(file, data_only=True)
        except ValueError as error:
            msg = f"expected a whole workbook, found {file.name}, which is damaged; open it in Excel and save it again"
            raise QuestionError(msg) from error
        wanted = head.strip().casefold()
        with_head = (sheet.title for sheet in computed.worksheets if wanted in _first_words(sheet))
        title = next(with_head, computed.worksheets[0].title)
        self._sheet: Any = self._book[title]
        self._computed: Any = computed[title]
        self.n_rows, self.n_columns = self._sheet.max_row, self._sheet.max_column

    def value(self, row: int, column: int) -> Value:
        found = self._computed.cell(row, column).value
        if found is None:  # a formula that no program has computed: the formula itself
            found = self._sheet.cell(row, column).value
        return found if isinstance(found, int | float) else "" if found is None else str(found)

    def text(self, row: int, column: int) -> str:
        return str(self.value(row, column))

    def put(self, row: int, values: dict[int, Value]) -> None:
        from openpyxl.styles import Alignment
        from openpyxl.utils import get_column_letter

        for column, value in values.items():
            for sheet in (self._sheet, self._computed):
                place = sheet.cell(row, column)
                put(place, value)
                if isinstance(value, str):
                    place.alignment = Alignment(wrap_text=True, vertical="top")
            if value in HEADS:
                width = _WIDE if value == HEADS[1] else _WIDE // 3
                self._sheet.column_dimensions[get_column_letter(column)].width = width

    def save(self, path: Path) -> None:
        self._book.save(path)


def _first_words(sheet: Any) -> set[str]:  # noqa: ANN401 - openpyxl has no types
    rows = takewhile(lambda row: row[0].row <= HEAD_ROWS, sheet.iter_rows())
    return {str(one.value).strip().rstrip(":").casefold() for row in rows for one in row if one.value}
