"""Citation marks in raw text: which sentence cites which passage, and the text without them. Pure.

A mark is a pair of square brackets or 【】 on one line that holds only numbers, ranges of at most `MAX_RANGE` numbers,
the words "passage" or "source", and separators: ``[1]``, ``[1, 3]``, ``[2-4]`` or ``[Passage 2]``. Brackets are
ordinary text if they hold a number above `MAX_NUMBER` that names no passage, so ``[2024] 3 WLR 12`` keeps its year, or
other letters, so ``[sic]`` stays. Round brackets never cite, so ``Rule 3.2.1(2)`` stays. A mark that is cut off at the
end of the text, ``[1`` or ``[``, is removed and cites nothing, so that a broken stream leaves no half mark.

A mark belongs to the sentence around it or, at a boundary, to the sentence before it, even after the full stop. Only a
mark that opens a line with words after it belongs to the sentence that follows.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragqa.english.sentences import split_sentences
from ragqa.types import AnswerSentence, Span

_RULE = re.compile(r"\s*(?:-[ \t]*){3,}|\s*(?:\*[ \t]*){3,}|\s*(?:_[ \t]*){3,}")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+")
_QUOTE = re.compile(r"[ \t]*>[ \t]+")
_LIST_MARKER = re.compile(r"[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]+)(?<=[^\s*])\1(?![\w*])")


@dataclass(frozen=True, slots=True)
class PlainLine:
    """A line without its Markdown, and whether it began with a list marker or a heading marker."""

    text: str
    is_item: bool = False
    is_heading: bool = False


def plain_line(line: str) -> PlainLine:
    """The line without Markdown; a horizontal rule leaves an empty line."""
    if _RULE.fullmatch(line):
        return PlainLine("")
    if quote := _QUOTE.match(line):
        line = line[quote.end() :]
    is_item = is_heading = False
    if marker := _HEADING.match(line):
        is_heading = True
    elif marker := _LIST_MARKER.match(line):
        is_item = True
    if marker:
        line = line[marker.end() :]
    return PlainLine(_EMPHASIS.sub(r"\2", line), is_item, is_heading)


MAX_NUMBER = 999  # a larger number is a year or an amount, unless that many passages were given
MAX_RANGE = 100  # a longer range is a range of pages

_BRACKETS = re.compile(r"[\[【]([^\[\]【】]{1,200})[\]】]")
_SEPARATOR = re.compile(r"[,;&]|\band\b", re.IGNORECASE)
_LABEL = r"(?:\^|(?:passage|source)s? ?(?:no\.)? ?#?)? ?"
_NUMBERS = re.compile(rf"{_LABEL}(\d{{1,6}})(?: ?[-–—‑] ?{_LABEL}(\d{{1,6}}))?", re.IGNORECASE)
_UNFINISHED = re.compile(r"[\[【][\d ,–-]{0,40}")
_BETWEEN_MARKS = re.compile(r"[ \t]*(?:[,;&]|and|or)?[ \t]*")
_CLOSING = ".,;:!?)]}%”’»…。，；：！？、"


@dataclass(frozen=True, slots=True)
class CitedText:
    """Text without marks, its sentences with the passages they cite, and the cited numbers that name no passage.

    Every sentence is ``text[start:end]``; its citations and ``rejected`` are sorted and unique.
    """

    text: str
    sentences: tuple[AnswerSentence, ...]
    rejected: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Mark:
    """Cited numbers and their place; ``position`` is an offset in the text without marks."""

    numbers: frozenset[int]
    position: int
    opens_line: bool


def parse_cited_text(raw: str, n_passages: int) -> CitedText:
    """The text without citation marks and Markdown, split into sentences with their citations.

    ``n_passages`` >= 0; numbers outside 1..n_passages are rejected. Sentences are those of `split_sentences`, also cut
    where a heading or a list item begins. An item after ``:``, ``;``, ``,``, "and" or "or" continues its sentence.
    Blank text has no sentence, so its marks can only be rejected.
    """
    lines: list[str] = []
    marks: list[_Mark] = []
    cuts: list[int] = []
    offset = 0
    before, after_blank, in_list = "", False, False
    for plain in map(plain_line, _without_unfinished_mark(raw).strip("\n").split("\n")):
        line, found = _without_marks(plain.text.strip(), n_passages)
        marks += [_Mark(numbers, offset + at, at == 0 and bool(line)) for numbers, at in found]
        if line:
            if _begins_sentence(plain, before, ends_list=in_list and after_blank):
                cuts.append(offset)
            in_list = plain.is_item or (in_list and not after_blank and not plain.is_heading)
            before = line
        after_blank = not line
        lines.append(line)
        offset += len(line) + 1
    text = "\n".join(lines).rstrip()
    return _assign(text, _cut(split_sentences(text), cuts), marks, n_passages)


def _without_unfinished_mark(raw: str) -> str:
    start = max(raw.rfind("["), raw.rfind("【"))
    return raw[:start] if start >= 0 and _UNFINISHED.fullmatch(raw, start) else raw


def _begins_sentence(plain: PlainLine, before: str, *, ends_list: bool) -> bool:
    """Whether a new sentence begins with this line, however the splitter treats line ends."""
    if plain.is_item:
        return not before.endswith((":", ";", ",", " and", " or"))
    return plain.is_heading or ends_list


def _without_marks(line: str, n_passages: int) -> tuple[str, list[tuple[frozenset[int], int]]]:
    """The line without marks and with tidy white space, and the numbers and position of each run of marks."""
    runs = _runs(line, n_passages)
    if not runs:
        return line, []
    found = []
    parts = [line[: runs[0][0]].rstrip()]
    length = len(parts[0])
    last = parts[0][-1:]
    followers = [start for start, _, _ in runs[1:]] + [len(line)]
    for (start, stop, numbers), following in zip(runs, followers, strict=True):
        found.append((numbers, length))
        right = line[stop:following].strip()
        spaced = line[start - 1 : start].isspace() or line[stop : stop + 1].isspace()
        if last and last in ".!?" and right.startswith("."):
            right, spaced = right[1:].lstrip(), True  # "… records. [1]." already has its full stop
        if right:
            part = right if not last or not _apart(last, right[0], spaced=spaced) else " " + right
            parts.append(part)
            length += len(part)
            last = right[-1]
    return "".join(parts), found


def _apart(left: str, right: str, *, spaced: bool) -> bool:
    """Whether a space belongs between the characters that a removed mark leaves next to each other."""
    if right in _CLOSING or left in "([{":
        return False
    return spaced or (left.isalnum() and right.isalnum())


def _runs(line: str, n_passages: int) -> list[tuple[int, int, frozenset[int]]]:
    """Runs of marks as (start, stop, numbers), joined by separators at most; surrounding () are included."""
    runs: list[tuple[int, int, frozenset[int]]] = []
    for brackets in _BRACKETS.finditer(line):
        numbers = _numbers(brackets[1], n_passages)
        if numbers is None:
            continue
        start, stop = brackets.span()
        if runs and _BETWEEN_MARKS.fullmatch(line, runs[-1][1], start):
            start, numbers = runs[-1][0], runs[-1][2] | numbers
            runs.pop()
        runs.append((start, stop, numbers))
    return [
        (start - 1, stop + 1, numbers)
        if line.startswith("(", start - 1) and start > 0 and line.startswith(")", stop)
        else (start, stop, numbers)
        for start, stop, numbers in runs
    ]


def _numbers(content: str, n_passages: int) -> frozenset[int] | None:
    """The numbers that the content of brackets cites; None if it is ordinary text."""
    numbers: set[int] = set()
    for item in filter(None, map(str.strip, _SEPARATOR.split(" ".join(content.split())))):
        match = _NUMBERS.fullmatch(item)
        if match is None:
            return None
        low, high = sorted((int(match[1]), int(match[2] or match[1])))
        if high > max(MAX_NUMBER, n_passages) or high - low >= MAX_RANGE:
            return None
        numbers.update(range(low, high + 1))
    return frozenset(numbers) or None


def _cut(spans: Iterable[Span], cuts: Sequence[int]) -> list[Span]:
    """The spans, each cut at the offsets inside it; pieces are stripped and empty ones dropped."""
    pieces = []
    for span in spans:
        inside = cuts[bisect_right(cuts, span.start) : bisect_left(cuts, span.end)]
        for start, end in zip((span.start, *inside), (*inside, span.end), strict=True):
            piece = span.text[start - span.start : end - span.start]
            text = piece.strip()
            if text:
                begin = start + len(piece) - len(piece.lstrip())
                pieces.append(Span(text, begin, begin + len(text)))
    return pieces


def _assign(text: str, spans: Sequence[Span], marks: Iterable[_Mark], n_passages: int) -> CitedText:
    """The sentences with their citations: a mark goes to the last sentence that starts before it (see the module)."""
    starts = [span.start for span in spans]
    ends = [span.end for span in spans]
    cited: list[set[int]] = [set() for _ in spans]
    rejected: set[int] = set()
    for mark in marks:
        valid = {number for number in mark.numbers if 1 <= number <= n_passages}
        rejected |= mark.numbers - valid
        if spans:
            index = bisect_right(ends, mark.position) if mark.opens_line else bisect_left(starts, mark.position) - 1
            cited[min(max(index, 0), len(spans) - 1)] |= valid
    sentences = tuple(
        AnswerSentence(span.text, span.start, span.end, tuple(sorted(numbers)))
        for span, numbers in zip(spans, cited, strict=True)
    )
    return CitedText(text, sentences, tuple(sorted(rejected)))
