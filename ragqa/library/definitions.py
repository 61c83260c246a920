"""Terms that a corpus defines, and where a text uses them: what Read shows under the pointer.

A definition is ``"Client Money" means …``, ``Client Money means …`` at the start of a line, or a row of two cells, the
second beginning with "Means". Terms are written with capitals; a text uses one where it has those words as they are,
a plural or genitive s aside.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ragqa.types import Passage

MOST_PASSAGES: Final = 60_000  # of a corpus: a larger one is not read through
MOST_USES: Final = 40  # of a passage
_LONGEST: Final = 600  # characters of a definition
_WORD: Final = r"[A-Z][\w&/’'-]*"
_NAME: Final = rf"{_WORD}(?: (?:(?:of|the|and|in|for|to|a|or|with) ){{0,2}}{_WORD}){{0,7}}"
_MEANS: Final = r"(?:means\b|has the (?:same )?meaning|is defined as\b|refers to\b)"
_FORMS: Final = (
    re.compile(rf"[“\"](?P<term>{_NAME})[”\"],?\s+{_MEANS}"),
    re.compile(rf"(?m)^(?:The (?:term|expression) )?(?P<term>{_NAME}):?\s+{_MEANS}"),
    re.compile(rf"(?m)^[“\"]?(?P<term>{_NAME})[”\"]?(?: \| |\t)(?:\| )?(?=Means\b|Has the meaning\b)"),
)
_SAYS: Final = re.compile(r"(?i)means|meaning|is defined as|refers to")
_CAPITAL: Final = re.compile(rf"(?<![\w’'-]){_WORD}")
_GENERAL: Final = frozenset("It This That These Those He She They Which What Any Each The A An In If Where For".split())


@dataclass(frozen=True, slots=True)
class Definition:
    """What a term means, in the words of the passage that says so, which begin at character ``start``."""

    term: str
    passage_id: str
    document_id: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Use:
    """Characters ``start`` to ``end`` of a text that are a defined term."""

    start: int
    end: int
    definition: Definition


class Glossary:
    """The terms of a corpus; where several documents define one, a text's own document is believed first."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._known: dict[str, list[Definition]] = defaultdict(list)
        if len(passages) <= MOST_PASSAGES:
            for passage in passages:
                for one in definitions_in(passage):
                    self._known[one.term].append(one)
        self._weight = Counter(one.document_id for found in self._known.values() for one in found)
        beginnings: dict[str, set[str]] = defaultdict(set)
        for term in self._known:
            beginnings[_bare(term.split()[0])].add(term)
        self._beginnings = {word: sorted(terms, key=len, reverse=True) for word, terms in beginnings.items()}

    def __len__(self) -> int:
        return len(self._known)

    def meaning(self, term: str, document_id: str) -> Definition | None:
        """What the term means in this document: its own definition, else that of the document that defines most."""
        found = self._known.get(term, [])
        own = [one for one in found if one.document_id == document_id]
        return max(own or found, key=lambda one: self._weight[one.document_id], default=None)

    def uses(self, passage: Passage) -> tuple[Use, ...]:
        """The first use of each term in the passage, in order; none of what the passage itself defines."""
        found: list[Use] = []
        seen: set[str] = set()
        behind = 0
        for match in _CAPITAL.finditer(passage.text):
            if match.start() < behind:
                continue
            for term in self._beginnings.get(_bare(match[0]), ()):
                length = _length(passage.text, match.start(), term)
                if not length:
                    continue
                behind = match.start() + length
                meaning = self.meaning(term, passage.document_id)
                if meaning and term not in seen and meaning.passage_id != passage.passage_id:
                    found.append(Use(match.start(), behind, meaning))
                seen.add(term)
                break
            if len(found) >= MOST_USES:
                break
        return tuple(found)


def definitions_in(passage: Passage) -> Iterator[Definition]:
    """The terms that this passage defines, each once."""
    if not _SAYS.search(passage.text):
        return
    seen: set[str] = set()
    for form in _FORMS:
        for match in form.finditer(passage.text):
            term = match["term"]
            if term not in seen and term not in _GENERAL and len(term) > 2:
                seen.add(term)
                start = match.start()
                end = passage.text.find("\n", match.end())
                if end > 0 and passage.text[:end].endswith((":", "—", "–", "-")):  # the items below belong to it
                    end = passage.text.find("\n\n", end)
                text = passage.text[start : end if end > 0 else len(passage.text)][:_LONGEST].rstrip()
                yield Definition(term, passage.passage_id, passage.document_id, text, start)


def _bare(word: str) -> str:
    return re.sub(r"(?:[’']s?|s)$", "", word)


def _length(text: str, start: int, term: str) -> int:
    """How many characters the term takes here, with a plural or genitive s; 0 where something else stands."""
    if not text.startswith(term, start):
        return 0
    match = re.compile(r"(?:s|es|[’']s?)?(?![\w-])").match(text, start + len(term))
    return match.end() - start if match else 0
