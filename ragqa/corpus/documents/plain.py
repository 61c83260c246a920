"""Reads plain text with numbered headings or paragraphs: lines become paragraphs, by blank lines, numbers and indents.

A plain text shows its structure by white space alone. A number begins a paragraph where a blank line or the end of a
sentence is before it and it opens a list or counts on, so that the number at the beginning of a wrapped line stays in
its sentence. Other plain text is cut into verbatim slices by `ragqa.corpus.text`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Final

from ragqa.corpus.documents.counting import MAX_TITLE, NO_HEADING_ENDS
from ragqa.corpus.documents.labels import DOTTED, MARKED, RANKS, Step, Value, follows, opens, read_label
from ragqa.corpus.documents.model import (
    BOLD_LEVEL,
    MAX_CHARS,
    OBLIGES,
    VERBS,
    Block,
    Parsed,
    UnreadableError,
    count_words,
)
from ragqa.corpus.text import read_text

_POINTS: Final = 8.0  # of a column, so that one column more or less is another indent
_MARGIN: Final = 2  # columns added to each indent, as an indent of 0 is unknown
_UNDERLINE: Final = re.compile(r"\s*([-=~^_])\1{2,}\s*$")
_FRAME: Final = re.compile(r"\s*([*|#])(.*)\1$")  # a line in a box that is drawn with signs
_BULLET: Final = re.compile(r"([*+o•–-])\s+(?=\S)")
_SIGN: Final = re.compile(r"^[*+] ")  # that stands for a bullet
_GAP: Final = re.compile(r"\S(?: {3,}|\t)\S")  # between columns
_ENDS: Final = re.compile(r"(?:[.;:,)—–?!][\"'”’)]*|\band|\bor)$")  # after which a list may begin or go on
_SENTENCE_ENDS: Final = re.compile(r"[.;:?!][\"'”’)]*$")
_HYPHENED: Final = re.compile(r"\w-$")
_CENTRED: Final = 8  # least indent, in columns, of a line set in the middle
_WIDEST: Final = 80  # columns of a page whose text may be narrower
_ASKEW: Final = 4  # columns that the white space on both sides of such a line may differ by
_LEVELS: Final = {"=": 2, "-": 3}  # of headings that are drawn under
_LINES: Final = 2  # most lines of a heading
_SMALL: Final = 4  # most letters of a word without a capital in a title
_MIDDLE: Final = 4  # the level of a heading in the middle
_NUMBERS: Final = frozenset(("1.", "A.", "I.", DOTTED, *RANKS))  # styles that headings may have


@dataclass(slots=True, eq=False)
class _LinedText:
    """Lines of one paragraph with their indents; ``row`` is its first line in the file, from 1."""

    row: int
    lines: list[str] = field(default_factory=list)
    indents: list[int] = field(default_factory=list)
    steps: tuple[Step, ...] = ()
    rest: str = ""
    apart: bool = False  # whether a blank line is before it
    shut: bool = False  # whether a blank line, or a line drawn under it, is behind it
    drawn: str = ""  # the sign of the line under it
    is_row: bool = False  # whether its first line has columns
    in_middle: bool = False
    left: int = 0  # its least indent

    @property
    def text(self) -> str:
        pairs = zip_longest(self.lines, self.lines[1:])
        return "".join(f"{line}{'' if not after or _HYPHENED.search(line) else ' '}" for line, after in pairs)

    @property
    def said(self) -> str:
        """The text without its number."""
        return self.text[len(self.lines[0]) - len(self.rest) :] if self.steps else self.text

    @property
    def level(self) -> int:
        """The level of a heading: by the line under it or, without one, higher if it is in the middle."""
        return _LEVELS.get(self.drawn) or (_MIDDLE if self.in_middle else BOLD_LEVEL)

    @property
    def column(self) -> int:
        """The column in which the text of its first line begins, behind the number."""
        return self.indents[0] + (len(self.lines[0]) - len(self.rest) if self.steps else 0)


def is_numbered(path: Path) -> bool:
    """Whether the text has several numbered headings, or paragraphs that count on through at least half of it."""
    paragraphs = _read(read_text(path), Parsed())
    headings = [paragraphs[n] for n in sorted(_headings(paragraphs))]
    if any(_counts(held) >= MARKED for held in _by_style(headings, apart=MAX_CHARS)):
        return True
    apart = [one for one in paragraphs if one.apart]
    return any(_counts(held) > MARKED and _spans(apart, held) for held in _by_style(apart, apart=1))


def parse_plain(path: Path) -> Parsed:
    """The paragraphs of a plain text. Raises CorpusError if it is not UTF-8 or has no text."""
    parsed = Parsed()
    text = read_text(path)
    parsed.words = count_words(text)
    paragraphs = _read(text, parsed)
    headings = _headings(paragraphs)
    set_in = _set_in(paragraphs)
    for n, one in enumerate(paragraphs):
        edge = one.indents[0]
        body = one.indents[1] if len(one.indents) > 1 else set_in.get(edge, one.column) if one.steps else edge
        text, margin = _SIGN.sub("• ", one.text), _points(min(edge, body)) if one.steps else 0.0
        if n not in headings:
            parsed.add(Block(text, "text", indent=_points(body), place=f"line={one.row}", margin=margin))
            continue
        level = one.level if n or one.steps else 1
        parsed.title = parsed.title or (text if level == 1 else "")
        indent = 0.0 if one.in_middle else _points(edge)
        parsed.add(Block(text, "heading", "", level, indent, f"line={one.row}", margin))
    if all(block.kind == "heading" for block in parsed.blocks):
        msg = "expected text, found none below its headings; take it out"
        raise UnreadableError(msg)
    return parsed


def _read(text: str, parsed: Parsed) -> list[_LinedText]:
    """The paragraphs; those of which each line is in the middle of the page are marked."""
    paragraphs = list(_paragraphs(text, parsed))
    ends = [one.indents[n] + len(one.lines[n]) for one in paragraphs for n in range(len(one.lines) - 1)]
    width = max(ends, default=0)
    for one in paragraphs:
        few = one.lines if len(one.lines) <= MARKED and not one.steps else ()
        rights = [width - left - len(line) for left, line in zip(one.indents, few, strict=False)]
        one.in_middle = bool(few) and all(
            left >= _CENTRED and right - _ASKEW <= left <= right + max(0, _WIDEST - width) + _ASKEW
            for left, right in zip(one.indents, rights, strict=True)
        )
    return paragraphs


def _set_in(paragraphs: Sequence[_LinedText]) -> dict[int, int]:
    """The column of the further lines by that of first lines that are mostly set in: "  1. A keeper …"."""
    columns: dict[int, Counter[int]] = {}
    for one in paragraphs:
        for first, second in pairwise(one.indents[:2]):
            columns.setdefault(first, Counter())[second] += 1
    mostly = ((first, times.most_common(1)[0][0]) for first, times in columns.items())
    return {first: second for first, second in mostly if second < first}


def _points(column: int) -> float:
    return _POINTS * (_MARGIN + column)


def _paragraphs(text: str, parsed: Parsed) -> Iterator[_LinedText]:
    """The paragraphs in order; running heads, feet and lines that are only drawn are left out."""
    open_: _LinedText | None = None
    last: dict[str, Value] = {}  # the last number by style
    is_apart = True
    for row, line in _lines(text, parsed):
        if not line.strip():
            if open_:
                open_.shut = True
                yield open_
            open_, is_apart = None, True
        elif not any(map(str.isalnum, line)):  # only drawn
            drawn = _UNDERLINE.match(line)
            if open_:
                open_.shut = True
                open_.drawn = drawn[1] if drawn and len(open_.lines) <= _LINES else ""
                yield open_
            open_, is_apart = None, True
        else:
            indent, words = _indent(line), " ".join(line.split())
            steps, rest = read_label(words)
            is_row = bool(_GAP.search(line, line.find(rest[:1])))
            if open_ and not _begins(open_, words, indent, steps, last) and not (is_row and open_.is_row):
                open_.lines.append(words)
                open_.indents.append(indent)
                open_.left = min(open_.left, indent)
                continue
            if open_:
                yield open_
            open_ = _LinedText(row, [words], [indent], steps, rest, is_apart, is_row=is_row, left=indent)
            is_apart = False
            last.update({style: value for step in steps for style, value in step.readings()})
    if open_:
        open_.shut = True
        yield open_


def _begins(open_: _LinedText, line: str, indent: int, steps: tuple[Step, ...], last: dict[str, Value]) -> bool:
    """Whether a line behind another without a blank line between begins a paragraph."""
    before, is_apart = open_.lines[-1], indent != (open_.indents[-1] if len(open_.lines) > 1 else open_.column)
    if steps and _counts_on(steps[0], last) and (_ENDS.search(before) or is_apart):
        return True
    if _BULLET.match(line):
        is_next = _is_bullet(open_) and open_.lines[0][0] == line[0] and indent == open_.indents[0]
        return is_next or bool(_ENDS.search(before))
    return indent < open_.left and bool(_SENTENCE_ENDS.search(before))


def _counts_on(step: Step, last: dict[str, Value]) -> bool:
    """Whether a list may begin with this number, or the last number of the same style is right before it."""
    return any(opens(value) or (style in last and follows(last[style], value)) for style, value in step.readings())


def _is_bullet(one: _LinedText) -> bool:
    return bool(_BULLET.match(one.lines[0]))


def _lines(text: str, parsed: Parsed) -> Iterator[tuple[int, str]]:
    """The lines with their numbers from 1, out of drawn boxes, and without the running heads and feet of pages."""
    pages: list[list[tuple[int, str]]] = [[]]
    for row, line in enumerate(text.split("\n"), start=1):
        first, *further = line.split("\f")
        pages[-1].append((row, first.expandtabs().rstrip()))
        pages.extend([(row, piece.expandtabs().rstrip())] for piece in further)
    held = [[at for at, (_, line) in enumerate(page) if line] for page in pages]
    edges = [(page[filled[0]][1], page[filled[-1]][1]) for page, filled in zip(pages, held, strict=True) if filled]
    times = Counter(masked for lines in edges for masked in set(map(_masked, lines)))
    before = ""
    for page, filled in zip(pages, held, strict=True):
        while filled and times[_masked(page[filled[0]][1])] > 1:
            parsed.leave_out("running head or foot", " ".join(page[filled.pop(0)][1].split()))
        while filled and times[_masked(page[filled[-1]][1])] > 1:
            parsed.leave_out("running head or foot", " ".join(page[filled.pop()][1].split()))
        if not filled:
            continue
        first = page[filled[0]][1]
        if _SENTENCE_ENDS.search(before) or read_label(first.strip())[0] or _indent(first) != _indent(before):
            yield page[filled[0]][0], ""
        for row, line in page[filled[0] : filled[-1] + 1]:
            framed = _FRAME.match(line)
            yield row, framed[2].rstrip() if framed and any(map(str.isalnum, line)) else line
        before = page[filled[-1]][1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _masked(line: str) -> str:
    """The line without its numbers and white space, as it recurs on other pages."""
    return re.sub(r"[\d\s]+", "", line)


def _headings(paragraphs: Sequence[_LinedText]) -> set[int]:
    """The places of lines that are headings: numbered and no list of names, drawn under, in the middle, or alone."""
    found = set()
    for n, (one, after) in enumerate(zip_longest(paragraphs, paragraphs[1:])):
        text = one.said
        named = len(text.split()) <= MAX_TITLE and not text[:1].islower() and not OBLIGES.search(text)
        if not one.apart or not named or text.endswith((*NO_HEADING_ENDS[1:],)):
            continue
        if one.drawn and (len(one.lines) == 1 or not text.endswith(".")):
            found.add(n)
        elif one.steps and one.shut and after and one.steps[0].style in _NUMBERS:
            is_listed = bool(after.steps) and after.steps[0].style == one.steps[0].style
            is_wrapped = len(one.lines) == _LINES and one.indents[1] in {one.indents[0], one.column}
            is_short = len(one.lines) == 1 or (is_wrapped and text[-1:].isalnum() and not after.steps)
            is_sentence = text.endswith(".") and (bool(after.steps) or not _is_capitalised(text))
            if is_short and not is_sentence and (not is_listed or one.steps[0].style in RANKS):
                found.add(n)
        elif not one.steps and after and after.apart and text[:1].isupper() and not text.endswith("."):
            is_led = n > 0 and paragraphs[n - 1].text.endswith((",", ":", ";"))
            is_title = text[-1:].isalnum() and not VERBS.search(text)
            is_alone = one.shut and len(one.lines) == 1 and is_title and not is_led
            if is_alone or one.in_middle:
                found.add(n)
    return found


def _is_capitalised(text: str) -> bool:
    """Whether nearly all long words have a capital, as in a title with a full stop: "Conveying Verbatim Copies."."""
    return all(word[0].isupper() for word in re.split(r"[\s-]+", text) if len(word) > _SMALL)


def _by_style(paragraphs: Sequence[_LinedText], *, apart: int) -> list[list[_LinedText]]:
    """The numbered paragraphs of each style that begin in the column of the first one, or so many ``apart``."""
    found: dict[str, list[_LinedText]] = {}
    for one in paragraphs:
        held = found.setdefault(one.steps[0].style, []) if one.steps and one.steps[0].style in _NUMBERS else []
        if not held or abs(held[0].indents[0] - one.indents[0]) <= apart:  # "10." may be further left than "9."
            held.append(one)
    return list(found.values())


def _counts(paragraphs: Sequence[_LinedText]) -> int:
    """How many paragraphs there are, if nearly all count on; else 0."""
    values = [one.steps[0].value for one in paragraphs]
    n_next = sum(follows(one, other) or one < other for one, other in pairwise(values))
    return len(values) if n_next * 4 >= (len(values) - 1) * 3 else 0


def _spans(paragraphs: Sequence[_LinedText], numbered: Sequence[_LinedText]) -> bool:
    """Whether at least half of the paragraphs is between the first and the last number."""
    first, last = paragraphs.index(numbered[0]), paragraphs.index(numbered[-1])
    return (last + 1 - first) * 2 >= len(paragraphs)
