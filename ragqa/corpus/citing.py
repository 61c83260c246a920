"""Names by which passages are cited: the short name of their document and their number. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ragqa.corpus.documents.places import cited_number
from ragqa.corpus.documents.titles import short_title
from ragqa.english.words import cut
from ragqa.types import Passage

LONGEST: Final = 48  # characters of a document's short name, without a bracket at its end
LONGEST_TITLE: Final = 60  # characters of a title that is not shortened where passages are listed
_LONG: Final = 28  # characters of a title from which its short title or its reference is enough
_PART: Final = 30  # characters of a part of it
_REFERENCE: Final = re.compile(r"[^\d,;:]{1,40}\d{1,4}/\d{1,4}(?:/[A-Z]{2,5})?(?=[\s,:])")
_BRACKET: Final = re.compile(r" \([^()]{1,20}\)$")
_FURTHER: Final = re.compile(r", | and |: ")
_PARTS: Final = re.compile(r" [–—-] ")
_KIND_OF_TEXT: Final = re.compile(r" (Rules|Rulebook|Code|Policy|Module)$")


@lru_cache(maxsize=4_096)
def document_name(title: str) -> str:
    """The short name of a document by its title.

    A long title gives the short title in brackets at its end ("Digital Markets Act"), or the reference that it begins
    with ("Regulation (EU) 2022/2554", "SS2/24"). Others give their first words without a word like "Rules", and a
    short bracket at the end: "Own Funds (CRR)". Of a title in several parts the first and the last one stay.
    """
    title = title.removeprefix("The ")
    if len(title) > _LONG and (named := short_title(title)):
        return named
    if len(title) > _LONG and (reference := _REFERENCE.match(title)):
        words = (word.capitalize() if word.isalpha() and len(word) > 4 else word for word in reference[0].split())
        return " ".join(words) if reference[0].split()[0].isupper() else reference[0]
    bracket = _BRACKET.search(title)
    name = _FURTHER.split(title[: bracket.start()] if bracket else title, maxsplit=1)[0]
    name = _KIND_OF_TEXT.sub("", name) or name
    if len(name) > LONGEST:
        first, *further = _PARTS.split(name)
        name = f"{cut(first, _PART)} … {cut(further[-1], _PART)}" if further else cut(name, LONGEST)
    return name + (bracket[0] if bracket else "")


def title_words(title: str) -> str:
    """The title of a document, or its short name if the title is long."""
    return title if len(title) <= LONGEST_TITLE else document_name(title)


def short_name(passage: Passage) -> str:
    """The name of a passage in citations: the short name of its document, and its number."""
    return f"{document_name(_title(passage))} {cited_number(passage.number)}".strip()


def short_names(passages: Sequence[Passage]) -> list[str]:
    """The names of the passages of one list; documents whose short names are the same have their whole titles."""
    known = Counter(document_name(title) for title in {one.document_id: _title(one) for one in passages}.values())
    names = ((title, document_name(title)) for title in map(_title, passages))
    return [
        f"{name if known[name] == 1 else title} {cited_number(one.number)}".strip()
        for one, (title, name) in zip(passages, names, strict=True)
    ]


def _title(passage: Passage) -> str:
    return passage.title or passage.document_id
