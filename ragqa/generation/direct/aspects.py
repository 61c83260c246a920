"""What a question asks of its subject beyond the topic, and whether a sentence speaks of it. Pure, English.

A passage on gold that says when it melts is near to "when does gold boil?" by every measure of topic. So words are read
that cannot stand for each other ("boil" and "melt", "Retail" and "Professional", "average" and "greatest"), and what
certain questions need said (a cost, a death, a speed, a cause). Word lists a reader can check: what is not in them
speaks neither for nor against a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ragqa.english.reading import Reading, read
from ragqa.english.words import STOP_WORDS, Word, stem, words_of


def _ways(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


# Of each line a sentence that has another member and not the one asked about speaks of something else.
_TOLD_APART: Final = (
    _ways(
        r"\bdeep|\bdepth",
        r"\bwid(?:e|th)\b|\bbroad|\bacross\b|\bdiameter",
        r"\blong\b|\blength|\blonge[rs]t?\b",
        r"\b(?:how|metres|meters|feet) high\b|\bheight|\btall(?:er|est)?\b|\babove sea level\b|\bhigh(?:er|est)\b",
        r"\bthick",
        r"\bheavy\b|\bweigh|\bmass\b|\btonnes?\b",
        r"\bsquare (?:kilo)?met|\barea\b",
    ),
    _ways(
        r"\baverage\b",
        r"\b(?:greatest|deepest|maximum|largest|highest|at most|no more than|up to)\b|\bexceed",
        r"\b(?:minimum|smallest|lowest|at least|no less than|no fewer than)\b",
    ),
    _ways(r"\bretail\b", r"\bprofessional (?:client|investor|customer)s?\b", r"\bmarket counterpart"),
    _ways(
        r"\b(?:for|on) (?:an |any )?individuals?\b|\bnatural persons?\b",
        r"\b(?:for|on) (?:a |any )?(?:firm|compan|legal)",
    ),
    _ways(r"\bsummer\b", r"\bwinter\b", r"\bautumn\b", r"\b(?:in|the|of) spring\b"),
    _ways(r"\bby day\b|\bdaytime\b", r"\bnight\b"),
    _ways(r"\bnorth(?:ern)?\b", r"\bsouth(?:ern)?\b", r"\beast(?:ern)?\b", r"\bwest(?:ern)?\b"),
    _ways(r"\bfather\b", r"\bmother\b", r"\bbrothers?\b", r"\bsisters?\b", r"\bsons?\b", r"\bdaughters?\b"),
    _ways(r"\bimport(?:s|ed)?\b", r"\bexport(?:s|ed)?\b"),
)
_ALWAYS_SAID: Final = (  # the same, and one that has no member does not say it either
    _ways(r"\bboil", r"\bmelt", r"\bfr(?:eez|oze)", r"\bignit|\bburns?\b"),
    _ways(
        r"\bborn\b|\bbirth", r"\bdie[sd]?\b|\bdeaths?\b|\bburied\b", r"\bmarr(?:y|ie|ia)|\bwedding\b|\bhusband|\bwife"
    ),
    _ways(r"\bwom[ae]n\b|\bfemale\b", r"\bm[ae]n\b|\bmale\b"),
)
_MONEY: Final = r"\b(?:hmd|us\$|dollars?|pounds?|euros?)|[$€£]"
_TIME: Final = frozenset({"time", "business time", "interval"})
# What a question that has the first must have said, in a pattern of which one match is enough.
_NEEDS: Final = (
    (r"\baverage\b", r"\baverage\b|\bmean\b"),
    (r"\bhow deep\b|\bdepth\b", r"\bdeep|\bdepth|\bbelow\b|\bbottom"),
    (r"\bhow wide\b|\bwidth\b", r"\bwid(?:e|th)|\bbroad|\bacross\b|\bdiameter|\bby \d"),
    (r"\bhow (?:tall|high)\b|\bheight\b", r"\bhigh|\bheight|\btall|\babove\b|\bris(?:es|ing)|\breach"),
    (
        r"\bhow long (?:is|was|are|were)\b",
        r"\blong|\blength|\b(?:kilomet|met(?:re|er)s?\b|miles?\b|feet|second|minute|hour|day|week|month|year)",
    ),
    (r"\bin (?:all|total)\b|\baltogether\b", r"\bin (?:all|total)\b|\baltogether\b|\btotal\b|\bha(?:s|ve|d)\b"),
    (r"\bhow thick\b", r"\bthick"),
    (r"\bhow heavy\b|\bweigh", r"\bweigh|\bheavy|\bmass\b|\btonnes?\b|\bgrams\b"),
    (r"\bdensity\b|\bdense\b", r"\bdens"),
    (r"\bcosts?\b|\bprices?\b|\bexpensive\b|\bcheap", rf"{_MONEY}|\bcosts?\b|\bprices?\b|\bfees?\b|\bcharge|\bspent\b"),
    (r"\b(?:what|which|how (?:much|high)).*\bfees?\b", r"\bfees?\b|\bcharge"),
    (
        r"\bhow much (?:may|can|must|does|do|did|is|was)\b.*\b(?:charged?|pay|paid|award(?:ed)?)\b",
        rf"{_MONEY}|%|\bper cent",
    ),
    (r"\bmost (?:that|a|an|the)\b.*\baward", _MONEY),
    (r"\bfines?\b|\bpenalt", r"\bfine[sd]?\b|\bpenalt|\bsanction|\bcensure"),
    (r"\bpremiums?\b", r"\bpremium"),
    (r"\bsalar|\bwages?\b", r"\bsalar|\bwages?\b|\bremunerat"),
    (
        r"\bhow many\b.*\b(?:di(?:e|ed)|drown\w*|kill\w*|perish\w*)\b",
        r"\bdie|\bdeath|\bkill|\bdrown|\bdead\b|\blives\b",
    ),
    (
        r"\bwhat (?:illness|disease|poison)\b",
        r"\b(?:di(?:ed|es)|suffer\w*|ill)\b.* (?:of|from|with)\b|\billness|\bdisease|\bfever|poison",
    ),
    (r"\bhow fast\b|\bspeed\b", r"\bspeed|\bper (?:second|hour|minute)\b|\bfast\b|\bknots?\b"),
    (r"\baddress\b", r"\baddress|\bstreet\b|\bavenue\b|\broad\b"),
    (r"\bhow often\b.*\bmeet", r"\bmeet"),
    (r"\bhow old\b|\bwhat age\b", r"\baged?\b|\bold\b|\bborn\b"),
    (r"\btemperature\b|\bhow (?:hot|cold)\b", r"\bcelsius|\bfahrenheit|\bkelvin|\bdegrees\b|°"),
    (r"\bwho taught\b", r"\btaught|\bteach|\bpupil|\bstudent|\bsupervis|\btutor"),
    (r"\bpopulation\b|\bhow many (?:people|inhabitants) live", r"\bpeople\b|\binhabitants?\b|\bpopulation"),
    (
        r"\A(?:and )?why\b|\bwhat (?:caused|made|set)\b",
        r"\bbecause\b|\bsince\b|\bso that\b|\bdue to\b|\bowing to\b|\bcaus|\breason|\bas a result\b"
        r"|\bfor (?:a|his|her|their|its) \w+|\bto \w+",
    ),
)
_REQUIRED: Final = tuple((re.compile(a, re.IGNORECASE), re.compile(b, re.IGNORECASE)) for a, b in _NEEDS)
_OLD: Final = re.compile(r"\bold\b", re.IGNORECASE)  # so long something is there, not so long it lasts
_PEOPLE: Final = (
    r"\b(?:people|persons?|members?|individuals?|m[ae]n|wom[ae]n|inhabitants|visitors|passengers|workers|employees)\b"
)
_UNITS: Final = r"\A(?:second|minute|hour|day|week|month|year|quarter)s?\Z"
_COUNTED: Final = re.compile(
    r"\bhow many (?:(?:of [\w']+(?:'s)?|different|business|calendar|small|large) )?(?P<noun>[\w-]+)", re.IGNORECASE
)
_OF: Final = re.compile(
    r"\b(?:what|who)(?:'s| is| are| was| were) the (?:[\w-]+ ){1,3}of (?:the |an? )?"
    r"(?P<words>[\w'-]+(?: (?!called|named)[\w'-]+){0,2})(?: called| named)?\W*\Z",
    re.IGNORECASE,
)
_ROLE: Final = re.compile(r"\bwho(?:'s| is| are| was| were) the (?P<words>[\w-]+)", re.IGNORECASE)
_PROPERTY: Final = re.compile(
    r"\bwhat(?:'s| is| are| was| were) the (?:[\w-]+ )?(?P<words>[\w-]+) (?:of|for) ", re.IGNORECASE
)
_HEAD: Final = re.compile(
    r"(?:\A|\b(?:in|at|on|by|for|from|of|to|with) )(?:what|which) (?P<words>[\w-]+(?: [\w-]+)?)", re.IGNORECASE
)
_GENERIC: Final = frozenset(
    map(
        stem,
        (
            "year date day month time percentage percent share part proportion amount number kind sort type way city "
            "town country place name two one three thing situation circumstance condition case point first second "
            "last people person happen mean make count rule size get got set cause temperature age height length depth "
            "speed distance weight population"
        ).split(),
    )
)
_DONE: Final = re.compile(r"\bwho (?P<verb>[a-z]{4,})\b", re.IGNORECASE)
LONGEST: Final = 16  # words of a part; a longer one tells a story, whose words nobody need repeat
NEAR: Final = 0.6  # cosine of two words from which one may stand for the other


@dataclass(frozen=True, slots=True)
class Unsaid:
    """What a part of a question asks about that a sentence does not speak of, in the question's words."""

    otherwise: tuple[str, ...] = ()  # the sentence speaks of another member of the family
    lacking: tuple[str, ...] = ()  # it speaks of none, or does not say what such a question needs said

    def __bool__(self) -> bool:
        return bool(self.otherwise or self.lacking)


def unsaid(asked: str, sentence: Reading, above: str = "") -> Unsaid:
    """What ``asked`` speaks of and ``sentence``, with ``above``, its title and headings, does not."""
    if len(asked.split()) > LONGEST:
        return Unsaid()
    otherwise, lacking = [], []
    text = f"{above} {sentence.text}"
    lasts = any(one.dimension in _TIME for one in sentence.quantities) and not _OLD.search(sentence.text)
    for family in (*_TOLD_APART, *_ALWAYS_SAID):
        asks = [(way, match[0]) for way in family if (match := way.search(asked))]
        if len(asks) != 1 or asks[0][0].search(text):
            continue
        if lasts and asks[0][1].lower() == "long":
            continue
        others = any(way.search(sentence.text) for way in family if way is not asks[0][0])
        if others:
            otherwise.append(asks[0][1])
        elif family in _ALWAYS_SAID:
            lacking.append(asks[0][1])
    for way, need in _REQUIRED:
        if (match := way.search(asked)) and not need.search(text):
            lacking.append(match[0])
    lacking += _uncounted(asked, sentence)
    if (match := _OF.search(asked)) and read(match["words"]).content - read(text).stems:
        lacking.append(match["words"])
    if (match := _DONE.search(asked)) and _is_passive(match["verb"], sentence.text):
        lacking.append("by whom")
    return Unsaid(tuple(dict.fromkeys(otherwise)), tuple(dict.fromkeys(lacking)))


def _uncounted(asked: str, sentence: Reading) -> list[str]:
    match = _COUNTED.search(asked)
    if not match:
        return []
    noun = match["noun"].lower()
    if re.match(_UNITS, noun):
        found = any(one.dimension in _TIME for one in sentence.quantities)
    elif re.match(_PEOPLE, noun):
        found = bool(sentence.quantities) and bool(re.search(_PEOPLE, sentence.text, re.IGNORECASE))
    else:
        found = not sentence.stems.isdisjoint({stem(noun)}) and bool(sentence.quantities)
    return [] if found else [match[0]]


def _is_passive(verb: str, sentence: str) -> bool:
    """Whether the sentence says that this was done to somebody or something, and not by whom."""
    done = rf"\b(?:is|are|was|were|been|be) (?:\w+ly )?{re.escape(verb.lower()[:3])}\w*(?:ed|en|n|t)\b"
    return bool(re.search(done, sentence, re.IGNORECASE)) and not re.search(r"\bby\b", sentence)


def head_of(asked: str) -> tuple[Word, ...]:
    """The words of the thing asked for: of "which newspaper", "who was the captain", "what is the density of".

    Empty where it may be anything.
    """
    match = _ROLE.search(asked) or _PROPERTY.search(asked) or _HEAD.search(asked)
    if not match or len(asked.split()) > LONGEST or " or " in asked:
        return ()
    words = tuple(word for word in words_of(match["words"]) if word.lower not in STOP_WORDS)
    return () if any(word.stem in _GENERIC for word in words) else words
