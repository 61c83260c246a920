"""Names by which passages are cited: the short name of their document and their number. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ragqa.corpus.documents.labels import ARTICLE, RANKS
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
_DIVISIONS: Final = "|".join(word for word, rank in RANKS.items() if 0 < rank < ARTICLE and word.isalpha())
_RULES: Final = "|".join(word for word, rank in RANKS.items() if rank == ARTICLE)
_ABOVE_A_RULE: Final = re.compile(rf"(^|\.)(?:(?:sub)?(?:{_DIVISIONS})\b[^.]*\.)*(?=(?:{_RULES})\b)", re.IGNORECASE)
_PARAGRAPH: Final = re.compile(r"\b(article \d+[a-z]{0,2})\.(\d+[a-z]{0,2})(?![\w.]*\d)", re.IGNORECASE)
_ITEM: Final = re.compile(r"\.(?:(\([^().]+\))|([a-z]{1,5}|\d{1,3})\))(?=\.|$)")
_LINKED: Final = re.compile(r"(?<=^cite)(d by |s )(.+)(?= \(rank)")
_NOTE: Final = re.compile(r"\.(note \d+)$")


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


def cited_number(number: str) -> str:
    """The number as it is cited: ``CHAPTER IV.Section 2.Article 33.1.(a)`` is ``Article 33(1)(a)``.

    Articles, rules, regulations and recitals are counted through the chapters of a document, so that these are left
    out; an annex or a numbered chapter, in which they may begin anew, is not: ``4 Article 30(1)``.
    """
    short = _ABOVE_A_RULE.sub(lambda match: match[1] and " ", number.strip().rstrip("."))
    short = _PARAGRAPH.sub(r"\1(\2)", short)
    return _NOTE.sub(r" \1", _ITEM.sub(lambda match: match[1] or f"({match[2]})", short))


def cited_note(note: str, titles: Sequence[str]) -> str:
    """A note such as "cited by Rules 4.(a) (rank 1)" with the name by which that is cited.

    ``titles`` are those of documents, one of which may precede the number.
    """

    def named(match: re.Match[str]) -> str:
        title = max((title for title in titles if match[2].startswith(f"{title} ")), key=len, default="")
        return match[1] + f"{document_name(title)} {cited_number(match[2][len(title) :])}".strip()

    return _LINKED.sub(named, note)


def _title(passage: Passage) -> str:
    return passage.title or passage.document_id
