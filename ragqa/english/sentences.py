"""Splits text into sentences, verbatim slices with offsets, and a sentence that is a list into its lead-in and items.

Sentences are split by nupunkt, or by NLTK's Punkt as in the reference script. This is the only splitter of the project:
chunking, generators and RePASs must agree on what a sentence is. nupunkt is Punkt trained on legal text, and needs no
download.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import pairwise

from ragqa.errors import ConfigError
from ragqa.types import Span

MAX_HEADING_WORDS = 12  # headings of the ADGM rulebooks are shorter, their shortest rules longer
SPLITTER = f"nupunkt {version('nupunkt')}, divided at marks and lines of notes"
# The mark of a note after the end of a sentence: "… as the firm considers appropriate.37 The firm should …", or a line
# of its own in square brackets: "[Note: This rule is new.]".
_NOTE = re.compile(r"(?<=[a-z]{5})[.!?][”’\"')\]]?\d{1,3}(?=\s+[“\"(\[]?[A-Z])|^\[[^\[\]\n]+\](?=\n)", re.MULTILINE)
_ITEM_MARK = re.compile(r"(?:^|(?<=[\s;:,.]))\(?(?P<mark>[a-z]{1,2}|[ivx]{1,5}|[A-Z]|\d{1,2})\)\s+")
_REFERRING = re.compile(r"(?:\b(?:rules?|paragraphs?|sections?|articles?|chapters?)\s*[\d.]*|\))\s*$", re.IGNORECASE)
REACH = 24  # characters searched before a mark for a word such as "Rule" that it belongs to
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv")
_EDGES = " \t\n\r\f\v;,.:"
DEEPEST = 3  # levels of nested items
LONG = 250  # words of a sentence that is read and quoted by its parts
GAP = " […] "  # between the lead-in of a list and an item, where others stand between them


def split_sentences(text: str, splitter: str = "nupunkt") -> tuple[Span, ...]:
    """The sentences of ``text`` in order, without surrounding white space; ``span.text == text[span.start:span.end]``.

    Empty or blank text has no sentences. ``splitter`` is ``"nupunkt"``, or ``"punkt"`` for that of NLTK, with which the
    published figures were made. Raises ConfigError if NLTK or its data is not installed.
    """
    spans = []
    for start, end in _spans_by(splitter)(text):
        piece = text[start:end]
        stripped = piece.strip()
        if stripped:
            begin = start + piece.index(stripped)
            spans.append(Span(stripped, begin, begin + len(stripped)))
    return tuple(spans)


def splitter_name(splitter: str) -> str:
    """The splitter and its version for a record. Raises ConfigError as `split_sentences` does."""
    if splitter == "nupunkt":
        return SPLITTER
    _spans_by(splitter)
    return f"NLTK punkt {version('nltk')}"


def reads_as_heading(text: str) -> bool:
    """Whether a passage looks like a heading: at most 12 words, without the beginning or end of a sentence or item."""
    ends = (".", ";", ",", "; and", "; or")
    return len(text.split()) <= MAX_HEADING_WORDS and not text.endswith(ends) and not text[:1].islower()


def _spans_by(splitter: str) -> Callable[[str], Iterable[tuple[int, int]]]:
    if splitter == "nupunkt":
        return _nupunkt
    if splitter == "punkt":
        return _punkt()
    raise ConfigError(f"sentence splitter must be nupunkt or punkt, got {splitter!r}; change the setting and try again")


def _nupunkt(text: str) -> Iterator[tuple[int, int]]:
    """Spans of nupunkt, divided after notes and their marks, which it does not know."""
    import nupunkt  # costs 40 ms: `import ragqa` must not pay for it

    for start, end in nupunkt.sent_spans(text):
        for mark in _NOTE.finditer(text, start, end):
            yield start, mark.end()
            start = mark.end()
        yield start, end


@cache
def _punkt() -> Callable[[str], Iterable[tuple[int, int]]]:
    """NLTK's English Punkt, the tokenizer behind its ``sent_tokenize``."""
    try:
        from nltk.tokenize import PunktTokenizer

        spans: Callable[[str], Iterable[tuple[int, int]]] = PunktTokenizer("english").span_tokenize
    except (ImportError, LookupError) as error:
        raise ConfigError(
            "The sentence splitter punkt needs NLTK with its punkt_tab data, which is not installed on this machine. "
            "Install both (pip install nltk, then python -m nltk.downloader punkt_tab), or use nupunkt."
        ) from error
    return spans


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list. ``mark`` is "(a)", or "(b)(i)" for a nested item, whose parent is ``above``."""

    mark: str
    span: Span
    above: Item | None = None

    def after(self, lead: Span) -> str:
        """The full text of the item: the lead-in, its parent items and itself."""
        return " ".join(self.pieces(lead))

    def pieces(self, lead: Span) -> tuple[str, ...]:
        """The lead-in, the parent items and the item."""
        return (*(self.above.pieces(lead) if self.above else (lead.text,)), self.span.text)


@dataclass(frozen=True, slots=True)
class Listing:
    """``lead`` is the whole sentence if that is not a list; spans are offsets in the sentence."""

    lead: Span
    items: tuple[Item, ...] = ()

    @property
    def leaves(self) -> tuple[Item, ...]:
        """The items but those that only open nested items."""
        around = {item.above.mark for item in self.items if item.above}
        return tuple(item for item in self.items if item.mark not in around)


@lru_cache(maxsize=4_000)
def taken_apart(text: str) -> Listing:
    """The lead-in and the items of a list with marks such as (a), (ii) or 3), at least two of them."""
    marks = _marks(text)
    if len(marks) < 2:
        return Listing(_span(text, 0, len(text)))
    open_items: list[Item] = []
    items = []
    ends = [after.start() for _, (after, _) in pairwise(marks)] + [len(text)]
    for (match, depth), end in zip(marks, ends, strict=True):
        above = open_items[depth - 1] if depth else None
        mark = f"{above.mark if above else ''}({match['mark']})"
        item = Item(mark, _span(text, match.end(), end), above)
        open_items[depth:] = [item]
        items.append(item)
    return Listing(_span(text, 0, marks[0][0].start()), tuple(item for item in items if item.span.text))


@lru_cache(maxsize=4_000)
def parts_of_long(sentence: str) -> tuple[str, ...]:
    """The parts of a sentence of more than `LONG` words, each on one line; of a shorter one none.

    They are the items of a list, each after its lead-in, or else the lines, such as rows of a table.
    """
    if len(sentence.split()) <= LONG:
        return ()
    listing = taken_apart(sentence)
    parts = [item.pieces(listing.lead) for item in listing.leaves] or [(line,) for line in sentence.splitlines()]
    texts = (GAP.join(" ".join(piece.split()) for piece in pieces if piece) for pieces in parts)
    return tuple(filter(str.strip, texts))


def _marks(text: str) -> list[tuple[re.Match[str], int]]:
    """The marks of items, each with its depth; a number in brackets or a reference such as "Rule 3 (a)" is not one."""
    found: list[tuple[re.Match[str], int]] = []
    due: list[str] = []  # the next mark expected at each depth
    is_roman: list[bool] = []
    for match in _ITEM_MARK.finditer(text):
        mark = match["mark"]
        if mark in due:
            depth = len(due) - 1 - due[::-1].index(mark)
        elif mark in {"a", "i", "1", "A"} and len(due) < DEEPEST and not _refers(text, match):
            depth = len(due)
            is_roman[depth:] = [mark == "i"]
        else:
            continue
        due[depth:] = [_next(mark, is_roman=is_roman[depth])]
        found.append((match, depth))
    return found


def _next(mark: str, *, is_roman: bool) -> str:
    if mark.isdigit():
        return str(int(mark) + 1)
    if is_roman and mark in _ROMAN[:-1]:
        return _ROMAN[_ROMAN.index(mark) + 1]
    return mark[:-1] + chr(ord(mark[-1]) + 1)


def _refers(text: str, match: re.Match[str]) -> bool:
    return bool(_REFERRING.search(text, max(0, match.start() - REACH), match.start()))


def _span(text: str, start: int, end: int) -> Span:
    """Without surrounding white space, and without punctuation and "and" or "or" at its end."""
    words = text[start:end].rstrip(_EDGES)
    last = words.rpartition(" ")[2]
    if last in {"and", "or"}:
        words = words.removesuffix(last).rstrip(_EDGES)
    kept = words.lstrip()
    start += len(words) - len(kept)
    return Span(kept, start, start + len(kept))
