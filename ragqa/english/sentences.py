"""Splits text into sentences, verbatim slices with offsets: by nupunkt, or by NLTK's Punkt as in the reference script.

This is the only splitter of the project: chunking, generators and RePASs must agree on what a sentence is. nupunkt is
Punkt trained on legal text, and needs no download.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import version

from ragqa.errors import ConfigError
from ragqa.types import Span

MAX_HEADING_WORDS = 12  # headings of the ADGM rulebooks are shorter, their shortest rules longer
SPLITTER = f"nupunkt {version('nupunkt')}, divided at marks and lines of notes"
# The mark of a note after the end of a sentence: "… as the firm considers appropriate.37 The firm should …", or a line
# of its own in square brackets: "[Note: This rule is new.]".
_NOTE = re.compile(r"(?<=[a-z]{5})[.!?][”’\"')\]]?\d{1,3}(?=\s+[“\"(\[]?[A-Z])|^\[[^\[\]\n]+\](?=\n)", re.MULTILINE)


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
