"""Edits sentences so that they contradict the original, by kind of change. Pure.

Every maker takes a sentence and a random generator, and returns the edit, or None if nothing can be changed safely: in
a relative clause or with "only" another word need not contradict, a changed subject is about something else, and a name
in a list is one of many. Nothing here is shared with `ragqa.scoring.verdicts`, because the code that detects edits must
not be the code that makes them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MAX_WORDS: Final = 60  # of a sentence to edit; in a longer one the change is too small


@dataclass(frozen=True, slots=True)
class Edit:
    """The new sentence, and the clashing words: ``was`` in the old one, ``became`` in the new one."""

    text: str
    was: str
    became: str


Maker = Callable[[str, random.Random], Edit | None]

# Patterns of numbers; `ragqa.lab.training.nli_made_pairs` uses these tables, too ----------------------

# fmt: off
SMALL: Final = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "fifteen",
    "twenty", "thirty", "sixty", "ninety",
)
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)
# fmt: on
_LONG_MONTHS = ("January", "March", "May", "July", "August", "October", "December")
NUMBER: Final = re.compile(r"(?<![\w.(-])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?=[\s%,;.)]|$)(?!\.\d)")
RULE_BEFORE: Final = re.compile(
    r"(Rules?|Sections?|Chapters?|Parts?|paragraphs?|Articles?|Schedules?|APP|Guidance|to|and|or)\s*$", re.I
)
SMALL_WORD: Final = re.compile(rf"\b({'|'.join(SMALL)})\b", re.I)
MONTH: Final = re.compile(rf"\b({'|'.join(month for month in MONTHS if month != 'May')})\b")

_SIGN_BEFORE, _CODE_BEFORE = re.compile(r"[$£€]\s?$"), re.compile(r"\b[A-Z]{3}\s$")
_MEASURE_AFTER = re.compile(
    r"\s?%|\s+(?:per\s?cent|(?:square |cubic )?(?:kilomet|met(?:re|er)|miles?\b|tonnes?\b|tons?\b|kilograms?\b|grams?\b"
    r"|lit(?:re|er)|hectares?\b|f(?:ee|oo)t\b|degrees?\b|[a-z]*watts?\b|pounds?\b|dollars?\b|euros?\b|million|billion))"
)
_MONTH_BESIDE = re.compile(rf"(?:{'|'.join(MONTHS)})\s*$"), re.compile(rf"\s+(?:{'|'.join(MONTHS)})\b")
_YEAR_BEFORE = re.compile(rf"\b(?:in|by|since|until|before|after|from|during|early|late|{'|'.join(MONTHS)})\s+$", re.I)
_NEARLY = re.compile(r"\b(?:about|around|nearly|almost|approximately|roughly|over|under|than|most|least)\s+\S*\s?$")
_NAME_BEFORE = re.compile(r"(?:\w\s+[A-Z][\w.-]*|[A-Z]{2,})\s+$")  # "Class 2", "No. 1": a number that is part of a name
_DAY_BEFORE = re.compile(r"\b(\d\d?)\s+$")
_COUNTED = re.compile(r"\s+(?:(?!and\b|to\b)[a-z]{3,}|Business|Working|Calendar|Trading)")
_UNIT: Final[Mapping[str, tuple[str, ...]]] = {
    "second": ("minute", "hour"),
    "minute": ("hour", "day"),
    "hour": ("day", "week"),
    "day": ("week", "month"),
    "week": ("month", "day"),
    "month": ("year", "week"),
    "year": ("month", "day"),
    "kilometre": ("metre",),
    "metre": ("kilometre",),
    "mile": ("metre",),
    "kilogram": ("tonne",),
    "tonne": ("kilogram",),
    "million": ("billion", "thousand"),
    "billion": ("million",),
    "degrees Celsius": ("degrees Fahrenheit",),
}
_WITH_UNIT = re.compile(
    rf"\b(?:\d[\d,.]*|{'|'.join(SMALL)})[ -](?:square |cubic )?"
    rf"((?:business |working |calendar )?({'|'.join(_UNIT)})(s?))\b",
    re.I,
)

# What may be negated or lifted --------------------------------------------------------------------------------------

_SUBORDINATE = re.compile(
    r"\b(that|which|who|whom|whose|if|where|when|unless|until|because|as|than|whether|how|what|while|although|though"
    r"|no|not|none|neither|nor|nobody|nothing|only|some|many|most|several|few|one|sometimes"
    r"|is|are|was|were|has|have|had|must|may|shall|should|can|will)\b",  # an earlier verb is the main one
    re.I,
)
_CLAUSE_START = re.compile(r"(?:the|an?|it|they|he|she|each|every|any|all|this|these|its|[A-Z]\w*)\b")
_ONLY = re.compile(r"\bonly\b", re.I)
_NOT_ALONE = re.compile(r"\b(?:no|not|never)\b.*\b(?:no|not|never|nor)\b")
_MODALS: Final = (
    (r"\b(?:must|shall) not\b", ("may",)),
    (r"\bmay not\b", ("may",)),
    (r"\bcannot\b", ("can",)),
    (r"\b(?:must|shall)\b(?! not\b| [A-Z])", ("must not", "need not")),
    (r"\bmay\b(?! not\b| also| be\b| have\b| refer\b| mean\b)", ("must not",)),  # mostly epistemic
    (r"\bcan\b(?! not\b| also)", ("cannot",)),
    (r"\bneed not\b", ("must",)),
    (r"\b(is|are) required to\b", (r"\1 forbidden to", r"\1 not required to")),
)
_STRENGTHS: Final = (
    (r"\b(?:must|shall)\b(?! not\b|,| [A-Z])", ("should, but need not,",)),
    (r"\b(?:usually|often|commonly|generally|normally|typically|frequently|mostly)\b", ("rarely", "hardly ever")),
    (r"\b(?:rarely|seldom)\b", ("often", "usually")),
    (r"\balways\b", ("only sometimes",)),
    (r"\bnever\b", ("sometimes",)),
)
_ADVERB_BOUND = re.compile(r"\b(?:as|how|more|less|most|so|too|very|not|if|where|when|unless|whether)\b", re.I)
_DENIED = re.compile(r"\b(is|are|was|were|does|do|did|has|have|had|will|would) not\b(?! only| yet| always)")
_NONE_OF = re.compile(r"\b(has|have|had|are|were) no(?= [a-z]+s\b)")
_STATED = re.compile(r"\b(is|are|was|were|will|would)\b(?! (?:not|no|only|never|also|required|to)\b)")

# Who does it, and what is named -------------------------------------------------------------------------------------

_HEADS = (
    "Commission|Regulator|Authority|Firm|Person|Client|Customer|Controller|Processor|Subject|Body|Board|Committee|"
    "Officer|MLRO|Auditor|Manager|Member|Employee|Provider|Institution|Operator|Issuer|Entity|Applicant|Trustee|Court|"
    "Tribunal|Minister|Government|King|Parliament|Company|Bank|Landlord|Tenant|Employer|Seller|Buyer"
)
_ROLE = re.compile(
    rf"\b(?:the|an?|each|every)\s+(?:[A-Z][a-z]+\s+){{0,2}}({_HEADS}|{_HEADS.lower()})\b(?!['’])", re.ASCII
)
_ROLE_FIRST = re.compile(rf"(?:The|An?|Each|Every)\s+(?:[A-Z][a-z]+\s+){{0,2}}({_HEADS}|{_HEADS.lower()})\b(?!['’])")
_ACTS = re.compile(r"\s+(?:must|may|shall|should|will|can|[a-z]{3,}s)\b")
_MUTUAL = re.compile(r"\b(?:between|with|and|or|both|together|married|met|same|than|that)\b", re.I)
# fmt: off
_NAMES: Final = tuple(tuple(group.split(",")) for group in (
    "Argentina,Australia,Austria,Belgium,Brazil,Canada,Chile,China,Denmark,Egypt,England,Ethiopia,Finland,France,"
    "Germany,Greece,Hungary,India,Indonesia,Iran,Ireland,Italy,Japan,Kenya,Mexico,Nepal,Norway,Pakistan,Peru,Poland,"
    "Portugal,Romania,Russia,Scotland,Spain,Sudan,Sweden,Switzerland,Tanzania,Turkey,Uganda,Ukraine,Vietnam",
    "Amsterdam,Athens,Berlin,Brussels,Budapest,Cairo,Chicago,Copenhagen,Dublin,Florence,Geneva,Istanbul,Khartoum,"
    "Lisbon,London,Madrid,Milan,Moscow,Munich,Oslo,Oxford,Paris,Prague,Rome,Stockholm,Tokyo,Venice,Vienna,Warsaw,Zurich",
    "American,Austrian,Belgian,Brazilian,British,Canadian,Egyptian,Indian,Irish,Scottish,Swiss",
    "Chinese,Danish,Dutch,English,French,German,Greek,Hungarian,Italian,Japanese,Norwegian,Polish,Portuguese,Russian,"
    "Spanish,Swedish,Turkish",
    "Africa,Antarctica,Asia,Europe,North America,South America",
    "northern,southern,eastern,western", "northeastern,northwestern,southeastern,southwestern",
))
# fmt: on
_GROUP_OF: Final = {name: group for group in _NAMES for name in group}
_NAME = re.compile(rf"\b(?:{'|'.join(sorted(_GROUP_OF, key=len, reverse=True))})\b")
_BESIDE_NAME = (
    re.compile(r"(?:\b(?:and|or|not)|,|[A-Z][\w-]*(?: of(?: the)?)?)\s+$"),
    re.compile(r"\s+(?:and\b|or\b|[A-Z])|[,:'’-]"),
)
MIN_WORDS_BEFORE_NAME: Final = 3  # an earlier name is the subject, or part of it


def number(text: str, chance: random.Random) -> Edit | None:
    """Changes a count or length of time: "three members" to "six members"; rule numbers, years and sums stay."""
    found = [match for match in NUMBER.finditer(text) if _sort(text, match) == "number"]
    words = [
        (match.start(), match.end(), _cased(chance.choice([w for w in SMALL[1:] if w != match[0].lower()]), match[0]))
        for match in SMALL_WORD.finditer(text)
        if match[0].lower() != "one" and _COUNTED.match(text[match.end() :])
        if match[0].islower() or match.start() == 0  # else part of a name, such as the Big Ten
    ]
    return _one(text, [*_valued(text, found, chance), *words], chance)


def amount(text: str, chance: random.Random) -> Edit | None:
    """Changes a sum of money, percentage or measured quantity."""
    found = [match for match in NUMBER.finditer(text) if _sort(text, match) == "amount"]
    return _one(text, _valued(text, found, chance), chance)


def date(text: str, chance: random.Random) -> Edit | None:
    """Changes a month, or the year of an event; a year that is part of a name stays."""
    years = [
        (match.start(), match.end(), str(int(match[0]) + chance.choice((-37, -12, -9))))
        for match in NUMBER.finditer(text)
        if _sort(text, match) == "year"
    ]
    months = []
    for match in MONTH.finditer(text):
        day = _DAY_BEFORE.search(text[: match.start()])
        others = MONTHS if day is None or int(day[1]) < 29 else _LONG_MONTHS
        months.append((match.start(), match.end(), chance.choice([month for month in others if month != match[0]])))
    return _one(text, [*years, *months], chance)


def unit(text: str, chance: random.Random) -> Edit | None:
    """Changes the unit of a number: "72 hours" to "72 days", "1,642 metres" to "1,642 kilometres"."""
    units = {name.lower(): others for name, others in _UNIT.items()}
    found = [
        (match.start(1), match.end(1), _cased(chance.choice(units[match[2].lower()]) + match[3], match[1]))
        for match in _WITH_UNIT.finditer(text)
    ]
    return _one(text, found, chance)


def modal(text: str, chance: random.Random) -> Edit | None:
    """Changes a duty to a permission or a prohibition, or the reverse: "must" to "need not", "may" to "must not"."""
    found = [] if _ONLY.search(text) else _replaced(text, _MODALS, chance, _is_main)
    made = _one(text, found, chance)
    return None if made and _NOT_ALONE.search(made.text) else made  # "must not be no less"


def modal_strength(text: str, chance: random.Random) -> Edit | None:
    """Changes the strength: "must" to "should, but need not,", "usually" to "hardly ever"."""
    if _ONLY.search(text):
        return None
    duties = _replaced(text, _STRENGTHS[:1], chance, _is_main)
    adverbs = _replaced(text, _STRENGTHS[1:], chance, lambda _, start: not _ADVERB_BOUND.search(text[:start]))
    return _one(text, [*duties, *adverbs], chance)


def negation(text: str, chance: random.Random) -> Edit | None:
    """Adds a "not" to the main clause or removes it."""
    if _ONLY.search(text):
        return None
    out_of = [
        (match.start(), match.end(), match[1])
        for pattern in (_DENIED, _NONE_OF)
        for match in pattern.finditer(text)
        if _is_main(text, match.start())
    ]
    into = [
        (match.start(), match.end(), f"{match[1]} not")
        for match in _STATED.finditer(text)
        if _is_main(text, match.start())
    ]
    return _one(text, out_of or into[:1], chance)


def party(text: str, chance: random.Random) -> Edit | None:
    """Exchanges the parties: "The firm must tell the client" to "The client must tell the firm"."""
    del chance  # there is only one way
    first = _ROLE_FIRST.match(text)
    if not first or not _ACTS.match(text[first.end() :]):
        return None
    for second in _ROLE.finditer(text, first.end()):
        heads = [len(re.findall(rf"\b{head}\b", text, re.I)) for head in (first[1], second[1])]
        if _MUTUAL.search(text[first.end() : second.start()]) or heads != [1, 1]:
            return None
        new = (_capital(second[0]), text[first.end() : second.start()], _small(first[0]), text[second.end() :])
        return Edit("".join(new), first[0], _capital(second[0]))
    return None


def entity(text: str, chance: random.Random) -> Edit | None:
    """Changes a country, city, people, continent or direction, but never the subject or a list member."""
    found = []
    for match in _NAME.finditer(text):
        before, after = text[: match.start()], text[match.end() :]
        is_bare = text.count(match[0]) == 1 and not _BESIDE_NAME[0].search(before) and not _BESIDE_NAME[1].match(after)
        if is_bare and len(before.split()) >= MIN_WORDS_BEFORE_NAME:
            others = [name for name in _GROUP_OF[match[0]] if name not in text]
            same_article = [name for name in others if (name[0] in "AEIOU") is (match[0][0] in "AEIOU")]
            if same_article:
                found.append((match.start(), match.end(), chance.choice(same_article)))
    return _one(text, found, chance)


MAKERS: Final[Mapping[str, Maker]] = {
    "number": number,
    "date": date,
    "unit": unit,
    "amount": amount,
    "modal": modal,
    "modal strength": modal_strength,
    "negation": negation,
    "party": party,
    "entity": entity,
}


def edited(text: str, kind: str, chance: random.Random) -> Edit | None:
    """An edit of this kind; None if there is none, or if the text is a question, a table or too long."""
    if text.endswith("?") or any(mark in text for mark in "\n\t") or len(text.split()) > MAX_WORDS:
        return None
    return MAKERS[kind](text, chance)


# Pieces -------------------------------------------------------------------------------------------------------------

_Change = tuple[int, int, str]  # start, end, replacement


def _one(text: str, changes: Sequence[_Change], chance: random.Random) -> Edit | None:
    """The edit by one of these changes."""
    if not changes:
        return None
    start, end, new = chance.choice(changes)
    return Edit(text[:start] + new + text[end:], text[start:end], new)


def _replaced(
    text: str, table: Iterable[tuple[str, tuple[str, ...]]], chance: random.Random, allowed: Callable[[str, int], bool]
) -> list[_Change]:
    return [
        (match.start(), match.end(), match.expand(chance.choice(words)))
        for pattern, words in table
        for match in re.finditer(pattern, text)
        if allowed(text, match.start())
    ]


def _is_main(text: str, start: int) -> bool:
    """Whether the verb at this position seems to be the main verb, after its complete subject."""
    begin = max(text.rfind(mark, 0, start) for mark in ",;:(") + 1
    clause = text[begin:start].strip()
    is_whole = bool(_CLAUSE_START.match(clause)) and not text[:begin].rstrip().endswith((";", ":", "("))
    return is_whole and len(clause.split()) <= 12 and not _SUBORDINATE.search(clause)


def _sort(text: str, match: re.Match[str]) -> str:
    """``"amount"``, ``"year"``, ``"number"``, or "" for a number that must not change."""
    before, after = text[: match.start()], text[match.end() :]
    if not before or RULE_BEFORE.search(before):
        return ""
    if _is_sum(before, match) or _MEASURE_AFTER.match(after):
        return "amount"
    if "," not in match[0] and not match[2] and 1000 <= int(match[1]) <= 2100:
        return "year" if _YEAR_BEFORE.search(before) else ""
    beside = _MONTH_BESIDE[0].search(before) or _MONTH_BESIDE[1].match(after)
    is_named = _NAME_BEFORE.search(before)
    return "number" if _COUNTED.match(after) and not beside and not is_named else ""


def _is_sum(before: str, match: re.Match[str]) -> bool:
    """Whether a currency precedes it: a sign, or a code before a round or long number (HMD 500, not UFC 114)."""
    is_likely = "," in match[0] or int(match[1]) % 50 == 0
    return bool(_SIGN_BEFORE.search(before) or (is_likely and _CODE_BEFORE.search(before)))


def _valued(text: str, found: Sequence[re.Match[str]], chance: random.Random) -> list[_Change]:
    """Each number with another value, which is distant for a bound or an approximation."""
    changes = []
    for match in found:
        value = int(match[1].replace(",", ""))
        others = [value * 2, value * 3, value // 2 if value >= 4 else value * 4]
        if value <= 30 and not _NEARLY.search(text[: match.start()]):
            others += [value + 1, value + 5]
        new = chance.choice([other for other in others if other > 1 and other != value] or [value + 3])
        written = f"{new:,}" if "," in match[1] or new > 9999 else str(new)
        changes.append((match.start(), match.end(), written + (match[2] or "")))
    return changes


def _cased(new: str, old: str) -> str:
    return _capital(new) if old[0].isupper() else new


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _small(text: str) -> str:
    return text[0].lower() + text[1:]
