"""Finds the rule that a question names by number: "rule 3.1.1 of the Outsourcing Rules", "Article 6(1)(a)". Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ragqa.corpus.reference_grammar import Mention, Named, mentions
from ragqa.corpus.references import Resolver, completed, document_with, names_of, plain_name, resolver_of
from ragqa.english.reading import read
from ragqa.types import Passage

MOST = 12  # passages of one rule
FEWEST = 3  # distinct numbers after an abbreviation from which its document is inferred
_BARE = re.compile(r"(?<![\w.])\d{1,3}[A-Z]?(?:\.\d{1,3}[A-Z]?)+(?:\(\w{1,5}\))*(?![\w%]|\.\d)")
ENOUGH = 0.5  # weighted share of an instrument's words from which a document with them is meant; rare words weigh more


def names_a_rule(question: str) -> bool:
    """Whether the question names any rule by its number."""
    return any(one.unit for mention in _mentions(question) for one in mention.named)


def _mentions(question: str) -> Sequence[Mention]:
    """The references in the question, which may be only a number, or a number that only a document's name explains."""
    found = mentions(question if any(map(str.isalpha, question)) else f"rule {question}")
    holders = {(kind, named) for mention in found for kind, named in mention.within}
    return [completed(one) for one in found if (one.kind, one.named[0]) not in holders] or [
        Mention(*number.span(), "", one.named, opens=True)
        for number in _BARE.finditer(question)
        for one in mentions(f"rule {number[0]}")
    ]


def asked_by_number(question: str, passages: Sequence[Passage], ranked: Sequence[str] = ()) -> tuple[Passage, ...]:
    """The passages of each rule that the question names by number, in reading order; () if it names none.

    If several documents have the number, the one whose title or id the question names is used, else the first in
    ``ranked``, which are document ids. If the question names an instrument that is not a document, or has an unknown
    capitalised first word before the number, there is no result ("Outsourcing 3.1.1" may name a document, "Within 3.1
    days" does not).
    """
    found: dict[int, None] = {}
    for (start, last), *_ in _places(question, passages, ranked):
        found |= dict.fromkeys(range(start, min(last, start + MOST - 1) + 1))
    return tuple(passages[place] for place in found)


def same_number(question: str, passages: Sequence[Passage], ranked: Sequence[str] = ()) -> tuple[Passage, ...]:
    """If the question names no document, the first passage with its number in each of the other documents."""
    return tuple(passages[start] for _, *others in _places(question, passages, ranked) for start, _ in others)


@lru_cache(64)
def _called(name: str, passages: Sequence[Passage]) -> str:
    """The document of this name or abbreviation; if its title lacks it, the one with the numbers that follow it."""
    resolver = _resolver(passages)
    if known := _aliases(passages).get(plain_name(name), ""):
        return known
    numbered = re.compile(rf"\b{re.escape(name)}\s+(?:Rules?\s+)?(\d+(?:\.\d+)+)")
    numbers = {Named(unit) for one in passages for unit in numbered.findall(one.text)}
    have: dict[str, list[bool]] = defaultdict(list)
    for number in numbers if len(numbers) >= FEWEST else ():
        places = resolver.anywhere("", number)
        for document in resolver.documents:
            have[document].append(document in places)
    return document_with(have)[0]


@lru_cache(4)
def _aliases(passages: Sequence[Passage]) -> dict[str, str]:
    return names_of(passages)[0]


@lru_cache(4)
def _resolver(passages: Sequence[Passage]) -> Resolver:
    """The cached resolver of an index's passages; making it takes a second for some tens of thousands."""
    return resolver_of(passages)


def _places(question: str, passages: Sequence[Passage], ranked: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
    """For each named rule, its first and last place in the document meant, else in each document that has it."""
    resolver, order = _resolver(passages), {name: place for place, name in enumerate(dict.fromkeys(ranked))}
    for mention in _mentions(question):
        outside = f"{question[: mention.start]} {question[mention.end :]}"
        called = _called(mention.instrument, passages) if mention.instrument else ""
        words = read(mention.instrument or outside).content
        names, near = _names(resolver.passages), frozenset[str]()
        bare = mention.opens and not (mention.kind or mention.before)
        if bare:  # only words of titles can explain the number, most words of one, or the one before the number
            words &= frozenset().union(*names.values())
            before = question[: mention.start].split()[-1:]
            near = read(" ".join(before)).content if "".join(before)[:1].isupper() else near
        meant = {called: 1.0} if called else _meant(words, resolver)
        if bare and not called:
            said = {one.document_id for one in _titled(resolver.passages) if _says(words, one)}
            meant = {name: share for name, share in meant.items() if near & names[name] or name in said}
        for named in mention.named:
            found = [resolver.anywhere(mention.kind, one) for one in _written(named)]
            of_meant = (places for places in found if any(meant.get(name, 0.0) >= ENOUGH for name in places))
            places = next(of_meant, next(filter(None, found), {}))
            best = sorted(places, key=lambda name: (-meant.get(name, 0.0), order.get(name, len(order))))
            is_named = any(meant.get(name, 0.0) >= ENOUGH for name in best[:1])
            if best and (is_named or not (mention.instrument or (mention.opens and not mention.kind))):
                yield [places[name][:2] for name in (best[:1] if is_named else best)]


def _says(words: frozenset[str], passage: Passage) -> bool:
    """Whether these are most words of the title of a passage's document, or of its id."""
    owns = (read(text).content for text in (passage.title, passage.document_id))
    return any(2 * len(words & own) > len(own) for own in owns)


def _written(named: Named) -> Iterator[Named]:
    """The spellings that documents may use: 20(2)(a) may also be 20.2(a)."""
    if named.unit and named.items:
        yield Named(f"{named.unit}.{named.items[0]}", named.items[1:])
    if named.unit:
        yield named


def _meant(words: frozenset[str], resolver: Resolver) -> dict[str, float]:
    """For each document, the weighted share of these words in its title or id; common words weigh less."""
    holding = _names(resolver.passages)
    n_with = Counter(word for stems in holding.values() for word in stems)
    weights = {word: 1.0 / max(1, n_with[word]) for word in sorted(words)}
    total = sum(weights.values()) or 1.0
    return {
        name: sum(weight for word, weight in weights.items() if word in stems) / total
        for name, stems in holding.items()
    }


@lru_cache(4)
def _titled(passages: Sequence[Passage]) -> Sequence[Passage]:
    """The last passage of each document, which has its title."""
    return [*{one.document_id: one for one in passages}.values()]


@lru_cache(4)
def _names(passages: Sequence[Passage]) -> dict[str, frozenset[str]]:
    """The words of each document's title and id."""
    return {one.document_id: read(f"{one.title} {one.document_id}").content for one in _titled(passages)}
