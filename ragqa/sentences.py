"""Sentences as verbatim slices with offsets, by nupunkt (Punkt trained on legal text, no data to download).

The one splitter of the project: chunking, generators and RePASs must agree on what a sentence is.
"""

from __future__ import annotations

from importlib.metadata import version

from ragqa.types import Span

__all__ = ["SPLITTER", "split_sentences"]

SPLITTER = f"nupunkt {version('nupunkt')}"


def split_sentences(text: str) -> tuple[Span, ...]:
    """The sentences of ``text`` in order, without surrounding white space; ``span.text == text[span.start:span.end]``.

    Empty or blank text has no sentences.
    """
    import nupunkt  # costs 40 ms: `import ragqa` must not pay for it

    spans = []
    for start, end in nupunkt.sent_spans(text):
        piece = text[start:end]
        stripped = piece.strip()
        if stripped:
            begin = start + piece.index(stripped)
            spans.append(Span(stripped, begin, begin + len(stripped)))
    return tuple(spans)
