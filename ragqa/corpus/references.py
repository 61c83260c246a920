"""References between the passages of a corpus: which passage each reference means, or why none could be found. Pure.

What an instrument is called is learnt from the corpus: a name is that of the document that has the numbers it is named
with. A reference without a name means its own document where that speaks so of itself, else the only document that has
the number, else the one that its document speaks of most.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ragqa.corpus.reference_grammar import HERE, Mention, Named, mentions
from ragqa.types import Passage

_RANKS: Final = re.compile(r"(?i)^(part|chapter|schedule|appendix|app|annex|division|book|title|volume)\s*([\w]*)$")
_NAMED_UNIT: Final = re.compile(r"(?i)^(?:article|section|rule|regulation|recital|paragraph)\s*(\w+)$")
_SPLIT: Final = re.compile(r"\.(?![^(]*\))")
_INNER: Final = re.compile(r"(?:paragraph|section|subsection|rule|article|regulation)\s+([\w.]+)((?:\s?\(\w+\))*)")
_STATUTE: Final = re.compile(r"[A-Z][A-Z ,&-]+ (?:REGULATIONS?|ACT|ORDER|LAW|CODE) (?:19|20)\d\d")
_GENERIC: Final = frozenset(
    {"rules", "rulebook", "rule", "regulations", "these rules", "guidance", "act", "part", "section"}
)
_INSIDE: Final = re.compile(
    r"(?i)(?:part|chapter|schedule|section|rule|article|this|these|annex|paragraph|subsection|regulation \d|"
    r"app(?:endix)? ?\d*)\b"
)
_RANK: Final = "#"  # before "part 3" as a key: its heading
_WIDE: Final = 60  # passages that a range may span
_SURE: Final = 0.7  # share of the numbers named with an instrument that its document has
_CLEAR: Final = 1.3  # times the evidence for any other document
_LEAST: Final = 3  # different numbers named with an instrument, from which its document is looked for
_AT_HOME: Final = 0.5  # share of a kind's references that a document resolves itself, from which it is meant

Key = tuple[str, tuple[str, ...]]  # "6.2.10", ("2", "a"); in a schedule "schedule 1/5"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference in a passage: ``text[start:end]``. ``target`` is the first passage meant, ``last`` the last one.

    Both are empty where none was found, and ``reason`` says why.
    """

    source: str
    start: int
    end: int
    target: str = ""
    last: str = ""
    reason: str = ""


def _completed(mention: Mention) -> tuple[Named, ...]:
    """The numbers, items that are said to be of a section with that: "(2) of section 58" as 58(2)."""
    inner = re.fullmatch(
        r"(?:paragraph|section|subsection|rule|article|regulation)\s+([\w.]+)((?:\s?\(\w+\))*)", mention.instrument
    )
    if not inner:
        return mention.named
    items = tuple(re.findall(r"\((\w+)\)", inner[2]))
    return tuple(Named(inner[1], (*items, *one.items)) if not one.unit else one for one in mention.named)


@dataclass(slots=True)
class _Numbers:
    """The numbers of one document: the position of each key, all keys in order, how paragraphs are numbered."""

    at: dict[Key, int] = field(default_factory=dict)
    keys: dict[int, Key] = field(default_factory=dict)
    style: Counter[str] = field(default_factory=Counter)
    positions: list[int] = field(default_factory=list)

    @property
    def most(self) -> str:
        """The style of most of its numbers: "paragraph", "statute", "dotted"; empty without any."""
        return self.style.most_common(1)[0][0] if self.style else ""


@dataclass(slots=True)
class Resolver:
    """The numbers of a corpus, what its documents are called, what each speaks of."""

    passages: Sequence[Passage]
    documents: dict[str, _Numbers] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    at_home: dict[tuple[str, str], bool] = field(default_factory=dict)  # by document and kind
    affinity: dict[str, Counter[str]] = field(default_factory=dict)
    places: dict[tuple[str, Named], dict[str, tuple[int, int, str]]] = field(default_factory=dict)  # asked before

    def resolve(self, position: int, mention: Mention) -> Iterator[Reference]:
        """What each number of the mention means."""
        passage = self.passages[position]
        for named in _completed(mention):
            target, last, reason = self._meant(position, passage.document_id, mention, named)
            if target == position and last == position:
                continue
            ids = [self.passages[place].passage_id if place >= 0 else "" for place in (target, last)]
            yield Reference(passage.passage_id, mention.start, mention.end, ids[0], ids[1], reason)

    def _meant(self, position: int, document: str, mention: Mention, named: Named) -> tuple[int, int, str]:
        if not named.unit:
            return self._relative(position, document, named)
        if mention.instrument:
            known = self.aliases.get(_plain(mention.instrument))
            if known:
                return self._in(known, mention.kind, named) or (-1, -1, f"{known} has no {mention.kind} {named}")
            if not _is_generic(mention.instrument):
                return -1, -1, f"{mention.instrument[:60]} is not in this corpus"
        if mention.kind in {"part", "chapter"} and mention.instrument.casefold().startswith("schedule"):
            return -1, -1, f"no {mention.kind} {named} of a schedule in this corpus"
        scheduled = self._scheduled(position, document, mention, named)
        if scheduled:
            return scheduled
        own = self._in(document, mention.kind, named)
        if own and (self.at_home.get((document, mention.kind), True) or mention.kind == "paragraph"):
            return own
        missing = -1, -1, f"no {mention.kind} {named} in this corpus"
        if mention.instrument == HERE or self.at_home.get((document, mention.kind), False):
            return own or missing
        return self._elsewhere(document, mention, named) or own or missing

    def _scheduled(self, position: int, document: str, mention: Mention, named: Named) -> tuple[int, int, str] | None:
        """A paragraph of a schedule: of the one that is named, else of the one that the passage stands in."""
        said = re.match(r"(?i)(schedule|annex) ?\w+", mention.instrument)
        own = self.documents[document].keys.get(position, ("", ()))[0].rpartition("/")[0]
        schedule = said[0].lower() if said else own
        if (
            not schedule
            or mention.kind not in {"paragraph", "section", "article"}
            or (own and mention.kind != "paragraph")
        ):
            return None
        at = self.documents[document].at
        for items in dict.fromkeys((named.items, ())):
            key = f"{schedule}/{named.unit}", items
            if key in at:
                return at[key], self._end(document, key), ""
        return None

    def _elsewhere(self, document: str, mention: Mention, named: Named) -> tuple[int, int, str] | None:
        if mention.kind in {"paragraph", "chapter", "part", "schedule", "appendix", "annex"}:
            return None
        places = {other: place for other, place in self.anywhere(mention.kind, named).items() if other != document}
        if len(places) == 1:
            return next(iter(places.values()))
        spoken = self.affinity.get(document, Counter())
        ranked = sorted(places, key=lambda other: -spoken[other])
        if ranked and spoken[ranked[0]] >= 2 * max(1, spoken[ranked[1]]):
            return places[ranked[0]]
        return (-1, -1, f"{len(places)} documents have {mention.kind} {named}") if places else None

    def anywhere(self, kind: str, named: Named) -> dict[str, tuple[int, int, str]]:
        """Where documents have this number; looked for once, and only in documents that number anything."""
        if (kind, named) not in self.places:
            found = {name: self._in(name, kind, named) for name, one in self.documents.items() if one.at}
            self.places[kind, named] = {name: place for name, place in found.items() if place}
        return self.places[kind, named]

    def _relative(self, position: int, document: str, named: Named) -> tuple[int, int, str]:
        """The item of the rule that this passage stands in, at the level where such items are."""
        numbers = self.documents[document]
        core, items = numbers.keys.get(position, ("", ()))
        for depth in range(len(items), -1, -1):
            if depth < len(items) and items[depth].isdigit() != named.items[0].isdigit():
                continue
            for wanted in dict.fromkeys((named.items, named.items[:1])):
                key = core, (*items[:depth], *wanted)
                if core and key in numbers.at:
                    return numbers.at[key], self._end(document, key), ""
        return -1, -1, f"no item {named} beside this passage"

    def _in(self, document: str, kind: str, named: Named) -> tuple[int, int, str] | None:
        first = self._key(document, kind, named)
        if first is None and named.last is not None:
            first = self._within(document, kind, named)
        if first is None:
            return None
        start, last = self.documents[document].at[first], self._end(document, first)
        if named.last is not None:
            until = self._key(document, kind, named.last)
            if until is not None and start <= self.documents[document].at[until] <= start + _WIDE:
                last = self._end(document, until)
        return start, last, ""

    def _within(self, document: str, kind: str, named: Named) -> Key | None:
        """The first of a range whose own first number is not there."""
        head, _, number = named.unit.rpartition(".")
        until = named.last.unit.rpartition(".") if named.last else ("", "", "")
        if not (number.isdigit() and until[2].isdigit() and until[0] == head):
            return None
        for n in range(int(number) + 1, min(int(until[2]), int(number) + _WIDE) + 1):
            key = self._key(document, kind, Named(f"{head}.{n}" if head else str(n), ()))
            if key is not None:
                return key
        return None

    def _key(self, document: str, kind: str, named: Named) -> Key | None:
        """The key of the unit that is named, or of the one around it where items have no passage of their own."""
        numbers = self.documents[document]
        if kind in {"part", "chapter", "schedule", "appendix", "annex"}:
            ranked: Key = f"{_RANK}{kind} {named.unit}".lower(), ()
            if ranked in numbers.at or kind != "chapter" or numbers.most == "paragraph":
                return ranked if ranked in numbers.at else None
        if not _fits(numbers, kind, named):
            return None
        unit = re.sub(r"(?i)^app ?\d+\.", "", named.unit)
        for n_items in range(len(named.items), -1, -1):
            for core in dict.fromkeys((unit, re.sub(r"(\d)\.([A-Z])\.", r"\1\2.", unit))):
                if (core, named.items[:n_items]) in numbers.at:
                    return core, named.items[:n_items]
        return None

    def _end(self, document: str, key: Key) -> int:
        """The last passage of the unit that begins here."""
        numbers, (core, items) = self.documents[document], key
        last = numbers.at[key]
        start = bisect_left(numbers.positions, last) + 1
        for place in numbers.positions[start:]:
            other, others = numbers.keys[place]
            inside = other == core and others[: len(items)] == items
            if not (inside or (not items and other.startswith(f"{core}."))):
                break
            last = place
        return last


def _fits(numbers: _Numbers, kind: str, named: Named) -> bool:
    """Whether a document numbers its parts so that it may have this: "section 58" is no paragraph of guidance."""
    most = numbers.most
    if "." in named.unit:
        return kind != "rule" or most != "paragraph"
    if kind in {"section", "article", "regulation"}:
        return most == "statute"
    return kind != "rule" or most != "paragraph"


@lru_cache(2**16)
def key_of(number: str) -> tuple[Key, str, str]:
    """A passage's number as a key, its rank's name ("part 3", for a heading of one), its style."""
    tokens = [token.strip() for token in _SPLIT.split(number) if token.strip()]
    core: list[str] = []
    items: list[str] = []
    ranks: list[str] = []
    for token in tokens:
        rank, unit = _RANKS.match(token), _NAMED_UNIT.match(token)
        if rank and not core:
            ranks.append(f"{rank[1]} {rank[2]}".lower().replace("app ", "appendix "))
        elif unit:
            core = [*([] if token.casefold().startswith("article") else core), unit[1]]  # "Section 3.Article 71"
        elif token.startswith("("):
            items += re.findall(r"\(([^)]+)\)", token) or [token.strip("()")]
        elif items or token.casefold().startswith(("guidance", "note")):
            items.append(token.casefold().rstrip(")"))
        elif core and re.fullmatch(r"[a-z]{1,4}", token):
            items.append(token)
        else:
            inner = re.fullmatch(r"([\w-]+?)((?:\([^)]+\))+)", token)
            core.append(inner[1] if inner else token.rstrip(")"))
            items += re.findall(r"\(([^)]+)\)", inner[2]) if inner else []
    scheduled = next((rank for rank in ranks if rank.split()[0] in {"schedule", "annex"}), "")
    joined = ".".join(core)
    style = "paragraph" if re.fullmatch(r"\d+\)", number.strip()) else "statute" if len(core) == 1 else "dotted"
    return (
        (f"{scheduled}/{joined}" if scheduled else joined, tuple(items)),
        (ranks[-1] if ranks and not core else ""),
        style,
    )


def resolver_of(passages: Sequence[Passage]) -> Resolver:
    """What there is to refer to, and what documents are called, learnt from all references at once."""
    made = Resolver(passages)
    for position, passage in enumerate(passages):
        numbers = made.documents.setdefault(passage.document_id, _Numbers())
        key, rank, style = key_of(passage.number)
        if rank:
            numbers.at.setdefault((f"{_RANK}{rank}", ()), position)
        if key[0]:
            numbers.at.setdefault(key, position)
            numbers.keys[position] = key
            numbers.positions.append(position)
            numbers.style[style] += 1
    for numbers in made.documents.values():  # units that have passages of their items only
        for position, (core, items) in numbers.keys.items():
            for n_items in range(len(items)):
                numbers.at.setdefault((core, items[:n_items]), position)
    return made


def references(
    passages: Sequence[Passage], named: Iterable[tuple[Mention, ...]] | None = None
) -> tuple[Reference, ...]:
    """Every reference of the corpus, in order. ``named`` is what `mentions` finds in each passage, where that is known.

    Goes through all of it twice: to learn names, and to resolve.
    """
    made = resolver_of(passages)
    found = dict(enumerate(named if named is not None else (mentions(passage.text) for passage in passages)))
    _learn(made, found)
    return tuple(
        one for position, several in found.items() for mention in several for one in made.resolve(position, mention)
    )


def _learn(made: Resolver, found: dict[int, tuple[Mention, ...]]) -> None:
    """What documents are called, where references without a name mean their own document, what documents speak of."""
    named: dict[str, set[tuple[str, Named]]] = defaultdict(set)
    own: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for position, several in found.items():
        document = made.passages[position].document_id
        for mention in several:
            for one in mention.named:
                if mention.instrument and "." not in one.unit:
                    named.setdefault(_plain(mention.instrument), set())
                elif mention.instrument:
                    named[_plain(mention.instrument)].add((mention.kind, one))
                elif one.unit and not mention.instrument:
                    own[document, mention.kind].append(made._in(document, mention.kind, one) is not None)
    made.at_home = {key: sum(hits) >= _AT_HOME * len(hits) for key, hits in own.items()}
    _name(made, {name: numbers for name, numbers in named.items() if not _is_generic(name)})
    for position, several in found.items():
        for mention in several:
            target = made.aliases.get(_plain(mention.instrument)) if mention.instrument else None
            if target:
                made.affinity.setdefault(made.passages[position].document_id, Counter())[target] += 1


def _name(made: Resolver, named: dict[str, set[tuple[str, Named]]]) -> None:
    """Gives each name its document, the surest first: a document that has one short name is not meant by another."""
    titles = _titles(made.passages)
    made.aliases = {name: titles[name] for name in named if name in titles}
    statutes = {name for name, one in made.documents.items() if _is_statute(one)}
    left = {
        name: {
            document: [made._in(document, kind, one) is not None for kind, one in numbers]
            for document in made.documents
            if document not in statutes
        }
        for name, numbers in named.items()
        if name not in titles and len(numbers) >= _LEAST
    }
    while left:
        taken = {document for name, document in made.aliases.items() if " " not in name}
        found = {name: _document_of(have, taken if " " not in name else set()) for name, have in left.items()}
        surest = max(found, key=lambda name: found[name][1])
        if not found[surest][0]:
            return
        made.aliases[surest] = found[surest][0]
        del left[surest]


def _is_statute(numbers: _Numbers) -> bool:
    """Whether its sections count from 1 on, as those of any other statute do: their numbers tell nothing."""
    return numbers.most == "statute"


def _document_of(have: dict[str, list[bool]], taken: Collection[str]) -> tuple[str, float]:
    """The document that has the numbers, and how much surer it is than any other; empty where none is clear."""
    free = {document: hits for document, hits in have.items() if document not in taken and any(hits)}
    shared = [sum(column) for column in zip(*free.values(), strict=True)]
    scores = {document: sum(1 / shared[n] for n, hit in enumerate(hits) if hit) for document, hits in free.items()}
    ranked = sorted(scores, key=lambda document: -scores[document])
    if not ranked or sum(free[ranked[0]]) < _SURE * len(shared):
        return "", 0.0
    margin = min(scores[ranked[0]] / scores[ranked[1]] if len(ranked) > 1 else 10.0, 10.0)
    return (ranked[0], margin * len(shared)) if margin >= _CLEAR else ("", 0.0)


def _titles(passages: Sequence[Passage]) -> dict[str, str]:
    """Documents by what they call themselves: a title, its acronym in brackets, the first heading."""
    found: dict[str, str] = {}
    before = ("", "")
    for passage in passages:
        if before != (passage.title, passage.document_id):
            before = passage.title, passage.document_id
            for name in (*before, *re.findall(r"\(([A-Z]{2,8})\)", passage.title)):
                if len(name) > 2 and not name.isdigit():
                    found.setdefault(_plain(name), passage.document_id)
        if _STATUTE.fullmatch(passage.number.strip()):
            words = passage.number.split()
            acronym = "".join(word[0] for word in words[:-1] if word not in {"AND", "OF", "THE", "FOR", "&"})
            for name in (passage.number, " ".join(words[:-1]), acronym):
                found.setdefault(_plain(name), passage.document_id)
    return found


def _plain(name: str) -> str:
    return re.sub(r"\W+", " ", name).strip().casefold()


def _is_generic(name: str) -> bool:
    """Whether it names no instrument: "of the Rulebook", "of Schedule 1"."""
    return _plain(name) in _GENERIC or _INSIDE.match(name) is not None
