"""Wikipedia pages as fragments, ranked for a question, and as many of them as fit: the paper's way (Zhu et al. 2024).

A page is cut at paragraphs, lines, sentences, clauses, then words into fragments of at most 1,024 characters; BM25+ on
comparable text (`ragqa.evaluation.fanoutqa_text`) ranks them for the question; the first that does not fit ends the
list. Tokens are estimated, since the server's tokenizer is not here: see `count_tokens`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ragqa.evaluation.fanoutqa_text import Normaliser

FRAGMENT_CHARS = 1_024
ANSWER_RESERVE = 520  # tokens of the context kept free: 512 for the answer and 8 for what the protocol adds
BYTES_PER_TOKEN = 3.5  # of Wikipedia's Markdown; tokenizers of the common models need fewer tokens than this says
_BORDERS = ("\n\n", "\n", ". ", ", ", " ")


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a page; ``number`` counts from 1 within its page."""

    title: str
    text: str
    number: int


def count_tokens(text: str) -> int:
    """How many tokens this text is taken for: one per 3.5 bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) * 2 // 7)


def cut(text: str, max_chars: int = FRAGMENT_CHARS, borders: Sequence[str] = _BORDERS) -> list[str]:
    """The text in pieces of at most ``max_chars``, cut at the first of ``borders`` that makes them small enough.

    Neighbours are joined while they fit. A text that fits is one piece; one without any border is cut anywhere. The
    same as `fanoutqa.retrieval.chunk_text`, which takes a border's length off the end of whatever it cuts: mostly that
    border, now and then a letter of a word that is nearly as long as a piece.
    """
    if len(text) <= max_chars:
        return [text]
    if not borders:
        return [text[start : start + max_chars] for start in range(0, len(text), max_chars)]
    border, *finer = borders
    pieces: list[str] = []
    for part in text.split(border):
        piece = part + border
        if len(piece) > max_chars:
            pieces += cut(piece, max_chars, finer)
        elif pieces and len(pieces[-1]) + len(piece) <= max_chars:
            pieces[-1] += piece
        else:
            pieces.append(piece)
    if pieces[-1] == border:
        pieces.pop()
    pieces[-1] = pieces[-1][: -len(border)]
    return pieces


def ranked(pages: Iterable[tuple[str, str]], question: str, normaliser: Normaliser) -> tuple[Fragment, ...]:
    """The fragments of these (title, text) pages, best first for the question; at equal scores in the pages' order."""
    fragments = [
        Fragment(title, text, number) for title, page in pages for number, text in enumerate(cut(page), 1) if text
    ]
    if not fragments:
        return ()
    from rank_bm25 import BM25Plus

    index = BM25Plus([normaliser(fragment.text, keep=False).split(" ") for fragment in fragments])
    scores = index.get_scores(normaliser(question).split(" "))
    order = sorted(range(len(fragments)), key=lambda place: (-float(scores[place]), place))
    return tuple(fragments[place] for place in order)


def fitting(fragments: Iterable[Fragment], limit: int, frame_tokens: int, each: Callable[[Fragment], str]) -> list[str]:
    """What ``each`` makes of the first fragments that fit into ``limit`` tokens together with ``frame_tokens``."""
    texts: list[str] = []
    used = frame_tokens
    for fragment in fragments:
        text = each(fragment)
        used += count_tokens(text)
        if used > limit:
            break
        texts.append(text)
    return texts
