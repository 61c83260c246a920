"""Makes questions by rules from sentences that oblige, permit or define. Pure.

A question asks for a part that is left out of the sentence: its condition, its exception, its time, or whether it holds
at all. A sentence that fits no template gives no question; there are more passages than questions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.lab.dataset.checks import problem, reworded
from ragqa.lab.dataset.pseudo_queries import SEPARATOR, Duty, bare, defined_terms, duty_of
from ragqa.types import Passage

KINDS: Final = (
    *("obligation", "permission", "exception", "condition", "definition", "deadline"),
    *("comparison", "cross-reference"),
)
SEVERAL: Final = ("comparison", "cross-reference")  # kinds that need two passages
FORMS: Final = ("question", "scenario")
READ: Final = 4  # sentences of a passage: later ones are mostly asides
FEWEST: Final = 3  # words of a deed that says enough by itself
SHORT: Final = 12  # words of a deed beside others
_UNLESS = re.compile(r",? (?:unless|except (?:where|when|if|that|to the extent)|other than where)\b")
_IF = re.compile(r",? (?:only )?(?:if|where|when|provided that|on (?:the )?condition that)\b")
_SOON = re.compile(
    r",? ?\b(?:immediately|promptly|without (?:undue )?delay|as soon as \w+ ?\w*|no later than .*|not later than .*|"
    r"within [\w ()-]{1,30}?(?:hours?|days?|weeks?|months?|years?)(?: (?:of|after|from|before) .*)?|by the end of .*|"
    r"at least [\w ()-]{1,20}?(?:days?|weeks?|months?) (?:before|prior to|in advance) ?.*)"
)
_OFTEN = re.compile(
    r",? ?\b(?:annually|quarterly|monthly|periodically|at least (?:once|annually|quarterly|monthly|every)\b.*|"
    r"every [\w ]{0,12}(?:months?|years?)|on an? (?:annual|quarterly|monthly|daily) basis)"
)
_LONG = re.compile(
    r",? ?\bfor (?:a (?:minimum )?period of |a minimum of )?(?:at least |not less than |a minimum of )?"
    r"\w+ ?(?:\(\d+\) )?(?:years?|months?)\b.*"
)
_POSSIBLE = re.compile(  # after a "may" that permits nothing
    r"(?:be|have|pose|result|arise|include|vary|lead|apply|affect|indicate|occur|also|require|depend|involve|"
    r"become|give rise|need|contain|cause|constitute|mean|not|well|wish|suffer|differ|reflect|come|make it)\b"
)
_BARE_DUTY = re.compile(
    r"(?:(?P<condition>(?:If|Where|When|Before|After|Upon)\b[^,;:]{3,120}), )?"
    r"(?P<subject>(?:An?|The|Each|Every) [^,;:]{2,70}?) (?P<verb>must|shall|should)(?P<no> not)?:?$"
)
_OWN_HEADING = re.compile(r"^[A-Z][\w ,'’–-]{2,60}: (?=(?:An?|The|Where|If|When)\b)")
_CLAUSE_END = re.compile(
    r"\s*(?:$|[.;—]|,? ?(?:unless|except|where|if|when|provided|so (?:that|as)|in order|including|which|taking|having|"
    r"giving|but|subject|as|after|before)\b)"
)
_NOBODY = re.compile(
    r"(?:while|although|as|since|we|our|i|you|once|during|however|therefore|also|given|what|then|no|not|neither|more)\b",
    re.IGNORECASE,
)
_MODAL = re.compile(r"\b(?:must|shall|should|may)\b")
_PARTY = re.compile(
    r"[A-Z]|\b(?:person|firm|applicant|company|auditor|manager|director|member|issuer|employee|customer)s?\b"
)
_WHEN = re.compile(r" (?:if|where|when|before|after|upon)\b")
_NO_VERB = re.compile(
    r"(?:upon|on|by|in|at|for|from|with|to|as|if|where|when|after|before|under|within|only|then|also|never|each|either)\b"
)
_LEFT_OUT = re.compile(r"\b(?:nevertheless|also|therefore|instead|in addition|first|itself(?= be)) ?\b| only$")
_EMPTY = re.compile(
    r"(?:where|if|when) (?:appropriate|necessary|applicable|possible|relevant|required|so|not)\b.{0,12}$"
)
_CLAUSE = re.compile(r"(?:if|where|when) (?P<clause>(?:(?:an?|the|any|there|one|two|its|more)\b|[A-Z]).{12,})")
_GIVES = re.compile(
    r"(?:notify|inform|tell|give|provide|send|advise|submit|make|take|ensure|have|be|supply|show|report|pay)\b"
)
_EVENT = re.compile(r" (?:of|on|upon|if|when|after|about|once|where) [^,;:.()]{3,90}(?=[,;.]|$)")
_SAYS_LITTLE = re.compile(
    r"(?:general|application|introduction|guidance|purpose|interpretation|other|miscellaneous|scope|overview|.*\bdeleted)\b"
)
_PLURAL = re.compile(r"\w*[a-rt-z]s$")


@dataclass(frozen=True, slots=True)
class Told:
    """One duty of a passage, with the heading above it in lower case; "" if the heading says little."""

    duty: Duty
    heading: str


@lru_cache(maxsize=20_000)
def told_in(passage: Passage) -> tuple[Told, ...]:
    """The self-contained duties in the passage's first sentences."""
    return tuple(_told_in(passage))


def joins(passage: Passage) -> bool:
    """Whether the passage has a duty short enough for a question about several passages."""
    return any(_is_short(told.duty) for told in told_in(passage))


def _told_in(passage: Passage) -> Iterator[Told]:
    heading = heading_of(passage)
    for span in split_sentences(passage.text)[:READ]:
        sentence = _OWN_HEADING.sub("", span.text)
        duty = duty_of(sentence)
        if duty is None or not duty.deed:  # only "not" stands before its items
            duty = _bare_duty(sentence)
        if duty is None or _NOBODY.match(duty.subject) or (duty.deed and not _is_whole(duty)):
            continue
        if not re.match(r"\w+ (?:it|they|he|this|that)\b", duty.condition):
            condition = "" if _EMPTY.match(duty.condition) else duty.condition
            deed = _LEFT_OUT.sub("", duty.deed).strip()
            yield Told(replace(duty, subject=_uncapitalised(duty.subject), deed=deed, condition=condition), heading)


def _uncapitalised(subject: str) -> str:
    """The subject without the sentence's capital if its next word is in lower case: "Variable pay"."""
    first, _, rest = subject.partition(" ")
    return f"{first.lower()} {rest}" if first[1:].islower() and rest[:1].islower() else subject


def _bare_duty(sentence: str) -> Duty | None:
    """The duty of ``"A Fund Manager must: (a) …"``, whose items say what."""
    head = re.split(r":?\s*(?:\n|\([a-z0-9]{1,4}\))", sentence, maxsplit=1)[0].strip()
    found = _BARE_DUTY.match(head)
    if not found or len(found["subject"].split()) > SHORT:
        return None
    lowered = found["subject"][:1].lower() + found["subject"][1:]
    condition = (found["condition"] or "")[:1].lower() + (found["condition"] or "")[1:]
    return Duty(lowered, found["verb"], (found["no"] or "").strip(), "", "", condition, has_items=True)


def _is_whole(duty: Duty) -> bool:
    """Whether the deed ends at the end of a clause, not at the word limit."""
    rest = duty.whole[len(duty.deed) :]
    is_cut_clause = re.search(r"\b(?:that|whether|how)\b", duty.deed) and not re.match(r"\s*(?:$|[.;])", rest)
    if _NO_VERB.match(duty.deed) or not duty.whole.startswith(duty.deed) or is_cut_clause or _MODAL.search(duty.deed):
        return False
    if duty.has_items and len(rest.split()) < 2:  # the items continue it
        return duty.names_items or len(duty.deed.split()) <= 2
    return " " in duty.deed and bool(_CLAUSE_END.match(rest))


def heading_of(passage: Passage) -> str:
    """The innermost heading without its number, not all in capitals; "" if it says little."""
    last = bare(passage.section.split(SEPARATOR)[-1]).strip(" .–-")
    plain = re.sub(r"^(?:Part|PART|Chapter|Schedule|APP)?\s*[\dA-Z]*[\d.]+\s*", "", last).strip(" .–-")
    if not 2 <= len(plain.split()) <= 9 or re.search(r"\d|[_:,]", plain) or _SAYS_LITTLE.match(plain.lower()):
        return ""
    is_title = any(word[:1].isupper() for word in plain.split()[1:])
    return plain.lower() if plain.isupper() else plain if is_title else plain[:1].lower() + plain[1:]


def kinds_in(passage: Passage) -> tuple[str, ...]:
    """The kinds of question that can be made from this passage alone, in the order of `KINDS`."""
    found = {"definition"} if defined_terms(passage.text) else set()
    for told in told_in(passage):
        found |= {kind for kind in KINDS[:6] if next(_templates(told, kind), "")}
    return tuple(kind for kind in KINDS if kind in found)


@dataclass(frozen=True, slots=True)
class _TemplateWords:
    """The words that fill the templates."""

    subject: str
    verb: str  # must, should, may
    be: str
    do: str
    deed: str
    condition: str  # with a leading space; "" if there is none
    heading: str

    @classmethod
    def of(cls, told: Told) -> _TemplateWords:
        duty, many = told.duty, is_plural(told.duty.subject)
        verb = "must" if duty.verb == "shall" else duty.verb
        condition = f" {duty.condition}" if duty.condition else ""
        be, do = ("are", "do") if many else ("is", "does")
        return cls(duty.subject, verb, be, do, duty.deed, condition, told.heading)


def _obligations(duty: Duty, w: _TemplateWords) -> Iterator[str]:
    first, _, rest = duty.deed.partition(" ")
    if not duty.deed:
        about = w.condition or (f" with regard to {w.heading}" if w.heading else "")
        if about and _PARTY.search(w.subject):
            yield f"What {w.verb} {w.subject} {f'{duty.no} ' if duty.no else ''}do{about}?"
    elif duty.verb != "may" and not duty.no and duty.names_items:
        yield f"What {w.verb} {w.subject} {w.deed}{w.condition}?"
    elif duty.verb != "may" and not duty.no and duty.has_items and len(w.deed.split()) < FEWEST:
        if w.heading and _PARTY.search(w.subject) and first != "have":
            yield f"What {w.verb} {w.subject} {w.deed} with regard to {w.heading}?"
    elif len(w.deed.split()) < FEWEST:
        return
    elif duty.no == "not":
        yield f"{w.be.capitalize()} {w.subject} allowed to {w.deed}{w.condition}?"
        yield f"Is it prohibited for {w.subject} to {w.deed}{w.condition}?"
    elif duty.verb != "may" and not duty.no:
        if re.match(r"(?:an?|the|any|all|its|their|each|every) ", rest) and not _GIVES.match(first):
            yield f"What are the requirements for {w.subject} regarding {rest}{w.condition}?"
            yield f"What obligations {w.do} {w.subject} have with respect to {rest}{w.condition}?"
        yield f"{w.be.capitalize()} {w.subject} required to {w.deed}{w.condition}?"
        yield f"{w.do.capitalize()} {w.subject} have to {w.deed}{w.condition}?"


def _permissions(duty: Duty, w: _TemplateWords) -> Iterator[str]:
    is_whole = len(w.deed.split()) >= FEWEST and not _POSSIBLE.match(w.deed)
    if duty.verb == "may" and not duty.no and is_whole and _PARTY.search(w.subject):
        yield f"May {w.subject} {w.deed}{w.condition}?"
        yield f"{w.be.capitalize()} {w.subject} permitted to {w.deed}{w.condition}?"


def _exceptions(duty: Duty, w: _TemplateWords) -> Iterator[str]:
    before = _before(_UNLESS, duty)
    if before and duty.no == "not":
        yield f"In what exceptional cases may {w.subject} {before}{w.condition}?"
    elif before and duty.verb != "may" and not duty.no:
        yield f"When {w.be} {w.subject} exempt from the requirement to {before}{w.condition}?"
        yield f"Under which circumstances {w.do} {w.subject} not have to {before}{w.condition}?"


def _conditions(duty: Duty, w: _TemplateWords) -> Iterator[str]:
    before = "" if duty.no == "not" else _before(_IF, duty)
    if before and duty.verb == "may" and not _POSSIBLE.match(duty.deed):
        yield f"Under what conditions may {w.subject} {before}{w.condition}?"
    elif before and duty.verb != "may":
        yield f"In which circumstances {w.be} {w.subject} required to {before}{w.condition}?"
    elif duty.verb != "may" and not duty.no and _PARTY.search(w.subject) and _WHEN.match(w.condition):
        yield f"What {w.verb} {w.subject} do{w.condition}?"
        yield f"What is expected of {w.subject}{w.condition}?"


def _deadlines(duty: Duty, w: _TemplateWords) -> Iterator[str]:
    if duty.verb == "may" or duty.no:
        return
    for time, words in ((_OFTEN, "How often"), (_LONG, "For how long"), (_SOON, "How soon")):
        before = _before(time, duty)
        if before and len(read(f"{before}{w.condition}").content) >= (4 if time is _SOON else 3):
            yield f"{words} {w.verb} {w.subject} {before}{w.condition}?"
            return


_TEMPLATES: Final[Mapping[str, Callable[[Duty, _TemplateWords], Iterator[str]]]] = {
    "obligation": _obligations,
    "permission": _permissions,
    "exception": _exceptions,
    "condition": _conditions,
    "deadline": _deadlines,
}


def _templates(told: Told, kind: str) -> Iterator[str]:
    """The questions of this kind that the duty answers."""
    return _TEMPLATES[kind](told.duty, _TemplateWords.of(told)) if kind in _TEMPLATES else iter(())


def _before(pattern: re.Pattern[str], duty: Duty) -> str:
    """The deed before the pattern, or after it if the pattern comes first; "" if it does not match."""
    found = pattern.search(duty.whole)
    if not found:
        return ""
    before, after = duty.whole[: found.start()].strip(" ,;"), duty.whole[found.end() :]
    before = _LEFT_OUT.sub("", before).strip()
    if not before and pattern is _SOON and "," not in found.group():
        before = replace(duty, whole=after.strip()).whole
        before, after = re.split(r"[,;:.]| (?:if|where|when|unless)\b", before)[0].strip(), ""
    event = _EVENT.match(after) if pattern is _SOON and not duty.has_items else None
    if _MODAL.search(before) or re.search(r"\b(?:that|which|who|whether|within)\b", before):
        return ""
    before = f"{before}{event.group()}" if event and len(event.group().split()) <= SHORT else before
    words = before.split()
    ends_well = not re.search(r"[;:]|\b(?:and|or|to|of|that|the|except|only|is|are|be|with|meet)$", before)
    return before if 2 <= len(words) <= 2 * SHORT and ends_well else ""


def is_plural(subject: str) -> bool:
    """Whether the subject takes "are": "Fund Managers", but not "a Fund Manager" or "the process"."""
    if re.match(r"(?:an?|each|every|no|any)\b", subject):
        return False
    head = re.split(r" (?:of|that|who|which|in|for|to|with|on|under|from|by|at|issued|made)\b", subject)[0]
    return bool(_PLURAL.match(head.split()[-1])) or " and " in head


def question(passages: Sequence[Passage], kind: str, persona: str, form: str, chance: random.Random) -> str:
    """A question of this kind that these passages answer together; "" if no template gives an acceptable one.

    The first six of `KINDS` take one passage; ``chance`` chooses among templates.
    """
    texts = [passage.text for passage in passages]
    made = [*(_of_several(passages, kind) if len(passages) > 1 else _of_one(passages[0], kind, form))]
    chance.shuffle(made)
    for plain in made:
        asked = " ".join(_for(persona, plain, kind, chance).split())
        asked = reworded(asked[:1].upper() + asked[1:], texts)
        if not problem(asked, texts, kind):
            return asked
    return ""


def _of_one(passage: Passage, kind: str, form: str) -> Iterator[str]:
    if kind == "definition":
        for term in defined_terms(passage.text)[:3]:
            bare_term = re.sub(r"^(?:An?|The) ", "", term)
            yield f"What does the term {bare_term} mean?"
            yield f"What is meant by {bare_term}?"
            yield f"How do the rules define {bare_term}?"
        return
    for told in told_in(passage):
        if form == "scenario":
            yield from _scenarios(told, kind)
            continue
        for text in _templates(told, kind):
            poor = len(read(text).content - read(told.duty.subject).content) < 4 or re.match(
                r"the [a-z]", told.duty.subject
            )
            lacking = poor and told.heading and not read(told.heading).content & read(text).content
            yield f"In the context of {told.heading}, {text[:1].lower()}{text[1:]}" if lacking else text


def _scenarios(told: Told, kind: str) -> Iterator[str]:
    """``"Suppose an Authorised Person holds Client Assets. Must it keep records?"``."""
    duty, found = told.duty, _CLAUSE.match(told.duty.condition)
    if not found or kind not in ("condition", "obligation") or duty.no:
        return
    who = "it" if read(duty.subject).content <= read(found["clause"]).content else duty.subject
    verb = "must" if duty.verb != "may" else "may"
    yield f"Suppose that {found['clause']}. What {verb} {who} do?"
    if len(duty.deed.split()) > 2:
        yield f"Suppose that {found['clause']}. {verb.capitalize()} {who} {duty.deed}?"


def _of_several(passages: Sequence[Passage], kind: str) -> Iterator[str]:
    """One question that needs all the passages; none if one of them has no duty short enough."""
    several = [[one for one in told_in(p) if _is_short(one.duty)] for p in passages]
    if not all(several):
        return
    duties = [found[0].duty for found in several]
    subjects = {read(duty.subject).content for duty in duties}
    first, last = duties[0], duties[-1]
    if len(passages) > 2:
        if len(subjects) == 1:
            deeds = [f"to {duty.deed}" for duty in duties]
            yield f"What must {first.subject} observe so as {', '.join(deeds[:-1])} and {deeds[-1]}?"
        return
    noun = {"may": "right"}
    parties = all(_PARTY.search(duty.subject) for duty in (first, last))
    if kind == "comparison" and parties and not (first.no or last.no):
        one, other = noun.get(first.verb, "duty"), noun.get(last.verb, "duty")
        if len(subjects) > 1:
            yield (
                f"How does the {one} of {first.subject} to {first.deed} compare with the {other} of {last.subject} to "
                f"{last.deed}?"
            )
        else:
            yield f"How do {first.subject}'s {one} to {first.deed} and its {other} to {last.deed} differ?"
    elif kind != "comparison":
        who = "it" if len(subjects) == 1 and not is_plural(first.subject) else last.subject
        yield f"{_asked(first, first.subject)}, and {_asked(last, who).lower()[:1]}{_asked(last, who)[1:]}?"


def _is_short(duty: Duty) -> bool:
    return 2 <= len(duty.deed.split()) <= SHORT and not duty.has_items and duty.no != "only"


def _asked(duty: Duty, subject: str) -> str:
    """``"Must an Authorised Person keep records"``."""
    if duty.no:
        return f"{'Are' if is_plural(subject) else 'Is'} {subject} allowed to {duty.deed}"
    return f"{'May' if duty.verb == 'may' else 'Must'} {subject} {duty.deed}"


def _for(persona: str, plain: str, kind: str, chance: random.Random) -> str:
    """The question as this persona would ask it."""
    lowered = plain[:1].lower() + plain[1:]
    if persona == "newcomer":
        begins = ("I am new to compliance and would like to know", "In plain words")
        return f"{chance.choice(begins)}: {lowered}"
    if persona == "auditor":
        return f"{chance.choice(('For an audit I have to establish', 'As an auditor I ask'))}: {lowered}"
    return plain
