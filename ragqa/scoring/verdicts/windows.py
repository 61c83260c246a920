"""Selects the source text that is read for an answer sentence: the few windows nearest in words and in meaning.

A window is a sentence, an item of a list after its lead-in, two or three neighbouring sentences, or a short passage as
a whole. The passage's title stands before it as context.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from ragqa.english.reading import read
from ragqa.english.sentences import taken_apart
from ragqa.types import Passage, Span
from ragqa.types.scores import Premise

Similarity = Callable[[str, Sequence[str]], Sequence[float]]

COMPARED = 24  # source sentences per answer sentence whose vectors are compared
WHOLE = 1_000  # characters up to which a passage is read as a whole
N_WINDOWS = 5  # at most, per answer sentence
LONG = 320  # characters of a list from which only the nearest item is read, after its lead-in


@dataclass(frozen=True, slots=True)
class Window:
    """Evidence for one answer sentence: ``text`` is what the model reads, ``positions`` the source sentences in it.

    The first position is the nearest sentence. Where an item of a list is read, ``item`` is its span in that sentence.
    """

    text: str
    evidence: str  # without the title
    positions: tuple[int, ...]
    near: float  # of its nearest sentence: share of words plus cosine, about 0 to 2
    item: Span | None = None


class Windows:
    """Chooses the windows of these source sentences; results are cached by answer sentence."""

    def __init__(
        self, premises: Sequence[Premise], passages: Sequence[Passage], similarity: Similarity | None = None
    ) -> None:
        """``similarity`` gives the cosines of one text with others; without it only words in common count."""
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
        """The windows to read for this answer sentence, nearest first; none is around a sentence in ``without``."""
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
        """For each source sentence, the share of words in common plus the cosine."""
        cover = covers(text, self._stems)
        if self._similarity is None:
            return [0.35 + 1.6 * share for share in cover]
        compared = sorted(range(len(cover)), key=lambda n: -cover[n])[:COMPARED]
        values = self._similarity(text, [self._premises[n].text for n in compared])
        cosine = dict(zip(compared, map(float, values), strict=True))
        return [share + cosine.get(n, 0.0) for n, share in enumerate(cover)]


def covers(text: str, known: Sequence[frozenset[str]]) -> list[float]:
    """For each source sentence, the share of the text's content words that it contains, in [0, 1].

    Rare words count more: ``w = 1 + ln(n / n_with_it)`` over the source sentences and the text itself. ``known`` holds
    the stems of each source sentence with its title.
    """
    said = read(text).content
    n_with = Counter(stem for stems in known for stem in stems & said)
    weight = {  # sorted, so that sums have the same bits in every process
        stem: 1 + math.log((len(known) + 1) / (1 + n_with[stem])) for stem in sorted(said)
    }
    total = sum(weight.values())
    return [sum(weight[stem] for stem in weight if stem in stems) / total if total else 0.0 for stems in known]
