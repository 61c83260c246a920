"""Resolves references between the passages of a corpus to a passage, or to the reason why none was found. Pure.

The names of a document are learnt from the corpus: its title and the parts of it, its file name and its abbreviation.
An unknown name is given to the document that has the numbers named with it. A reference without a name means its own
document if references of its kind there usually do; else the only document with the number; else, of those, the one
that its document names most often.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ragqa.corpus.reference_grammar import HERE, Mention, Named, Reference, mentions
from ragqa.corpus.reference_numbers import BELOW, RANKS, Numbers
from ragqa.types import Passage

_STATUTE: Final = re.compile(r"[A-Z][A-Z ,&-]+ (?:REGULATIONS?|ACT|ORDER|LAW|CODE) (?:19|20)\d\d")
_GENERIC: Final = frozenset(
    {"rules", "rulebook", "rule", "regulations", "these rules", "guidance", "act", "part", "section"}
)
_INSIDE: Final = re.compile(
    r"(?i)(?:part|chapter|schedule|section|rule|article|this|these|annex|paragraph|subsection|regulation \d|"
    r"app(?:endix)? ?\d*)\b"
)
_CODE: Final = re.compile(r"(?:[A-Z][A-Za-z]{0,4} ?)?\d{1,4}/\d{2,4}\b")  # "SS1/20", "2016/679"
_PARTED: Final = re.compile(r"\s+[–—-]\s+|:\s+|_+|-{2,}")  # separates the parts of a title or file name
_WIDE: Final = 60  # most passages in a range
_SURE: Final = 0.7  # share of the numbers named with an instrument that its document must have
_CLEAR: Final = 1.3  # least ratio of its evidence to that for any other document
_LEAST: Final = 3  # least distinct numbers named with an instrument for its document to be inferred
_AT_HOME: Final = 0.5  # share of a kind's references with a number in their own document from which they mean that

_Place = tuple[int, int, str]
Within = tuple[tuple[str, Named], ...]  # as of a `Mention`


def completed(mention: Mention) -> Mention:
    """The mention with its items in full: "point (a) of paragraph 2 of Article 58" as Article 58(2)(a)."""
    while mention.within and mention.kind in {*BELOW, "section"}:
        (kind, holder), *outer = mention.within
        if kind in RANKS or (mention.kind == "section" and mention.named[0].unit):
            break
        named = tuple(_below(holder, one) for one in mention.named)
        mention = replace(mention, kind=kind, named=named, within=tuple(outer))
    return mention


def _below(holder: Named, one: Named) -> Named:
    items = (*holder.items, *filter(None, (one.unit, *one.items)))
    return replace(one, unit=holder.unit, items=items, last=_below(holder, one.last) if one.last else None)


@dataclass(slots=True)
class Resolver:
    """The numbers of a corpus, the names of its documents, and the documents that each names."""

    passages: Sequence[Passage]
    documents: dict[str, Numbers] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)  # documents by name
    names: set[str] = field(default_factory=set)  # names before numbers, not only at the beginning of sentences
    at_home: dict[tuple[str, str], bool] = field(default_factory=dict)  # by document and kind
    affinity: dict[str, Counter[str]] = field(default_factory=dict)  # how often a document names each other one
    places: dict[tuple[str, Named, Within], dict[str, _Place]] = field(default_factory=dict)  # cache of `anywhere`

    def resolve(self, position: int, mention: Mention) -> Iterator[Reference]:
        """The reference of each number in the mention; none for a number alone that names nothing in this corpus."""
        passage = self.passages[position]
        whole = completed(mention)
        if whole.kind in RANKS and "." in whole.named[0].unit:  # "Chapters 2, 3.1 and 3.2"
            whole = replace(whole, kind="")
        for place, named in enumerate(whole.named):
            target, last, reason = self._meant(position, passage.document_id, whole, named)
            if target == last == position or (target < 0 and not reason):
                continue
            ids = [self.passages[one].passage_id if one >= 0 else "" for one in (target, last)]
            start = named.start if place else mention.start
            end = named.end if place < len(whole.named) - 1 else mention.end
            yield Reference(passage.passage_id, start, end, ids[0], ids[1], reason)

    def named(self, mention: Mention) -> str:
        """The document that the mention names; empty if it names none, or one that is not in this corpus."""
        return self._called(mention.instrument) or self._called(mention.before, before=True)

    def _called(self, name: str, *, before: bool = False) -> str:
        """The document of this name, or of its part that does not belong to the sentence; empty if there is none."""
        plain = plain_name(name)
        if plain in self.aliases or not plain:
            return self.aliases.get(plain, "")
        if code := _CODE.search(name):
            return self.aliases.get(plain_name(code[0]), "")
        words = name.split()
        for place in range(1, len(words)):
            if before and (words[place - 1].islower() or _is_generic(words[place - 1])):
                known = self.aliases.get(plain_name(" ".join(words[place:])))
            elif not before and (words[place].islower() or _is_generic(words[place])):
                known = self.aliases.get(plain_name(" ".join(words[:place])))
            else:
                continue
            if known:
                return known
        return ""

    def _meant(self, position: int, document: str, mention: Mention, named: Named) -> _Place:
        known = self.named(mention)
        if known and (named.unit or known != document):
            kind = "chapter" if mention.kind == "part" and mention.before else mention.kind
            found = self._in(known, kind, named, mention.within) or self._in(known, kind or "chapter", named)
            return found or (-1, -1, f"{known} has no {kind} {named}".replace("  ", " "))
        if mention.instrument and mention.instrument != HERE and not _is_generic(mention.instrument):
            return -1, -1, f"{mention.instrument[:60]} is not in this corpus"
        if not mention.kind:
            return self._alone(position, document, mention, named)
        missing = -1, -1, f"no {mention.kind} {named} in this corpus"
        if mention.kind in BELOW or not named.unit:
            beside = self._beside(position, document, mention.kind, named) if not mention.within else None
            if beside or not named.unit:
                return beside or (-1, -1, f"no item {named} beside this passage")
        own = self._in(document, mention.kind, named, mention.within, position)
        if own and (self.at_home.get((document, mention.kind), True) or mention.kind == "paragraph"):
            return own
        if mention.instrument == HERE or self.at_home.get((document, mention.kind), False):
            return own or missing
        return self._elsewhere(document, mention, named) or own or missing

    def _alone(self, position: int, document: str, mention: Mention, named: Named) -> _Place:
        """The place of a number without a kind in its own document; no reference if that lacks it."""
        if mention.before and not (mention.opens and mention.before not in self.names):
            return -1, -1, f"{mention.before[:60]} is not in this corpus" if not named.unit.isdigit() else ""
        if not named.unit:
            return self._beside(position, document, "", named) or (-1, -1, "")
        return self._in(document, "", named, (), position) or (-1, -1, "")

    def _beside(self, position: int, document: str, kind: str, named: Named) -> _Place | None:
        numbers = self.documents[document]
        first = numbers.beside(position, kind, named)
        if first is None:
            return None
        start, end = numbers.at[first]
        until = numbers.beside(position, kind, named.last) if named.last else None
        return start, (numbers.at[until][1] if until and start <= numbers.at[until][0] <= start + _WIDE else end), ""

    def _elsewhere(self, document: str, mention: Mention, named: Named) -> _Place | None:
        if mention.kind in RANKS or mention.kind in BELOW or mention.within:
            return None
        places = {other: place for other, place in self.anywhere(mention.kind, named).items() if other != document}
        if len(places) == 1:
            return next(iter(places.values()))
        spoken = self.affinity.get(document, Counter())
        ranked = sorted(places, key=lambda other: -spoken[other])
        if ranked and spoken[ranked[0]] >= 2 * max(1, spoken[ranked[1]]):
            return places[ranked[0]]
        return (-1, -1, f"{len(places)} documents have {mention.kind} {named}") if places else None

    def anywhere(self, kind: str, named: Named, within: Within = ()) -> dict[str, _Place]:
        """The place of this number, in these units, in each document that has it; cached."""
        key = kind, named, within
        if key not in self.places:
            found = {name: self._in(name, kind, named, within) for name, one in self.documents.items() if one.at}
            self.places[key] = {name: place for name, place in found.items() if place}
        return self.places[key]

    def _in(self, document: str, kind: str, named: Named, within: Within = (), position: int = -1) -> _Place | None:
        """The place of this number in the document; if the first number of a range is missing, that of the next one."""
        numbers = self.documents[document]
        first = numbers.unit(position, kind, named, within)
        if first is None and named.last is not None:
            rest = (numbers.unit(position, kind, one, within) for one in _between(named))
            first = next(filter(None, rest), None)
        if first is None:
            return None
        start, last = numbers.at[first]
        until = numbers.unit(position, kind, named.last, within) if named.last else None
        if until is not None and start <= numbers.at[until][0] <= start + _WIDE:
            last = numbers.at[until][1]
        return start, last, ""


def _between(named: Named) -> Iterator[Named]:
    """The numbers of a range after its first one."""
    head, _, number = named.unit.rpartition(".")
    until = named.last.unit.rpartition(".") if named.last else ("", "", "")
    if number.isdigit() and until[2].isdigit() and until[0] == head:
        for n in range(int(number) + 1, min(int(until[2]), int(number) + _WIDE) + 1):
            yield Named(f"{head}.{n}" if head else str(n))


def resolver_of(passages: Sequence[Passage]) -> Resolver:
    """A resolver for these passages that knows their numbers but no names yet."""
    made = Resolver(passages)
    for position, passage in enumerate(passages):
        made.documents.setdefault(passage.document_id, Numbers()).add(position, passage.number)
    return made


def references(
    passages: Sequence[Passage], named: Iterable[tuple[Mention, ...]] | None = None
) -> tuple[Reference, ...]:
    """Every reference of the corpus, in order. ``named`` has the `mentions` in each passage, if they are known.

    All mentions are read twice: once to learn names and once to resolve them.
    """
    made = resolver_of(passages)
    found = dict(enumerate(named if named is not None else (mentions(passage.text) for passage in passages)))
    _learn(made, found)
    return tuple(
        one for position, several in found.items() for mention in several for one in made.resolve(position, mention)
    )


def _learn(made: Resolver, found: dict[int, tuple[Mention, ...]]) -> None:
    """Learns the names of documents, the kinds of references that mean their own document, and `Resolver.affinity`."""
    named: dict[str, set[tuple[str, Named]]] = defaultdict(set)
    own: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for position, several in found.items():
        document = made.passages[position].document_id
        for mention in several:
            if mention.before and not (mention.kind or mention.opens):
                made.names.add(mention.before)
            name = plain_name(mention.instrument or ("" if mention.kind or mention.opens else mention.before))
            for one in mention.named:
                if name and one.unit:
                    named[name].add((mention.kind, one))
                elif one.unit and mention.kind and not mention.instrument:
                    own[document, mention.kind].append(made._in(document, mention.kind, one) is not None)
    made.at_home = {key: sum(hits) >= _AT_HOME * len(hits) for key, hits in own.items()}
    _name(made, {name: numbers for name, numbers in named.items() if not _is_generic(name)})
    for position, several in found.items():
        for mention in several:
            if target := made.named(mention):
                made.affinity.setdefault(made.passages[position].document_id, Counter())[target] += 1


def _name(made: Resolver, named: dict[str, set[tuple[str, Named]]]) -> None:
    """Assigns each name to its document, the surest first; a document gets at most one inferred name of one word."""
    made.aliases, parts = names_of(made.passages)
    for name, document in parts.items():  # a part of a title is a name if the document has the numbers named with it
        have = [
            made._in(document, kind or ("" if "." in one.unit else "chapter"), one) is not None
            for kind, one in named.get(name, ())
        ]
        if name not in made.aliases and have and sum(have) >= _SURE * len(have):
            made.aliases[name] = document
    statutes = {name for name, one in made.documents.items() if one.most in {"statute", "named"}}  # count from 1 on
    left = {
        name: {
            document: [made._in(document, kind, one) is not None for kind, one in numbers]
            for document in made.documents
            if document not in statutes
        }
        for name, several in named.items()
        if name not in made.aliases and name not in parts
        if (numbers := {(kind, one) for kind, one in several if "." in one.unit})
        if len({one.unit for _, one in numbers}) >= (3 * _LEAST if " " in name else _LEAST)
    }
    while left:
        taken = {document for name, document in made.aliases.items() if " " not in name}
        found = {name: document_with(have, taken if " " not in name else set()) for name, have in left.items()}
        surest = max(found, key=lambda name: found[name][1])
        if not found[surest][0]:
            return
        made.aliases[surest] = found[surest][0]
        del left[surest]


def document_with(have: Mapping[str, list[bool]], taken: Collection[str] = ()) -> tuple[str, float]:
    """The document that has the numbers, and how sure this is; empty and 0 if no document is clear."""
    free = {document: hits for document, hits in have.items() if document not in taken and any(hits)}
    shared = [sum(column) for column in zip(*free.values(), strict=True)]
    scores = {document: sum(1 / shared[n] for n, hit in enumerate(hits) if hit) for document, hits in free.items()}
    ranked = sorted(scores, key=lambda document: -scores[document])
    if not ranked or sum(free[ranked[0]]) < _SURE * len(shared):
        return "", 0.0
    margin = min(scores[ranked[0]] / scores[ranked[1]] if len(ranked) > 1 else 10.0, 10.0)
    return (ranked[0], margin * len(shared)) if margin >= _CLEAR else ("", 0.0)


def names_of(passages: Sequence[Passage]) -> tuple[dict[str, str], dict[str, str]]:
    """The documents by name, and by the parts of titles that only one document has."""
    whole: dict[str, str] = {}
    short: dict[str, set[str]] = defaultdict(set)
    parts: dict[str, set[str]] = defaultdict(set)
    before = ("", "")
    for passage in passages:
        title, document = passage.title, passage.document_id
        if before != (title, document):
            before = title, document
            whole.setdefault(plain_name(title), document)
            whole.setdefault(plain_name(document), document)
            for name in (*re.findall(r"\(([A-Z]{2,8})\)", title), *_CODE.findall(title)):
                short[plain_name(name)].add(document)
            bare = re.sub(r"\s*\([^()]*\)$", "", title)
            for name in (
                bare,
                *_PARTED.split(title),
                *_PARTED.split(bare),
                *_PARTED.split(document.rpartition("/")[2]),
            ):
                parts[plain_name(name)].add(document)
        if _STATUTE.fullmatch(passage.number.strip()):
            words = passage.number.split()
            acronym = "".join(word[0] for word in words[:-1] if word not in {"AND", "OF", "THE", "FOR", "&"})
            for name in (passage.number, " ".join(words[:-1]), acronym):
                whole.setdefault(plain_name(name), document)
    whole |= {name: documents.pop() for name, documents in short.items() if len(documents) == 1}
    return (
        {name: document for name, document in whole.items() if len(name) > 2 and not name.isdigit()},
        {
            name: documents.pop()
            for name, documents in parts.items()
            if len(documents) == 1 and len(name) > 2 and re.search("[a-z]", name)
        },
    )


def plain_name(name: str) -> str:
    """The name in small letters without marks."""
    return re.sub(r"\W+", " ", name).strip().casefold()


def _is_generic(name: str) -> bool:
    """Whether the name is not that of an instrument: "of the Rulebook", "of Schedule 1"."""
    return plain_name(name) in _GENERIC or _INSIDE.match(name) is not None
