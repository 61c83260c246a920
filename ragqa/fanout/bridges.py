"""Passages -> the second-hop questions they lead to: names they mention and the question does not. Pure."""

from __future__ import annotations

import re

from ragqa.fanout.decomposition import Part
from ragqa.fanout.names import FUNCTION_WORDS, SMALL_WORDS, names_in, plain_name
from ragqa.types import Passage, Ranking

MAX_NAMES = 12  # looked up for one passage; a longer list is an index, not a text
LOOKED_AT = 10  # hits among which a name's own passage must be

_WORD = re.compile(r"\w+")
_DATE = re.compile(
    r"(?:\d|january|february|march|april|may|june|july|august|september|october|november|december)[\w ]*\b\d+$|\d+$"
)
_WORDS = re.compile(r"\w+(?:[-'’]\w+)*")


def best_documents(ranking: Ranking, count: int) -> tuple[Passage, ...]:
    """The best passage of each of the ``count`` best documents, best first."""
    best: dict[str, Passage] = {}
    for hit in ranking.hits:
        best.setdefault(hit.passage.document_id, hit.passage)
        if len(best) == count:
            break
    return tuple(best.values())


def bridges(question: str, passage: Passage) -> tuple[Part, ...]:
    """A question per name in the passage that is neither in the question nor the passage's own title.

    It asks of the name what is left of the question once the words that the passage has are taken out:
    "Party Never Ends is an album by the Romanian singer who studied at what college?" becomes "Inna: who studied at
    what college?". At most 12, in reading order.
    """
    asked = {word.casefold() for word in _WORD.findall(question)}
    title = plain_name(passage.title)
    parts: dict[str, Part] = {}
    rest = _rest(question, passage)
    for span in names_in(passage.text):
        name = plain_name(span.text)
        words = _WORD.findall(name)
        if name == title or not words or all(word in asked or word in FUNCTION_WORDS for word in words):
            continue
        if _DATE.match(name) or name in parts:
            continue
        reason = f"{span.text} is named in {passage.title or passage.document_id}"
        parts[name] = Part(f"{span.text}: {rest}?" if rest else f"{span.text}?", reason, span.text)
    return tuple(parts.values())[:MAX_NAMES]


def own_passages(name: str, ranking: Ranking) -> frozenset[str]:
    """The ids of the passages among the best ten whose title is this name: the corpus has something of its own on it.

    A qualifier in the title, as in "Nile (river)", is left out of the comparison.
    """
    wanted = plain_name(name)
    return frozenset(
        hit.passage.passage_id for hit in ranking.hits[:LOOKED_AT] if plain_name(hit.passage.title) == wanted
    )


def _rest(question: str, passage: Passage) -> str:
    """The words of the question that the passage does not have, each with the function words right before it."""
    known = {word.casefold() for word in _WORD.findall(f"{passage.title} {passage.text}")}
    kept: list[str] = []
    waiting: list[str] = []
    for word in _WORDS.findall(question):
        waiting.append(word)
        if word.casefold() in SMALL_WORDS:
            continue
        if word.casefold() not in known:
            kept += waiting
        waiting = []
    text = " ".join(kept)
    return text[:1].lower() + text[1:] if kept and kept[0].casefold() in SMALL_WORDS else text
