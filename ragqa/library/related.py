"""What is related to a passage: the passages that it refers to or that refer to it, and the defined terms in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from ragqa.corpus.reference_grammar import Reference
from ragqa.index import Index
from ragqa.library.definitions import Glossary, Use
from ragqa.types import Passage

SHOWN: Final = 20  # most references in each direction
LONGEST: Final = 10  # most passages of one reference

References = Mapping[str, Sequence[Reference]]  # by the id of the passage that refers


@dataclass(frozen=True, slots=True)
class Referred:
    """A reference in a passage: its ``words`` and its target passages; without targets, ``reason`` says why."""

    words: str
    targets: tuple[Passage, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Related:
    """The references of a passage (``refers``), the passages that refer to it (``referring``), and its terms.

    There are at most `SHOWN` references and referring passages; each term occurs once.
    """

    refers: tuple[Referred, ...]
    referring: tuple[Passage, ...]
    terms: tuple[Use, ...]


def merged(passages: Sequence[Passage], found: Sequence[Related]) -> Related:
    """Joins what is related to these passages, each item once, without the passages; ``found`` has one of each."""
    referring = dict.fromkeys(chain.from_iterable(one.referring for one in found))
    terms = {use.definition.term.casefold(): use for one in found for use in one.terms}
    return Related(
        tuple(one for one in chain.from_iterable(one.refers for one in found) if not {*one.targets} & {*passages}),
        tuple(one for one in referring if one not in passages),
        tuple(terms.values()),
    )


def related(index: Index, references: References, glossary: Glossary, passage: Passage) -> Related:
    """What is related to this passage of the index."""
    refers = []
    for one in references.get(passage.passage_id, ())[:SHOWN]:
        words = passage.text[one.start : one.end]
        first, last = (index.position_of.get(name) for name in (one.target, one.last))
        if first is None or last is None:
            refers.append(Referred(words, (), one.reason or "it is not in this corpus any more"))
        else:
            refers.append(Referred(words, tuple(index.passages[first : min(last + 1, first + LONGEST)])))
    sources = dict.fromkeys(
        source for source, several in references.items() for one in several if one.target == passage.passage_id
    )
    places = [index.position_of[source] for source in sources if source in index.position_of][:SHOWN]
    terms = {use.definition.term.casefold(): use for use in glossary.uses(passage)}
    return Related(tuple(refers), tuple(index.passages[at] for at in places), tuple(terms.values()))
