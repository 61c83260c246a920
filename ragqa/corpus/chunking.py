"""Finds the structure of a text, and cuts it into chunks of bounded length that follow the structure.

`markdown_outline` and `plain_outline` find sections and blocks by character offsets. `chunk` merges and splits the
blocks into verbatim slices, and never cuts a sentence that fits. Markdown is parsed by markdown-it (CommonMark and
tables), whose tokens have line numbers; nothing is rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from ragqa.english.sentences import split_sentences
from ragqa.types import Span

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

MAX_HEADING_WORDS = 25  # a longer "heading" is a paragraph that happens to be above a line of dashes
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?=[\w-]+[ \t]*:)(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FRONT_TITLE = re.compile(r"^title[ \t]*:[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SplitBlock:
    """A block of characters that belong together. It may be split into its parts or, without parts, into sentences."""

    start: int
    end: int
    parts: tuple[SplitBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """The blocks between two headings and the path of headings above them, outermost first."""

    path: tuple[str, ...]
    blocks: tuple[SplitBlock, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """The sections of a text in order. ``title`` is the first heading of level 1, empty if there is none."""

    title: str
    sections: tuple[Section, ...]


def plain_outline(text: str) -> Outline:
    """One section without a path, with blocks separated by blank lines."""
    lines = _Lines(text)
    runs = groupby(range(lines.count), key=lambda line: text[lines.starts[line] : lines.starts[line + 1]].isspace())
    paragraphs = [list(run) for is_blank, run in runs if not is_blank]
    return Outline("", (Section((), tuple(lines.block(run[0], run[-1] + 1) for run in paragraphs)),))


def markdown_outline(text: str) -> Outline:
    r"""The outline of a Markdown text whose lines end in ``\n``.

    Every line that is not a heading is in exactly one block, including link definitions and HTML. YAML front matter is
    left out; its title is used if there is no heading of level 1. Headings inside lists and quotations are text, and so
    is a "heading" of more than 25 words, which is most often a paragraph above a line of dashes.
    """
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    inline_parser = MarkdownIt("commonmark")
    block_parser = MarkdownIt("commonmark").enable("table")
    block_parser.core.ruler.enableOnly(["normalize", "block"])  # only headings need inline parsing
    matter, named = front_matter(text)
    n_front_lines = matter.count("\n") + (bool(matter) and not matter.endswith("\n"))
    body = "\n" * n_front_lines + text[len(matter) :]  # blank lines in place of the front matter keep line numbers
    nodes = [node for node in SyntaxTreeNode(block_parser.parse(body)).children if node.map]
    title, sections = _sections(nodes, _Lines(text), n_front_lines, inline_parser)
    return Outline(title or named, sections)


def front_matter(text: str) -> tuple[str, str]:
    """The YAML front matter at the start of a Markdown text, and its title; "" where there is none."""
    front = _FRONT_MATTER.match(text)
    named = _FRONT_TITLE.search(front.group()) if front else None
    title = named.group(1).rstrip(" \t") if named else ""
    is_quoted = len(title) > 2 and title[0] == title[-1] and title[0] in "'\""
    return front.group() if front else "", title[1:-1] if is_quoted else title


class _Lines:
    """Maps line numbers (from 0) to character offsets."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        if self.starts[-1] < len(text):
            self.starts.append(len(text))

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    def block(self, first: int, last: int, parts: tuple[SplitBlock, ...] = ()) -> SplitBlock:
        return SplitBlock(self.starts[first], self.starts[last], parts)


def _sections(
    nodes: Sequence[SyntaxTreeNode], lines: _Lines, first: int, parser: MarkdownIt
) -> tuple[str, tuple[Section, ...]]:
    title = ""
    sections: list[Section] = []
    above: list[tuple[int, str]] = []  # level and text of the headings above the current block
    waiting: list[SyntaxTreeNode] = []
    for node in nodes:
        heading = _heading(node, parser)
        if heading is None:
            waiting.append(node)
            continue
        begin, end = _range(node)
        sections.append(_section(above, title, tuple(_tile(waiting, lines, first, begin))))
        first, waiting = end, []
        level, words = heading
        above = [*(held for held in above if held[0] < level), (level, words)]
        if level == 1 and not title:
            title = words
    sections.append(_section(above, title, tuple(_tile(waiting, lines, first, lines.count))))
    return title, tuple(section for section in sections if section.blocks)


def _section(above: Sequence[tuple[int, str]], title: str, blocks: tuple[SplitBlock, ...]) -> Section:
    return Section(tuple(words for level, words in above if words and (level, words) != (1, title)), blocks)


def _range(node: SyntaxTreeNode) -> tuple[int, int]:
    return node.map or (0, 0)


def _heading(node: SyntaxTreeNode, parser: MarkdownIt) -> tuple[int, str] | None:
    """The level and plain text of a heading; None for other nodes."""
    if node.type != "heading":
        return None
    source = "".join(child.content for child in node.children)
    if len(source.split()) > MAX_HEADING_WORDS:
        return None
    inline = parser.parseInline(source)[0].children or []
    shown = "".join(" " if piece.type.endswith("break") else piece.content for piece in inline if _is_shown(piece.type))
    return int(node.tag[1:]), " ".join(shown.split())


def _is_shown(kind: str) -> bool:
    return kind in ("text", "code_inline", "image", "softbreak", "hardbreak")


def _tile(nodes: Sequence[SyntaxTreeNode], lines: _Lines, first: int, last: int) -> Iterator[SplitBlock]:
    """Blocks that cover the lines ``first`` to ``last - 1`` without overlap: one per node, and one per gap."""
    position = first
    for node in nodes:
        begin, end = _range(node)
        if begin > position:
            yield lines.block(position, begin)
        yield lines.block(begin, end, _parts(node, lines, begin, end))
        position = end
    if position < last:
        yield lines.block(position, last)


def _parts(node: SyntaxTreeNode, lines: _Lines, begin: int, end: int) -> tuple[SplitBlock, ...]:
    if node.type in ("fence", "code_block", "html_block"):
        return tuple(lines.block(line, line + 1) for line in range(begin, end))
    children = [child for child in node.children if child.map and child.type not in ("inline", "th", "td")]
    return tuple(_tile(children, lines, begin, end)) if children else ()


_WORD = re.compile(r"\S+")
_CLAUSE_ENDS = (";:", ",–—)")  # tried in this order, then the end of any word


def chunk(text: str, blocks: Iterable[SplitBlock], max_tokens: int) -> Iterator[Span]:
    """Chunks of at most ``max_tokens`` white-space separated tokens, in order; no token is lost or repeated.

    A block that fits is not split, and neighbours are merged while they fit together. A longer block is split into its
    parts (list items, table rows, lines of code), then into sentences. A sentence that is too long is split at its
    clauses, else between words. Blank blocks give no chunk. ``max_tokens`` must be at least 1.
    """
    start = end = n_tokens = 0
    for piece_start, piece_end in _pieces(text, blocks, max_tokens):
        n_new = _count(text, piece_start, piece_end)
        if n_tokens and n_tokens + n_new > max_tokens:
            yield Span(text[start:end], start, end)
            n_tokens = 0
        start, end, n_tokens = (start if n_tokens else piece_start), piece_end, n_tokens + n_new
    if n_tokens:
        yield Span(text[start:end], start, end)


def _count(text: str, start: int, end: int) -> int:
    return len(text[start:end].split())


def _pieces(text: str, blocks: Iterable[SplitBlock], max_tokens: int) -> Iterator[tuple[int, int]]:
    """The largest slices that fit, without surrounding white space; only white space separates them."""
    for block in blocks:
        stripped = text[block.start : block.end].strip()
        if not stripped:
            continue
        start = text.index(stripped, block.start)
        end = start + len(stripped)
        if _count(text, start, end) <= max_tokens:
            yield start, end
        elif block.parts:
            yield from _pieces(text, block.parts, max_tokens)
        else:
            yield from _sentence_pieces(text, start, end, max_tokens)


def _sentence_pieces(text: str, start: int, end: int, max_tokens: int) -> Iterator[tuple[int, int]]:
    begins = [start + span.start for span in split_sentences(text[start:end])]
    borders = [start, *(begin for begin in begins if begin > start and text[begin - 1].isspace()), end]
    for first, last in pairwise(borders):
        words = [word.span() for word in _WORD.finditer(text, first, last)]
        position = 0
        while position < len(words):
            after = position + max_tokens
            if after < len(words):
                after = _clause_border(text, words, position, after)
            yield words[position][0], words[min(after, len(words)) - 1][1]
            position = after


def _clause_border(text: str, words: Sequence[tuple[int, int]], first: int, last: int) -> int:
    """The end of a slice of words[first:last]: after the last clause end in its second half, else ``last``."""
    for marks in _CLAUSE_ENDS:
        for border in range(last, (first + last) // 2, -1):
            if text[words[border - 1][1] - 1] in marks:
                return border
    return last
