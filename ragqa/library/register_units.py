"""The sentences and list items of rules, each after its lead-in, also where a rule was cut into passages. Pure.

A passage whose last sentence is continued by the passages numbered below it is read together with them, as if the rule
had not been cut. Where the passage above is not there, the lead-in in a passage's section takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from ragqa.corpus.citing import cited_number
from ragqa.corpus.documents.passages import MAX_LEAD_WORDS, SEPARATOR, is_lead_in
from ragqa.english.clauses import main_modal, opens_clause
from ragqa.english.phrases import ParsedSentence
from ragqa.english.sentences import Item, Listing, reads_as_heading, split_sentences, taken_apart
from ragqa.library.register_parts import row_strength
from ragqa.scoring.strength import strength_of
from ragqa.types import Passage, Span
from ragqa.types.scores import Strength

_OPENED_BY_MARK: Final = re.compile(r"\(?\w{1,4}\)\s")
_JOINED_BY_OR: Final = re.compile(r"\bor\b[\s,;]*(?:\(?\w{1,5}\)\s+)?$")
_COMPARED: Final = re.compile(r"\bthe \w+er of\W*$|\bone of the following\b")
_EXCEPTED: Final = re.compile(r"\b(?:except|unless|only (?:if|when|where))\b[^,;.]*$")
_ANNOUNCES: Final = re.compile(r"\bfollow(?:s|ing)\b[^.;:]*$")  # before a list of its own
_LEAST: Final = 3  # words of a condition
_CONTINUED: Final = (":", "—", "–")
_SHORTENED: Final = " …"  # at the end of a lead-in of more than MAX_LEAD_WORDS words
_RECITAL: Final = re.compile(r"(?:recital\b|\(\d{1,3}[a-z]{0,2}\)(?:\.|$))", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"(?:article|regulation|rule)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RuleUnit:
    """A sentence or item: its span in the passage, and its one-line text after the lead-in.

    ``lead`` is the part of the lead-in that stands in other passages.
    """

    passage: Passage
    span: Span
    text: str
    lead: str = ""


@dataclass(slots=True)
class _CutRule:
    """A passage, and the passages that complete its last sentence."""

    passage: Passage
    sentences: list[Span]
    below: list[_CutRule] = field(default_factory=list)


def units(passages: Iterable[Passage]) -> Iterator[RuleUnit]:
    """The sentences and items of these passages, in order; a list that offers a choice is one unit."""
    for rule in _rules(passages):
        yield from _read(rule, _lead_in_section(rule.passage))


def recitals(passages: Iterable[Passage]) -> frozenset[str]:
    """The ids of the recitals: numbered (1), (2) … before the first article of a document whose rules are articles."""
    found: set[str] = set()
    waiting: dict[str, list[str] | None] = {}  # by document; None behind its first article
    for passage in passages:
        held = waiting.setdefault(passage.document_id, [])
        if held is None:
            continue
        if _ARTICLE.match(cited_number(passage.number)):
            found.update(held)
            waiting[passage.document_id] = None
        elif _RECITAL.match(passage.number):
            held.append(passage.passage_id)
    return frozenset(found)


# A rule that was cut ------------------------------------------------------------------------------------------------


def _rules(passages: Iterable[Passage]) -> Iterator[_CutRule]:
    path: list[_CutRule] = []  # from the first passage of the present rule down to the one before
    for passage in passages:
        rule = _CutRule(passage, list(_sentences(passage.text)))
        above = path
        while above and not _is_below(passage, above[-1].passage):
            above = above[:-1]
        if above and _is_continued(above[-1], passage):
            above[-1].below.append(rule)
            path = [*above, rule]
        else:
            yield from path[:1]
            path = [rule]
    yield from path[:1]


def _is_below(passage: Passage, other: Passage) -> bool:
    number = other.number.rstrip(".")
    return (
        bool(number)
        and passage.document_id == other.document_id
        and passage.number.startswith(f"{number}.")
        and passage.number.rstrip(".") != number
    )


def _is_continued(rule: _CutRule, passage: Passage) -> bool:
    """Whether this passage below the rule completes its last sentence: that is open, and says so by its end.

    Without a colon or dash, the passage's section must name it.
    """
    last = " ".join(rule.sentences[-1].text.split()) if rule.sentences else ""
    if not last or taken_apart(last).items or not is_lead_in(last):
        return False
    words = rule.passage.text.split()
    named = " ".join(words[:MAX_LEAD_WORDS]) + (_SHORTENED if len(words) > MAX_LEAD_WORDS else "")
    return last.endswith(_CONTINUED) or passage.section.endswith(f"{SEPARATOR}{named}")


def _lead_in_section(passage: Passage) -> str:
    """The sentence that the passage completes, by its section; "" where that has headings alone."""
    parts = passage.section.split(SEPARATOR)
    start = len(parts)
    while start and parts[start - 1].endswith((*_CONTINUED, _SHORTENED)):
        start -= 1
    lead = ""
    for part in parts[start:]:
        lead = _after(lead, taken_apart(part.removesuffix(_SHORTENED)).lead.text)
    return lead if main_modal(lead, ParsedSentence(lead).tokens) is not None else ""


def _read(rule: _CutRule, lead: str) -> Iterator[RuleUnit]:
    """The units of a rule; ``lead`` is what its first sentence completes."""
    last = len(rule.sentences) - 1
    for n, sentence in enumerate(rule.sentences):
        above = lead if not n and not _stands_alone(sentence.text, lead) else ""
        if rule.below and n == last:
            yield from _continued(rule, sentence, above)
            continue
        for span, words in _items(sentence.text, taken_apart(sentence.text), above):
            start = sentence.start + span.start
            yield RuleUnit(rule.passage, Span(span.text, start, start + len(span.text)), " ".join(words.split()), above)


def _continued(rule: _CutRule, sentence: Span, lead: str) -> Iterator[RuleUnit]:
    """The passages below this sentence, each after it; the sentence with all of them where they offer a choice."""
    opening = _after(lead, " ".join(taken_apart(sentence.text).lead.text.split()))
    said = [one.sentences[0].text for one in rule.below if one.sentences]
    is_or = len(said) > 1 and bool(_JOINED_BY_OR.search(said[-2]))
    if said and not _is_choice(opening, said[0], is_or=is_or):
        if all(_stands_alone(text, opening) for text in said):
            yield RuleUnit(rule.passage, sentence, _after(lead, " ".join(sentence.text.split())), lead)
        for one in rule.below:
            yield from _read(one, opening)
        return
    yield RuleUnit(rule.passage, sentence, _after(lead, _whole(rule)), lead)
    for one in rule.below:
        yield from _read(_CutRule(one.passage, one.sentences[1:]), "")


def _whole(rule: _CutRule) -> str:
    """The last sentence of a rule with the passages below it, in one line."""
    said, place = [" ".join(one.text.split()) for one in rule.sentences[-1:]], len(rule.passage.number.rstrip(".")) + 1
    for one in rule.below:
        mark, first = one.passage.number[place:].strip(".()"), replace(one, sentences=one.sentences[:1])
        said.append(f"({mark}) {_whole(first)}")
    return " ".join(said)


def _stands_alone(text: str, lead: str) -> bool:
    """Whether a sentence obliges by itself and is no part of this lead-in, which obliges, too, or is a heading."""
    if not (text[:1].isupper() and lead and row_strength(text).is_listed):
        return False
    tokens = ParsedSentence(lead).tokens
    is_clause = main_modal(lead, tokens) is not None or any(map(opens_clause, tokens[:1]))
    return len(tokens) < _LEAST or not is_clause or row_strength(lead).is_listed


def _after(lead: str, text: str) -> str:
    return f"{lead}{':' if _ANNOUNCES.search(lead) else ''} {text}" if lead else text


# A text that is whole -----------------------------------------------------------------------------------------------


def _sentences(text: str) -> Iterator[Span]:
    """Sentences without their headings; a list item that was split off as a sentence is joined to its list."""
    begun: Span | None = None
    for sentence in map(without_headings, split_sentences(text)):
        start = begun.start if begun and _OPENED_BY_MARK.match(sentence.text) else sentence.start
        joined = Span(text[start : sentence.end], start, sentence.end)
        if begun and start == begun.start and len(taken_apart(joined.text).items) > len(taken_apart(begun.text).items):
            begun = joined
            continue
        if begun:
            yield begun
        begun = sentence
    if begun:
        yield begun


def without_headings(sentence: Span) -> Span:
    """The sentence without leading lines that read as headings and have no modal verb."""
    head, _, rest = sentence.text.partition("\n")
    words = rest.lstrip()
    is_heading = (
        words[:1].isupper() and reads_as_heading(head) and main_modal(head, ParsedSentence(head).tokens) is None
    )
    return without_headings(Span(words, sentence.end - len(words), sentence.end)) if is_heading else sentence


def _items(text: str, listing: Listing, lead: str, above: Item | None = None) -> Iterator[tuple[Span, str]]:
    """The items of a sentence or item, each after its lead-in; the whole where it has none or offers a choice.

    ``lead`` is what stands before the text, in another passage.
    """
    items = [item for item in listing.items if (item.above if item.above in listing.items else None) == above]
    opening = _after(lead, above.after(listing.lead) if above else listing.lead.text)
    is_or = bool(items and _JOINED_BY_OR.search(text, 0, items[-1].span.start))
    if items and not _is_choice(opening, items[0].span.text, is_or=is_or):
        for item in items:
            yield from _items(text, listing, lead, item)
    elif above:
        end = max(item.span.end for item in listing.items if item.mark.startswith(above.mark))
        whole = Span(text[above.span.start : end], above.span.start, end)
        yield whole, _after(lead, replace(above, span=whole).after(listing.lead))
    elif lead and not items:
        yield listing.lead, _after(lead, listing.lead.text)
    else:
        yield Span(text, 0, len(text)), _after(lead, text)


def _is_choice(lead: str, first: str, *, is_or: bool) -> bool:
    """Whether the items say nothing by themselves: exceptions, "the greater of", alternatives joined by "or".

    ``first`` is the first item. Bans and occasions joined by "or" are rows: each is forbidden, or obliges.
    """
    if _COMPARED.search(lead) or _EXCEPTED.search(lead):
        return True
    if not is_or:
        return False
    last, strength = ParsedSentence(lead).tokens[-1:], strength_of(f"{lead} {first}")
    is_occasion = any((token.tag == "prep" and token.lower != "to") or opens_clause(token) for token in last)
    return strength is Strength.MAY_ONLY or (strength is not Strength.MUST_NOT and not is_occasion)
