"""Replaces pronouns that point back by their meaning in the previous turn. Pure, English, by word lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ragqa.conversation.history import Before, lowered
from ragqa.english.phrases import (
    AUXILIARIES,
    BE,
    DETERMINERS,
    PREPOSITIONS,
    WH,
    ParsedSentence,
    Phrase,
    base_of,
    gerund,
    is_base,
    is_participle,
    third_person,
)
from ragqa.english.reading import read
from ragqa.english.words import stem

_EXPLETIVE: Final = re.compile(
    r"it (?:comes to|(?:is )?(?:possible|necessary|permissible|legal|true|mandatory|required|enough|sufficient|allowed"
    r"|ok|fine) (?:to|that|for .+ to)\b)",
    re.IGNORECASE,
)
_POSSESSIVE: Final = {"its": "thing", "their": "many", "his": "person", "her": "person"}
_PRONOUN: Final = re.compile(
    r"\b(?P<thing>it|its)\b|\b(?P<many>they|them|their|these|those)\b|\b(?P<person>he|him|his|she|her)\b"
    r"|\b(?P<event>that|this)\b|\b(?P<place>there)\b|\b(?P<one>one)\b(?=\W*(?:too|as well|also|\Z))",
    re.IGNORECASE,
)
_NOUN_FOLLOWS: Final = re.compile(
    r"\s+(?!(?:is|are|was|were|be|also|still|too|in|on|at|to|for|by|of|and|or|if|when)\b)[a-z]"
)
_CLAUSE_LINK: Final = re.compile(
    r"[,;.]|\b(?:if|when|unless|before|after|while|because|although|once|and|so that|than)\b"
)
_COMPUTERS: Final = re.compile(r" (?:system|risk|incident|service|provider)s?\b| (?:security|infrastructure|staff)\b")
_WHERE: Final = re.compile(r"\b((?:[Ii]n|[Aa]t|[Oo]n|[Nn]ear|[Tt]o) (?:the )?[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*)")
_BOUNDS: Final = frozenset("above below exceed exceeds over than under".split())
_IDIOM: Final = frozenset("make makes made cold hot late".split())  # "made it into", "how cold it gets"
_SINGULAR: Final = {"do": "does", "are": "is", "were": "was", "have": "has", "don't": "doesn't"}
_AMOUNT: Final = re.compile(r"(?:[A-Z]{3} |US\$ ?|[$€£])?\d")
_HOW_MUCH: Final = re.compile(r"\A(?:and )?how (?:much|many|large|big|high|long)\b", re.IGNORECASE)
MANY_WORDS: Final = 6  # words before a pronoun from which it more likely means something in the question itself


def without_pronouns(bare: str, before: Before) -> str:
    """The text with its pronouns replaced, from last to first; empty if none points back."""
    text, meant = bare, ""
    matches = [match for match in _PRONOUN.finditer(bare) if not _is_bound(bare, match)]
    first = {str(match.lastgroup): match for match in reversed(matches)}
    matches = [match for match in matches if first[str(match.lastgroup)] is match or _owns(match, bare)]
    for match in reversed(matches):
        found = _meaning(match, bare, before)
        if not found:
            continue
        meaning, is_many = found
        is_owner = _owns(match, bare)
        if is_owner:
            meaning += "'" if meaning.endswith("s") else "'s"
        head, tail = text[: match.start()], text[match.end() :]
        if match.lastgroup == "many" and not is_many and not is_owner:
            head, tail = _agreeing(head, tail)
        text, meant = head + meaning + tail, meaning
    return text if meant else ""


def _owns(match: re.Match[str], text: str) -> bool:
    word = match[0].lower()
    return word in {"its", "their", "his"} or (word == "her" and bool(_NOUN_FOLLOWS.match(text, match.end())))


def _is_bound(text: str, match: re.Match[str]) -> bool:
    """Whether a pronoun means something in the question itself, or does not point back at all."""
    word, before, after = match[0].lower(), text[: match.start()], text[match.end() :]
    ends = False
    kind, last = str(match.lastgroup), before.lower().rstrip().rpartition(" ")[2].replace("’", "'")
    is_after_be = last in BE or last.endswith("n't")
    if kind == "place" and (is_after_be or re.match(r"\s+(?:is|are|was|were|be|been|any|a|an|no)\b", after)):
        return True
    if kind == "one":
        return last in DETERMINERS | WH | {"this", "that", "last", "first", "only", "anyone", ""}
    if word == "it" and _COMPUTERS.match(after):
        return True
    if kind == "event" or (word in {"these", "those"} and last != "of"):
        ends = not re.match(r"\s+\w", after) or bool(re.match(rf"\s+(?:too|{'|'.join(PREPOSITIONS)})\b", after))
        is_subject = is_after_be or last in AUXILIARIES or not last
        if not (is_subject or (ends and not (word == "that" and re.match(r"\s+\w", after) and last in PREPOSITIONS))):
            return True
        if is_subject and not is_after_be and not last and not re.match(rf"\s+(?:{'|'.join(AUXILIARIES)})\b", after):
            return True
    if _EXPLETIVE.match(text, match.start()) or word.upper() == match[0]:  # "is it possible to …", "IT"
        return True
    if kind == "thing" and last in _IDIOM:
        return True
    named = [
        phrase for phrase in ParsedSentence(before).phrases if phrase.determiner or phrase.is_name or "," in before
    ]
    is_done = kind == "event" and ends and last in PREPOSITIONS  # "… the prize for that?"
    if len(before.split()) >= MANY_WORDS and named and not is_done:
        return True
    fitting = [phrase for phrase in named if phrase.is_plural or phrase.is_person or kind != "many"]
    if kind in {"event", "place"}:
        return bool(fitting) and bool(re.search(r"[,.;]", before[fitting[0].end :]))
    is_apart = _CLAUSE_LINK.search(before[fitting[-1].end :]) if fitting else None
    return bool(fitting) and (bool(is_apart) or word in _POSSESSIVE)


def _agreeing(head: str, tail: str) -> tuple[str, str]:
    """The words around "they", changed to the singular: "do they get" to "does it get", "they pay" to "it pays"."""
    aux = re.search(r"\b(do|are|were|have|don't)(\s+)\Z", head, re.IGNORECASE)
    if aux:
        one = _SINGULAR[aux[1].lower()]
        return head[: aux.start()] + (one.capitalize() if aux[1][0].isupper() else one) + aux[2], tail
    after = re.match(r"(\s+)([\w']+)", tail)
    if not after or head.strip().lower().endswith(tuple(AUXILIARIES)):
        return head, tail
    if after[2].lower() in _SINGULAR:
        return head, after[1] + _SINGULAR[after[2].lower()] + tail[after.end() :]
    verb = ParsedSentence(f"they {after[2]}").verb
    is_finite = head.strip() and verb is not None and base_of(verb.text) == verb.text
    return head, f"{after[1]}{third_person(after[2])}{tail[after.end() :]}" if is_finite else tail


def _meaning(match: re.Match[str], bare: str, before: Before) -> tuple[str, bool] | None:
    """The meaning of a pronoun, and whether it is plural; None if nothing in the previous turn fits."""
    kind, word = str(match.lastgroup), match[0].lower()
    asked = _with_owners([phrase for phrase in before.asked.phrases if not phrase.in_question])
    focus = before.focus() if before.said.text else None
    if kind == "place":
        return _place(before)
    last = bare[: match.start()].lower().rstrip().rpartition(" ")[2]
    if kind == "event":
        if last in _BOUNDS and (amounts := read(before.said.text).quantities):
            return amounts[0].span.text, False
        if focus and _HOW_MUCH.match(bare) and not focus.is_person and not _AMOUNT.match(focus.text):
            return _defined(focus.text, focus), focus.is_plural
        return _event(asked, focus, before)
    if kind == "one":
        ones = [phrase.text for phrase in asked if phrase.determiner in {"a", "an"}]
        is_other = last.endswith(("er", "st", "nd", "rd", "th", "ic", "al"))  # "a second one"
        return (ones[-1].partition(" ")[2] if is_other else ones[-1], False) if ones else None
    outer = (lambda phrases: phrases) if kind == "person" else _outer
    candidates = [*([focus] if focus and before.wants_name else []), *outer(asked), *outer(before.said.phrases)]
    candidates = [
        one for one in candidates if not _AMOUNT.match(one.text) and one.head != "cent" and one.text not in bare
    ]
    fits = _PICK[kind](candidates, word, before)
    if kind == "thing" and re.search(r"\b(?:they|he|she)\b", bare, re.IGNORECASE):  # this pronoun means the person
        people = [*_persons(candidates, word, before)[:1], *(phrase for phrase in fits if phrase.is_person)]
        fits = [phrase for phrase in fits if phrase not in people] or fits
    if kind == "thing" and not _acts(match, bare):
        fits.sort(key=lambda phrase: phrase.is_person and not phrase.is_name)
        fits = _objects_first(fits, before) if _is_object(match, bare) else fits
    if not fits and kind == "thing":
        return _event(asked, focus, before)
    if not fits:
        return None
    chosen = fits[0]
    if chosen.in_question:  # "How many members must a fund have?"
        owner = before.asked.subject if before.asked.text.endswith((" have", " need", " hold")) else None
        return f"the {chosen.text} of {owner.text}" if owner else f"the {chosen.text}", chosen.is_plural
    text = chosen.text if word in _POSSESSIVE or chosen.is_name else chosen.whole if chosen in asked else chosen.text
    return _defined(text, chosen), chosen.is_plural


def _event(asked: Sequence[Phrase], focus: Phrase | None, before: Before) -> tuple[str, bool] | None:
    """The meaning of "that": the thing that was asked for, or the action."""
    which = {stem(phrase.head) for phrase in before.asked.phrases if phrase.in_question}
    if focus and stem(focus.head) in which:
        return _defined(focus.text, focus), focus.is_plural
    verb, after = before.action
    if verb and (before.asked.is_asked_of_subject or before.asked.tokens[0].tag != "wh"):
        return f"{gerund(verb)} {after}".strip(), False
    if asked:
        return _defined(asked[0].whole, asked[0]), asked[0].is_plural
    return None


def _place(before: Before) -> tuple[str, bool] | None:
    """The meaning of "there": a place in the answer or the question."""
    text = f"{before.said.text} {before.asked.text}"
    named = [match[1] for match in _WHERE.finditer(text) if not read(match[1]).dates]
    names = [one for one in (before.focus(), *before.asked.phrases) if one and _is_place(one)]
    return (
        (re.sub(r"\Ato ", "in ", named[0], flags=re.IGNORECASE), False)
        if named
        else (f"in {names[0].text}", False)
        if names
        else None
    )


def _acts(match: re.Match[str], text: str) -> bool:
    """Whether "it" is the subject of an action: "does it have to", "if it refuses"; not "is it valid"."""
    last = text[: match.start()].lower().rstrip().rpartition(" ")[2]
    if (passive := re.match(r" be ([a-z]+)", text[match.end() :])) and is_participle(passive[1]):
        return False
    sentence = ParsedSentence(f"it{text[match.end() :]}")
    after = sentence.tokens[1] if len(sentence.tokens) > 1 else None
    is_finite = after is not None and (after is sentence.verb or after.lower in AUXILIARIES - BE)
    return last in AUXILIARIES - BE or is_finite


def _is_object(match: re.Match[str], text: str) -> bool:
    """Whether "it" stands after a verb: "who invented it"."""
    last = text[: match.start()].lower().rstrip().rpartition(" ")[2]
    return last not in AUXILIARIES and is_base(base_of(last))


def _objects_first(fits: Sequence[Phrase], before: Before) -> list[Phrase]:
    """The phrases with the object first: for "did Galileo invent the telescope", the telescope."""
    verb = before.asked.verb
    if verb is None or before.asked.is_passive:
        return list(fits)
    return sorted(fits, key=lambda phrase: phrase.start != verb.end + 1)


def _with_owners(phrases: Sequence[Phrase]) -> list[Phrase]:
    """The phrases, with a possessive and the person after it as one: "an Auditor's" and "lead partner"."""
    found: list[Phrase] = []
    for phrase in phrases:
        owner = found[-1] if found else None
        if owner and owner.begins_possessive and phrase.is_person and owner.end + 3 >= phrase.start:
            found[-1] = replace(phrase, start=owner.start)
        else:
            found.append(phrase)
    return found


def _outer(phrases: Sequence[Phrase]) -> list[Phrase]:
    """The phrases that are not inside another."""
    return [one for one in phrases if not any(other.start < one.start < other.end for other in phrases)]


def _is_place(phrase: Phrase) -> bool:
    return phrase.is_name and not phrase.is_person and phrase.determiner in {"", "the"} and phrase.text[0].isalpha()


def _persons(candidates: Sequence[Phrase], _word: str, _before: Before) -> list[Phrase]:
    """The single persons: first names without an article, then roles, then other names."""
    single = [phrase for phrase in candidates if not phrase.is_joined and (phrase.is_name or phrase.is_person)]
    return sorted(single, key=lambda phrase: 0 if not phrase.determiner else 1 if phrase.is_person else 2)


def _several(candidates: Sequence[Phrase], word: str, before: Before) -> list[Phrase]:
    """The candidates for "they": plural or counted things and persons; for "them", things come before persons."""
    counted = [phrase for phrase in before.asked.phrases if phrase.in_question and phrase.is_plural]
    focus = [phrase for phrase in candidates[:1] if before.wants_name and (phrase.is_person or phrase.is_joined)]
    several = [phrase for phrase in candidates if phrase.is_plural]
    persons = sorted((phrase for phrase in candidates if phrase.is_person), key=lambda phrase: not phrase.is_plural)
    things = [phrase for phrase in several if not phrase.is_person]
    return [*focus, *counted, *(things if word == "them" else ()), *persons, *several, *candidates]


def _things(candidates: Sequence[Phrase], word: str, before: Before) -> list[Phrase]:
    """The candidates for "it": single things, without the person asked for.

    For "its", the owner comes first: gold in "the boiling point of gold".
    """
    counted = [phrase for phrase in before.asked.phrases if phrase.in_question and not phrase.is_plural]
    single = [
        phrase for phrase in candidates if not phrase.is_plural or (phrase.is_name and phrase.determiner == "the")
    ]
    single = single if any(phrase in before.asked.phrases for phrase in single) else [*counted, *single]
    if before.asked.tokens[0].lower == "who":  # "Who built the bridge?" "Eiffel." "How long is it?"
        apart = before.focus()
        is_copula = before.asked.auxiliary is not None and before.asked.auxiliary.lower in BE
        single = [
            phrase for phrase in single if phrase is not apart and not (is_copula and phrase is before.asked.subject)
        ]
    if before.asked.text.lower().startswith("how much ") and counted:  # "How much capital …?" "How is it calculated?"
        single = [*counted, *single]
    single = single or [phrase for phrase in before.asked.phrases if phrase.is_name]  # "Pride and Prejudice"
    if word == "its" and single and single[0].head_end < single[0].end and not single[0].is_name:
        inner = [one for one in before.asked.phrases if single[0].start < one.start < single[0].end]
        single = [*inner, *single]
    return single


_PICK: Final = {"person": _persons, "many": _several, "thing": _things}


def _defined(text: str, phrase: Phrase) -> str:
    """A phrase for the middle of a question, where a determiner has a small first letter."""
    return lowered(text) if phrase.determiner else text
