"""What an answer sentence says otherwise than a source sentence: numbers, units, dates, names, parties.

Each function compares two readings and gives the words that clash, or None. None of them asks whether both speak of
the same thing: that is `ragqa.scoring.verdicts.judge`'s gate. Strength of modal verbs and negation are named here where
they differ; whether they clash the NLI model decides, which is good at it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from ragqa.english.dates import Date
from ragqa.english.quantities import EQUAL, RECURRENCE, Quantity, unmatched
from ragqa.english.reading import Reading
from ragqa.english.words import STOP_WORDS, Word
from ragqa.types import Span

LONGEST_NAME, LONGEST_REPLACED = 5, 8  # words: a name or party, and what it took the place of
ALIKE = 0.6  # share of words in common, in order, from which a replaced word is taken for an edit
NEARLY_COPIED = 0.85  # share from which even the first word may be a name in the place of another
LONGEST_ALIGNED = 250  # words of a sentence in which replaced names are looked for: aligning takes up to their cube
SHARED_BY_SWAPPED = 0.85  # share of the answer's content words that a source sentence with swapped roles has, too
NEAR, REACH = 4, 7  # words before and after a verb among which its parties are looked for
_COUNTS_AS_PARTY = frozenset(
    "firm person commission client controller processor auditor custodian operator member employee manager issuer bank "
    "broker trustee regulator authority board officer provider applicant holder owner buyer seller lender borrower "
    "landlord tenant supplier customer insurer insured agent principal employer director committee panel tribunal "
    "court delegate recipient subject body governing compliance data".split()
)
_ANYBODY = frozenset("whoever anyone anybody everyone everybody nobody someone somebody persons people".split())
_TIMES = frozenset({"time", "business time"})


@dataclass(frozen=True, slots=True)
class Clash:
    """``said`` in the answer sentence against ``found`` in the source sentence; ``kind`` as in the labelled cases."""

    kind: str  # number, unit, amount, date, entity, party
    said: Span
    found: Span
    is_certain: bool = True  # false where only a name was found that the other sentence lacks

    @property
    def words(self) -> str:
        return f"says {_plain(self.found.text)}, the answer {_plain(self.said.text)}"


def _plain(text: str) -> str:
    return " ".join(text.split())


def clashes(said: Reading, found: Reading) -> Iterator[Clash]:
    """All clashes of an answer sentence with a source sentence, those of numbers first."""
    for compare in (quantity_clash, date_clash, denied_name, replaced_name, swapped_roles):
        clash = compare(said, found)
        if clash:
            yield clash


def quantity_clash(said: Reading, found: Reading) -> Clash | None:
    """A quantity that the source does not have, beside one of the source's that the answer does not have."""
    for mine in unmatched(said.quantities, found.quantities, Quantity.equals):
        for its in unmatched(found.quantities, said.quantities, Quantity.equals):
            if mine.number == its.number and {mine.dimension, its.dimension}.isdisjoint({"count", RECURRENCE}):
                return Clash("unit", mine.span, its.span)
            if _comparable(mine, its):
                kind = "number" if mine.dimension in {"count", RECURRENCE, *_TIMES} else "amount"
                return Clash(kind, mine.span, its.span)
    return None


def _comparable(mine: Quantity, its: Quantity) -> bool:
    """Of one kind, and not the same said the other way round: half and twice, a fifth left and four fifths lost."""
    if mine.dimension == its.dimension == "share" and abs(mine.size + its.size - 100.0) < EQUAL:
        return False
    if {mine.number, its.number} == {0.5, 2.0}:
        return False
    if mine.dimension == its.dimension == "count":
        return not mine.nouns or not its.nouns or bool(mine.nouns & its.nouns)
    return mine.dimension == its.dimension or {mine.dimension, its.dimension} <= _TIMES


def date_clash(said: Reading, found: Reading) -> Clash | None:
    """A date that fits none of the source's, beside one of the source's that fits none of the answer's."""
    for mine in unmatched(said.dates, found.dates, Date.fits):
        for its in unmatched(found.dates, said.dates, Date.fits):
            if (mine.month is None) == (its.month is None) or (mine.year and its.year):
                return Clash("date", mine.span, its.span)
    return None


def replaced_name(said: Reading, found: Reading) -> Clash | None:
    """A name or party in the place of another, in sentences that else say nearly the same in the same order."""
    mine, its = said.words, found.words
    if max(len(mine), len(its)) > LONGEST_ALIGNED or _n_shared(mine, its) < ALIKE * len(mine):
        return None
    matcher = SequenceMatcher(None, [word.stem for word in mine], [word.stem for word in its], autojunk=False)
    equal = sum(block.size for block in matcher.get_matching_blocks())
    if equal < ALIKE * len(mine):
        return None
    for what, first, last, its_first, its_last in matcher.get_opcodes():
        if what != "replace":
            continue
        one, other = _named(mine[first:last]), _named(its[its_first:its_last])
        if first == 0 and equal < NEARLY_COPIED * len(mine):  # any word is written with a capital there
            one = [word for word in one if word.lower.rstrip("s") in _COUNTS_AS_PARTY]
        if last - first > LONGEST_NAME or its_last - its_first > LONGEST_REPLACED:
            continue
        if one and other and not {word.stem for word in one} & {word.stem for word in other}:
            is_party = any(word.lower in _COUNTS_AS_PARTY for word in (*one, *other))
            return Clash("party" if is_party else "entity", _cover(said, one), _cover(found, other))
    return None


def _n_shared(mine: tuple[Word, ...], its: tuple[Word, ...]) -> int:
    """How many words they have in common, in whatever order."""
    return sum((Counter(word.stem for word in mine) & Counter(word.stem for word in its)).values())


def _named(words: tuple[Word, ...]) -> list[Word]:
    """Those that are written as names or name a party; "whoever" names nobody."""
    return [
        word
        for word in words
        if (word.is_capital and word.lower not in STOP_WORDS | _ANYBODY) or word.lower.rstrip("s") in _COUNTS_AS_PARTY
    ]


def _cover(reading: Reading, words: list[Word]) -> Span:
    start, end = words[0].start, words[-1].end
    return Span(reading.text[start:end], start, end)


_DENIED = re.compile(r"\s(?:not|no longer|rather than|instead of)(?: the| a)?\s+$", re.IGNORECASE)
_BEFORE = 24  # characters before a word in which its denial is looked for


def denied_name(said: Reading, found: Reading) -> Clash | None:
    """A name or party that the answer denies ("and not the Controller") where the source names it without a denial."""
    denied: dict[str, Word] = {}
    for word in _named(said.words):
        if _DENIED.search(said.text, max(0, word.start - _BEFORE), word.start):
            denied.setdefault(word.stem, word)
    for stem, word in denied.items():
        same = [other for other in found.words if other.stem == stem]
        if same and not any(_is_denied(found.text, other) for other in same):
            return Clash("party", _cover(said, [word]), _cover(found, same[:1]))
    return None


def _is_denied(text: str, word: Word) -> bool:
    before = text[max(0, word.start - 60) : word.start].casefold().split()[-4:]
    return bool({"not", "no", "never", "neither", "nor", "than", "other"} & set(before))


def swapped_roles(said: Reading, found: Reading) -> Clash | None:
    """Who did what to whom, turned round: what stands left of a shared verb there stands right of it here.

    Only where both are in the active voice or both in the passive, and nearly all words are shared.
    """
    if len(said.content & found.content) < SHARED_BY_SWAPPED * len(said.content):
        return None
    places = {word.stem: n for n, word in enumerate(found.words)}
    for n, word in enumerate(said.words):
        m = places.get(word.stem)
        if m is None or word.is_capital or word.lower in STOP_WORDS or word.stem not in found.content:
            continue
        if _is_passive(said.words, n) != _is_passive(found.words, m):
            continue
        left, right = _beside(said.words, n)
        its_left, its_right = _beside(found.words, m)
        crossed = (left & its_right) - its_left, (right & its_left) - its_right
        if not all(crossed) or left & its_left:
            continue
        one = [w for w in said.words[max(0, n - NEAR) : n] if w.stem in crossed[0]]
        other = [w for w in found.words[max(0, m - NEAR) : m] if w.stem in crossed[1]]
        if {w.stem for w in one} & {w.stem for w in other}:
            continue
        if _named((*one[1:], *other[1:])) or any(word.lower.rstrip("s") in _COUNTS_AS_PARTY for word in (*one, *other)):
            return Clash("party", _cover(said, one), _cover(found, other))
    return None


def _beside(words: tuple[Word, ...], n: int) -> tuple[set[str], set[str]]:
    """Stems of the content words left and right of a word."""
    left = {word.stem for word in words[max(0, n - NEAR) : n] if word.lower not in STOP_WORDS}
    right = {word.stem for word in words[n + 1 : n + 1 + REACH] if word.lower not in STOP_WORDS}
    return left, right - left


def _is_passive(words: tuple[Word, ...], n: int) -> bool:
    before = {word.lower for word in words[max(0, n - 3) : n]}
    return bool(before & {"be", "been", "is", "was", "were", "are", "being"})


def foreign_name(said: Reading, found: Reading, context: frozenset[str]) -> Clash | None:
    """A name that neither the source sentence nor its headings have, beside one that the answer does not have."""
    known = found.stems | context
    mine = next((name for name in said.names if not known & set(name.stems)), None)
    its = next((name for name in found.names if not said.stems & set(name.stems)), None)
    return Clash("entity", mine.span, its.span, is_certain=False) if mine and its else None


_STRENGTH = {
    kind: re.compile(pattern, re.IGNORECASE)
    for kind, pattern in {
        "ban": r"\b(?:must|may|shall|can|could) not\b|\bcannot\b|\bnot (?:be )?(?:allowed|permitted|entitled|open)\b"
        r"|^(?:in |to )?no(?:body| one| \w+)(?: \w+){0,5} (?:may|must|can|shall)\b"
        r"|\b(?:forbidden|prohibited|barred|banned|impossible|unable|ruled out|never)\b",
        "duty": r"\b(?:must|shall)\b(?! not)|(?<!not )\b(?:required|obliged|compulsory|mandatory)\b",
        "permission": r"\b(?:may|can|could|might)\b(?! not)"
        r"|(?<!not )(?<!not be )\b(?:allowed|permitted|entitled|free to|open to|enough|sufficient|possible)\b",
        "advice": r"\b(?:should|encouraged|recommended|ought|goodwill|optional|voluntary|not (?:required|obliged))\b",
        "negation": r"\b(?:not|no|neither|nor|nobody|none|nothing|lacks|fails|refuses)\b",
        "seldom": r"\b(?:seldom|rarely|hardly|occasionally|sometimes|exceptionally|scarcely)\b",
        "often": r"\b(?:usually|generally|commonly|often|always|mostly|nearly|most|widely|regularly)\b",
    }.items()
}
_OPPOSED = (
    ("ban", "permission"),
    ("duty", "advice"),
    ("duty", "permission"),
    ("negation", "seldom"),
    ("seldom", "often"),
)


def strength(reading: Reading) -> frozenset[str]:
    """Which kinds of strength a sentence's words have: ban, duty, permission, advice, negation, seldom, often.

    "must not", "may not" and "no person may" are bans, and no negation beside that.
    """
    return _strength(reading.text)


@lru_cache(maxsize=20_000)
def _strength(text: str) -> frozenset[str]:
    rest = _STRENGTH["ban"].sub(" ", text)
    kinds = {kind for kind, pattern in _STRENGTH.items() if pattern.search(rest)}
    return frozenset(kinds | ({"ban"} if rest != text else set()))


def opposed(said: Reading, found: Reading) -> bool:
    """Whether the one forbids what the other permits, obliges where the other advises, or the like."""
    mine, its = strength(said), strength(found)
    return any(
        (one in mine - its and other in its - mine) or (other in mine - its and one in its - mine)
        for one, other in _OPPOSED
    )
