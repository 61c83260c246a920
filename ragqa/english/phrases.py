"""Finds the noun phrases, the verb and the object of a short English question or sentence by word lists. Pure.

The analysis is shallow on purpose, as in `ragqa.english.reading`: a list that a reader can check says which words are
verbs. In a run of words that could all be nouns, the last word that can be a verb is the verb.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from ragqa.english.words import stem

DETERMINERS: Final = frozenset(
    "a an the any every each no all some both either another my our your its their his her".split()
)
PREPOSITIONS: Final = frozenset(
    "of for to in on at by with from under over after before during within about against between into through as than "
    "per since until without upon regarding towards near past across along around behind beyond despite inside onto "
    "outside throughout toward".split()
)
BE: Final = frozenset("is are was were be been being".split())
MODALS: Final = frozenset("do does did can could may might must should shall will would don't doesn't didn't".split())
HAVE: Final = frozenset("has have had".split())
AUXILIARIES: Final = BE | MODALS | HAVE
WH: Final = frozenset("who whom whose what which when where why how".split())
_LINKS: Final = frozenset(
    "if unless when while because although though that which who where and or but whether".split()
)
PRONOUNS: Final = frozenset("i you he she it we they me him us them this that these those there one ones not".split())
# At the beginning of a sentence, these words refer to the sentence before.
POINTING_BACK: Final = frozenset("he she it they this that these those such his her its their".split())
_BASES: Final = frozenset(Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split())
_SMALL_IN_NAMES: Final = frozenset("of for the and de da di van von der la".split())
_IRREGULAR: Final = dict(
    pair.split(":")
    for pair in """became:become began:begin begun:begin born: bought:buy broke:break broken:break brought:bring
    built:build came:come chose:choose chosen:choose drawn:draw drew:draw fell:fall fought:fight
    found:find froze:freeze gave:give given:give grew:grow held:hold kept:keep knew:know known:know
    laid:lay lay:lie led:lead left:leave lent:lend lost:lose made:make meant:mean met:meet paid:pay
    ran:run rose:rise said:say sank:sink saw:see seen:see sent:send sold:sell spent:spend
    spoke:speak stood:stand taken:take taught:teach thought:think told:tell took:take went:go
    won:win written:write wrote:write
    flew:fly flown:fly stole:steal stolen:steal struck:strike shot:shoot sat:sit sang:sing swam:swim shrank:shrink
    hid:hide hidden:hide bore:bear forbade:forbid forbidden:forbid withheld:withhold rebuilt:rebuild
    put:put set:set split:split shut:shut read:read spread:spread""".split()
)
_NO_NOUNS: Final = frozenset(
    "due worth valid binding true allowed required unanswered up out back off down well soon often long high much many "
    "far ever always never still also too only just again together first last most least about open able "
    "once now today twice".split()
)
_ADJECTIVES: Final = frozenset(  # words that cannot end a noun phrase
    """alone bigger cheaper colder compulsory constant dead deeper denser different earlier easier enough external
    faster heavier higher hotter illegal independent larger later legal longer lower mandatory married necessary newer
    older optional same shorter slower smaller stricter taller warmer wider younger""".split()
)
_PREDICATE: Final = re.compile(r"(?:ous|ful|[aiu]ble|ly)\Z")
_TOKEN: Final = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+(?:['’.&/-][^\W_]+)*['’]?|[^\w\s]")
_ROLES: Final = frozenset(
    """agent applicant auditor author authority bank board body borrower branch broker child client commission committee
    company contractor controller custodian customer delegate director emperor employee employer firm fund holder
    institution insurer investor issuer king lawyer lender man manager member mlro officer operator owner partner
    people person president processor provider queen staff supplier team tenant trader trustee woman worker
    writer""".split()
)
_ROLE_STEMS: Final = frozenset(map(stem, _ROLES))
_AGENT: Final = re.compile(r"[^aeiou](?:ist|ian)s?\Z")


@dataclass(frozen=True, slots=True)
class TaggedWord:
    """A word or mark of the text; ``tag`` is det, prep, aux, link, pron, wh, verb, mark or word."""

    text: str
    start: int
    end: int
    tag: str

    @property
    def lower(self) -> str:
        return self.text.lower().replace("’", "'")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase in ``source``: up to ``end`` with its "of" phrase, up to ``whole_end`` with other prepositions."""

    source: str
    start: int
    end: int
    whole_end: int
    head_end: int  # the end of the words before the first "of"
    in_question: bool = False  # whether it is the thing asked for: "how many members"

    @property
    def text(self) -> str:
        return self.source[self.start : self.end]

    @property
    def whole(self) -> str:
        return self.source[self.start : self.whole_end]

    @property
    def head(self) -> str:
        """The last word before "of", in lower case and without its possessive ending."""
        return self._words[-1].lower().removesuffix("'s").removesuffix("'")

    @property
    def _words(self) -> list[str]:
        return self.source[self.start : self.head_end].replace("’", "'").split()

    @property
    def determiner(self) -> str:
        first = self._words[0].lower()
        return first if first in DETERMINERS else ""

    @property
    def is_name(self) -> bool:
        words = self._words[1:] if self.determiner else self._words
        plain = [word for word in words if word not in _SMALL_IN_NAMES]
        return bool(plain) and all(word[0].isupper() or word[0].isdigit() for word in plain)

    @property
    def is_joined(self) -> bool:
        return " and " in self.text

    @property
    def is_plural(self) -> bool:
        singular = {"a", "an", "each", "every", "another", "either"}
        is_s = self.head.endswith("s") and not self.head.endswith(("ss", "us", "is"))
        return self.is_joined or (is_s and self.determiner not in singular)

    @property
    def is_person(self) -> bool:
        """Whether it can be a person: a role such as "auditor", or a noun in -ist or -ian."""
        if self.head.endswith("ion"):  # "application" has the stem of "applicant"
            return self.head in _ROLES
        return stem(self.head) in _ROLE_STEMS or bool(_AGENT.search(self.head))

    @property
    def begins_possessive(self) -> bool:
        return self.source[self.end :].startswith(("'s", "’s", "'", "’"))


@dataclass(frozen=True)
class ParsedSentence:
    """A question or statement, parsed by the word lists."""

    text: str

    @cached_property
    def tokens(self) -> tuple[TaggedWord, ...]:
        """The words with their tags."""
        plain = [TaggedWord(m[0], m.start(), m.end(), _closed(m[0])) for m in _TOKEN.finditer(self.text)]
        first_aux = next((n for n, token in enumerate(plain) if token.tag == "aux"), None)
        is_asking = bool(plain) and any(token.tag == "wh" for token in plain[:2])
        begin = first_aux if is_asking and first_aux is not None and not _has_link(plain[1:first_aux]) else 0
        return tuple(plain[:begin]) + tuple(_with_verbs(plain[begin:]))

    @cached_property
    def auxiliary(self) -> TaggedWord | None:
        """The auxiliary before the main verb: "must" in "How soon must a firm …"; None if there is none."""
        for token in self.tokens:
            if token.tag == "aux":
                return token
            if token.tag in {"verb", "link"}:
                return None
        return None

    @cached_property
    def verb(self) -> TaggedWord | None:
        """The main verb: the first word tagged as a verb, which an auxiliary may precede; None if there is none."""
        return next((token for token in self.tokens if token.tag == "verb"), None)

    @cached_property
    def phrases(self) -> tuple[Phrase, ...]:
        """The noun phrases in order. A phrase is inside another only after a preposition such as "of" or "for"."""
        return tuple(_phrases(self.text, self.tokens))

    @property
    def subject(self) -> Phrase | None:
        """The first phrase that is not the thing asked for."""
        return next((phrase for phrase in self.phrases if not phrase.in_question), None)

    @property
    def action(self) -> tuple[str, str]:
        """The main verb's base and the words after it: ("acknowledge", "a complaint"); empty if none or passive."""
        verb = self.verb
        if verb is None or self.is_passive or not is_base(base_of(verb.lower)):
            return "", ""
        return base_of(verb.lower), self.text[verb.end :].strip()

    @property
    def is_passive(self) -> bool:
        return any(token.lower in BE for token in self.tokens if self.verb and token.start < self.verb.start)

    @property
    def is_asked_of_subject(self) -> bool:
        """Whether the question word is the subject: "Who must approve …", "Which firm built …"."""
        if not self.tokens or self.tokens[0].tag != "wh" or self.tokens[0].lower not in {"who", "what", "which"}:
            return False
        start = self.auxiliary.end if self.auxiliary else self.tokens[0].end
        before = (
            token for token in self.tokens if token.start >= start and (not self.verb or token.end <= self.verb.start)
        )
        return self.verb is not None and not any(token.tag in {"word", "pron", "det"} for token in before)


def _closed(text: str) -> str:
    """The tag of a word in a closed class, "mark" for punctuation, or "word"."""
    lower = text.lower().replace("’", "'")
    classes = (
        ("wh", WH), ("aux", AUXILIARIES), ("link", _LINKS), ("pron", PRONOUNS), ("prep", PREPOSITIONS),
        ("det", DETERMINERS),
    )  # fmt: skip
    if not text[0].isalnum():
        return "mark"
    if lower.endswith("n't"):
        return "aux"
    return next((tag for tag, words in classes if lower.removesuffix("'s") in words), "word")


def _has_link(tokens: Sequence[TaggedWord]) -> bool:
    return any(token.lower in {"if", "unless", "when", "that", "because"} for token in tokens)


def _with_verbs(tokens: Sequence[TaggedWord]) -> list[TaggedWord]:
    """The tokens with verbs tagged: in a run of words that can be verbs, the last one is the verb."""
    is_title = not any(token.tag in {"wh", "aux", "pron", "verb"} for token in tokens)  # "Deadline for the report"
    found, wanted = list(tokens), "any"  # verb form: "base" after "must" or "to", "participle" after "be" or a verb
    for n, token in enumerate(tokens):
        if token.tag in {"link", "mark", "wh"}:
            wanted = "any"
        elif token.tag == "aux" or token.lower == "to":
            wanted = "base" if token.lower in MODALS or token.lower == "to" else "participle"
        elif is_title and token is tokens[-1] and base_of(token.lower) == token.lower:
            continue
        elif token.tag == "word" and _is_verb(token, tokens[n - 1] if n else None, wanted):
            after = tokens[n + 1] if n + 1 < len(tokens) else None
            if wanted == "base" and after is not None and after.lower in BE | HAVE:  # "must the report be …"
                continue
            if wanted == "participle" or after is None or after.tag != "word" or not _is_verb(after, token, wanted):
                found[n] = replace(token, tag="verb")
                wanted = "participle"
    return found if any(token.tag == "verb" for token in found) else _with_unknown_verb(found)


def _with_unknown_verb(tokens: list[TaggedWord]) -> list[TaggedWord]:
    """The tokens with a verb that no list has: in "can a platform list its own token", the word before "its"."""
    if len(tokens) > 1 and tokens[0].lower == "who" and tokens[1].tag == "word" and tokens[1].lower.endswith("s"):
        return [tokens[0], replace(tokens[1], tag="verb"), *tokens[2:]]  # "Who chairs the committee?"
    first = next((n for n, token in enumerate(tokens) if token.tag == "aux" and token.lower in MODALS), None)
    if first is None or any(token.lower in BE | HAVE for token in tokens):
        return tokens
    for n in range(first + 2, len(tokens)):
        token, before, after = tokens[n], tokens[n - 1], tokens[n + 1] if n + 1 < len(tokens) else None
        is_plain = token.tag == "word" and token.text.islower() and token.lower not in _NO_NOUNS and n > first + 2
        is_last = after is None or after.tag in {"det", "pron"} or (after.tag == "prep" and after.lower != "of")
        if is_plain and is_last and before.tag in {"word", "pron"} and not _is_owner(before):
            return [*tokens[:n], replace(token, tag="verb"), *tokens[n + 1 :]]
    return tokens


def _is_verb(token: TaggedWord, before: TaggedWord | None, wanted: str) -> bool:
    """Whether the word can be a verb of the form ``wanted``."""
    is_counted = before is not None and before.lower in {"many", "much"}  # "how many copies"
    is_after_noun_marker = before is not None and (
        before.tag == "det" or is_counted or before.lower.endswith(("'s", "s'"))
    )
    is_after_preposition = before is not None and before.tag == "prep" and before.lower != "to"
    if (token.text[0].isupper() and before is not None) or is_after_noun_marker or is_after_preposition:
        return False
    if token.lower in _IRREGULAR or (token.lower.endswith("ed") and (len(token.lower) > 4 or token.lower == "used")):
        return True
    return token.lower in _BASES if wanted == "base" else wanted == "any" and base_of(token.lower) in _BASES


def base_of(verb: str) -> str:
    """The base of a verb: "leave" for "leaves", "carry" for "carried", "build" for "built"; unchanged if unknown."""
    if verb in _BASES or verb in _IRREGULAR:
        return _IRREGULAR.get(verb, verb)
    endings = (("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("d", ""))
    forms = (verb.removesuffix(ending) + new for ending, new in endings if verb.endswith(ending))
    return next((form for form in forms if form in _BASES), verb)


def is_base(verb: str) -> bool:
    """Whether this is the base form of a verb in the list."""
    return verb in _BASES


def is_participle(word: str) -> bool:
    """Whether a word in lower case can follow "be" as a verb: "founded", "withdrawn"."""
    return word in _IRREGULAR or (word.endswith("ed") and len(word) > 4)


def can_be_noun(word: str) -> bool:
    """Whether a word in lower case can be a noun or precede one, according to the lists."""
    return _closed(word) == "word" and word not in _NO_NOUNS and not _PREDICATE.search(word)


# One syllable that ends in a single vowel and consonant, alone or stressed after a Latin or Germanic prefix.
_DOUBLED: Final = re.compile(
    r"\A(?:[^aeiou]*|(?:ad|be|com|con|de|for|in|oc|per|pre|re|sub|trans)[^aeiou])[aeiou][bdglmnprt]\Z"
)


def gerund(verb: str) -> str:
    """The "-ing" form: "leaves" -> "leaving", "cancel" -> "cancelling"."""
    base = base_of(verb)
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and len(base) > 2 and not base.endswith(("ee", "oe")):
        return base[:-1] + "ing"
    doubled = _DOUBLED.search(base)
    return base + (base[-1] if doubled or base.endswith("cel") else "") + "ing"


def third_person(base: str) -> str:
    """The form after "it": "pay" -> "pays", "carry" -> "carries"."""
    if re.search(r"[^aeiou]y\Z", base):
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "sh", "ch", "x", "o")) else "s")


def _phrases(text: str, tokens: Sequence[TaggedWord]) -> list[Phrase]:
    runs, starts = _runs(tokens), [token.start for token in tokens]
    between = [
        [token.lower for token in tokens[bisect_left(starts, before[-1].end) : bisect_left(starts, after[0].start)]]
        for (before, _), (after, _) in pairwise(runs)
    ]
    found = []
    for n, (run, is_asked) in enumerate(runs):
        last, head_end, whole = run[-1], run[-1].end, run[-1]
        is_of = True
        for place in range(n, len(between)):
            (before, _), (after, _), words = runs[place], runs[place + 1], between[place]
            if not words and before is not run and _is_owner(before[-1]):  # "share of Clients' Virtual Assets"
                last, whole = (after[-1] if is_of else last), after[-1]
                continue
            if len(words) != 1 or (words[0] not in PREPOSITIONS and words[0] != "and"):
                break
            is_all = before[0].start == 0 and after[-1] is tokens[-1]  # "Polonium and radium"
            is_name = (is_all and words[0] == "and") or (
                words[0] in {"and", "for"} and _is_capital(before) and _is_capital(after)
            )
            is_of = is_of and (words[0] == "of" or is_name)
            last, whole = (after[-1] if is_of else last), after[-1]
        end = last.end - len(re.search(r"['’]?s?['’]?\Z", last.text)[0]) if _is_owner(last) else last.end  # type: ignore[index]
        if end > run[0].start:  # not where all of it is an ending, as scans part it from its word: "s'"
            found.append(Phrase(text, run[0].start, end, max(whole.end, end), min(head_end, end), is_asked))
    return found


def _is_capital(run: Sequence[TaggedWord]) -> bool:
    return run[-1].text[0].isupper()


def _is_owner(token: TaggedWord) -> bool:
    return token.lower.endswith(("'s", "s'"))


def _runs(tokens: Sequence[TaggedWord]) -> list[tuple[list[TaggedWord], bool]]:
    """Runs of words that can be noun phrases, and whether a question word opens each: "how many members"."""
    runs: list[tuple[list[TaggedWord], bool]] = []
    run: list[TaggedWord] = []
    is_asked = False
    for token in tokens:
        if token.tag == "word" or (token.tag == "det" and not run):
            run.append(token)
            if not _is_owner(token):
                continue
        if kept := _trimmed(run):
            runs.append((kept, is_asked))
            is_asked = False
        run = [token] if token.tag == "det" else []
        is_asked = (token.tag == "wh" and token.lower in {"which", "what", "how"}) or (is_asked and token.tag == "prep")
    if kept := _trimmed(run):
        runs.append((kept, is_asked))
    return runs


def _trimmed(run: Sequence[TaggedWord]) -> list[TaggedWord]:
    """The run without words at its ends that cannot be in a noun phrase; empty if only a determiner is left."""
    kept = list(run)
    while kept and (
        kept[-1].lower in _NO_NOUNS | _ADJECTIVES or _PREDICATE.search(kept[-1].lower) or kept[-1].tag == "det"
    ):
        kept.pop()
    while kept and kept[0].tag != "det" and kept[0].lower in _NO_NOUNS - {"first", "last", "open"}:
        kept.pop(0)
    return kept
