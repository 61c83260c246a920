"""Normalises follow-ups to the forms that the rules know: "I meant X", "or else?", "the second one", "then". Pure.

Each function in `FORMS` takes a follow-up and the previous turn, and returns the follow-up reworded or unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ragqa.conversation.history import Before
from ragqa.english.phrases import (
    AUXILIARIES,
    BE,
    MODALS,
    PREPOSITIONS,
    ParsedSentence,
    Phrase,
    base_of,
    can_be_noun,
    gerund,
    is_base,
)
from ragqa.english.reading import read
from ragqa.english.words import stem

_MEANT: Final = re.compile(
    r"\A(?:.{0,25}?\b)?i (?:mean|meant|was asking about),? (?P<x>.+?)(?:,? not .+)?\Z", re.IGNORECASE
)
_HAPPENED: Final = re.compile(
    r"\A(?P<wh>when|where|why|how) (?:did|does|will|would|do) (?:that|this|it) (?:happen|occur|take place)\Z",
    re.IGNORECASE,
)
_SUPPOSE: Final = re.compile(
    r"\A(?:let's )?(?:suppose|supposing|assume|assuming|say)(?: that)?,? (?=\w+ \w)", re.IGNORECASE
)
_ANY: Final = re.compile(r"\Aany(?= [a-z])", re.IGNORECASE)
_ELSE: Final = re.compile(r"\A(?:or )?(?:else|otherwise|if not)\Z|\Aor what\Z", re.IGNORECASE)
_IF_SO: Final = re.compile(
    r"\Aif (?P<so>so|not|yes|no),? (?P<rest>.+)\Z|\A(?P<main>.+?),? if (?P<is>so|not)\Z", re.IGNORECASE
)
_THAT_ONE: Final = re.compile(r"\b(?:that|this) one\b(?! \w)", re.IGNORECASE)
_ORDINALS: Final = ("first", "second", "third", "fourth")
_LISTED: Final = re.compile(
    rf"\bthe (?P<which>other|former|latter|last(?= one)|(?:{'|'.join(_ORDINALS)})(?= one))(?: one| two)?\b"
    r"(?: (?P<next>\w+))?",
    re.IGNORECASE,
)
_THING: Final = r"[A-Z][\w'’-]*(?: (?:of |the )?[A-Z][\w'’-]*)*|(?:an?|the) [\w-]+(?: [\w-]+)?"
_LIST: Final = re.compile(rf"(?:(?:{_THING}), )*(?:{_THING}),? (?:or|than|and) (?:{_THING})")
_ONE: Final = re.compile(
    r"\b(?P<which>which|what|an?|any|every|each|no|the \w+e(?:r|st)) ones?\b(?= \w)", re.IGNORECASE
)
_SOME: Final = re.compile(
    rf"(?P<before>\A|\b(?:of|how|{'|'.join(sorted(AUXILIARIES))}) )(?P<some>any|some|all|both|most|many|none)\b"
    rf"(?=\Z| (?:still|also|ever|now|left|{'|'.join(sorted((AUXILIARIES | PREPOSITIONS) - {'of'}))})\b)",
    re.IGNORECASE,
)
_THEN: Final = re.compile(
    r"\b(?:(?P<prep>before|after|since|until|till|by|from) (?:that|then|this)|then|at (?:that|the) time"
    r"|(?:in )?that year)\Z",
    re.IGNORECASE,
)
TIME: Final = re.compile(
    r"\b(?:within|in|during|for|after|before|until|since|by|from) (?:the (?:first|last|next) )?(?:\d[\d,.]*|one|two"
    r"|three|four|five|six|seven|ten|twelve) (?:\w+ )?(?:year|quarter|month|week|day|hour|minute)s?\b"
    r"|\b(?:in|after|before|since|until) \d{4}\b",
    re.IGNORECASE,
)
_POINTED: Final = re.compile(r"\b(?P<det>this|that|these|those|the)(?= [a-z])", re.IGNORECASE)
_KINDS: Final = frozenset(
    map(
        stem,
        """bridge building canal church city country element island lake language metal moon mountain museum ocean
        planet river sea star statue substance tower town tunnel""".split(),
    )
)
_EARLY: Final = 12  # most characters before "which one": a longer question itself says what "one" means
_MOST_SEARCHED: Final = 5_000  # characters of an answer; the search for a list takes the square of its time
_FEW_WORDS: Final = 5  # most content words: a longer follow-up itself says what "the firm" means


def in_plain_words(bare: str, before: Before) -> str:
    """The follow-up in a form that the rules know; unchanged if it has none of the forms above."""
    for form in FORMS:
        bare = form(bare, before)
    return bare


def _with_capitals(bare: str, before: Before) -> str:
    """Writes names such as "suez canal" with the capitals that they have in the thread."""
    if any(letter.isupper() for letter in bare[1:]):
        return bare
    for name in read(f"{before.turn.question} {before.said.text}").names:
        bare = re.sub(rf"\b{re.escape(name.span.text)}\b", name.span.text.replace("\\", ""), bare, flags=re.IGNORECASE)
    return bare


def _corrected(bare: str, _: Before) -> str:
    match = _MEANT.match(bare)
    return f"what about {match['x']}" if match else bare


def _of_an_event(bare: str, _: Before) -> str:
    """Replaces "that one" by "it" and "when did that happen" by "when"."""
    match = _HAPPENED.match(bare)
    return match["wh"] if match else _THAT_ONE.sub("it", bare)


def _supposed(bare: str, _: Before) -> str:
    """Replaces "suppose they refuse" by "what if they refuse", "any exceptions?" by "are there any exceptions?"."""
    return _ANY.sub("are there any", _SUPPOSE.sub("what if ", bare))


def _decided(bare: str, before: Before) -> str:
    """Replaces "or else?" and "if so" by the previous question as a condition."""
    if _ELSE.match(bare):
        return f"what if {subject} {_not_done(before)}" if (subject := before.parts[1]) else bare
    match = _IF_SO.match(bare)
    if not match:
        return bare
    said = before.assertion(is_denied=(match["so"] or match["is"]).lower() in {"not", "no"})
    rest = match["rest"] or match["main"]
    return f"{rest} if {said}" if said else rest


def _not_done(before: Before) -> str:
    """The words for "do not" that agree with the subject of the previous question."""
    is_plural = before.asked.subject is not None and before.asked.subject.is_plural
    if before.asked.is_passive:
        return "are not" if is_plural else "is not"
    return "do not" if is_plural else "does not"


def _chosen(bare: str, before: Before) -> str:
    """Replaces "the other one", "the former" or "the second one" by the name of the thing."""
    match = _LISTED.search(bare)
    if not match:
        return bare
    following = (match["next"] or "").lower()
    if following and not (
        "one" in match[0].split() or _goes_on(following)
    ):  # "the other firms", "the former president"
        return bare
    end = match.start("next") - 1 if following else match.end()
    found = _alternative(match["which"].lower(), before)
    return f"{bare[: match.start()]}{found}{bare[end:]}" if found else bare


def _goes_on(word: str) -> bool:
    """Whether a word begins a predicate and is not a noun."""
    return word in AUXILIARIES | PREPOSITIONS or is_base(base_of(word))


def _alternative(which: str, before: Before) -> str:
    """The thing that is meant in the list of the question, or of the answer; empty if neither has a list."""
    match = _LIST.search(before.asked.text) or _LIST.search(before.turn.answer[:_MOST_SEARCHED])
    things = re.findall(_THING, match[0]) if match else []
    if which == "other":
        said = read(before.turn.answer).stems
        unsaid = [one for one in things if not read(one).stems <= said]
        return unsaid[0] if len(unsaid) == 1 else ""
    place = {"former": 0, "latter": len(things) - 1, "last": len(things) - 1}.get(which)
    place = _ORDINALS.index(which) if place is None else place
    return things[place] if 0 <= place < len(things) else ""


def _with_noun(bare: str, before: Before) -> str:
    """Replaces "one" after "which", "the biggest", … by its noun, and "any" by "any of them"."""
    if (match := _ONE.search(bare)) and "," not in bare[: match.start()] and match.start() <= _EARLY:
        is_many = match[0].lower().endswith("ones")
        kinds = [phrase for phrase in before.asked.phrases if phrase.determiner in {"a", "an"} or phrase.is_plural]
        kinds.sort(key=lambda phrase: phrase.is_plural != is_many)
        if kinds:
            words = kinds[0].source[kinds[0].start : kinds[0].head_end].split()[bool(kinds[0].determiner) :]
            noun = " ".join(words) if is_many or not kinds[0].is_plural else re.sub(r"s\Z", "", " ".join(words))
            return f"{bare[: match.start()]}{match['which']} {noun}{bare[match.end() :]}"
    has_many = any(phrase.is_plural for phrase in (*before.asked.phrases, *before.said.phrases))
    is_whole = bare.lower() == "how many"
    return bare if is_whole or not has_many else _SOME.sub(lambda match: f"{match[0]} of them", bare, count=1)


def _dated(bare: str, before: Before) -> str:
    """Replaces "then" by its date, or "after that" by its period."""
    match = _THEN.search(bare)
    if not match:
        return bare
    dates = read(before.said.text).dates or read(before.asked.text).dates
    period = TIME.search(before.asked.text) or TIME.search(before.said.text)
    if dates:
        prep = match["prep"] or ("on" if dates[0].day else "in")
        return f"{bare[: match.start()]}{prep} {dates[0].span.text}"
    if match["prep"] in {"after", "before"} and period:
        return f"{bare[: match.start()]}{match['prep']} {period[0].partition(' ')[2]}"
    return bare


def _pointed(bare: str, before: Before) -> str:
    """Replaces "that deadline", "this ban" or "the lake" by its meaning; "the firm" without any detail becomes "it"."""
    for match in _POINTED.finditer(bare):
        is_the = match["det"].lower() == "the"
        plain = ParsedSentence(f"{bare[: match.start()]}the{bare[match.end() :]}")
        phrase = next((one for one in plain.phrases if one.start == match.start()), None)
        if phrase is None or (not is_the and not _is_determiner(match, phrase, plain)):
            continue
        following = re.match(r"\W*(\w*)", plain.text[phrase.end :])
        is_more_said = following is not None and following[1].lower() in PREPOSITIONS - {"from"}
        if is_the and (is_more_said or len(read(bare).content) > _FEW_WORDS or read(bare).names):
            continue
        if found := _known(phrase, is_the, before):
            return f"{plain.text[: phrase.start]}{found}{plain.text[phrase.end :]}"
    return bare


def _is_determiner(match: re.Match[str], phrase: Phrase, plain: ParsedSentence) -> bool:
    """Whether "that" belongs to the noun after it: not in "is that legal", "does that include", "says that firms"."""
    last = plain.text[: match.start()].lower().rstrip().rpartition(" ")[2]
    if not can_be_noun(phrase.text.split()[1].lower()):
        return False
    after = re.match(r"\W*(\w*)", plain.text[phrase.end :])
    following = after[1].lower() if after else ""
    if last in BE:
        return bool(following) and following not in PREPOSITIONS | {"too", "also", "as"}
    if last in MODALS:
        return not is_base(phrase.text.split()[1].lower()) or following in AUXILIARIES or is_base(following)
    return match["det"].lower() != "that" or (_goes_on(last) and (not _goes_on(following) or following in PREPOSITIONS))


def _known(phrase: Phrase, is_the: bool, before: Before) -> str:
    """The meaning of a noun that points back; empty if the previous question and answer have none for it."""
    asked, noun, said = before.asked.phrases, stem(phrase.head), read(phrase.text).stems
    for one in (*asked, *before.said.phrases):
        full = one.whole if one in asked else one.text
        if (
            stem(one.head) != noun or read(one.text).quantities or not said <= read(f"the {full}").stems
        ):  # "the boiling point"
            continue
        own = full.split()[bool(one.determiner) :]
        says_no_more = len(own) < len(phrase.text.split())
        if one.in_question or (says_no_more and one is before.asked.subject):
            return "they" if one.is_plural else "it"
        if says_no_more and one in asked:
            continue
        first = own[0].lower() if one.start == 0 and not own[0][1:2].isupper() else own[0]
        return f"the {' '.join([first, *own[1:]])}"
    focus = before.focus() if before.wants_name else None
    names = [one for one in (focus, *asked) if one and one.is_name]
    named = [one for one in names if said <= read(f"the {one.text}").stems]
    if named and noun in _KINDS:  # "the lake" means "Lake Baikal", but "the client" does not mean "Client Money"
        return named[0].text
    is_who = before.asked.text.lower().startswith(("who", "where"))
    if noun in _KINDS and names and not is_who and len(phrase.text.split()) == len(("the", "river")):
        return f"{phrase.text} {' '.join(names[0].text.split()[bool(names[0].determiner) :])}"
    verb, after = before.action
    if is_the or not before.topic:
        return ""
    if verb and after and noun == stem(verb):
        return f"{phrase.text} of {after}"
    return f"{phrase.text} on {gerund(verb)} {after}" if verb and after else f"{phrase.text} regarding {before.topic}"


FORMS: Final[tuple[Callable[[str, Before], str], ...]] = (
    _with_capitals,
    _corrected,
    _of_an_event,
    _chosen,
    _with_noun,
    _supposed,
    _dated,
    _decided,
    _pointed,
)
