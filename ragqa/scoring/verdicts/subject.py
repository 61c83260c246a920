"""Whether a source sentence speaks of the same thing as an answer sentence: the gate before anything can contradict.

Names must be known to the source sentence or its headings, a source sentence that is about its title is on another
subject than an answer that does not name it, and enough of the words and of the meaning must be shared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ragqa.english.reading import Reading, read
from ragqa.types import Passage

_PRONOUNS = frozenset("it he she they its his her their this these such".split())


@dataclass(frozen=True, slots=True)
class Headings:
    """What stands above a passage: the stems of title and section, and those of the title that no other title has."""

    stems: frozenset[str]
    special: frozenset[str]


def headings_of(passages: Sequence[Passage]) -> tuple[Headings, ...]:
    """The headings of each passage."""
    titles = [read(passage.title).content for passage in passages]
    n_with = Counter(stem for title in set(titles) for stem in title)
    return tuple(
        Headings(
            stems=read(f"{passage.title} {passage.section}").stems,
            special=frozenset(stem for stem in title if n_with[stem] == min(n_with[other] for other in title)),
        )
        for passage, title in zip(passages, titles, strict=True)
    )


def is_elsewhere(said: Reading, found: Reading, headings: Headings) -> bool:
    """Whether the source sentence is about its title, by name or by a pronoun, and the answer does not name that."""
    about_title = bool(headings.special & found.stems) or bool(found.words and found.words[0].lower in _PRONOUNS)
    return bool(headings.special) and about_title and not headings.special & said.stems


def unknown_names(said: Reading, found: Reading, headings: Headings) -> int:
    """How many names of the answer sentence have a word that neither the source sentence nor its headings have."""
    known = found.stems | headings.stems
    return sum(not set(name.stems) <= known for name in said.names)


def knows_subject(said: Reading, found: Reading, headings: Headings) -> bool:
    """Whether the first name of the answer sentence, most often its subject, is known; true where it names nothing."""
    known = found.stems | headings.stems
    return not said.names or set(said.names[0].stems) <= known


def covers(said: Reading, known: Sequence[frozenset[str]]) -> list[float]:
    """For each source sentence the share of the answer's content words it has, rare ones counting more, in [0, 1].

    ``known`` are the stems of each source sentence and of its headings. ``w = 1 + ln(n / n_with_it)`` over these and
    the answer's own sentence.
    """
    n_with = Counter(stem for stems in known for stem in stems & said.content)
    weight = {  # sorted, so that sums have the same bits in every process
        stem: 1 + math.log((len(known) + 1) / (1 + n_with[stem])) for stem in sorted(said.content)
    }
    total = sum(weight.values())
    return [sum(weight[stem] for stem in weight if stem in stems) / total if total else 0.0 for stems in known]
