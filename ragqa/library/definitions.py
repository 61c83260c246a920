"""Terms that a corpus defines, and where a text uses them; the Read page shows their definitions on hover.

Three forms count as definitions: a term before "means" or a similar verb, where the term is in quotes, at the start of
a line or clause, or on a line of its own above; a table row whose second cell begins with such a verb; and, under a
heading that announces definitions, each row of two cells and each line with a colon. Terms may be in lower case; a
term with capitals is matched only with the same capitals.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ragqa.types import Passage

MOST_PASSAGES: Final = 60_000  # a corpus with more passages is not searched for definitions
MOST_USES: Final = 40  # defined terms that are found in one passage
_LONGEST: Final = 600  # characters of a definition; the rest is cut
_MEANS: Final = (
    r"(?:(?:shall |is understood to |be understood to )?means?\b(?! (?:of|by|that)\b)|"
    r"(?:has|have|shall have) the (?:same )?meanings?\b|is defined as\b|refers? to\b)"
)
_SOME: Final = (
    r"(?:an?|the|any|all|each|either|one)\b"  # how a meaning begins; "electronic means made available" defines nothing
)
_VERB: Final = re.compile(r"\b(?:may|must|shall|will|can|could|would|should|does|do|is|are|be|been|not|to)\b")
_WORD: Final = r"[^\W_][^\s|:;.,“”\"‘]*"
_PHRASE: Final = rf"{_WORD}(?:,? {_WORD}){{0,11}}?"
_NAME: Final = r"[A-Z][\w&/’'-]*(?: (?:(?:of|the|and|in|for|to|a|or|with) ){0,2}[A-Z][\w&/’'-]*){0,7}"
_BRIEF: Final = r"(?: \([^()|\n]{1,80}\))?"  # an abbreviation, or another name
_START: Final = r"^(?:\(?\w{1,4}[.)]\t|[•●▪■◦○–—-] ?)?"  # of a line, with the mark of an item
_QUOTED: Final = r"(?:“(?P<a>[^”“\n]{2,90})”|\"(?P<b>[^\"\n]{2,90})\"|[‘'](?P<c>[^‘’\n]{2,90}?)[’'](?!\w))"
_FORMS: Final = (
    re.compile(rf"{_QUOTED},?{_BRIEF},?\s+(?:{_MEANS}|includes?\b)"),
    re.compile(
        rf"(?m)^(?P<term>{_PHRASE})\n(?=(?:[a-z][^.:;\n]{{0,80}}? )??(?:means|(?:has|have) the (?:same )?meaning)\b)"
    ),
    re.compile(
        rf"(?m)^[“\"]?(?P<term>{_PHRASE})[”\"]?(?: \| |\t)(?:\| )?(?=(?:Means|Has the meaning|means|has the meaning)\b)"
    ),
    re.compile(
        rf"(?m)(?:[Ff]or (?:the|these) purposes? of [^.;\n]{{3,120}}?, |{_START})"
        rf"(?:[Tt]he (?:term |expression )?|[Aa]n? )?"
        rf"(?P<term>{_NAME}{_BRIEF}(?=:?\s+{_MEANS})|{_PHRASE}{_BRIEF}(?=:?\s+{_MEANS}(?::? {_SOME}|:\n))):?\s+{_MEANS}"
    ),
)
_LISTED: Final = (
    re.compile(rf"(?m)^(?P<term>{_PHRASE}{_BRIEF}) \| (?=[^|\n]{{12,}}$)"),
    re.compile(rf"(?m)^(?!means |has )(?P<term>{_PHRASE}{_BRIEF})(?:: | [–—] )(?=\S)"),
    re.compile(rf"(?m){_START}(?P<term>{_NAME}{_BRIEF}) (?:means? and )?includes? "),
)
_TERMS_FOLLOW: Final = re.compile(
    r"(?i)\b(?:definitions?|glossary|interpretation|abbreviations|acronyms|defined terms|terms used)\b[^›]*$"
)
_ANNOUNCED: Final = re.compile(
    r"(?i)\b(?:terms?|expressions?|words?)\b[^.\n]{0,40}\bmean(?:ings?)?\b[^.\n]{0,20}\bfollow(?:ing|s)?\b"
    r"|\bfollowing\b[^.\n]{0,20}\b(?:definitions|meanings)\b"
)
_BRIEFLY: Final = re.compile(r"(.+) \(([A-Z][\w&/-]{1,9})\)")
_SAYS: Final = re.compile(r"(?i)mean|defined as|refers? to|[”\"’'] includes?\b")
_TOKEN: Final = re.compile(r"(?<![\w’'-])[^\W_][\w&/’'-]*")
_GENERAL: Final = frozenset(
    "it this that these those he she they which what any each the a an in if where for by such".split()
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A term and the text that defines it, which begins at character ``start`` of the passage's text."""

    term: str
    passage_id: str
    document_id: str
    text: str
    start: int
    section: str = ""


@dataclass(frozen=True, slots=True)
class Use:
    """A defined term at characters ``start`` to ``end`` of a text."""

    start: int
    end: int
    definition: Definition


class Glossary:
    """The terms of a corpus. Where several documents define a term, the definition of a text's own document wins."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._known: dict[str, list[Definition]] = defaultdict(list)
        if len(passages) <= MOST_PASSAGES:
            for passage in passages:
                for one in definitions_in(passage):
                    self._known[one.term].append(one)
        self._weight = Counter(one.document_id for found in self._known.values() for one in found)
        beginnings: dict[str, set[str]] = defaultdict(set)
        for term in self._known:
            beginnings[_bare(term.split()[0]).casefold()].add(term)
        self._beginnings = {word: sorted(terms, key=len, reverse=True) for word, terms in beginnings.items()}

    def __len__(self) -> int:
        return len(self._known)

    def meaning(self, term: str, passage: Passage) -> Definition | None:
        """The definition for a term in this passage, or None.

        It is the definition in the same document whose section path is most alike, else that of the document that
        defines most terms.
        """
        found = self._known.get(term, [])
        own = [one for one in found if one.document_id == passage.document_id]
        if own:
            return max(own, key=lambda one: _shared(one.section, passage.section))
        return max(found, key=lambda one: self._weight[one.document_id], default=None)

    def uses(self, passage: Passage) -> tuple[Use, ...]:
        """The first use of each term in the passage, in order, without the terms that the passage itself defines."""
        found: list[Use] = []
        seen: set[str] = set()
        behind = 0
        for match in _TOKEN.finditer(passage.text):
            if match.start() < behind:
                continue
            for term in self._beginnings.get(_bare(match[0]).casefold(), ()):
                length = _length(passage.text, match.start(), term)
                if not length:
                    continue
                behind = match.start() + length
                meaning = self.meaning(term, passage)
                if meaning and term not in seen and meaning.passage_id != passage.passage_id:
                    found.append(Use(match.start(), behind, meaning))
                seen.add(term)
                break
            if len(found) >= MOST_USES:
                break
        return tuple(found)


def definitions_in(passage: Passage) -> Iterator[Definition]:
    """The terms that this passage defines, each once."""
    follow = bool(_TERMS_FOLLOW.search(passage.section) or _ANNOUNCED.search(passage.text))
    if not follow and not _SAYS.search(passage.text):
        return
    seen: set[str] = set()
    for form in (*_FORMS, *(_LISTED if follow else ())):
        for match in form.finditer(passage.text):
            term = next(filter(None, match.groups())).strip(" ,;")
            if term not in seen and len(term) > 1 and (form in _FORMS[:2] or _is_term(term)):
                start = match.start(match.lastgroup or 0)
                end = passage.text.find("\n", match.end())
                if end > 0 and passage.text[:end].endswith((":", "—", "–", "-")):  # a list follows that belongs to it
                    end = passage.text.find("\n\n", end)
                text = passage.text[start : end if end > 0 else len(passage.text)][:_LONGEST].rstrip()
                brief = _BRIEFLY.fullmatch(term)
                names = [name for name in (brief.groups() if brief else (term,)) if name not in seen]
                seen.update(names, (term,))
                for name in names:
                    yield Definition(name, passage.passage_id, passage.document_id, text, start, passage.section)


def _is_term(words: str) -> bool:
    """Whether words without quotes and without a line of their own can be a term."""
    return words.split()[0].casefold() not in _GENERAL and not _VERB.search(words)


def _shared(one: str, other: str) -> int:
    """The number of leading characters that two sections have in common."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _bare(word: str) -> str:
    return re.sub(r"(?:[’']s?|s)$", "", word)


def _length(text: str, start: int, term: str) -> int:
    """The length of the term at ``start``, including a plural or genitive s; 0 where the text is not this term."""
    there = text[start : start + len(term)]
    if there != term and (not term.islower() or there[:1].casefold() + there[1:] != term):
        return 0
    match = re.compile(r"(?:s|es|[’']s?)?(?![\w-])").match(text, start + len(term))
    return match.end() - start if match else 0
