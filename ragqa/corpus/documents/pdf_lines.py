"""Joins the characters of a page into words, and words into lines in reading order.

A PDF does not draw text in reading order, so lines are built from boxes: columns are found, and all words on one
baseline in a column are one line. Coordinates are points from the top left.
"""

from __future__ import annotations

import ctypes
import math
import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import Any, Final, Literal

from ragqa.corpus.documents.labels import read_label

_MAX_CHARS: Final = 200_000  # of a page
_MIN_GUTTER: Final = 10.0  # points between two columns
_MIN_COLUMN_LINES: Final = 8
_FILLED: Final = {2: 0.6, 3: 0.66}  # by the number of columns: least share of a column's width that its text fills
_SMALL: Final = 0.93  # multiple of the usual size below which a word is small print
_NEXT: Final = 1.6  # most sizes between two lines of one note in a margin
_OF_LINES: Final = 6  # at least one line in so many begins at the left edge of a page's text
_MOST_STEP: Final = 10  # lines between two that a margin numbers
_LEAST_COUNTED: Final = 8  # least numbers, if every line has one
_MOSTLY: Final = 0.9
_SPACED: Final = 4  # separate letters in a row from which they are a word set wide
RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_RAISED_BY: Final = 0.6  # most distance of a small raised mark from the baseline of its line, in sizes
_MAX_CROSSED: Final = 10  # at most one line in so many may cross two columns, as a heading does


@dataclass(frozen=True, slots=True)
class Word:
    """A run of characters without a space; ``base`` is the height of its baseline from the top."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    base: float
    size: float
    bold: bool


@dataclass(frozen=True, slots=True)
class Line:
    """Words on one baseline; ``column`` is the distance of their column from the first column of the page.

    ``beside`` is not empty in a margin: it is "heading" beside the beginning of a rule, else "note".
    """

    words: tuple[Word, ...]
    page: int
    column: float = 0.0
    beside: Literal["", "heading", "note"] = ""

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def left(self) -> float:
        return self.words[0].left

    @property
    def right(self) -> float:
        return self.words[-1].right

    @property
    def top(self) -> float:
        return min(word.top for word in self.words)

    @property
    def bottom(self) -> float:
        return max(word.bottom for word in self.words)

    @property
    def base(self) -> float:
        return max(word.base for word in self.words[-2:])

    @property
    def size(self) -> float:
        return statistics.median(word.size for word in self.words)

    @property
    def bold(self) -> bool:
        return sum(word.bold for word in self.words) * 2 > len(self.words)

    def gap_after(self, n_words: int) -> float:
        """The white space after the first ``n_words``, in points; 0 at the end of the line."""
        return self.words[n_words].left - self.words[n_words - 1].right if n_words < len(self.words) else 0.0


def words_of(page: Any, textpage: Any) -> tuple[list[Word], str]:  # noqa: ANN401 - pypdfium2's PdfPage and PdfTextPage
    """Every upright word on the page; and the letters that are rotated or off the page."""
    import pypdfium2.raw as raw

    left, bottom, right, top = page.get_bbox()
    text, n_chars = textpage.raw, min(textpage.count_chars(), _MAX_CHARS)
    x, y, box, matrix = ctypes.c_double(), ctypes.c_double(), raw.FS_RECTF(), raw.FS_MATRIX()
    words: list[Word] = []
    held: list[tuple[str, float, float, float, float, float]] = []
    start = 0
    askew: list[str] = []

    def close() -> None:
        if held:
            size = raw.FPDFText_GetFontSize(text, start) or 1.0
            weight = raw.FPDFText_GetFontWeight(text, start)
            scaled = max(low - high for _, _, _, high, low, _ in held)
            if raw.FPDFText_GetMatrix(text, start, matrix):
                size *= math.hypot(matrix.b, matrix.d)
            size = size if size > 2 else scaled
            words.append(
                Word(
                    unicodedata.normalize("NFC", "".join(char for char, *_ in held)),  # a Greek question mark is ";"
                    min(item[1] for item in held),
                    max(item[2] for item in held),
                    min(item[3] for item in held),
                    max(item[4] for item in held),
                    held[0][5],
                    size,
                    weight >= 600 or _is_bold(raw, text, start),
                )
            )
            held.clear()

    for n in range(n_chars):
        code = raw.FPDFText_GetUnicode(text, n)
        char = chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else ""
        if not char or char.isspace() or code in {0xFFFE, 0xFFFF}:
            close()
            askew += [" "] if askew and askew[-1] != " " else []
            continue
        if code == 2:  # PDFium's mark for a hyphen at the end of a line
            char = "-"
        raw.FPDFText_GetCharOrigin(text, n, x, y)
        if not raw.FPDFText_GetLooseCharBox(text, n, box) or abs(raw.FPDFText_GetCharAngle(text, n)) > 0.1:
            askew.append(char)
            continue
        item = (char, box.left - left, box.right - left, top - box.top, top - box.bottom, top - y.value)
        width = max(item[4] - item[3], 1.0)
        if held and (abs(item[5] - held[-1][5]) > width * 0.5 or not -width < item[1] - held[-1][2] < width * 0.25):
            close()
        if not held:
            start = n
        held.append(item)
    close()
    shown = [word for word in words if -5 <= word.left <= right - left + 5 and -5 <= word.top <= top - bottom + 5]
    unseen = set(map(id, words)) - set(map(id, shown))
    return shown, " ".join(("".join(askew).strip(), *(word.text for word in words if id(word) in unseen))).strip()


def opened(document: Any, index: int) -> tuple[Any, Any, list[Word], str]:  # noqa: ANN401 - pypdfium2's PdfDocument
    """A page of this document, its text page, and its words and unseen letters as in `words_of`."""
    page = document[index]
    textpage = page.get_textpage()
    words, unseen = words_of(page, textpage)
    if page.get_rotation() and len(unseen) > sum(len(word.text) for word in words):
        textpage.close()
        page = _turned(document, page, index)
        textpage = page.get_textpage()
        words, unseen = words_of(page, textpage)
    return page, textpage, words, unseen


def _turned(document: Any, page: Any, index: int) -> Any:  # noqa: ANN401 - pypdfium2's PdfDocument and PdfPage
    """The page with its content as readers see it: a page lying on its side is stored upright, with a turn to show."""
    import pypdfium2.raw as raw

    left, bottom, right, top = page.get_bbox()
    moves = {  # where a point x, y gets: x' = a x + c y + e, y' = b x + d y + f
        90: (0, -1, 1, 0, -bottom, right),
        180: (-1, 0, 0, -1, right, top),
        270: (0, 1, -1, 0, top, -left),
    }
    width, height = page.get_size()
    raw.FPDFPage_TransFormWithClip(page, raw.FS_MATRIX(*moves[page.get_rotation()]), None)
    page.set_rotation(0)
    page.set_mediabox(0, 0, width, height)
    page.set_cropbox(0, 0, width, height)
    page.close()
    return document[index]  # the content is read anew


def _is_bold(raw: Any, text: Any, place: int) -> bool:  # noqa: ANN401
    name, flags = ctypes.create_string_buffer(128), ctypes.c_int()
    raw.FPDFText_GetFontInfo(text, place, name, 128, flags)
    return b"bold" in name.value.lower()


def line_numbers(words: Sequence[Word]) -> list[Word]:
    """The numbers outside the left or right edge of a page's text that count its lines: each, or every fifth, say."""
    lines = [*_joined(words, 0)]
    for end in (0, -1):
        texts = {
            n: own for n, line in enumerate(lines) if (own := [one for one in line.words if not one.text.isdigit()])
        }
        edges = sorted(own[-1].right if end else own[0].left for own in texts.values())
        edge = edges[int((0.95 if end else 0.05) * (len(edges) - 1))] if edges else 0.0
        found = [
            (n, int(word.text), word)
            for n, line in enumerate(lines)
            if (word := line.words[end]).text.isdecimal() and (word.left > edge if end else word.right < edge)
        ]
        steps = Counter(after - before for (_, before, _), (_, after, _) in pairwise(found))
        step, times = steps.most_common(1)[0] if steps else (0, 0)
        if not 0 < step <= _MOST_STEP or len(found) < (_LEAST_COUNTED if step == 1 else 3):
            continue
        counts = sum(after - before == k - n for (n, before, _), (k, after, _) in pairwise(found))
        even = Counter(round(after.base - before.base) for (_, _, before), (_, _, after) in pairwise(found))
        beside = [texts[n] for n, *_ in found if n in texts]
        beside = beside if len(beside) * 2 > len(found) else [*texts.values()]
        flows = sum(own[0].text[:1].islower() for own in beside) * 4 >= len(beside)  # no paragraphs begin there
        if flows and min(times, max(counts, *even.values())) >= _MOSTLY * (len(found) - 1):
            return [word for _, _, word in found]
    return []


def lines_of(words: Sequence[Word], page: int) -> list[Line]:
    """The lines of a page in reading order: column by column, with lines that cross columns between them."""
    lines = list(_joined(words, page))
    gutters = _gutters(lines)
    if not gutters:
        return _with_margins(words, lines, page)
    found: list[Line] = []
    first = min(word.left for word in words)
    for crosses, band in groupby(lines, key=lambda line: any(_crosses(line, gutter) for gutter in gutters)):
        group = list(band)
        if crosses:
            found += group
            continue
        for low, high in pairwise((-math.inf, *gutters, math.inf)):
            column = min((word.left for word in words if low <= word.left < high), default=first) - first
            found += _joined([word for line in group for word in line.words if low <= word.left < high], page, column)
    return found


def _with_margins(words: Sequence[Word], lines: list[Line], page: int) -> list[Line]:
    """The lines, with notes in small print in the margins as lines of their own, before the next number."""
    sizes = Counter[float]()
    for word in words:
        sizes[word.size] += len(word.text)
    usual = max(sizes, key=lambda size: sizes[size], default=0.0)
    text = [*_joined([word for word in words if word.size >= _SMALL * usual], page)]
    lefts = Counter(round(line.left) for line in text)
    left = min((x for x, times in lefts.items() if times * _OF_LINES >= len(text)), default=0)
    right = max((line.right for line in text), default=math.inf)
    small = [
        run for line in _joined([word for word in words if word.size < _SMALL * usual], page) for run in _runs(line)
    ]
    across = [line.base for line in small if line.left < left - 2 <= line.right or line.left <= right + 2 < line.right]
    notes: list[list[Line]] = []
    for line in sorted(small, key=lambda line: (line.left > right, line.base)):
        if not (line.right < left - 2 or line.left > right + 2):
            continue
        if notes and 0 <= line.base - notes[-1][-1].base <= _NEXT * line.size:
            notes[-1].append(line)
        else:
            notes.append([line])
    notes = [
        note
        for note in notes
        if any(word.text.isalpha() and len(word.text) > 2 for line in note for word in line.words)
        and not any(abs(line.base - base) < 2 * line.size for line in note for base in across)  # like a footnote's end
    ]
    if len(text) < _MIN_COLUMN_LINES or not notes:
        return lines
    taken = {id(word) for note in notes for line in note for word in line.words}
    inside = [*_joined([word for word in words if id(word) not in taken], page)]
    for note in notes:
        _insert(inside, note)
    return inside


def _runs(line: Line) -> Iterator[Line]:
    """The line, cut at white space that is wider than between words."""
    starts = [0, *(n for n in range(1, len(line.words)) if line.gap_after(n) > line.size), len(line.words)]
    return (replace(line, words=line.words[start:end]) for start, end in pairwise(starts))


def _insert(lines: list[Line], note: list[Line]) -> None:
    """Inserts a margin note before the numbered line beside it or next below it, else at the end."""
    level = note[0].base - 0.5 * note[0].size
    numbered = (n for n, line in enumerate(lines) if line.base >= level and not line.beside)
    place = next((n for n in numbered if read_label(lines[n].text)[0]), len(lines))
    said = " ".join(line.text for line in note)
    at_number = place < len(lines) and lines[place].base <= level + 1.5 * lines[place].size
    names = at_number and said[0].isupper() and not any(map(str.isdigit, said))
    lines[place:place] = [replace(line, beside="heading" if names else "note") for line in note]


def _joined(words: Sequence[Word], page: int, column: float = 0.0) -> Iterator[Line]:
    """Joins words into lines by their baselines; raised words, such as footnote marks, stay in their line."""
    held: list[Word] = []
    for word in sorted(words, key=lambda word: (word.base, word.left)):
        small, large = sorted((word.size, held[0].size)) if held else (0.0, 0.0)
        if held and word.base - held[0].base > (_RAISED_BY if small < 0.8 * large else 0.4) * max(large, 4):
            yield _line(held, page, column)
            held = []
        held.append(word)
    if held:
        yield _line(held, page, column)


def _line(words: list[Word], page: int, column: float) -> Line:
    """A line of words from left to right; raised text directly after a letter is part of its word: "Act¹", "1st"."""
    found: list[Word] = []
    for word in _closed(sorted(words, key=lambda word: word.left)):
        last = found[-1] if found else word
        if word.size < 0.8 * last.size and last.base - word.base > 0.15 * last.size > word.left - last.right:
            before, raised = last.text[-1], word.text
            if (before.isalpha() and raised.isalnum()) or (before.isdigit() and raised.isalpha()):
                found[-1] = replace(last, text=last.text + raised.translate(RAISED), right=word.right)
                continue
        found.append(word)
    return Line(tuple(found), page, column)


def _closed(words: Sequence[Word]) -> Iterator[Word]:
    """The words of a line; letters set wide, "P A R T", become one word."""
    for is_letter, run in groupby(words, key=lambda word: len(word.text) == 1 and word.text.isalpha()):
        held = list(run)
        if not is_letter or len(held) < _SPACED:
            yield from held
            continue
        usual = statistics.median(after.left - before.right for before, after in pairwise(held))
        first = 0
        for n in range(1, len(held) + 1):
            if n == len(held) or held[n].left - held[n - 1].right > 1.5 * usual + 0.5:
                text = "".join(word.text for word in held[first:n])
                yield replace(held[first], text=text, right=held[n - 1].right)
                first = n


def _crosses(line: Line, gutter: float) -> bool:
    return any(
        before.right > gutter - 1 and after.left - before.right < _MIN_GUTTER
        for before, after in pairwise(line.words)
        if before.left < gutter < after.right
    ) or any(word.left < gutter < word.right for word in line.words)


def _gutters(lines: Sequence[Line]) -> list[float]:
    """The middles of the white spaces between the two or three columns of a page; [] for a page with one column.

    All columns must have running text, so that hanging numbers and tables are not columns.
    """
    if len(lines) < _MIN_COLUMN_LINES:
        return []
    left, right = min(line.left for line in lines), max(line.right for line in lines)
    words = [word for line in lines for word in line.words]
    crossings = _crossings(words)
    for n, filled in _FILLED.items():
        width = (right - left) / n
        middles = (_free_near(crossings, left + width * k, width / 4, len(lines)) for k in range(1, n))
        gutters = [middle for middle in middles if middle is not None]
        edges = pairwise((-math.inf, *gutters, math.inf))
        sides = ([*_joined([word for word in words if low <= word.left < high], 0)] for low, high in edges)
        if len(gutters) == n - 1 and all(
            len(side) >= _MIN_COLUMN_LINES
            and statistics.median(line.right - line.left for line in side) >= width * filled
            for side in sides
        ):
            return gutters
    return []


def _crossings(words: Sequence[Word]) -> list[int]:
    """For each whole point from the left, the number of words there, with some white space around them."""
    spans = [
        (max(0, math.floor(word.left - _MIN_GUTTER / 4) + 1), math.ceil(word.right + _MIN_GUTTER / 4)) for word in words
    ]
    steps = [0] * (max(end for _, end in spans) + 1)
    for start, end in spans:
        steps[start] += 1
        steps[max(start, end)] -= 1
    return list(accumulate(steps))


def _free_near(crossings: Sequence[int], middle: float, around: float, n_lines: int) -> float | None:
    """The position near ``middle`` that the fewest words cross; None if too many do."""
    near = range(max(0, int(middle - around)), min(int(middle + around), len(crossings)))
    least = min((crossings[x] for x in near), default=n_lines)
    free = [x for x in near if crossings[x] == least]
    return None if least * _MAX_CROSSED > n_lines else float(free[len(free) // 2])
