"""Filters the rows of a register by words, document, party, strength, status and change. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Final

from ragqa.corpus.citing import cited_number, document_name
from ragqa.english.phrases import POINTING_BACK, PRONOUNS
from ragqa.errors import ConfigError
from ragqa.library.register import Obligation, RowChange
from ragqa.library.register_store import Register

_NOBODY: Final = PRONOUNS | POINTING_BACK
SAME: Final = 100  # characters that two rows begin with, from which the second is told without them
NO_STATUS: Final = "none yet"
STATES: Final = ("new", "changed", "unchanged", "gone")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filters for rows; an empty filter accepts every row. ``party`` and each word match parts of the texts.

    Words are searched in rule number, title, text, owner, note and reason. ``state`` is one of `STATES`. Without
    ``recitals`` those that nobody handles are left out.
    """

    words: str = ""
    document: str = ""
    party: str = ""
    strength: str = ""
    status: str = ""
    state: str = ""
    recitals: bool = False


def matching(held: Register, changes: Sequence[RowChange], wanted: Wanted) -> list[Obligation]:
    """The rows that pass the filters, in order; removed rows only with the state "gone".

    A row that ``changes`` does not name is unchanged.
    """
    state_of = states(changes)
    rows: Sequence[Obligation] = held.listed(recitals=wanted.recitals)
    if wanted.state == "gone":
        rows = [one.before for one in changes if one.what == "gone" and one.before]
    words, party = wanted.words.casefold().split(), wanted.party.casefold()
    return [
        row
        for row in rows
        if (not wanted.document or row.document_id == wanted.document)
        and (not wanted.strength or row.strength == wanted.strength)
        and (not party or (row.parts.party and party in row.parts.party.text.casefold()))
        and (not wanted.status or (held.handling(row.obligation_id).status or NO_STATUS) == wanted.status)
        and (not wanted.state or state_of.get(row.obligation_id, "unchanged") == wanted.state)
        and (not words or _has(held, row, words))
    ]


def states(changes: Sequence[RowChange]) -> Mapping[str, str]:
    """The state of each row, by id; a removed row by its earlier id."""
    return {row.obligation_id: one.what for one in changes if (row := one.after or one.before)}


def parties(rows: Sequence[Obligation], most: int = 100) -> list[str]:
    """The parties of these rows, the most frequent first, with a capital letter: "A firm" and "The firm" count as two.

    A pronoun names nobody, and words with a comma are more than a party: neither is among them.
    """
    named = (row.parts.party.text for row in rows if row.parts.party)
    named = (name[:1].upper() + name[1:] for name in named if "," not in name and name.casefold() not in _NOBODY)
    return [name for name, _ in Counter(named).most_common(most)]


def _has(held: Register, row: Obligation, words: Sequence[str]) -> bool:
    told = held.handlings.get(row.obligation_id)
    said = f" {told.owner} {told.note} {told.reason}" if told else ""
    text = f"{row.number} {row.title} {row.text}{said}".casefold()
    return all(word in text for word in words)


def rule_name(row: Obligation, *, has_document: bool = True) -> str:
    """The name by which a row's rule is cited: the short name of its document, unless told not to, and its number."""
    number = cited_number(row.number)
    number = f"recital {number}" if row.is_recital and number.startswith("(") else number
    return f"{document_name(row.title or row.document_id)} {number}".strip() if has_document else number


def told_apart(rows: Sequence[Obligation]) -> list[str]:
    """The texts of these rows; one that begins as the row before, as items of one list do, without that beginning."""
    texts = [row.text for row in rows]
    same = [
        0,
        *(
            sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(*both, strict=False)))
            for both in pairwise(texts)
        ),
    ]
    cuts = [text.rfind(" ", 0, n) + 1 if n > SAME else 0 for text, n in zip(texts, same, strict=True)]
    return [f"… {text[n:]}" if n else text for text, n in zip(texts, cuts, strict=True)]


def part_of(
    rows: Sequence[Obligation], document: Sequence[str] | None, chapter: Sequence[str] | None
) -> list[Obligation]:
    """The rows of these documents and chapters; all if none is named. Raises ConfigError where one has no rows."""
    for named, has in ((document, lambda row, one: row.document_id == one), (chapter, _in_chapter)):
        for one in named or ():
            if not any(has(row, one) for row in rows):
                known = ", ".join(dict.fromkeys(row.document_id for row in rows))
                msg = f"expected a document or chapter with obligations, found {one!r}; choose one of: {known[:300]}"
                raise ConfigError(msg)
        rows = [row for row in rows if not named or any(has(row, one) for one in named)]
    return list(rows)


def _in_chapter(row: Obligation, chapter: str) -> bool:
    return f"{row.number}.".startswith(f"{chapter.rstrip('.')}.")
