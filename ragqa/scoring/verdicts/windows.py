"""What of the sources is read for an answer sentence: the few windows nearest to it in words and in meaning.

A window is a sentence, an item of a listing after its lead-in, two or three neighbours, or a short passage as a whole;
the passage's title stands before it as context.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice, pairwise

from ragqa.english.reading import read
from ragqa.types import Passage, Span
from ragqa.types.scores import Premise

Similarity = Callable[[str, Sequence[str]], Sequence[float]]

COMPARED = 24  # source sentences per answer sentence whose vectors are compared
WHOLE = 1_000  # characters of a passage that is read as a whole
N_WINDOWS = 5  # at most, per answer sentence
LONG = 320  # characters of a listing from which the item is read alone, after its lead-in


@dataclass(frozen=True, slots=True)
class Window:
    """Evidence for one answer sentence: ``text`` is what the model reads, ``positions`` the source sentences in it.

    The first position is the sentence that is nearest. ``item`` are the deciding words of it where an item of a
    listing is read, offsets in the sentence.
    """

    text: str
    evidence: str  # without the title
    positions: tuple[int, ...]
    near: float  # of the nearest sentence in it: cover plus cosine, about 0 to 2
    item: Span | None = None


class Windows:
    """Chooses the windows of these source sentences; each answer sentence's are chosen once."""

    def __init__(
        self, premises: Sequence[Premise], passages: Sequence[Passage], similarity: Similarity | None = None
    ) -> None:
        """``similarity`` gives the cosine of one text to each of others; without it words in common stand for it."""
        self._premises, self._similarity = premises, similarity
        self._titles = [passages[premise.passage_index].title for premise in premises]
        self._stems = [
            read(premise.text).content | read(title).content
            for premise, title in zip(premises, self._titles, strict=True)
        ]
        self._passage_of: dict[int, range] = {}
        for _, group in groupby(range(len(premises)), key=lambda n: premises[n].passage_index):
            places = list(group)
            self._passage_of |= dict.fromkeys(places, range(places[0], places[-1] + 1))
        self._chosen: dict[tuple[str, frozenset[int]], tuple[Window, ...]] = {}

    def of(self, text: str, without: frozenset[int] = frozenset()) -> tuple[Window, ...]:
        """The windows that are read for this answer sentence, the nearest first; ``without`` these source sentences."""
        key = text, without
        if key not in self._chosen:
            near = self._nearness(text)
            ranked = sorted((n for n in range(len(near)) if n not in without), key=lambda n: -near[n])
            distinct: dict[str, Window] = {}
            for window in self._windows(text, ranked, near):
                distinct.setdefault(window.text, window)
            found = sorted(distinct.values(), key=lambda window: -window.near)
            self._chosen[key] = tuple(islice(found, N_WINDOWS)) if read(text).words else ()
        return self._chosen[key]

    def _windows(self, text: str, ranked: Sequence[int], near: Sequence[float]) -> Iterator[Window]:
        seen: list[range] = []
        for n in ranked:
            passage = self._passage_of[n]
            if passage in seen:
                continue
            seen.append(passage)
            yield self._alone(text, n, near)
            yield self._wider(passage, n, near)
            if len(seen) == 1:
                beside = [m for m in (n - 1, n + 1) if m in passage]
                if beside:
                    other = max(beside, key=lambda m: near[m])
                    yield self._run(range(min(n, other), max(n, other) + 1), n, near)
            if len(seen) == 2:
                return

    def _alone(self, text: str, n: int, near: Sequence[float]) -> Window:
        listing = taken_apart(self._premises[n].text)
        if not listing.items or len(self._premises[n].text) < LONG:
            return self._run(range(n, n + 1), n, near)
        said = read(text).content
        items = listing.items
        shares = [len(said & stems) / (3 + len(stems)) for stems in (read(item.span.text).content for item in items)]
        best = items[shares.index(max(shares))]
        words = best.after(listing.lead)
        return Window(self._titled(words, n), words, (n,), near[n], best.span)

    def _wider(self, passage: range, n: int, near: Sequence[float]) -> Window:
        if sum(len(self._premises[m].text) for m in passage) <= WHOLE:
            return self._run(passage, n, near)
        return self._run(range(max(passage.start, n - 1), min(passage.stop, n + 2)), n, near)

    def _run(self, run: range, n: int, near: Sequence[float]) -> Window:
        words = " ".join(self._premises[m].text for m in run)
        return Window(self._titled(words, n), words, (n, *(m for m in run if m != n)), near[n])

    def _titled(self, text: str, n: int) -> str:
        return f"{self._titles[n]}: {text}" if self._titles[n] else text

    def _nearness(self, text: str) -> list[float]:
        """For each source sentence the share of words in common plus the cosine."""
        cover = covers(text, self._stems)
        if self._similarity is None:
            return [0.35 + 1.6 * share for share in cover]
        compared = sorted(range(len(cover)), key=lambda n: -cover[n])[:COMPARED]
        values = self._similarity(text, [self._premises[n].text for n in compared])
        cosine = dict(zip(compared, map(float, values), strict=True))
        return [share + cosine.get(n, 0.0) for n, share in enumerate(cover)]


def covers(text: str, known: Sequence[frozenset[str]]) -> list[float]:
    """For each source sentence the share of the text's content words it has, rare ones counting more, in [0, 1].

    ``known`` are the stems of each source sentence and its title. ``w = 1 + ln(n / n_with_it)`` over these and the
    text itself.
    """
    said = read(text).content
    n_with = Counter(stem for stems in known for stem in stems & said)
    weight = {  # sorted, so that sums have the same bits in every process
        stem: 1 + math.log((len(known) + 1) / (1 + n_with[stem])) for stem in sorted(said)
    }
    total = sum(weight.values())
    return [sum(weight[stem] for stem in weight if stem in stems) / total if total else 0.0 for stems in known]


# Listings -----------------------------------------------------------------------------------------------------------

_MARK = re.compile(r"(?:^|(?<=[\s;:,.]))\(?(?P<mark>[a-z]{1,2}|[ivx]{1,5}|[A-Z]|\d{1,2})\)\s+")
_REFERRING = re.compile(r"(?:\b(?:rules?|paragraphs?|sections?|articles?|chapters?)\s*[\d.]*|\))\s*$", re.IGNORECASE)
REACH = 24  # characters before a mark in which what it refers to is looked for
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv")
_EDGES = " \t\n\r\f\v;,.:"
DEEPEST = 3  # an item in an item in an item


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a listing. ``mark`` is "(a)", of an item in an item "(b)(i)"; ``above`` is the item around it."""

    mark: str
    span: Span
    above: Item | None = None

    def after(self, lead: Span) -> str:
        """The item in full: after the lead-in, and after the item around it."""
        return f"{self.above.after(lead) if self.above else lead.text} {self.span.text}"


@dataclass(frozen=True, slots=True)
class Listing:
    """``lead`` is the whole sentence where it lists nothing; spans are offsets in the sentence."""

    lead: Span
    items: tuple[Item, ...] = ()


@lru_cache(maxsize=4_000)
def taken_apart(text: str) -> Listing:
    """The lead-in and the items of a listing with marks such as (a), (ii) or 3), at least two of them."""
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


def _marks(text: str) -> list[tuple[re.Match[str], int]]:
    """The marks that count on, each with its depth; a number in brackets or "Rule 3 (a)" is none."""
    found: list[tuple[re.Match[str], int]] = []
    due: list[str] = []  # the mark that comes next at each depth
    is_roman: list[bool] = []
    for match in _MARK.finditer(text):
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
    """Without the white space, marks and the "and" or "or" at its ends."""
    words = text[start:end].rstrip(_EDGES)
    last = words.rpartition(" ")[2]
    if last in {"and", "or"}:
        words = words.removesuffix(last).rstrip(_EDGES)
    kept = words.lstrip()
    start += len(words) - len(kept)
    return Span(kept, start, start + len(kept))
