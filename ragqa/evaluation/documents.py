"""Measures how many gold places of published documents are recovered by parsing: exact text, number, heading.

A folder holds documents and ``gold.jsonl``: {file, kind, number, heading, text}. For each place, the passage of its
file with the best F1 of word 4-grams is chosen; up to four neighbours are joined if a unit was cut. The text is right
from .95 on. The number is right if the passage's number ends with the place's, compared as letters and digits. The
heading is right if it occurs in title, section or number. What has a number of its own below or above a passage counts
(`ragqa.index.passages.itemised`); ``alone`` counts places recovered without that.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.files import JsonItem
from ragqa.corpus.formats import open_stream
from ragqa.corpus.jsonl import read_json_lines
from ragqa.corpus.streams import TellingStream
from ragqa.index.passages import itemised
from ragqa.types import Passage

EXACT: Final = 0.95
NEAR: Final = 0.8  # from which a number may belong to the text
JOINED: Final = 4
CANDIDATES: Final = 12
GOLD: Final = "gold.jsonl"
_UNNAMED: Final = frozenset("article section rule paragraph regulation point r g".split())
_FOLDED: Final = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "\xad": None})

Grams = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Recovered:
    """Counts of a folder's places of one kind, and of those recovered."""

    source: str
    kind: str
    n: int
    text: int
    numbered: int
    both: int
    alone: int
    headed: int
    heading: int


@dataclass(frozen=True, slots=True)
class _Read:
    passages: Sequence[Passage]
    words: Sequence[Sequence[str]]
    holding: Mapping[tuple[str, ...], Sequence[int]]


def recovered(folder: Path, chunk_max_tokens: int) -> tuple[tuple[Recovered, ...], tuple[str, ...]]:
    """The table of a folder, by kind, and the messages of its parsing. Raises CorpusError if it cannot be read."""
    gold = [_place(item) for item in read_json_lines(folder / GOLD, GOLD)]
    stream = open_stream(folder, "documents", chunk_max_tokens=chunk_max_tokens)
    read = {}
    for _, passages in stream.articles():
        name = passages[0].document_id
        items = [one for position in range(len(passages)) for one in itemised(passages, position)]
        read[name] = read[_stem(name)] = _indexed(passages), _indexed(items)
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for place in gold:
        row = rows[place["kind"]]
        row["n"] += 1
        is_numbered = bool(_parts(place.get("number", "")) and place.get("number_recoverable", True))
        row["numbered"] += is_numbered
        row["headed"] += bool(place.get("heading"))
        document = read.get(place["file"]) or read.get(_stem(place["file"]))
        if document is not None:
            uncounted = () if is_numbered or place["kind"] == "reference" else ("both", "alone")
            row.update(one for one in _found(place, *document) if one not in uncounted)
    messages = tuple(stream.messages) if isinstance(stream, TellingStream) else ()
    names = "n", "text", "numbered", "both", "alone", "headed", "heading"
    return tuple(
        Recovered(folder.name, kind, *(row[name] for name in names)) for kind, row in sorted(rows.items())
    ), messages


def _place(item: JsonItem) -> Mapping[str, Any]:
    """The place of this line. Raises CorpusError if it lacks its file, its kind, its text or what a reference names."""
    item.line("file")
    if item.line("kind") != "reference":
        item.text("text")
    elif isinstance(item.values.get("to"), list):
        item.texts("to")
    else:
        item.line("to")
    return item.values


def _found(place: Mapping[str, Any], document: _Read, items: _Read) -> Iterator[str]:
    """The recovered parts of a place; a reference is recovered if its passage contains it as printed."""
    if place["kind"] == "reference":
        yield from ("text", "both", "alone", "heading") if _is_printed(place, document) else ()
        return
    wanted, number = _words(place["text"]), _parts(place.get("number", ""))
    best, run = _best(wanted, number, document)
    if best >= EXACT and _is_named(run, number):
        yield "alone"
    best, run = max(((best, run), _best(wanted, number, items)), key=lambda one: (one[0], _is_named(one[1], number)))
    if best >= EXACT:
        yield "text"
    if best >= EXACT and _is_named(run, number):
        yield "both"
    heading = " ".join(_words(place.get("heading", "").split(" / ")[-1]))
    if heading and any(heading in " ".join(_words(f"{one.title} {one.section} {one.number}")) for one in run):
        yield "heading"


def _best(wanted: Sequence[str], number: Sequence[str], document: _Read) -> tuple[float, list[Passage]]:
    """The run of these passages that matches the words best, of equal ones that with the number, and its F1."""
    near = Counter(n for gram in _grams(wanted) for n in document.holding.get(gram, ()))
    for n in near:  # of equal texts, the one with the number
        near[n] += 2 * _ends_alike(_parts(document.passages[n].number), number)
    return _best_run(wanted, [n for n, _ in near.most_common(CANDIDATES)], document)


def _best_run(wanted: Sequence[str], nearest: Sequence[int], document: _Read) -> tuple[float, list[Passage]]:
    """The consecutive passages that match these words best, and their F1."""
    best, run = 0.0, []
    for start in {max(0, n - back): None for n in nearest for back in range(JOINED)}:
        joined: list[str] = []
        for end in range(start, min(start + JOINED, len(document.passages))):
            joined += document.words[end]
            if (score := _f1(wanted, joined)) > best:
                best, run = score, list(document.passages[start : end + 1])
            if len(joined) > 2 * len(wanted) + 20:
                break
    return best, run


def _is_printed(place: Mapping[str, Any], document: _Read) -> bool:
    above = _parts(place.get("from", ""))
    named = [place["to"]] if isinstance(place["to"], str) else place["to"]
    cited = [f" {' '.join(_words(one))} " for one in named]
    return any(
        _ends_alike(_parts(passage.number), above) and all(one in f" {' '.join(words)} " for one in cited)
        for passage, words in zip(document.passages, document.words, strict=True)
    )


def _is_named(run: Sequence[Passage], number: Sequence[str]) -> bool:
    return bool(number) and any(_ends_alike(_parts(one.number), number) for one in run)


def _indexed(passages: Sequence[Passage]) -> _Read:
    words = [_words(passage.text) for passage in passages]
    holding: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for n, own in enumerate(words):
        for gram in _grams(own):
            holding[gram].append(n)
    return _Read(passages, words, holding)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).translate(_FOLDED).lower())


def _grams(words: Sequence[str], n: int = 4) -> Grams:
    n = min(n, max(1, len(words)))
    return Counter(tuple(words[place : place + n]) for place in range(max(1, len(words) - n + 1)))


def _f1(first: Sequence[str], second: Sequence[str]) -> float:
    n = min(4, len(first), len(second))
    if not n:
        return 0.0
    one, other = _grams(first, n), _grams(second, n)
    return 2 * (one & other).total() / (one.total() + other.total())


def _parts(number: str) -> list[str]:
    return [part for part in re.findall(r"[a-z]+|\d+", number.lower()) if part not in _UNNAMED]


def _ends_alike(have: Sequence[str], want: Sequence[str]) -> bool:
    return bool(have) and (have[-len(want) :] == want or want[-len(have) :] == have)


def _stem(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\.(?:html?|pdf|docx|xlsx)$", "", name.lower()))
