"""Wikitext -> Markdown: headings, lists, tables and infoboxes are kept, references, files and other templates go.

Not mwparserfromhell: measured, it reads 1.4 MB/s, and 0.3 MB of unclosed links take it 150 s.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from ragqa.corpus.cleaning import clean_text
from ragqa.corpus.wikipedia.brackets import FILES_AND_CATEGORIES, without_brackets
from ragqa.corpus.wikipedia.tables import BREAK, PIPE, TableReader

_CUT: Final = "ref|references|gallery|imagemap|timeline|score|graph|mapframe|maplink|templatestyles|style|inputbox"
_KEPT: Final = "nowiki|math|chem|pre|syntaxhighlight|source|code"  # what they hold is not wikitext
_COMMENT_OR_ELEMENT = re.compile(rf"<!--|-->|<(/?)({_CUT}|{_KEPT})(?=[\s/>])[^<>]*?(/?)>", re.IGNORECASE)
_KEPT_NAMES = frozenset(_KEPT.split("|"))
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
_STRUCTURE = re.compile(r"#{1,6}(?:\s|$)|=+\s*$|-+\s*$|`{3}|~{3}|>")  # Markdown would read it otherwise


def wikitext_markdown(text: str, dropped: frozenset[str] = FILES_AND_CATEGORIES) -> str:
    """The page as Markdown, cleaned (`clean_text`). Headings are of level 2 and below, as the title is above them.

    Of templates only infoboxes are kept, as tables of key and value, and a few dozen that are text: measures, dates,
    lists, words in other languages. ``dropped``: see `without_brackets`. Any text gives some Markdown; the time taken
    grows with its length alone.
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
    """The text without comments, references and the like; what stands in <math> and others is put aside, numbered."""
    out: list[str] = []
    saved: list[str] = []
    position = 0
    waiting_for, begin = "", 0  # the element that is open, and where it begins
    lowered = ""
    last: dict[str, int] = {}  # where each element is closed for the last time, -1: nowhere
    for found in _COMMENT_OR_ELEMENT.finditer(text):
        mark, name = found.group(), (found[2] or "").lower()
        if waiting_for:
            if (waiting_for == "-->" and mark == "-->") or (name == waiting_for and found[1]):
                if name in _KEPT_NAMES:
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
