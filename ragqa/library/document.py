"""A whole document as its index holds it: its outline, its leaves (passages shown together), search within it.

This works for every index, including one built from a folder. `file_of` gives the original files of the library.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from ragqa.corpus.citing import title_words
from ragqa.english.words import cut
from ragqa.errors import CorpusError
from ragqa.index import Index
from ragqa.library.collection import collection_of
from ragqa.types import Passage, Span

LEAF: Final = 40  # passages shown together; up to twice as many where no section begins after these
LONGEST_HEADING: Final = 160  # characters
FOUND: Final = 200  # passages that a search lists at most
_SEPARATOR: Final = " › "


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the outline: its depth from 0, its text, and the index position where its section begins."""

    depth: int
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document: index positions ``start`` to ``stop`` (exclusive), and ``leaves``, where each leaf begins."""

    document_id: str
    title: str
    start: int
    stop: int
    outline: tuple[Entry, ...]
    leaves: tuple[int, ...]

    def leaf_of(self, position: int) -> int:
        """The number of the leaf that holds this index position, counted from 0."""
        return max(0, bisect_right(self.leaves, position) - 1)

    def leaf(self, number: int) -> range:
        """The index positions of a leaf."""
        number = min(max(number, 0), len(self.leaves) - 1)
        stop = self.leaves[number + 1] if number + 1 < len(self.leaves) else self.stop
        return range(self.leaves[number], stop)

    def branch(self, position: int, most: int = 150) -> tuple[Entry, ...]:
        """At most ``most`` entries of the outline: all, else the upper levels and the entries near this position."""
        for depth in (9, 3, 2, 1, 0):
            here = self.leaf(self.leaf_of(position))
            kept = [one for one in self.outline if one.depth <= depth or one.position in here]
            if len(kept) <= most:
                return tuple(kept)
        at = max(0, bisect_right([one.position for one in kept], position) - most // 2)
        return tuple(kept[at : at + most])


def documents_of(index: Index) -> dict[str, tuple[int, str]]:
    """Each document's first position and title, by its id. Reads every passage once."""
    found: dict[str, tuple[int, str]] = {}
    for position, passage in enumerate(index.passages):
        if passage.document_id not in found:
            found[passage.document_id] = position, passage.title
    return found


def document_at(index: Index, position: int) -> DocumentView:
    """The document that the passage at this position belongs to. Reads the document's passages once."""
    chosen = index.passages[position]
    start = stop = position
    while start > 0 and index.passages[start - 1].document_id == chosen.document_id:
        start -= 1
    while stop < len(index.passages) and index.passages[stop].document_id == chosen.document_id:
        stop += 1
    outline: list[Entry] = []
    leaves = [start]
    before: list[str] = []
    for place in range(start, stop):
        path = [part for part in index.passages[place].section.split(_SEPARATOR) if part]
        same = 0
        while same < min(len(path), len(before)) and path[same] == before[same]:
            same += 1
        outline += [Entry(depth, path[depth][:LONGEST_HEADING], place) for depth in range(same, len(path))]
        begins = path != before
        if place - leaves[-1] >= (LEAF if begins else 2 * LEAF):
            leaves.append(place)
        before = path
    return DocumentView(
        chosen.document_id, chosen.title or chosen.document_id, start, stop, tuple(outline), tuple(leaves)
    )


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A passage that a search found, with the spans of the words."""

    position: int
    passage: Passage
    spans: tuple[Span, ...]


def search(index: Index, document: DocumentView, words: str) -> tuple[TextMatch, ...]:
    """The passages of the document that hold every word as the start of a word and every quoted phrase, in order."""
    patterns = [re.compile(pattern, re.IGNORECASE) for pattern in _patterns(words)]
    found: list[TextMatch] = []
    if not patterns:
        return ()
    for position in range(document.start, document.stop):
        passage = index.passages[position]
        text = f"{passage.number} {passage.text}"
        if all(pattern.search(text) for pattern in patterns):
            found.append(TextMatch(position, passage, marks_of(passage.text, words)))
            if len(found) >= FOUND:
                break
    return tuple(found)


def search_corpus(index: Index, words: str, most: int = 50) -> tuple[TextMatch, ...]:
    """The ``most`` passages of the whole corpus that BM25 ranks highest for these words, best first.

    With quoted phrases, only passages that hold every phrase, out of the first 20 × ``most``.
    """
    phrases = [re.compile(one, re.IGNORECASE) for one in _phrases(words)]
    ranked = index.bm25s.retrieve(words.replace('"', " "), most * 20 if phrases else most)
    found = (one.passage for one in ranked.hits if all(phrase.search(one.passage.text) for phrase in phrases))
    return tuple(
        TextMatch(index.position_of[one.passage_id], one, marks_of(one.text, words)) for one in islice(found, most)
    )


def section_question(passage: Passage) -> str:
    """A question about a passage's section: by its innermost heading with two words or more, else by its number.

    Text that leads to a list or goes on with a sentence is no heading.
    """
    named = [part.strip() for part in passage.section.split(_SEPARATOR) if part.strip()]
    headings = (part for part in reversed(named) if not part.endswith(":") and not part[0].islower())
    told = next((part for part in headings if len(re.findall(r"[^\W\d]{3,}", part)) > 1), "")
    told = told or next(reversed(named), "") or passage.number
    where = f" ({title_words(passage.title)})" if passage.title and passage.title != told else ""
    return f"What does “{cut(told, LONGEST_HEADING)}”{where} say?" if told else ""


def marks_of(text: str, words: str) -> tuple[Span, ...]:
    """The spans of the searched words in this text, in order."""
    matches = [match for one in _patterns(words) for match in re.finditer(one, text, re.IGNORECASE)]
    ordered = sorted(matches, key=lambda match: match.start())
    return tuple(Span(match[0], match.start(), match.end()) for match in ordered)


def _patterns(words: str) -> list[str]:
    single = re.sub(r'"[^"]*"?', " ", words).split()[:12]
    return _phrases(words) + [rf"(?<!\w){re.escape(word)}\w*" for word in single]


def _phrases(words: str) -> list[str]:
    found = re.findall(r'"([^"]{1,200})"', words)
    return [r"\s+".join(map(re.escape, phrase.split())) for phrase in found if phrase.strip()]


# Files --------------------------------------------------------------------------------------------------------------


def file_of(corpus: str, document_id: str, library: Path) -> Path | None:
    """The file that the index of a library corpus was built from; None where it is missing or has changed since."""
    collection = collection_of(corpus, library)
    if collection is None:
        return None
    with suppress(CorpusError):
        catalogue = collection.read()
        for one in catalogue.documents:
            if one.document_id == document_id and (catalogue.indexed or {}).get(document_id) == one.sha256:
                return collection.path_of(one)
    return None
