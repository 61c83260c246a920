"""Finds what a question names: a rule by its number ("rule 3.1.1 of the Outsourcing Rules"), or a document. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby, islice

from ragqa.corpus.reference_grammar import Mention, Named, mentions
from ragqa.corpus.references import Resolver, completed, document_with, names_of, plain_name, resolver_of
from ragqa.english.reading import read
from ragqa.english.words import stem
from ragqa.types import Passage

MOST = 12  # passages of one rule
FEWEST = 3  # distinct numbers after an abbreviation from which its document is inferred
_BARE = re.compile(r"(?<![\w.])\d{1,3}[A-Z]?(?:\.\d{1,3}[A-Z]?)+(?:\(\w{1,5}\))*(?![\w%]|\.\d)")
_ID = re.compile(  # of a control: "AC-2(1)", "GV.OC-01"
    r"(?<![\w.-])[A-Za-z]{1,5}(?:\.[A-Za-z]{1,5})?-\d{1,3}(?:\(\d{1,3}\))*(?![\w-])"
)
_INSTRUMENT = re.compile(
    r"\b(?:[A-Z][\w'’-]*[\s,]+(?:(?:and|for|of|on|the)\s+)*){1,8}"
    r"(?:Act|Code|Directive|Handbook|Part|Policy|Regulations?|Rulebook|Rules)\b"
)
_WORD = re.compile(r"\w*\d/\d{2,4}|[^\W_]+")
_SAYS = re.compile(r"\s*what do(?:es)?\b", re.IGNORECASE)  # before a rule and a verb
FIRST = 1000  # passages among which one has a number if documents have rules
MANY = 10  # a word or phrase names at most two documents, or one in so many
ENOUGH = 0.5  # weighted share of an instrument's words from which a document with them is meant; rare words weigh more


def names_a_rule(question: str) -> bool:
    """Whether the question names any rule by its number."""
    return bool(_ID.search(question)) or any(one.unit for mention in asked_mentions(question) for one in mention.named)


def asked_mentions(question: str) -> Sequence[Mention]:
    """The references in the question, which may be only a number, or a number that only a document's name explains."""
    found = _joined(mentions(question if any(map(str.isalpha, question)) else f"rule {question}"), question)
    holders = {(kind, named) for mention in found for kind, named in mention.within}
    return [completed(one) for one in found if (one.kind, one.named[0]) not in holders] or [
        Mention(*number.span(), "", one.named, opens=True)
        for number in _BARE.finditer(question)
        for one in mentions(f"rule {number[0]}")
    ]


def _joined(found: Sequence[Mention], question: str) -> list[Mention]:
    """The references; a bare number before an article is its chapter: "Own Funds 4 Article 16"."""
    joined: list[Mention] = []
    for one in found:
        before = joined[-1] if joined else one
        if one.kind == "article" and not before.kind and not question[before.end : one.start].strip(" ,"):
            within = (("chapter", replace(before.named[0], start=0, end=0)),)
            one = replace(one, start=before.start, before=before.before, opens=before.opens, within=within)
            joined.pop()
        joined.append(one)
    return joined


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


def asks_only_for(question: str, passage: Passage) -> bool:
    """Whether the question asks what the rule of this passage says: "Article 6(1)", "What does rule 3.1 require?".

    The passage must have that number, and nothing but a verb may be left without it and the name of the document.
    """
    rest, ids = question, list(_ID.finditer(question))
    units = [one[0] for one in ids] + [one.unit for mention in asked_mentions(question) for one in mention.named]
    own = f" {' '.join(steps(passage.number))} "
    if not any(unit and f" {' '.join(steps(unit))} " in own for unit in units):
        return False
    spans = {(one.start, one.end) for one in asked_mentions(question)} | {one.span() for one in ids}
    for start, end in sorted(spans, reverse=True):
        rest = f"{rest[:start]} {rest[end:]}"
    left = read(rest).content - read(f"{passage.title} {passage.document_id} {passage.number}").content
    return len(left) <= bool(_SAYS.match(question))


def steps(number: str) -> list[str]:
    """The letters and digits of a number, from its chapter down: [6, 1, a] of "6(1)(a)"."""
    return re.findall(r"[^\W\d_]+|\d+", number.casefold())


@lru_cache(256)
def documents_named(question: str, passages: Sequence[Passage]) -> Mapping[str, frozenset[str]]:
    """The names of documents with numbered rules in the question ("Data Act", "DORA"), and the ids; mostly none.

    A name is a capitalised phrase like "Data Act" or "Lamp Oil Rules", whose words are in a document's title or id, or
    one such word or code that no text has: other words are found in the texts. What many documents have is no name.
    """
    if not any(one.number for one in islice(passages, FIRST)):  # an encyclopedia
        return {}
    owns = {one.document_id: [_own_words(one.title), _own_words(one.document_id)] for one in _titled(passages)}
    known = frozenset().union(*(words for own in owns.values() for words in own))
    names: dict[str, list[str]] = {
        word: [word]
        for word in _WORD.findall(question)
        if len(word) > 2
        and not word.isdigit()  # a year may be in the name of a file
        and word.casefold() in known
        and ("/" in word or not _is_in_text(word.casefold(), passages))
    }
    names |= {phrase: _wordings(phrase) for phrase in _INSTRUMENT.findall(question)}
    found: dict[str, frozenset[str]] = {}
    for wordings in names.values():
        for wording in wordings:
            words = _own_words(wording)
            having = frozenset(document for document, own in owns.items() if any(words <= one for one in own))
            if 0 < len(having) <= max(2, len(owns) // MANY):
                found[wording] = having
                break
    return found


def without_names(text: str, names: Iterable[str], instead: str = "") -> str:
    """The text with ``instead`` for these names of documents, and for the article before them."""
    for name in names:
        text = re.sub(rf"\b(?:the )?{re.escape(name)}\b", instead, text, flags=re.IGNORECASE)
    return " ".join(text.split())


def _wordings(phrase: str) -> list[str]:
    """The words by which a title may name this, longest first: "AI Act" also of "the GDPR and the AI Act"."""
    words = phrase.split()
    whole = [" ".join(words[start:]) for start in range(len(words) - 1)]
    short = [" ".join(words[start:-1]) for start in range(len(words) - 2)]  # without "Rules"
    return [one for one in whole + short if len(_own_words(one)) > 1]


def _own_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - {"the", "of", "on", "and", "for"}


@lru_cache(4096)
def _is_in_text(word: str, passages: Sequence[Passage]) -> bool:
    """Whether a text has this word in any form."""
    begins = re.compile(rf"\b{re.escape(stem(word))}", re.IGNORECASE)
    return any(begins.search(one.text) for one in passages)


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
    by_id, titled = _ids_in(question, passages), frozenset().union(*_names(passages).values())
    for name, start, end in by_id:
        having = _by_id(passages)[name]
        words = read(f"{question[:start]} {question[end:]}").content & titled
        best, is_named = _best_first(having, _meant(words, resolver), order)
        yield [having[one] for one in (best[:1] if is_named else best)]
    for mention in [] if by_id else asked_mentions(question):
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
            said |= frozenset().union(*documents_named(question, passages).values())
            meant = {name: share for name, share in meant.items() if near & names[name] or name in said}
        for named in mention.named:
            found = [resolver.anywhere(mention.kind, one, mention.within) for one in _written(named)]
            of_meant = (places for places in found if any(meant.get(name, 0.0) >= ENOUGH for name in places))
            places = next(of_meant, next(filter(None, found), {}))
            best, is_named = _best_first(places, meant, order)
            if best and (is_named or not (mention.instrument or (mention.opens and not mention.kind))):
                yield [places[name][:2] for name in (best[:1] if is_named else best)]


def _best_first(
    documents: Iterable[str], meant: Mapping[str, float], order: Mapping[str, int]
) -> tuple[list[str], bool]:
    """The documents, those that the question means first, then by their ``order``; whether it names the first one."""
    best = sorted(documents, key=lambda name: (-meant.get(name, 0.0), order.get(name, len(order))))
    return best, any(meant.get(name, 0.0) >= ENOUGH for name in best[:1])


def _ids_in(question: str, passages: Sequence[Passage]) -> list[tuple[str, int, int]]:
    """The ids of controls in the question that passages have, with the offsets of each: "Regulation R-4"."""
    mentioned, known = [(one.start, one.end) for one in asked_mentions(question)], _by_id(passages)
    found = [one for one in _ID.finditer(question) if one[0].casefold() in known]
    return [
        (one[0].casefold(), *next((span for span in mentioned if span[0] <= one.start() < span[1]), one.span()))
        for one in found
    ]


@lru_cache(4)
def _by_id(passages: Sequence[Passage]) -> dict[str, dict[str, tuple[int, int]]]:
    """For each id of a control, its first and last passage in each document, where it first stands."""
    found: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    named = ((n, one.document_id, match[0].casefold() if (match := _ID.search(one.number)) else "")
             for n, one in enumerate(passages))  # fmt: skip
    for (document, name), run in groupby(named, key=lambda one: one[1:]):
        first, *rest = (n for n, *_ in run)
        found[name].setdefault(document, (first, rest[-1] if rest else first))
    found.pop("", None)
    return dict(found)


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
