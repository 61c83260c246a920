"""What stands in double brackets in wikitext: links become their words, infoboxes tables, other templates go.

Read in one pass with a stack, whose depth is bounded: the time grows with the length alone, whatever is not closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from ragqa.corpus.wikipedia.tables import BREAK, PIPE, markdown_table, one_line

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
    """The text with templates and links rendered; what is not closed or not opened loses its brackets only.

    ``dropped`` are the lower-case names of the namespaces whose links are not text: files and categories.
    """
    out: list[str] = []
    opened: list[tuple[str, int]] = []  # closing bracket, where its content begins in ``out``
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
    shown = _SHOWN.get(name.strip().replace("_", " ").lower())
    return shown([part.strip() for part in parts if not _PARAMETER.match(part)]).replace("|", PIPE) if shown else ""


def _infobox(name: str, parts: Sequence[str]) -> str:
    """A table of two columns with the infobox's name as its head; empty where it says nothing."""
    rows = []
    for part in parts:
        key, equals, value = part.partition("=")
        key, value = key.strip(), one_line(value)
        if equals and key and value and not _INFOBOX_NOISE.fullmatch(key.lower()):
            rows.append((" ".join(key.replace("_", " ").split()), value))
    return markdown_table([(name, ""), *rows]) if rows else ""


# Templates that are text ---------------------------------------------------------------------------------------------

_Shown = Callable[[list[str]], str]


def _first(values: list[str]) -> str:
    return values[0] if values else ""


def _last(values: list[str]) -> str:
    return values[-1] if values else ""


def _measure(values: list[str]) -> str:
    is_range = len(values) > 3 and values[1] in ("-", "–", "to", "and", "or", "by", "x", "×", "+/-", "±")
    return " ".join(values[: 4 if is_range else 2])


def _date(values: list[str]) -> str:
    """Year, month and day of a template of dates; words as they stand."""
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
    "frac": "/".join,
    "sortname": lambda values: " ".join(values[:2]),
    "circa": lambda values: " ".join(("c.", *values[:1])),
    "c.": lambda values: " ".join(("c.", *values[:1])),
    **dict.fromkeys(("snd", "spnd", "ndash", "spaced ndash", "endash"), lambda _values: " – "),
    **dict.fromkeys(("mdash", "emdash"), lambda _values: "—"),
    **dict.fromkeys(("!", "pipe"), lambda _values: "|"),
    **dict.fromkeys(("end", "s-end", "table end"), lambda _values: f"\n{PIPE}}}\n"),
}
