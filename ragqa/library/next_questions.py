"""Questions that follow from an answer: what its rules except, time-limit, define and cite. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from ragqa.corpus.citing import cited_number, short_name
from ragqa.corpus.reference_grammar import mentions
from ragqa.english.clauses import is_modal
from ragqa.english.phrases import BE, PRONOUNS, ParsedSentence, TaggedWord, is_base
from ragqa.english.quantities import RECURRENCE
from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.library.register import Obligation, register
from ragqa.library.related import Related
from ragqa.records.view import View
from ragqa.scoring.strength import strength_of
from ragqa.types import Passage

MOST: Final = 3
_LONGEST: Final = 14  # words of what is to be done
_BEGINNING: Final = 4  # characters before a subject: "The "
_DIGITS: Final = re.compile(r"\d+")


def further_questions(view: View, related: Callable[[str], Related | None]) -> tuple[str, ...]:
    """The `next_questions` of this answer; ``related`` gives what is related to a passage by its id."""
    if view.answer is None or view.selection is None:
        return ()
    numbers = {number for sentence in view.answer.sentences for number in sentence.citations}
    cited = [one for number, one in enumerate(view.selection.passages, start=1) if number in numbers]
    known = [(one, found) for one in cited if (found := related(one.passage_id))]
    said = f"{view.question} {view.answer.text}"
    return next_questions([one for one, _ in known], [found for _, found in known], said)[:MOST]


def next_questions(cited: Sequence[Passage], found: Sequence[Related], said: str) -> tuple[str, ...]:
    """Questions on the rules that an answer cites, at most one of each kind: no two read alike.

    ``found`` has what is related to each passage of ``cited``; ``said`` are question and answer: what they say already
    is not asked again. () where the rules except, limit, define and cite nothing.
    """
    near = [refers.targets for one in found for refers in one.refers if not {*refers.targets} & {*cited}]
    limits = _times((*cited, *chain.from_iterable(near)), said)
    kinds = (_exceptions(cited, found), limits, _terms(cited, found, said), _rules(near))
    return tuple(filter(None, (next(kind, "") for kind in kinds)))


def timed_question(row: Obligation) -> str:
    """The question that the row's time limit answers: "By when must a firm tell the client?"; "" without one."""
    who, when = row.parts.party, row.parts.deadline
    if not (row.strength.binds and who and when) or when.start < who.end or "," in who.text:
        return ""
    tokens = ParsedSentence(row.text).tokens
    party = [one for one in tokens if who.start <= one.start < who.end]
    rest = [one for one in tokens if one.start >= who.end]
    deed = [one for one in rest[1:] if one.start < when.start]
    interrogative = _interrogative(row, when.start, when.end)
    if not (interrogative and is_modal(rest[0]) and rest[0].lower not in BE and 2 <= len(deed) <= _LONGEST):
        return ""
    is_named = party[0].lower not in PRONOUNS and party[0].tag != "prep"
    if not is_named or deed[-1].tag not in {"word", "verb"} or not all(map(_is_plain, deed)):
        return ""
    is_measure = deed[-1].lower.endswith("st") and deed[-2].tag in {"prep", "det"}  # "at least", "at the latest"
    if is_measure or any(deed[0].start <= one.span.start < when.start for one in read(row.text).quantities):
        return ""
    name = who.text[:1].lower() + who.text[1:] if party[0].tag == "det" else who.text
    return f"{interrogative} must {name} {row.text[deed[0].start : deed[-1].end]}?"


def _interrogative(row: Obligation, start: int, end: int) -> str:
    found = read(row.text)
    kinds = {one.dimension for one in found.quantities if start <= one.span.start < end}
    if RECURRENCE in kinds:
        return "How often"
    if not (kinds or any(start <= one.span.start < end for one in found.dates)):
        return ""
    words = [one.lower for one in ParsedSentence(row.text[start:end]).tokens]
    if words[0] == "for":
        return "How long"
    return "By when" if {"within", "by", "than", "before"} & {*words} else ""


def _is_plain(token: TaggedWord) -> bool:
    """Whether a deed with this word is one clause without an insertion, a list or a pronoun."""
    return token.tag not in {"mark", "aux", "wh", "link", "pron"}


def _exceptions(cited: Sequence[Passage], found: Sequence[Related]) -> Iterator[str]:
    """When a cited rule does not do what it does: another one denies it ("Paragraph 1 does not apply if …")."""
    for passage, one in zip(cited, found, strict=True):
        digits = _DIGITS.findall(passage.number)
        for sentence in (sentence.text for other in one.referring for sentence in split_sentences(other.text)):
            subject = next(iter(mentions(sentence)), None)
            if subject is None or subject.start > _BEGINNING or strength_of(sentence).binds:
                continue
            own = _DIGITS.findall(sentence[subject.start : subject.end])
            is_meant = any(own == digits[n : n + len(own)] for n in range(len(digits)))
            verb = [token for token in ParsedSentence(sentence).tokens if token.start >= subject.end][:4]
            is_denied = len(verb) == 4 and verb[0].tag == "aux" and verb[1].lower == "not" and is_base(verb[2].lower)
            if own and is_meant and is_denied and verb[3].tag not in {"det", "word"}:  # without an object
                yield f"When does {short_name(passage)} not {verb[2].lower}?"


def _times(passages: Iterable[Passage], said: str) -> Iterator[str]:
    for row in register(passages, advice=False):
        if row.parts.deadline and row.parts.deadline.text not in said and (question := timed_question(row)):
            yield question


def _terms(cited: Sequence[Passage], found: Sequence[Related], said: str) -> Iterator[str]:
    """What a term of several words in question or answer means that another rule defines."""
    known = {one.passage_id for one in cited}
    uses = [use.definition for one in found for use in one.terms]
    terms = (one.term for one in uses if one.passage_id not in known and " " in one.term and one.term in said)
    return (f"What does “{term}” mean?" for term in terms)


def _rules(near: Iterable[Sequence[Passage]]) -> Iterator[str]:
    """What these rules say, each one passage or its paragraphs; a whole chapter is no rule."""
    for passages in filter(None, near):
        heads = {cited_number(one.number).partition("(")[0] for one in passages}
        if len(heads) == 1 and any(heads):
            whole = passages[0] if len(passages) == 1 else replace(passages[0], number=heads.pop())
            yield f"What does {short_name(whole)} say?"
