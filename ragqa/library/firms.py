"""Who is meant: the words of rules for those whom they bind, and the name by which policies call their own firm.

A model takes the "bank" of a rule and the "Northgate" of a policy for two. Both are learnt from the texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from ragqa.library.register import Obligation
from ragqa.scoring.policies import DETERMINER

FEWEST: Final = 2  # rows that must bind the same party
LONGEST: Final = 6  # words of a party
SHARE: Final = 0.02  # of a name among the words of policies with a capital inside a sentence
IN_SMALL: Final = 0.2  # of a name's occurrences that may be in small letters
_OPENING: Final = re.compile(rf"^(?:\(?\w{{1,3}}[.)]\s+)?(?:{DETERMINER}\s+)?", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"(?<!\S)\S*(?:[@/]|\w\.\w)\S*")  # of a page or mailbox
_INNER: Final = re.compile(r"(?<=[\w,;] )[A-Z][A-Za-z]*[a-z](?=\W|$)")  # a word that does not begin a sentence


def addressed_by(rows: Iterable[Obligation]) -> dict[str, str]:
    """By row id, the words for those whom the row binds; where it has none, the usual ones of its document or all."""
    own = {row.obligation_id: (row.document_id, _named(row)) for row in rows}
    counts = Counter(party for _, party in own.values())
    known = {party for party, n in counts.items() if party and n >= FEWEST}
    usual: dict[str, str] = {}
    for (document, party), _ in Counter(own.values()).most_common():
        if party in known:
            usual.setdefault(document, party)
    most = max(known, key=lambda one: counts[one], default="")
    return {name: party if party in known else usual.get(document, most) for name, (document, party) in own.items()}


def _named(row: Obligation) -> str:
    """The row's party without its number, its article and what stands before a comma; "" if it is no short name."""
    text = row.parts.party.text.rpartition(", ")[2] if row.parts.party else ""
    name = _OPENING.sub("", text).casefold()
    return name if len(name.split()) <= LONGEST else ""


def name_of_firm(policies: Sequence[str], rules: Iterable[str]) -> str:
    """The name that the policies have most often, with a capital inside a sentence, and no rule has; "" for none."""
    policies = [_ADDRESS.sub("", text) for text in policies]
    names: Counter[str] = Counter(name for text in policies for name in _INNER.findall(text))
    words = Counter(word for text in policies for word in re.findall(r"\w+", text))
    ruled = {word.casefold() for text in rules for word in re.findall(r"\w+", text)}
    for name, n in names.most_common():
        if n < SHARE * sum(names.values()):
            break
        if name.casefold() not in ruled and words[name.lower()] <= IN_SMALL * words[name]:
            return name
    return ""
