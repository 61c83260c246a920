"""Converts wikitext to Markdown: keeps headings, lists, tables and infoboxes; drops references, files, other templates.

There are three steps. `without_brackets` renders links and templates in one pass with a stack of bounded depth.
`TableReader` reads ``{| … |}``. `wikitext_markdown` does the rest line by line. The time is linear in the length of the
text, even with unclosed brackets. mwparserfromhell is not used, as it reads 1.4 MB/s and takes 150 s for 0.3 MB of
unclosed links (measured).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ragqa.corpus.cleaning import clean_text

PIPE: Final = "\x02"  # placeholder for a "|" that is text; wikitext has no control characters
BREAK: Final = "\x03"  # placeholder for <br>
MAX_COLUMNS: Final = 60  # larger spans are cut
MAX_ROWS_SPANNED: Final = 200
MAX_TABLE_DEPTH: Final = 10  # of nested tables; deeper ones are read as part of the table around them
_SPAN = re.compile(r"\b(colspan|rowspan)\s*=\s*[\"']?\s*(\d{1,4})", re.IGNORECASE)
_MARKER = re.compile(r"^[*#:;]+\s*")


def one_line(text: str) -> str:
    """The text of a cell on one line: list items and parts between <br> are separated by commas."""
    words = ""
    for line in text.replace(BREAK, "\n* ").split("\n"):
        marker = _MARKER.match(line)
        item = " ".join(line[marker.end() if marker else 0 :].split())
        if item:
            words += (("" if words.endswith((",", ":", ";")) else ",") if marker and words else "") + " " + item
    return words.strip()


def markdown_table(rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table in Markdown with its first row as the head; paragraphs for one column, ``""`` without rows."""
    filled = [row for row in rows if any(row)]
    width = max(map(len, filled), default=0)
    if width < 2:
        return "\n\n".join([*([caption] if caption else []), *(cell for row in filled for cell in row)])
    lines = [_row([*row, *[""] * (width - len(row))]) for row in filled]
    lines.insert(1, _row(["---"] * width))
    return "\n".join([*([caption, ""] if caption else []), *lines]).replace("|", PIPE)


def _row(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


@dataclass(slots=True)
class _Cell:
    lines: list[str]
    columns: int = 1
    rows: int = 1


@dataclass(slots=True)
class _Table:
    rows: list[list[_Cell]] = field(default_factory=lambda: [[]])
    caption: str = ""
    inner: list[str] = field(default_factory=list)  # the Markdown of tables in its cells

    def markdown(self) -> str:
        """The table, then the tables in its cells. A cell that spans rows is repeated in each row, so that every row is
        complete; a cell that spans columns is followed by empty ones.
        """
        grid: list[list[str]] = []
        waiting: dict[int, tuple[int, str]] = {}  # by column: the rows that a cell above still spans, and its text
        for cells in self.rows:
            row: list[str] = []
            pending = list(reversed(cells))
            if not pending:
                continue
            while pending or len(row) in waiting:
                column = len(row)
                if column >= MAX_COLUMNS:
                    break
                if column in waiting:
                    left, text = waiting.pop(column)
                    row.append(text)
                    if left > 1:
                        waiting[column] = (left - 1, text)
                    continue
                cell = pending.pop()
                text = one_line("\n".join(cell.lines))
                shown = [text, *[""] * (min(cell.columns, MAX_COLUMNS - column) - 1)]
                if cell.rows > 1:
                    further = min(cell.rows, MAX_ROWS_SPANNED) - 1
                    waiting |= {column + place: (further, words) for place, words in enumerate(shown)}
                row += shown
            grid.append(row)
        return "\n\n".join(text for text in (markdown_table(grid, one_line(self.caption)), *self.inner) if text)


class TableReader:
    """Reads the lines of ``{| … |}``, and ignores lines outside tables."""

    def __init__(self) -> None:
        self._open: list[_Table] = []

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def take(self, line: str) -> str | None:
        """None for a line outside tables; else the Markdown of the outermost table that the line ends, or ""."""
        bare = line.lstrip(" \t:")
        if bare.startswith("{|") and len(self._open) < MAX_TABLE_DEPTH:
            self._open.append(_Table())
            return ""
        if not self._open:
            return None
        table = self._open[-1]
        if bare.startswith("|}"):
            return self._end()
        if bare.startswith("|-"):
            table.rows.append([])
        elif bare.startswith("|+"):
            table.caption = bare[2:].rpartition("|")[2]
        elif bare.startswith(("|", "!")):
            parts = re.split(r"\|\||!!", bare[1:]) if bare[0] == "!" else bare[1:].split("||")
            table.rows[-1] += map(_cell, parts)
        elif table.rows[-1]:
            table.rows[-1][-1].lines.append(line)
        elif table.caption:
            table.caption += f" {line}"
        return ""

    def close(self) -> str:
        """Closes all open tables, at a heading or the end of the page, and returns their Markdown."""
        closed = ""
        while self._open:
            closed = self._end()
        return closed

    def _end(self) -> str:
        markdown = self._open.pop().markdown()
        if not self._open:
            return markdown
        if markdown:
            self._open[-1].inner.append(markdown)
        return ""


def _cell(source: str) -> _Cell:
    attributes, pipe, text = source.partition("|")
    if not pipe:
        return _Cell([source])
    spans = {name.lower(): max(1, int(number)) for name, number in _SPAN.findall(attributes)}
    return _Cell([text], spans.get("colspan", 1), spans.get("rowspan", 1))


FILES_AND_CATEGORIES: Final = frozenset({"file", "image", "media", "category"})
MAX_DEPTH: Final = 40
_BRACKET = re.compile(r"\{\{|\}\}|\[\[|\]\]")
_INFOBOX = re.compile(r"\s*(?:(?:automatic )?taxobox|speciesbox|infobox|infopolje|infokutija|geobox)\b", re.I)
_INFOBOX_NOISE = re.compile(
    r"(?:.*_)?(?:image|img|photo|logo|map|alt|caption|signature|style|class|width|size|embed|footnotes|coordinates|"
    r"child|ref|refs|zoom|label_position)\d*(?:_.*)?|(?:image|map|pushpin|bodyclass|titlestyle).*"
)
_PARAMETER = re.compile(r"\s*([\w .()/-]{1,60}?)\s*=", re.ASCII)


def without_brackets(text: str, dropped: frozenset[str] = FILES_AND_CATEGORIES) -> str:
    """The text with templates and links rendered; unpaired brackets are removed.

    ``dropped`` has the lower-case names of the namespaces whose links are not text: files and categories.
    """
    out: list[str] = []
    opened: list[tuple[str, int]] = []  # closing bracket, and the start of its content in ``out``
    position = 0
    for found in _BRACKET.finditer(text):
        out.append(text[position : found.start()])
        position = found.end()
        bracket = found.group()
        if bracket in ("{{", "[["):
            if len(opened) < MAX_DEPTH:
                opened.append(("}}" if bracket == "{{" else "]]", len(out)))
            continue
        while opened and opened[-1][0] != bracket and any(closing == bracket for closing, _ in opened):
            opened.pop()
        if opened and opened[-1][0] == bracket:
            _, first = opened.pop()
            content = "".join(out[first:])
            out[first:] = [_template(content) if bracket == "}}" else _link(content, dropped)]
    out.append(text[position:])
    return "".join(out)


def _link(content: str, dropped: frozenset[str]) -> str:
    target, _, label = content.partition("|")
    prefix, colon, _ = target.partition(":")
    if colon and prefix.strip().lower() in dropped:
        return ""
    return (label.rpartition("|")[2] or target.strip().removeprefix(":")).strip()


def _template(content: str) -> str:
    name, *parts = content.split("|")
    if _INFOBOX.match(name):
        return f"\n\n{_infobox(one_line(name), parts)}\n\n"
    if (said := name.partition(":"))[0].strip().lower() == "formatnum":
        return said[2].strip()
    shown = _SHOWN.get(name.strip().replace("_", " ").lower())
    return shown([part.strip() for part in parts if not _PARAMETER.match(part)]).replace("|", PIPE) if shown else ""


def _infobox(name: str, parts: Sequence[str]) -> str:
    """A table of two columns with the infobox's name as its head; empty if it has no values."""
    rows = []
    for part in parts:
        key, equals, value = part.partition("=")
        key, value = key.strip(), one_line(value)
        if equals and key and value and not _INFOBOX_NOISE.fullmatch(key.lower()):
            rows.append((" ".join(key.replace("_", " ").split()), value))
    return markdown_table([(name, ""), *rows]) if rows else ""


# Templates that are rendered as text ---------------------------------------------------------------------------------

_PAIRS: Final = {("ft", "in"), ("yd", "ft"), ("mi", "yd"), ("st", "lb"), ("lb", "oz")}  # units of one measure
_Shown = Callable[[list[str]], str]


def _first(values: list[str]) -> str:
    return values[0] if values else ""


def _last(values: list[str]) -> str:
    return values[-1] if values else ""


def _measure(values: list[str]) -> str:
    is_range = len(values) > 3 and values[1] in ("-", "–", "to", "and", "or", "by", "x", "×", "+/-", "±")
    is_pair = len(values) > 3 and (values[1], values[3]) in _PAIRS
    return " ".join(values[: 4 if is_range or is_pair else 2])


def _fraction(values: list[str]) -> str:
    """Of one value its reciprocal, of two the quotient, of three a whole number and a quotient."""
    whole = f"{values[0]} " if len(values) > 2 else ""
    return whole + "/".join(values[-2:] if len(values) > 1 else ("1", *values))


def _date(values: list[str]) -> str:
    """The year, month and day in a date template as YYYY-MM-DD; a first value that is not a number as it is."""
    numbers = values[:3]
    if not all(value.isascii() and value.isdigit() for value in numbers):
        return _first(values)
    return "-".join(value.zfill(2) for value in numbers)


def _items(values: list[str]) -> str:
    return BREAK.join(value for value in values if value)


_SHOWN: Final[dict[str, _Shown]] = {
    **dict.fromkeys(("convert", "cvt"), _measure),
    **dict.fromkeys(("birth date", "birth date and age", "birth year and age", "bda", "dob", "death date"), _date),
    **dict.fromkeys(("death date and age", "start date", "start date and age", "end date", "film date"), _date),
    **dict.fromkeys(("ubl", "unbulleted list", "plainlist", "plain list", "hlist", "flatlist", "cslist"), _items),
    **dict.fromkeys(("lang", "transl", "transliteration", "small", "smaller", "big", "color", "abbr", "langx"), _last),
    **dict.fromkeys(("nowrap", "nobr", "nobold", "noitalic", "flag", "flagu", "flagcountry", "ill", "url"), _first),
    **dict.fromkeys(("quote", "blockquote", "bq", "sup", "sub", "math", "mvar", "val", "formatnum", "num"), _first),
    "abbr": _first,
    "frac": _fraction,
    "sortname": lambda values: " ".join(values[:2]),
    "circa": lambda values: " ".join(("c.", *values[:1])),
    "c.": lambda values: " ".join(("c.", *values[:1])),
    **dict.fromkeys(("snd", "spnd", "ndash", "spaced ndash", "endash"), lambda _values: " – "),
    **dict.fromkeys(("mdash", "emdash"), lambda _values: "—"),
    **dict.fromkeys(("!", "pipe"), lambda _values: "|"),
    **dict.fromkeys(("end", "s-end", "table end"), lambda _values: f"\n{PIPE}}}\n"),
}


_CUT: Final = "ref|references|gallery|imagemap|timeline|score|graph|mapframe|maplink|templatestyles|style|inputbox"
_LITERAL: Final = "nowiki|math|chem|pre|syntaxhighlight|source|code"  # elements whose content is not wikitext
_COMMENT_OR_ELEMENT = re.compile(rf"<!--|-->|<(/?)({_CUT}|{_LITERAL})(?=[\s/>])[^<>]*?(/?)>", re.IGNORECASE)
_LITERAL_NAMES = frozenset(_LITERAL.split("|"))
_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_LINE_ELEMENT = re.compile(r"</?(?:p|div|blockquote|ul|ol|dl|dd|dt|table|tr|center|h[1-6])\b[^<>]*>", re.IGNORECASE)
_ITEM = re.compile(r"<li\b[^<>]*>", re.IGNORECASE)
_ELEMENT = re.compile(r"</?[a-zA-Z][^<>]*>")
_ADDRESS = re.compile(r"\[(?:https?:|ftp:|mailto:|//)[^\s\[\]]*([^\[\]\n]*)\]", re.IGNORECASE)
_QUOTES_AND_SWITCHES = re.compile(r"'{2,}|__[A-Z]{3,30}__")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SAVED = re.compile("\x01([0-9]+)\x01")
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}")
_LIST = re.compile(r"([*#:;]+)[ \t]*")
_STRUCTURE = re.compile(r"#{1,6}(?:\s|$)|=+\s*$|-+\s*$|`{3}|~{3}|>")  # text that is markup in Markdown


def wikitext_markdown(text: str, dropped: frozenset[str] = FILES_AND_CATEGORIES) -> str:
    """The page as cleaned Markdown (`clean_text`). Headings have level 2 or deeper, as the title is above them.

    Of all templates only infoboxes are kept, as tables of key and value, and a few dozen that are text: measures,
    dates, lists, words in other languages. ``dropped`` is as in `without_brackets`. Every input gives a result, in time
    linear in its length.
    """
    text, saved = _without_elements(_CONTROLS.sub("", text))
    if "<" in text:
        text = _BREAK.sub(BREAK, text)
    text = without_brackets(text, dropped)
    text = _ADDRESS.sub(lambda found: found[1].strip(), text)
    if "<" in text:
        text = _ELEMENT.sub("", _ITEM.sub("\n* ", _LINE_ELEMENT.sub("\n", text)))
    text = _QUOTES_AND_SWITCHES.sub("", text)
    markdown = "\n".join(_markdown_lines(text)).replace(PIPE, "|").replace(BREAK, "\n")
    markdown = _SAVED.sub(lambda found: saved[int(found[1])], html.unescape(markdown))
    return _BLANK_LINES.sub("\n\n", clean_text(markdown))


def _without_elements(text: str) -> tuple[str, list[str]]:
    """The text without comments, references and the like; the content of <math> and others is replaced by numbers."""
    out: list[str] = []
    saved: list[str] = []
    position = 0
    waiting_for, begin = "", 0  # the open element, and the start of its content
    lowered = ""
    last: dict[str, int] = {}  # the last closing tag of each element, -1 if there is none
    for found in _COMMENT_OR_ELEMENT.finditer(text):
        mark, name = found.group(), (found[2] or "").lower()
        if waiting_for:
            if (waiting_for == "-->" and mark == "-->") or (name == waiting_for and found[1]):
                if name in _LITERAL_NAMES:
                    saved.append(text[begin : found.start()].strip())
                    out.append(f"\x01{len(saved) - 1}\x01")
                waiting_for, position = "", found.end()
            continue
        if mark == "-->":
            continue
        out.append(text[position : found.start()])
        position = found.end()
        if mark == "<!--":
            waiting_for = "-->"
        elif not found[1] and not found[3]:
            if name not in last:
                lowered = lowered or text.lower()
                last[name] = lowered.rfind(f"</{name}")
            if last[name] >= found.end():
                waiting_for, begin = name, found.end()
    if not waiting_for:
        out.append(text[position:])
    return "".join(out), saved


def _markdown_lines(text: str) -> Iterator[str]:
    tables = TableReader()
    depth = 0  # of the list item above
    for line in text.split("\n"):
        is_heading = line.startswith("=") and line.rstrip().endswith("=") and bool(line.strip("= \t"))
        if is_heading and tables.is_open:
            yield f"\n{tables.close()}\n"
        elif (table := tables.take(line)) is not None:
            if table:
                yield f"\n{table}\n"
            continue
        listed = _LIST.match(line)
        if is_heading:
            bare = line.rstrip()
            level = min(len(bare) - len(bare.lstrip("=")), len(bare) - len(bare.rstrip("=")), 6)
            yield f"\n{'#' * max(level, 2)} {bare[level:-level].strip()}\n"
        elif listed and listed[1][-1] in "*#":
            depth = min(len(listed[1]), depth + 1)
            yield f"{' ' * 3 * (depth - 1)}{'-' if listed[1][-1] == '*' else '1.'} {line[listed.end() :].strip()}"
            continue
        else:
            yield _text_line(line[listed.end() if listed else 0 :].strip())
        depth = 0
    if tables.is_open:
        yield f"\n{tables.close()}"


def _text_line(line: str) -> str:
    if set(line) == {"-"} and len(line) >= 4:
        return ""
    line = _SPACES.sub(" ", line)
    return f"\\{line}" if _STRUCTURE.match(line) else line
