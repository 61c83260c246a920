"""One article in Markdown -> its passages, each with the article's title and the headings above it."""

from __future__ import annotations

from typing import Final

from ragqa.corpus.chunking import chunk
from ragqa.corpus.outline import markdown_outline
from ragqa.corpus.text import SEPARATOR
from ragqa.types import Passage

VERSION: Final = 1  # of how sources become Markdown and Markdown passages; part of every stream's identity


def article_passages(title: str, markdown: str, max_tokens: int, document_id: str = "") -> tuple[Passage, ...]:
    """The chunks of an article, none where it has no text below its headings.

    ``document_id`` is the title where none is given. Passage ids are ``"Title:1"``, ``"Title:2"``: unique where the
    documents' are, for what follows the last colon is the number.
    ``section`` is the path of headings below the title, ``start`` and ``end`` are offsets in the Markdown.
    """
    spans = (
        (SEPARATOR.join(section.path), span)
        for section in markdown_outline(markdown).sections
        for span in chunk(markdown, section.blocks, max_tokens)
    )
    return tuple(
        Passage(
            passage_id=f"{document_id or title}:{number}",
            document_id=document_id or title,
            text=span.text,
            title=title,
            section=section,
            number=str(number),
            start=span.start,
            end=span.end,
        )
        for number, (section, span) in enumerate(spans, start=1)
    )
