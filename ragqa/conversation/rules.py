"""Rewrites a follow-up question to stand alone by rules for English: without a model, and deterministic. Pure.

Words that point back ("it", "they", "and for X?", "why?") are replaced by their meaning in the previous turn. The rules
are tried in this order, and the first that applies wins: "does that go for X?" and "and X?", a condition alone ("and if
we do not?"), a question word alone, and pronouns or omitted words. A question that does not point back is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ragqa.conversation.forms import TIME, in_plain_words
from ragqa.conversation.history import Before, Turn, lowered
from ragqa.conversation.pronouns import without_pronouns
from ragqa.english.phrases import (
    AUXILIARIES,
    BE,
    MODALS,
    PREPOSITIONS,
    WH,
    ParsedSentence,
    Phrase,
    base_of,
    gerund,
    is_base,
    is_participle,
)
from ragqa.english.reading import read
from ragqa.english.words import stem

_CONNECTIVE: Final = re.compile(
    r"\A(?:(?:and|but|or|so|then|also|ok|okay|well|now|thanks|yes|no)\b[\s,.]*)+", re.IGNORECASE
)
_ABOUT: Final = re.compile(r"\A(?:what|how) (?:about|of)\s+(?P<x>.+)\Z", re.IGNORECASE)
_SAME: Final = re.compile(
    r"\A(?:does|do|did|is|are|would|can|could|will) (?:that|this|it|the same|those|these|they|the rule)"
    r"(?: also| still)? (?:(?:go(?= for)|apply|hold|count)(?: (?:true|the same))?|be (?:the case|true|the same|so)"
    r"|the (?:same|case)|true|so|different|required|allowed)"
    r" (?P<prep>for|to|of|in|with|at) (?P<x>.+)\Z",
    re.IGNORECASE,
)
_INCLUDES: Final = re.compile(
    r"\A(?:does|do|did|would) (?:that|this)(?: also)? (?:include|extend to|concern) (?P<x>.+)\Z", re.IGNORECASE
)
_THE_SAME: Final = re.compile(
    r"\A(?:(?:is|are) (?:it|that|they) )?(?:the )?(?:same|likewise|ditto)(?: thing| rule| goes)?"
    r" (?P<prep>for|with|to|in) (?P<x>.+)\Z",
    re.IGNORECASE,
)
_TOO: Final = re.compile(r",? (?:too|as well|also|then|instead|though)\Z", re.IGNORECASE)
_CONDITION: Final = re.compile(
    r"\A(?P<what>what(?: happens| would happen| then)?,? )?(?P<even>(?:not )?(?:even|only|also|except) )?"
    r"(?P<if>if|when|unless|in case|once|after|before)"
    r" (?!(?:is|are|was|were|do|does|did|must|may|can|should|will|has|have|how|which|what)\b)(?P<rest>.+)\Z",
    re.IGNORECASE,
)
_DO_NOT: Final = re.compile(
    r"\b(?P<not>(?:do|does|did|can|could|will|would|is|are|has|have)(?: not|n['’]t)|cannot|never do|fails? to)"
    r"(?: (?:do )?(?:so|that|it))?\Z",
    re.IGNORECASE,
)
_DO_SO: Final = re.compile(r"\bdo (?:so|that|this|it)\b", re.IGNORECASE)
_FAILING: Final = re.compile(r"\bnot\b|n['’]t\b|\b(?:fail|miss|refus|late|breach|forget|lose|wrong)", re.IGNORECASE)
_WANTS_OBJECT: Final = frozenset("answer pay file keep hold report notify disclose refuse cancel make submit".split())
_HOW_DONE: Final = re.compile(r"\A(.+?)( (?:too )?(?:late|early|again|twice|in time|on time|in full))\Z", re.IGNORECASE)
_QUESTION_WORD: Final = re.compile(
    r"\A(?P<wh>(?:(?:for|until|till|since|by|from|in|at|on|under|to|with|after|within|through|about|against|into) )?"
    r"(?:who|whom|what|when|where|why|how|which)"
    r"(?: (?:long|soon|often|much|many|far|not|late|early|else|so|high|old))?(?: (?!of\b)[\w-]+){0,3}?)\Z",
    re.IGNORECASE,
)
_ONES: Final = re.compile(r"\A(?:the )?(?P<kind>[\w-]+(?: [\w-]+)?) ones?\Z", re.IGNORECASE)
_CONTRAST: Final = re.compile(  # an adjective that another can replace: "retail", "listed", "British"
    r"(?:[ai]l|ic|ive|ed|ish|[aei]an|ary)\Z|\A(?:big|first|high|large|long|low|new|old|second|short|small)\Z",
    re.IGNORECASE,
)
_WHICH_ONES: Final = re.compile(r"\Awhich(?: ones?)?\Z", re.IGNORECASE)
_KNOWN: Final = re.compile(  # "the plan" without detail: it belongs to the previous topic
    r"\bthe (?!(?:first|last|same|other|only|rest|most|least|world|sun|moon|earth|sea)\b)(?P<noun>[a-z]{3,})"
    r"(?=\W*\Z| (?:good|valid|due|last|lasts|take|takes|cost|costs|then|now|do|be|contain|include|say|says)\b)"
)
_BRIDGE: Final = re.compile(
    r"\b(?:else|others?|another|more|less|instead|otherwise|exceptions?|exemptions?|such|same)\b"
    r"|\A(?:is|are|was|were) there (?:an?|any) \w+(?: \w+)?\Z",
    re.IGNORECASE,
)
_RELATIONAL: Final = re.compile(  # nouns that need an "of": "the deadline" alone is that of the previous topic
    r"\b(?:the|any|there) (?:\w+ )?(?:amount|architect|author|capital|cause|composer|conductor|consequence|cost"
    r"|date|deadline|designer|duration|effect|end|exception|fee|fine|form|founder|frequency|height|inventor|leader|length|limit|maximum"
    r"|minimum|name|notice|number|origin|owner|party|penalty|period|price|procedure|process|purpose|rate|reason|remainder"
    r"|requirement|rest|result|role|sanction|scope|share|size|source|speed|start|summit|threshold|time|total|value|weight"
    rf"|winner|year)s?\b(?=\W*\Z| (?:\w+ed|then|now|too|also|{'|'.join(sorted(AUXILIARIES))})\b)",
    re.IGNORECASE,
)
_ORDINAL: Final = re.compile(
    r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last)\b", re.IGNORECASE
)
_ONLY: Final = re.compile(r"\Aonly ", re.IGNORECASE)
_MOST, _MOST_LINKED, _FEW = 6, 12, 2  # most words of a fragment: alone, after "and", without being a new topic
_CODE: Final = re.compile(r"\b\d\w*\b")
_LEAST_LIKE: Final = 1.0  # least likeness at which a fragment replaces a phrase of the question
_LEAST_LIKE_ONE: Final = 0.0  # ... if the question has only one phrase
_WHO_ELSE: Final = re.compile(r"\Awho (?:else )?(?:did|does|do|can|may|must|should|will|could)\Z", re.IGNORECASE)
_WHO_DOES: Final = re.compile(r"\Awho \w+(?:s|ed)\Z", re.IGNORECASE)
_DECIDES: Final = re.compile(r"\b(?:decide|check|judge|determine|say|assesse?|know|verifie)[sd]\Z", re.IGNORECASE)
MAX_WORDS: Final = 60  # a longer question is not treated as a follow-up
_ORDERS: Final = frozenset("name list tell give explain describe compare show define say".split())
_RULES: Final = frozenset("must may can should shall do does could".split())


def rewritten(follow_up: str, thread: Sequence[Turn]) -> str:
    """The follow-up as a question that stands alone; unchanged if it already does or the thread is empty.

    ``thread`` has the previous questions with their answers, oldest first. Earlier turns are used only if no rule
    applies to the last one.
    """
    text = " ".join(follow_up.split())
    thread = [turn for turn in thread if re.search(r"[^\W_]", turn.question)]
    if not thread or not text or len(text.split()) > MAX_WORDS:
        return text
    bare = _CONNECTIVE.sub("", text).rstrip("?!. ")
    was_linked = bare != text.rstrip("?!. ")
    bare = bare or text.rstrip("?!. ")
    before = Before(thread[-1])
    plain = in_plain_words(bare, before)
    was_linked, bare = was_linked or plain.lower() != bare.lower(), plain
    swapped = partial(_swapped, is_linked=was_linked)
    rules: tuple[Callable[[str, Before], str], ...] = (swapped, _conditional, _question_word, _resolved)
    found = next(filter(None, (rule(bare, before) for rule in rules)), "")
    if not found and len(thread) > 1:
        return rewritten(follow_up, thread[:-1])
    if not found and not was_linked:
        return text
    case = re.match(r"what happens? ((?:if|when) .+)\Z", before.asked.text, re.IGNORECASE)
    if not found and case and len(read(bare).content) <= 2:
        found = f"{bare} {case[1]}"
    return _tidy(found or bare)


def _of_that_kind(kind: str, before: Before) -> str:
    """The previous question with another kind: "high risk" in place of "low risk", "American" of "British"."""
    text, last = before.asked.text, kind.rpartition(" ")[2]
    if " " in kind:
        match = re.search(rf"\b[\w-]+ {re.escape(last)}\b", text, re.IGNORECASE)
        return f"{text[: match.start()]}{kind}{text[match.end() :]}" if match else ""
    phrases = sorted(before.asked.phrases, key=lambda phrase: not phrase.is_plural)
    for phrase in phrases:
        words = phrase.source[phrase.start : phrase.head_end].split()[bool(phrase.determiner) :]
        start = phrase.source.index(words[0], phrase.start)
        if len(words) > 1 and _CONTRAST.search(words[0]):
            return f"{text[:start]}{kind}{text[start + len(words[0]) :]}"
        if phrase.is_plural:
            return f"{text[:start]}{kind} {text[start:]}"
    return ""


def _swapped(bare: str, before: Before, is_linked: bool) -> str:
    """For "And for X?", "What about X?", "Does that go for X?": the previous question with X in its place."""
    match = _SAME.match(bare) or _INCLUDES.match(bare) or _THE_SAME.match(bare) or _ABOUT.match(bare)
    fragment = match["x"] if match else bare
    preposition = match.groupdict().get("prep") or "" if match else ""
    preposition = "for" if preposition.lower() == "to" else preposition  # "does it apply to X?"
    only = _ONLY.match(_TOO.sub("", fragment))
    fragment = re.sub(r"\A(?:not )?(?:even|just|only) ", "", _TOO.sub("", fragment), flags=re.IGNORECASE)
    first, _, rest = fragment.partition(" ")
    if first.lower() in PREPOSITIONS and rest:
        preposition, fragment = first, rest
    is_known = bool(match or preposition or is_linked) or fragment != bare
    if not match and (
        not _is_fragment(bare, _MOST_LINKED if is_linked else _MOST)
        or (_CONDITION.match(bare) and not TIME.fullmatch(bare))
    ):
        return ""
    if not is_known and re.search(r"\w of \w", fragment):  # a new topic, as users type into a search box
        return bare
    if (ones := _ONES.match(fragment)) and (found := _of_that_kind(ones["kind"], before)):
        return found
    fragment = without_pronouns(fragment, before) or fragment
    verb, aux = before.asked.verb, before.asked.auxiliary
    if fragment.rpartition(" ")[2] in PREPOSITIONS and before.asked.phrases:  # "And the framework inside?"
        return f"{before.asked.text[: before.asked.phrases[-1].start]}{fragment} {before.asked.phrases[-1].text}"
    if verb and before.asked.is_passive and " " not in fragment and is_participle(fragment.lower()):
        return f"{before.asked.text[: verb.start]}{fragment}{before.asked.text[verb.end :]}"
    if not match and is_base(first.lower()) and rest and verb and aux and aux.lower in MODALS:
        return f"{before.asked.text[: verb.start]}{fragment}"  # "And take documents away?"
    time = TIME.search(before.asked.text) if preposition else None
    if time and TIME.fullmatch(f"{preposition} {fragment}"):  # "And after 28 days?"
        return f"{before.asked.text[: time.start()]}{preposition.lower()} {fragment}{before.asked.text[time.end() :]}"
    if found := _in_place(fragment, preposition.lower(), before):
        return found
    if not is_known and len(fragment.split()) > _FEW:
        return bare
    clause = before.clause if only else ""
    return f"{clause or before.asked.text} {'only ' if only else ''}{preposition.lower() or 'for'} {fragment}"


def _is_fragment(bare: str, most: int) -> bool:
    """Whether this is only a name or phrase: no question word, no auxiliary, at most ``most`` words."""
    words = [re.sub(r"['’]s\Z", "", word.lower().strip(",")) for word in bare.split()]
    if not words or len(words) > most or words[0] in _ORDERS:
        return False
    return not any(word in AUXILIARIES | WH or word.endswith("n't") for word in words)


def _in_place(fragment: str, preposition: str, before: Before) -> str:
    """The previous question with ``fragment`` in place of the phrase that is most like it; empty if none is."""
    ordinal, place = _ORDINAL.search(fragment), _ORDINAL.search(before.asked.text)
    if ordinal and place and ordinal.end() == len(fragment):  # "And the First?"
        return f"{before.asked.text[: place.start()]}{ordinal[0]}{before.asked.text[place.end() :]}"
    if _CODE.fullmatch(fragment) and len(codes := list(_CODE.finditer(before.asked.text))) == 1:  # "3B" for "3A"
        return f"{before.asked.text[: codes[0].start()]}{fragment}{before.asked.text[codes[0].end() :]}"
    asked, new = before.asked, _as_phrase(fragment)
    if new is None:
        return ""
    scored = [
        (_likeness(new, phrase, preposition), n if phrase.is_name else -n, phrase)  # at a tie, the last of names
        for n, phrase in enumerate(asked.phrases)
        if not (_is_predicate(phrase) or _is_in_name(phrase, asked))
        and (phrase.determiner or not phrase.head.endswith("ing") or new.head.endswith("ing"))
    ]
    if not scored:
        return ""
    likeness, _, phrase = max(scored)
    is_only = len([one for _, _, one in scored if not one.in_question]) == 1 and not phrase.in_question
    if likeness < (_LEAST_LIKE_ONE if is_only else _LEAST_LIKE):
        return ""
    if preposition and likeness < (2.0 if preposition == "for" else 5.0):
        return ""
    if fragment.startswith(f"{phrase.text}'s"):  # "gold's density" after "the melting point of gold"
        phrase = next((one for one in asked.phrases if one.start < phrase.start < one.end), phrase)
    is_part_of = new.determiner == phrase.determiner == "the" and " of " not in new.text and not phrase.is_name
    end = phrase.head_end if is_part_of else phrase.end  # "And the melting point?" after "the density of gold"
    return f"{asked.text[: phrase.start]}{fragment}{asked.text[end:]}"


def _is_predicate(phrase: Phrase) -> bool:
    """Whether the phrase is an adjective after "be" that no list has: "independent"."""
    last = phrase.source[: phrase.start].rstrip().rpartition(" ")[2].lower()
    return last in BE and phrase.start > len(last) + 1 and not (phrase.determiner or phrase.is_name or phrase.is_plural)


def _is_in_name(phrase: Phrase, sentence: ParsedSentence) -> bool:
    """Whether the phrase ends a name: "England" in "the Bank of England", "Prejudice" in "Pride and Prejudice"."""
    return any(one.start < phrase.start < one.end and one.is_name for one in sentence.phrases)


def _as_phrase(fragment: str) -> Phrase | None:
    """The whole fragment as one phrase, even if one of its words could be a verb."""
    words = re.split(r"\s(?:of|for|in|with|from|to|on|at)\s", fragment)[0]
    return Phrase(fragment, 0, len(fragment), len(fragment), len(words)) if words else None


def _likeness(new: Phrase, old: Phrase, preposition: str) -> float:
    """How well ``new`` fits in the place of ``old`` in a question; higher is better."""
    stands_after = old.source[: old.start].rstrip().rpartition(" ")[2].lower()
    is_acronym = new.head.upper() in new.text and len(new.head) > 2 and new.text.split()[-1].isupper()
    points = 4.0 * (stem(new.head) == stem(old.head))
    points += 3.0 * bool(preposition and stands_after == preposition)
    points += 1.5 * (is_acronym and old.head[0] == new.head[-1])
    points += 2.0 if new.is_person == old.is_person else -1.0
    points += 2.0 * (new.is_name and old.is_name) - 1.0 * (new.is_name != old.is_name and not is_acronym)
    points += 1.0 * (new.is_plural == old.is_plural) + 1.0 * (bool(new.determiner) == bool(old.determiner))
    points += 0.5 * (new.determiner == old.determiner)
    return points - 1.0 * old.in_question


def _conditional(bare: str, before: Before) -> str:
    """For "What if they do not?": "what happens if …", or the previous question with that condition."""
    match = _CONDITION.match(bare)
    if not match or (not match["what"] and "," in bare):
        return ""
    rest = _TOO.sub("", match["rest"])
    condition = without_pronouns(f"if {rest}", before).removeprefix("if ") or rest
    verb, after = before.action
    if (not_done := _DO_NOT.search(condition)) and verb:
        aux = not_done["not"]
        aux = re.sub(r"\b(?:is|are|has|have)\b", "does", aux, flags=re.IGNORECASE)
        condition = f"{condition[: not_done.start()]}{aux} {verb} {after}"
    elif not_done and before.asked.is_passive and before.asked.verb:  # "What if it isn't?"
        condition = f"{condition} {before.asked.text[before.asked.verb.start :]}"
    else:
        condition = _with_object(condition, before)
    link = match["if"].lower()
    if match["even"] and before.asked.auxiliary:
        return f"{before.asked.text} {match['even'].lower()}{link} {condition}"
    if _FAILING.search(rest) or "happen" in (match["what"] or "") or not before.asked.auxiliary:
        return f"what happens {link} {condition}"
    return f"{before.asked.text} {link} {condition}"


def _with_object(clause: str, before: Before) -> str:
    """The clause; if it ends with a verb that needs an object, the first thing in the previous question is added."""
    done, how = (match[1], match[2]) if (match := _HOW_DONE.search(clause)) else (clause, "")
    if base_of(done.rpartition(" ")[2].lower()) not in _WANTS_OBJECT:
        return clause
    known = read(clause).stems
    objects = [phrase for phrase in before.asked.phrases if not phrase.in_question and stem(phrase.head) not in known]
    things = [phrase for phrase in objects if not phrase.is_person]
    return f"{done} {lowered(things[0].text)}{how}" if things else clause


def _question_word(bare: str, before: Before) -> str:
    """For "Until when?", "Why?", "In which currency?": the question word before the previous question or answer."""
    aux, doer, rest = before.parts
    if _WHO_ELSE.match(bare) and aux:  # "Who did?" after "Did Galileo invent …?"
        return f"{bare} {rest}"
    bare = re.sub(r"\A(?:why (?:is|was) (?:that|this|it)(?: so)?|how come|why so)\Z", "why", bare, flags=re.IGNORECASE)
    match = _QUESTION_WORD.match(_TOO.sub("", bare))
    if (
        not match
        or ParsedSentence(bare).auxiliary
        or _WHO_DOES.match(bare)
        or (
            len(bare.split()) > 2
            and ParsedSentence(bare).verb
            and not re.search(r"\A\w+ (?:what|which)\b", bare.lower())
        )
    ):
        return ""
    words, clause = match["wh"], before.clause
    if _WHICH_ONES.match(bare) and before.asked.text.lower().startswith("how many "):
        return f"which {before.asked.text[len('how many ') :]}"
    verb, after = before.action
    subject = before.asked.subject
    if _WHICH_ONES.match(bare) and aux and subject and verb and re.fullmatch(r"[\w' -]+", after):
        thing = re.sub(r"\A(?:a|an|the|any|some) ", "", after)
        return f"which {thing} {aux} {subject.text} {verb}"
    asks_how_much = any(phrase.in_question for phrase in before.asked.phrases)
    if asks_how_much and before.statement:
        clause = before.statement
    is_denied = words.lower() == "why" and before.is_denied  # "Is it always the same?" "No." "Why?"
    if (words.lower() == "why not" or is_denied) and aux:
        return f"why {aux} {doer} not {rest}"
    clause = clause[:1].lower() + clause[1:]
    return f"{words} {clause}" if clause else f"{words}, regarding {before.topic}" if before.topic else ""


def _resolved(bare: str, before: Before) -> str:
    """The question with pronouns replaced and omitted words added; empty if it has neither."""
    verb, after = before.action
    if not verb and before.asked.is_passive and before.asked.verb:
        passive = before.asked.verb
        if before.asked.is_asked_of_subject:  # "Can one person do it?" after "Who may be appointed MLRO?"
            verb, after = "be", before.asked.text[passive.start :]
        elif before.asked.subject and is_base(base_of(passive.lower)):
            verb, after = base_of(passive.lower), lowered(before.asked.subject.text)
    if verb:
        deed = f"{verb} {after}"
        bare = _DO_SO.sub(lambda _: deed, bare)  # a function, so that a backslash in the text is not a group
        if before.asked.is_passive and deed in bare:
            return bare
    resolved = without_pronouns(bare, before)
    if resolved:
        return _with_context(_with_object(resolved, before), bare, before)
    verb, after = before.action
    is_somebody = before.asked.subject is not None and before.asked.subject.is_person
    doing = f"{gerund(verb)} {after}" if verb and after and is_somebody else ""
    doer = f"{before.asked.subject.text} " if before.asked.subject and not before.asked.is_asked_of_subject else ""
    if not before.topic:
        return ""
    if _DECIDES.search(bare) and before.asked.auxiliary is before.asked.tokens[0] and before.assertion():
        return f"{bare} whether {before.assertion()}"
    if (noun := _RELATIONAL.search(bare)) and len(read(bare).content) <= 3 and not read(bare).names:
        return f"{bare[: noun.end()]} {f'for {doer}{doing}' if doing else f'of {before.topic}'}{bare[noun.end() :]}"
    is_short = len(read(bare).content) <= 3 and not read(bare).names
    is_simple = not PREPOSITIONS & set(bare.lower().split())
    is_known = _KNOWN.search(bare) and len(read(bare).content) <= 3 + is_simple and not read(bare).names
    if is_known and not read(bare).content & read(before.asked.text).content:
        return f"{bare} {'when' if doing else 'regarding'} {doing or before.topic}"
    return (
        f"{bare} {'when' if doing else 'regarding'} {doing or before.topic}"
        if is_short and (_BRIDGE.search(bare) or _WHO_DOES.match(bare))
        else ""
    )


def _with_context(resolved: str, bare: str, before: Before) -> str:
    """The rewriting with the previous action added, "… when cancelling …", if it has little content by itself."""
    verb, after = before.action
    own = read(bare).content - {stem(word) for word in "get have take need long many much often soon".split()}
    known = read(resolved).stems
    aux = before.asked.auxiliary
    is_rule = aux.lower in _RULES if aux else before.asked.text.lower().startswith("what happens")
    unsaid = {stem(phrase.head) for phrase in ParsedSentence(after).phrases} - known
    says_enough = len(own) > 2 or not unsaid or stem(verb) in known or " when " in resolved
    case = re.search(r"(?<!happens) (?:if|when) .+\Z", before.asked.text)
    if case and is_rule and len(own) <= 3 and not _CONDITION.search(resolved):
        return f"{resolved}{case[0]}"
    if not own or not verb or verb in {"happen", "mean"} or not is_rule or says_enough:
        return resolved
    return f"{resolved} when {gerund(verb)} {after}"


def _tidy(text: str) -> str:
    """The text with single spaces, a capital first letter and one question mark at the end."""
    line = re.sub(r"\s+([,;:?.])", r"\1", " ".join(text.split())).rstrip("?,;. ")
    return f"{line[:1].upper()}{line[1:]}?"
